#!/usr/bin/python3
"""Several GPUs of one machine: the same bytes as with one GPU, even if a rank, a process or a GPU is lost.

usage: check_gpus.py COSMATI [--count N]     exit status 77 where there are fewer than two GPUs; N images (60000)
Killed ranks and processes are continued by the same command; a GPU without free memory does not take part.
"""
import argparse
import ctypes
import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

# Takes all memory of a GPU but 8 MiB, prints a line, and keeps the memory until its standard input ends.
HOG = """
import ctypes, sys
cuda = ctypes.CDLL("libcuda.so.1")
def check(status):
    if status: sys.exit(f"error {status} of the driver")
device, context, free, total, memory = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_uint64()
check(cuda.cuInit(0))
check(cuda.cuDeviceGet(ctypes.byref(device), int(sys.argv[1])))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), device))
check(cuda.cuCtxSetCurrent(context))
step = 1 << 30
while step >= 1 << 22:
    check(cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total)))
    if free.value < step + (8 << 20) or cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(step)):
        step //= 2
print("full", flush=True)
sys.stdin.read()
"""
failures = []


def gpu_count():
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    return count.value if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(ctypes.byref(count)) == 0 else 0


def expect(what, condition, detail=""):
    print("ok  " if condition else "FAIL", what, flush=True)
    if not condition:
        failures.append(what)
        print(f"     {str(detail)[:1500]}", flush=True)


def read(path):
    with open(path, "rb") as file:
        return file.read()


def run(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, timeout=120, check=False)
    expect(f"status 0 of {' '.join(map(str, words[-4:]))}", done.returncode == 0, done)
    return done


def images_in(output):
    """Returns the number of images in the files of an unfinished run."""
    try:
        words = read(output + ".progress").split()
        return int(words[1]) if len(words) > 1 else 0
    except OSError:
        return 0


def killed(command, output, of_mpirun):
    """Starts the command, and kills it, or the last of its ranks, as soon as images are in its file. Returns whether images were missing."""
    for _ in range(10):
        process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        while time.time() < deadline and process.poll() is None and images_in(output) == 0:
            time.sleep(0.0005)
        victim = process.pid
        if of_mpirun:
            ranks = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False).stdout.split()
            victim = int(ranks[-1]) if ranks else None
        if victim and process.poll() is None:
            os.kill(victim, signal.SIGKILL)
        process.communicate(timeout=60)
        if process.returncode != 0 and not os.path.exists(output) and images_in(output) > 0:
            return True
        for name in (output, output + ".partial", output + ".progress"):  # it ended, or was killed before the first image
            if os.path.exists(name):
                os.remove(name)
    return False


def check_generating(cosmati, folder, count):
    def command(images, name, *more):
        return [cosmati, "generate", "dcgan", "--backend", "cuda", "--count", images, "--seed", "9", "--batch", "128", "--json", "--output",
                f"{folder}/{name}", *more]

    array, few = ("--output-type", "u8"), 3000
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n"]
    run(*command(count, "one.npy", *array, "--gpus", 1))
    run(*command(few, "one.txt", "--image", f"{folder}/one.bmp", "--gpus", 1))
    whole = read(f"{folder}/one.npy")
    ways = [("2 GPUs", [], ("--gpus", 2))]
    if shutil.which("mpirun"):
        ways += [("2 ranks", [*mpirun, 2], ()), ("3 ranks", [*mpirun, 3], ())]
    else:
        print("SKIPPED: ranks; there is no mpirun here")
    for what, start, more in ways:
        run(*start, *command(few, "x.txt", "--image", f"{folder}/x.bmp", *more))
        expect(f"{what}: the same text and picture", read(f"{folder}/x.txt") == read(f"{folder}/one.txt") and
               read(f"{folder}/x.bmp") == read(f"{folder}/one.bmp"))
        words = [*start, *command(count, "x.npy", *array, *more)]
        expect(f"{what}: killed while images are missing", killed(words, f"{folder}/x.npy", bool(start)))
        record = json.loads(run(*words).stdout.strip().split("\n")[-1])
        expect(f"{what}: the same command continues", 0 < record["resumed_images"] < count, record)
        expect(f"{what}: the same bytes", read(f"{folder}/x.npy") == whole)
        os.remove(f"{folder}/x.npy")

    # A GPU that has no memory left: the other one generates all images.
    with subprocess.Popen([sys.executable, "-c", HOG, "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as hog:
        expect("the memory of GPU 1 is taken", hog.stdout.readline() == "full\n")
        done = run(*command(count, "x.npy", *array, "--gpus", 2))
        expect("a GPU that fails is reported", "device 1 " in done.stderr, done.stderr)
        expect("a GPU that fails: the same bytes", read(f"{folder}/x.npy") == whole)
        hog.stdin.close()


def write_digits(folder, count):
    """Writes an IDX set of `count` images whose labels follow from their brightest row."""
    os.mkdir(folder)
    state = 1
    pixels, labels = bytearray(), bytearray()
    for i in range(count):
        label = i % 10
        labels.append(label)
        for row in range(28):
            for _ in range(28):
                state = (state * 1103515245 + 12345) & 0x7fffffff
                pixels.append(min(255, (state >> 16) % 64 + (160 if row // 2 == label + 2 else 0)))
    for name in ("train", "t10k"):
        with open(f"{folder}/{name}-images-idx3-ubyte", "wb") as file:
            file.write(struct.pack(">4I", 0x803, count, 28, 28) + pixels)
        with open(f"{folder}/{name}-labels-idx1-ubyte", "wb") as file:
            file.write(struct.pack(">2I", 0x801, count) + labels)


def check_training(cosmati, folder):
    """A training by two GPUs that is killed, and resumed from its checkpoint, ends with the bits of one that was not."""
    data = f"{folder}/data"
    write_digits(data, 2000)
    common = ["train", "lenet5", "--backend", "cuda", "--gpus", 2, "--data", data, "--batch", 128]
    whole, part = f"{folder}/whole.safetensors", f"{folder}/part.safetensors"
    run(cosmati, *common, "--epochs", 400, "--save", whole)
    process = subprocess.Popen([str(word) for word in (cosmati, *common, "--epochs", 400, "--save", part)], stdout=subprocess.PIPE, text=True)
    for _ in range(6):
        process.stdout.readline()
    process.kill()
    process.communicate()
    expect("a killed training has a checkpoint", os.path.exists(part) and read(part) != read(whole))
    run(cosmati, "train", "lenet5", "--backend", "cuda", "--gpus", 2, "--data", data, "--resume", part)
    expect("a killed training, resumed: the same bits", read(part) == read(whole))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cosmati")
    parser.add_argument("--count", type=int, default=60000)
    a = parser.parse_args()
    if gpu_count() < 2:
        print(f"SKIPPED: {gpu_count()} GPUs here, two are needed")
        sys.exit(77)
    started = time.time()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        check_generating(os.path.abspath(a.cosmati), folder, a.count)
        check_training(os.path.abspath(a.cosmati), folder)
    print(f"{len(failures)} failed in {time.time() - started:.0f} s")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
