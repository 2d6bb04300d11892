#!/usr/bin/python3
"""LeNet-5 and DCGAN trained by devices that share each batch, in processes under mpirun or in threads: they learn
what one device learns; if one of 4 processes is killed the run ends within seconds and says how to continue, and 1, 2 and 3
processes continue its checkpoint.

usage: check_lenet5_ranks.py COSMATI     exit status 77 where there is no mpirun
"""
import array
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

if not shutil.which("mpirun"):
    print("SKIPPED: there is no mpirun here")
    sys.exit(77)
cosmati = os.path.abspath(sys.argv[1])
work = tempfile.mkdtemp(prefix="cosmati_ranks_")


def mpirun(count):
    return ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(count)] if count > 1 else []


def expect(what, condition, detail):
    if not condition:
        sys.exit(f"FAIL {what}: {detail}")


def write_images(split, count):
    draw = random.Random(count)
    labels = bytes(draw.randrange(10) for _ in range(count))
    pixels = b"".join(
        bytes(180 * (y // 5 == label // 5 + 1 and x // 5 == label % 5) + draw.randrange(60) for y in range(28) for x in range(28))
        for label in labels)
    with open(f"{work}/{split}-images-idx3-ubyte", "wb") as file:
        file.write(struct.pack(">IIII", 2051, count, 28, 28) + pixels)
    with open(f"{work}/{split}-labels-idx1-ubyte", "wb") as file:
        file.write(struct.pack(">II", 2049, count) + labels)


def tensors(path):
    with open(path, "rb") as file:
        size = struct.unpack("<Q", file.read(8))[0]
        header, data = json.loads(file.read(size)), file.read()
    return {name: array.array("f", data[slice(*entry["data_offsets"])]) for name, entry in header.items() if name != "__metadata__"}


def train(count, name, *more, network="lenet5"):
    command = [*mpirun(count), cosmati, "train", network, "--data", work, "--backend", "cpu", "--threads", "1", *more]
    return command + (["--save", f"{work}/{name}"] if name else [])


def read(path):
    with open(path, "rb") as file:
        return file.read()


def grids(name):
    """Returns the files of --samples NAME.png by their suffix."""
    files = sorted(file for file in os.listdir(work) if file.startswith(f"{name}-0") and file.endswith(".png"))
    return {file[len(name) + 1:]: read(f"{work}/{file}") for file in files}


def children_of(process):
    return [int(pid) for pid in subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()]


def run(count, name, *more, **options):
    done = subprocess.run(train(count, name, *more, **options), capture_output=True, text=True, timeout=120)
    expect(f"{count} processes, {more}", done.returncode == 0, done)
    return done.stdout


def sentences(*command):
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    expect(command, done.returncode == 2, done)
    return sorted(line for line in done.stderr.splitlines() if line.startswith("cosmati: "))


# An error of all processes is reported once; an error of one process is reported by that process.
for words, word in ((["--data", f"{work}/nowhere"], "nowhere"), (["--dat", "x"], "--dat")):
    told = sentences(*mpirun(4), cosmati, "train", "lenet5", *words, "--backend", "cpu")
    expect(f"one message for {words}", len(told) == 1 and word in told[0], told)
told = sentences(*mpirun(2)[:-2], "-n", "1", cosmati, "train", "lenet5", "--dat", "x", ":", "-n", "1", cosmati, "train", "lenet5", "--seeed", "1")
expect("a message of each process", len(told) == 2 and "--dat " in told[0] and "--seeed" in told[1], told)

write_images("train", 130)
write_images("t10k", 30)
settings = ["--epochs", "2", "--batch", "64", "--json"]
alone = json.loads(run(1, "1.safetensors", *settings).splitlines()[0])
truth = tensors(f"{work}/1.safetensors")
for count, gpus in ((2, 0), (4, 0), (1, 3)):
    lines = [json.loads(line) for line in run(count, f"{count}.safetensors", "--gpus", str(gpus), *settings).splitlines()]
    expect("only one process prints", [line["event"] for line in lines] == ["epoch", "epoch", "result"], lines)
    expect("loss", abs(lines[0]["loss"] - alone["loss"]) < 1e-4, (lines[0], alone))
    found = tensors(f"{work}/{count}.safetensors")
    expect("names", found.keys() == truth.keys(), found.keys())
    furthest = max(abs(a - b) for name in truth for a, b in zip(truth[name], found[name]))
    expect(f"{count} processes of {gpus} devices learn what one learns", furthest < 1e-4, furthest)

settings = ["--steps", "2", "--batch", "8", "--width", "4", "--report", "1", "--json"]
alone = [json.loads(line) for line in run(1, "d.safetensors", *settings, network="dcgan").splitlines()]
for count, gpus in ((2, 0), (1, 2)):
    output = run(count, "d.safetensors", "--gpus", str(gpus), *settings, network="dcgan")
    lines = [json.loads(line) for line in output.splitlines()]
    expect("only one process prints", [line["event"] for line in lines] == ["progress", "progress", "result"], lines)
    for line, truth_line in zip(lines[:2], alone):
        for loss in ("discriminator_loss", "generator_loss"):
            expect(f"DCGAN by {count} processes", abs(line[loss] - truth_line[loss]) < 1e-4, (line, truth_line))

# The ranks use the channels of the weights, which only rank 0 reads.
for count in (1, 2, 3):
    draw = [*mpirun(count), cosmati, "generate", "dcgan", "--backend", "cpu", "--threads", "1", "--weights", f"{work}/d.safetensors", "--count", "10",
            "--batch", "2", "--output", f"{work}/drawn-{count}.npy"]
    done = subprocess.run(draw, capture_output=True, text=True, timeout=120)
    expect(f"{count} processes generate with --width 4", done.returncode == 0 and read(f"{work}/drawn-{count}.npy") == read(f"{work}/drawn-1.npy"), done)

# If one of two LeNet-5 processes is killed, the resumed checkpoint equals that of an uninterrupted run byte for byte.
settings = ["--epochs", "60", "--batch", "64"]
run(2, "whole.safetensors", *settings)
killed = f"{work}/part.safetensors"
process = subprocess.Popen(train(2, "part.safetensors", *settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
for _ in range(4):
    process.stdout.readline()
os.kill(children_of(process)[-1], signal.SIGKILL)
_, words = process.communicate(timeout=30)
expect("a killed process ends the training", process.returncode != 0 and f"--resume {killed}" in words, words)
expect("it was killed before the end", read(killed) != read(f"{work}/whole.safetensors"), killed)
run(2, None, "--resume", killed)
expect("a killed training, resumed: the same bits", read(killed) == read(f"{work}/whole.safetensors"), killed)

# The same for DCGAN: one of two processes is killed after the first checkpoint; the resumed checkpoint and all grids
# have the bytes of an uninterrupted run.
settings = ["--batch", "8", "--width", "2", "--learning-rate", "0.01", "--steps"]  # 16 steps a pass
run(2, "whole.safetensors", *settings, "40", "--samples", f"{work}/whole.png", network="dcgan")
run(1, "alone.safetensors", *settings, "40", "--samples", f"{work}/alone.png", network="dcgan")
killed = f"{work}/gan.safetensors"
process = subprocess.Popen(train(2, "gan.safetensors", *settings, "10000000", "--samples", f"{work}/gan.png", network="dcgan"),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
deadline = time.time() + 60
while time.time() < deadline and not os.path.exists(f"{work}/gan-000032.png"):
    time.sleep(0.01)
os.kill(children_of(process)[-1], signal.SIGKILL)
_, words = process.communicate(timeout=30)
expect("a killed process ends a DCGAN training", process.returncode != 0 and f"--resume {killed}" in words, words)
for name in grids("gan"):
    os.remove(f"{work}/gan-{name}")
run(2, None, "--resume", killed, "--steps", "40", "--samples", f"{work}/gan.png", network="dcgan")
expect("a killed DCGAN training, resumed: the same bits", read(killed) == read(f"{work}/whole.safetensors"), killed)
resumed, whole, alone = grids("gan"), grids("whole"), grids("alone")
expect("grids of all processes", list(whole) == list(alone) == [f"{step:06}.png" for step in (1, 2, 4, 8, 16, 32, 40)], list(whole))
expect("grids of the resumed run", resumed.items() <= whole.items() and len(resumed) >= 2, (list(resumed), list(whole)))

refused = subprocess.run(train(2, None, "--gpus", "2"), capture_output=True, text=True, timeout=60)
expect("one GPU per process", refused.returncode == 2 and "each process trains on one GPU" in refused.stderr, refused)

killed = f"{work}/killed.safetensors"
settings = ["--epochs", "30000", "--batch", "64", "--learning-rate", "0.01"]
process = subprocess.Popen(train(4, "killed.safetensors", *settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
for _ in range(3):
    process.stdout.readline()  # what is trained, two epochs
children = children_of(process)
expect("4 processes", len(children) >= 4, children)
start = time.time()
os.kill(children[-1], signal.SIGKILL)
try:
    _, words = process.communicate(timeout=30)
except subprocess.TimeoutExpired:
    process.kill()
    sys.exit("FAIL the others did not end within 30 s")
seconds = time.time() - start
expect("the others exit within seconds", process.returncode != 0 and seconds < 15, (process.returncode, seconds))
expect("the end is explained", "a process was lost" in words and f"--resume {killed}" in words, words)
for count in (1, 2, 3):
    # Stopped after a while, as by a user, since the training is long.
    process = subprocess.Popen(train(count, None, "--resume", killed), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    line = process.stdout.readline()
    process.terminate()
    process.communicate(timeout=30)
    epoch = int(line.split("/")[0].split()[1]) if line.startswith("epoch") else 0
    expect(f"{count} processes continue", epoch > 2, line)
shutil.rmtree(work)
print(f"2 and 4 processes learn what one learns; one of 4 killed: the end after {seconds:.1f} s, continued by 1, 2 and 3")
