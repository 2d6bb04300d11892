#!/usr/bin/python3
"""Processes under mpirun: messages and sums between 4 ranks, the exit of all ranks if one is lost, and the processors of a rank.

usage: check_ranks.py RANKS     RANKS: the program made of ranks.cpp; exit status 77 where there is no mpirun
"""
import os
import shutil
import subprocess
import sys
import time

if not shutil.which("mpirun"):
    print("SKIPPED: there is no mpirun here")
    sys.exit(77)
ranks = os.path.abspath(sys.argv[1])
mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "4"]


def expect(what, condition, detail):
    if not condition:
        sys.exit(f"FAIL {what}: {detail}")


alone = subprocess.run([ranks, "alone"], capture_output=True, text=True, timeout=60)
expect("alone", alone.returncode == 0 and alone.stdout == "alone\n", alone)
done = subprocess.run([*mpirun, ranks], capture_output=True, text=True, timeout=120)
expect("4 ranks", done.returncode == 0 and sorted(done.stdout.split("\n"))[1:] == [f"rank {r} of 4" for r in range(4)], done)
sums = subprocess.run([*mpirun, ranks, "sums"], capture_output=True, text=True, timeout=120)
expect("a line for each size of a sum", sums.returncode == 0 and sums.stdout.count('"ranks": 4') == 7, sums)
start = time.time()
lost = subprocess.run([*mpirun, ranks, "lose"], capture_output=True, text=True, timeout=60)
expect("a lost rank ends the others", lost.returncode != 0 and time.time() - start < 20, lost)


def processors(*arguments):
    run = subprocess.run([*mpirun[:3], *arguments, ranks, "processors"], capture_output=True, text=True, timeout=60)
    expect("processors", run.returncode == 0, run)
    return [int(line) for line in run.stdout.split()]


here = len(os.sched_getaffinity(0))
for count in (1, 2):
    expect("shares of the processors", set(processors("-n", str(count))) == {max(1, here // count)}, processors("-n", str(count)))
bound = processors("--bind-to", "core", "-n", "1")
expect("a requested binding stays", bound == processors("--map-by", "core", "-n", "1") and (bound[0] < here or here <= 2), (bound, here))
print("4 ranks: messages, sums, the loss of one; the processors of a rank")
