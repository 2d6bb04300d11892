#!/usr/bin/python3
"""LeNet-5 trained by processes under mpirun: 2 and 4 of them learn what one learns; when one of 4 is killed the
run ends within seconds, says how to go on, and 1 and 2 processes continue its checkpoint.

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


def train(count, name, *more):
    command = [*mpirun(count), cosmati, "train", "lenet5", "--data", work, "--backend", "cpu", "--threads", "1", *more]
    return command + (["--save", f"{work}/{name}"] if name else [])


def run(count, name, *more):
    done = subprocess.run(train(count, name, *more), capture_output=True, text=True, timeout=120)
    expect(f"{count} processes, {more}", done.returncode == 0, done)
    return done.stdout


write_images("train", 130)
write_images("t10k", 30)
settings = ["--epochs", "2", "--batch", "64", "--json"]
alone = json.loads(run(1, "1.safetensors", *settings).splitlines()[0])
truth = tensors(f"{work}/1.safetensors")
for count in (2, 4):
    lines = [json.loads(line) for line in run(count, f"{count}.safetensors", *settings).splitlines()]
    expect("one process speaks", [line["event"] for line in lines] == ["epoch", "epoch", "result"], lines)
    expect("loss", abs(lines[0]["loss"] - alone["loss"]) < 1e-4, (lines[0], alone))
    found = tensors(f"{work}/{count}.safetensors")
    expect("names", found.keys() == truth.keys(), found.keys())
    furthest = max(abs(a - b) for name in truth for a, b in zip(truth[name], found[name]))
    expect(f"{count} processes learn what one learns", furthest < 1e-4, furthest)

killed = f"{work}/killed.safetensors"
settings = ["--epochs", "30000", "--batch", "64", "--learning-rate", "0.01"]
process = subprocess.Popen(train(4, "killed.safetensors", *settings), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
for _ in range(3):
    process.stdout.readline()  # what is trained, two epochs
children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
expect("4 processes", len(children) >= 4, children)
start = time.time()
os.kill(int(children[-1]), signal.SIGKILL)
try:
    _, words = process.communicate(timeout=30)
except subprocess.TimeoutExpired:
    process.kill()
    sys.exit("FAIL the others did not end within 30 s")
seconds = time.time() - start
expect("the others end in seconds", process.returncode != 0 and seconds < 15, (process.returncode, seconds))
expect("the end is explained", "a process of the run was lost" in words and f"--resume {killed}" in words, words)
for count in (1, 2):
    # Stopped after a while, as by a person: it is long.
    process = subprocess.Popen(train(count, None, "--resume", killed), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdout.readline()
    line = process.stdout.readline()
    process.terminate()
    process.communicate(timeout=30)
    epoch = int(line.split("/")[0].split()[1]) if line.startswith("epoch") else 0
    expect(f"{count} processes go on", epoch > 2, line)
shutil.rmtree(work)
print(f"2 and 4 processes learn what one learns; one of 4 killed: the end after {seconds:.1f} s, continued by 1 and 2")
