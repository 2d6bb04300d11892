#!/usr/bin/python3
"""Runs every kernel of race_test: ThreadSanitizer must report the planted races, in the marked lines, and nothing else.

usage: check_races.py RACE_TEST     exit status 1 and a line for each kernel with an unexpected outcome
"""
import glob
import os
import re
import subprocess
import sys

RACE_FOUND = 66
TRIES = 40  # attempts for a planted race, since ThreadSanitizer forgets accesses and then does not report them


def marked_lines(kernel):
    """Returns file:line of each "// KERNEL: one side" or "other side" in this folder."""
    places = []
    for path in glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "*.cpp")):
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if re.search(rf"// {kernel}: (one|other) side", line):
                    places.append(f"{os.path.basename(path)}:{number}")
    return places


def fault(program, name):
    """Returns what is wrong with kernel `name`, or None."""
    environment = dict(os.environ, TSAN_OPTIONS="exitcode=66 halt_on_error=0")
    run = subprocess.run([program, name], env=environment, capture_output=True, text=True, timeout=240)
    reports = run.stderr.count("WARNING: ThreadSanitizer: data race")
    if not name.startswith("planted_"):
        return None if run.returncode == 0 and reports == 0 else f"status {run.returncode}, {reports} races\n{run.stderr}"
    if run.returncode != RACE_FOUND or reports == 0:
        return f"status {run.returncode}: the planted race was not found\n{run.stderr}"
    places = marked_lines(name[len("planted_"):])
    missing = [place for place in places if not re.search(re.escape(place) + r"\b", run.stderr)]
    if not places or missing:
        return f"the report does not name {', '.join(missing) or 'a marked line'}\n{run.stderr}"
    if "thread " not in run.stderr or "block (" not in run.stderr:
        return f"the report does not name emulated threads\n{run.stderr}"
    return None


def main():
    program = sys.argv[1]
    names = subprocess.run([program, "--list"], capture_output=True, text=True, check=True).stdout.split()
    faults = 0
    for name in names:
        for _ in range(TRIES if name.startswith("planted_") else 1):
            found = fault(program, name)
            if found is None:
                break
        print(f"{name}: {found or 'as it should be'}")
        faults += found is not None
    return 1 if faults or not names else 0


if __name__ == "__main__":
    sys.exit(main())
