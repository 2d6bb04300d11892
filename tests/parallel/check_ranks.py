#!/usr/bin/python3
"""Processes under mpirun: messages and sums between 4 ranks, and the exit of all ranks if one is lost.

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
print("4 ranks: messages, sums, the loss of one")
