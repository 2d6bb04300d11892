#!/usr/bin/python3
"""`cosmati generate dcgan` on several devices and ranks: the same bytes as on one device, even if a rank is killed.

usage: check_generate.py COSMATI [--slow]     exit status 77 where there is no mpirun
--slow: COSMATI was built with sanitizers
"""
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

COSMATI = os.path.abspath(sys.argv[1])
# mpirun kills ranks a second after SIGTERM; on a busy machine they need longer to say what is done.
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--mca", "odls_base_sigkill_timeout", "4", "-n", "4"]
failures = []


def expect(what, condition, detail=""):
    if not condition:
        failures.append(what)
        print(f"FAIL {what}: {str(detail)[:1500]}")


def read(path):
    with open(path, "rb") as file:
        return file.read()


def network(path):
    """Filters scaled by their depth; beta, gamma, mean and variance near 0, 1, 0, 1."""
    random = np.random.default_rng(3)
    channels = [512, 256, 128, 64, 3]
    parts = [random.uniform(-0.2, 0.2, 100 * 8192), random.uniform(-0.1, 0.1, 8192)]
    for i, count in enumerate(channels):
        if i > 0:
            scale = 1.5 / np.sqrt(channels[i - 1] * 6)
            parts += [random.uniform(-scale, scale, 25 * count * channels[i - 1]), random.uniform(-0.1, 0.1, count)]
        if i < 4:
            parts += [random.uniform(-0.3, 0.3, count), random.uniform(0.7, 1.3, count),
                      random.uniform(-0.3, 0.3, count), random.uniform(0.7, 1.3, count)]
    np.concatenate(parts).astype("<f4").tofile(path)


def images_in(output):
    """Returns the number of images in the files of an unfinished run."""
    try:
        words = read(output + ".progress").split()
        return int(words[1]) if len(words) > 1 else 0
    except OSError:
        return 0


def stopped(command, output, last, beyond):
    """Starts 4 ranks, and stops one of them when more images than `beyond` are in the files."""
    for _ in range(20):
        run = subprocess.Popen([*MPIRUN, *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 120
        while time.time() < deadline and run.poll() is None and images_in(output) <= beyond:
            time.sleep(0.002)
        ranks = [int(pid) for pid in subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout.split()]
        if ranks:
            rank = max(ranks) if last else min(ranks)
            try:
                os.kill(rank, signal.SIGSTOP)
                if read(f"/proc/{rank}/stat").rsplit(b")", 1)[1].split()[0] != b"Z":
                    return run, rank
            except OSError:
                pass
        print("the run ended before its rank was stopped; again:", run.communicate(timeout=60))
        clear(output)
        beyond = 0
    return None, None


def clear(output):
    """Removes an output, its picture and the files of an unfinished run."""
    for name in glob.glob(glob.escape(os.path.splitext(output)[0]) + ".*"):
        os.remove(name)


def killed_in_mid_run(command, output, one, count, last, beyond):
    """Kills a rank when some images are in the files: returns status, stderr, how long the others lived, and the number of images.

    one: the file of one process. If the rank was killed after everything was written, the file is complete and the run is repeated."""
    for _ in range(20):
        run, rank = stopped(command, output, last, beyond)
        if not run:
            return None
        os.kill(rank, signal.SIGKILL)
        killed = time.time()
        error = run.communicate(timeout=60)[1]
        seconds = time.time() - killed
        if not os.path.exists(output) and images_in(output) < count:
            return run.returncode, error, seconds, images_in(output)
        expect("a file that looks complete is complete", not os.path.exists(output) or read(output) == read(one))
        print("all images were in the files when the rank was killed; again")
        clear(output)
        beyond = 0
    return None


def check_faults(folder, command, run):
    """Ranks that write text and a picture together: if one fails, the bytes are still those of one process."""
    count = 181
    one = f"{folder}/fault-one.txt"
    run(*command(count, one, "--image", f"{folder}/fault-one.bmp"))

    def expect_same(what, output):
        expect(f"{what}: the same text", read(f"{output}.txt") == read(one))
        expect(f"{what}: the same picture", read(f"{output}.bmp") == read(f"{folder}/fault-one.bmp"))
        left = [name for name in os.listdir(os.path.dirname(output)) if name.endswith((".partial", ".progress"))]
        expect(f"{what}: no file is left", not left, left)

    def both(output, images=count):
        return command(images, f"{output}.txt", "--image", f"{output}.bmp")

    for output in (f"{folder}/fault-ranks",):
        run(*MPIRUN, *both(output))
        expect_same("text of 4 ranks", output)

    # If a rank is suspended for a while, the others continue as far as its chunk permits.
    slow = f"{folder}/fault-slow"
    process, rank = stopped(both(slow), f"{slow}.txt", True, 0)
    if process:
        time.sleep(1)
        os.kill(rank, signal.SIGCONT)
    expect("a slow rank: status 0", process and process.wait(120) == 0, process and process.communicate())
    expect_same("a slow rank", slow)

    # Killed while all ranks write, or on a full file system: the same command continues both.
    lost = f"{folder}/fault-lost"
    killed = killed_in_mid_run(both(lost), f"{lost}.txt", one, count, True, 0)
    expect("a rank lost while all write text", killed is not None and killed[0] != 0, killed)
    expect("no text file that looks complete", not os.path.exists(f"{lost}.txt") and not os.path.exists(f"{lost}.bmp"))
    progress = f"{lost}.txt.progress"
    key = read(progress).split()[0].decode() if os.path.exists(progress) else "no run was killed before its end"
    record = json.loads(run(*MPIRUN, *both(lost), "--json").strip().split("\n")[-1])
    expect("only the missing images are computed for the text", 0 < record["resumed_images"] < count, record)
    expect_same("a rank lost while all write", lost)

    # The first images are at the end of a bitmap: files that have four of the fourteen columns are continued, shorter ones are not.
    text, picture = read(one), read(f"{folder}/fault-one.bmp")
    text_at = sum(len(line) + 1 for line in text.split(b"\n")[:5])
    for missing, resumed in ((0, 4), (1, 0)):
        clear(f"{lost}.txt")
        with open(f"{lost}.txt.partial", "wb") as file:
            file.write(text[:text_at])
        with open(f"{lost}.bmp.partial", "wb") as file:
            file.write(picture[:len(picture) - 10 * 64 * 3 - missing])
        with open(progress, "w", encoding="ascii") as file:
            file.write(f"{key} 4 {text_at}")
        record = json.loads(run(*both(lost), "--json").strip().split("\n")[-1])
        expect(f"four columns of a bitmap less {missing} bytes: {resumed} images are kept", record["resumed_images"] == resumed, record)
        expect_same("four columns", lost)

    full = f"{folder}/full"
    os.mkdir(full)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", full], capture_output=True, check=False).returncode == 0
    # Open MPI's own files have 4 MiB.
    limited = [] if mounted else ["bash", "-c", 'ulimit -f 5120; exec "$@"', "limited"]
    try:
        for start in (MPIRUN, []):
            done = subprocess.run([*start, *limited, *both(f"{full}/x")], capture_output=True, text=True, timeout=120, check=False)
            expect("a full file system is reported", done.returncode != 0 and
                   ("No space left on device" if mounted else "File too large") in done.stderr, done)
            expect("a full file system: no text file that looks complete", not os.path.exists(f"{full}/x.txt"))
        if mounted:
            subprocess.run(["mount", "-o", "remount,size=64m", full], check=True)
        record = json.loads(run(*MPIRUN, *both(f"{full}/x"), "--json").strip().split("\n")[-1])
        expect("images written before it was full are kept", 0 < record["resumed_images"] < count, record)
        expect_same("a file system that was full", f"{full}/x")
    finally:
        if mounted:
            subprocess.run(["umount", full], check=True)

    # Rank 0's folder is not that of ranks 1 and 2; rank 2 has different files of the same names.
    for name in ("here", "empty", "other"):
        os.mkdir(f"{folder}/{name}")
    for name in ("x.txt.partial", "x.bmp.partial"):
        with open(f"{folder}/other/{name}", "wb") as file:
            file.write(b"precious" * 1000)
    apart = ["mpirun", "--allow-run-as-root", "--oversubscribe"]
    for i, name in enumerate(("here", "empty", "other", "here")):
        apart += [":"] * (i > 0) + ["-n", "1", "--wdir", f"{folder}/{name}", *both("x")]
    done = subprocess.run(apart, capture_output=True, text=True, timeout=120, check=False)
    expect("ranks without the files: status 0", done.returncode == 0, done)
    expect("ranks without the files are reported", "send their images to rank 0: 1, 2" in done.stderr, done.stderr)
    expect_same("ranks without the files", f"{folder}/here/x")
    expect("files of others are kept", read(f"{folder}/other/x.txt.partial") == b"precious" * 1000 and not os.listdir(f"{folder}/empty"))

    # More ranks than chunks or images.
    for images in (1, 2, 5):
        run(*both(f"{folder}/few-one", images))
        run(*MPIRUN, *both(f"{folder}/few", images))
        expect(f"4 ranks, {images} images", read(f"{folder}/few.txt") == read(f"{folder}/few-one.txt") and
               read(f"{folder}/few.bmp") == read(f"{folder}/few-one.bmp"))
    with open(f"{folder}/none.txt", "w", encoding="ascii") as file:
        file.write("0\n")
    words = both(f"{folder}/few")
    words[words.index("--count"):words.index("--batch")] = ["--input", f"{folder}/none.txt"]
    before = read(f"{folder}/few.txt")
    none = subprocess.run([*MPIRUN, *words], capture_output=True, text=True, timeout=60, check=False)
    expect("no images: one sentence, and the files are kept", none.returncode == 2 and none.stderr.count("'0' is not a count") == 1
           and read(f"{folder}/few.txt") == before, none)

    # A pipe: its reader gets all bytes at once, in order, and the picture is a file.
    pipe, images = f"{folder}/pipe.txt", 33
    run(*both(f"{folder}/piped", images))
    os.mkfifo(pipe)
    with open(f"{folder}/received.txt", "wb") as received, subprocess.Popen(["cat", pipe], stdout=received) as reader:
        run(*MPIRUN, *both(f"{folder}/pipe", images))
        reader.wait(60)
    expect("4 ranks into a pipe", read(f"{folder}/received.txt") == read(f"{folder}/piped.txt"))
    expect("4 ranks into a pipe: the picture", read(f"{folder}/pipe.bmp") == read(f"{folder}/piped.bmp"))

    # Arrays without a header.
    for kind in ("u8", "f32"):
        run(*command(9, f"{folder}/a.npy", "--output-type", kind))
        run(*MPIRUN, *command(9, f"{folder}/a.raw", "--output-type", kind))
        expect(f".raw of {kind}", read(f"{folder}/a.raw") == np.load(f"{folder}/a.npy").tobytes())


def main(folder):
    weights = f"{folder}/network.bin"
    network(weights)

    def command(count, output, *more):
        return [COSMATI, "generate", "dcgan", "--backend", "cpu", "--weights", weights, "--count", str(count), "--seed", "9",
                "--batch", "4", "--threads", "1", "--output", output, *more]

    def run(*words):
        done = subprocess.run(words, capture_output=True, text=True, timeout=300)
        expect(f"status 0 of {words[-6:]}", done.returncode == 0, done)
        return done.stdout

    count = 203 if "--slow" in sys.argv[2:] else 603
    one = f"{folder}/one.npy"
    run(*command(count, one, "--image", f"{folder}/one.bmp"))
    expect("all images", np.load(one).shape == (count, 64, 64, 3))
    run(*command(count, f"{folder}/many.npy", "--image", f"{folder}/many.bmp", "--gpus", "3"))
    expect("3 devices of a process: the same bytes", read(f"{folder}/many.npy") == read(one))
    run(*MPIRUN, *command(count, f"{folder}/ranks.npy", "--image", f"{folder}/ranks.bmp"))
    expect("4 ranks: the same bytes", read(f"{folder}/ranks.npy") == read(one))
    expect("4 ranks: the same picture", read(f"{folder}/ranks.bmp") == read(f"{folder}/one.bmp") == read(f"{folder}/many.bmp"))

    # A rank is killed; the same command completes the run.
    lost = f"{folder}/lost.npy"
    words = command(count, lost, "--image", f"{folder}/lost.bmp", "--json")
    done = 0
    for last in (True, False):
        result = killed_in_mid_run(words, lost, one, count, last, done)
        if result is None:
            expect("a run that is killed before its end", False)
            continue
        status, error, seconds, done = result
        expect("a lost rank ends the run within seconds", status != 0 and seconds < 15, (status, seconds, error))
        expect("the message of a lost rank", not last or "images are done" in error, error)
        expect("no file that looks complete", not os.path.exists(lost))
    record = json.loads(run(*MPIRUN, *words).strip().split("\n")[-1])
    expect("only the missing images are computed", 0 < record["resumed_images"] < count, record)
    expect("continued: the same bytes", read(lost) == read(one))
    expect("continued: the same picture", read(f"{folder}/lost.bmp") == read(f"{folder}/one.bmp"))
    expect("no file is left", not glob.glob(f"{folder}/*.partial") and not glob.glob(f"{folder}/*.progress"), os.listdir(folder))

    check_faults(folder, command, run)

    # A different request does not continue the files.
    first = f"{folder}/other.npy"
    with open(first + ".progress", "w", encoding="ascii") as file:
        file.write("0123456789abcdef 100 4915328 0")
    with open(first + ".partial", "wb") as file:
        file.write(b"\0" * 4915328)
    record = json.loads(run(*command(count, first, "--json")).strip().split("\n")[-1])
    expect("files of another request are replaced", record["resumed_images"] == 0 and read(first) == read(one), record)

    # Ranks that have nothing to write.
    measured = command(64, one)
    measured[measured.index("--output"):] = ["--measure", "host", "--json"]
    record = json.loads(run(*MPIRUN, *measured).strip().split("\n")[-1])
    expect("4 ranks, only measured", record["images"] == 64, record)
    saved = f"{folder}/saved.safetensors"
    run(*MPIRUN, COSMATI, "generate", "dcgan", "--backend", "cpu", "--weights", weights, "--save-weights", saved)
    expect("4 ranks, weights saved by one", os.path.getsize(saved) > 10_000_000)

    bad = subprocess.run([*MPIRUN, *command(0, one)], capture_output=True, text=True, timeout=60)
    expect("a bad request of 4 ranks: one sentence", bad.returncode == 2 and bad.stderr.count("--count 0 is out of range") == 1, bad)


if not shutil.which("mpirun"):
    print("SKIPPED: there is no mpirun here")
    sys.exit(77)
started = time.time()
with tempfile.TemporaryDirectory() as temporary:
    main(temporary)
print(f"{len(failures)} failed in {time.time() - started:.0f} s")
sys.exit(1 if failures else 0)
