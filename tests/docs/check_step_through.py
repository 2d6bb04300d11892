#!/usr/bin/python3
"""Runs the gdb session of docs/step-through.md, and compares gdb's output with the page.

usage: check_step_through.py PROGRAM     exit status 1 and a line for each difference; 77 if there is no gdb, or if debuggers may not attach (a container without ptrace)

A line of the page must equal a line that its command printed, in the same order; gdb may print more. Line numbers are omitted
in the page, and "..." stands for anything.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PAGE = os.path.join(ROOT, "docs", "step-through.md")
MARK = "===== command "


def session():
    """Returns [(line number, command, lines that follow)] of the page."""
    steps = []
    with open(PAGE, encoding="utf-8") as page:
        inside = False
        for number, line in enumerate(page, 1):
            inside = line.startswith("    (gdb) ") or (inside and line.startswith("    "))
            if not inside:
                continue
            text = line.strip()
            if text.startswith("(gdb) "):
                steps.append((number, text.removeprefix("(gdb) "), []))
            else:
                steps[-1][2].append((number, text))
    return steps


def plain(line):
    """Removes source line numbers and repeated spaces."""
    return " ".join(re.sub(r"^\d+\t", "", line).split())


def fits(expected, line):
    pattern = ".*".join(re.escape(plain(part)) for part in expected.split("..."))
    return re.fullmatch(pattern.replace(r"\ .*", " ?.*"), plain(line)) is not None


def main():
    program = sys.argv[1]
    gdb = shutil.which("gdb")
    if gdb is None:
        print("SKIPPED: there is no gdb here (apt-get install gdb)")
        sys.exit(77)
    probe = subprocess.run([gdb, "-nx", "-batch", "-ex", "run", "/bin/true"], capture_output=True, text=True, timeout=60)
    if "exited normally" not in probe.stdout:
        print(f"SKIPPED: gdb cannot run a program here: {probe.stderr.strip()}")
        sys.exit(77)
    if "address space randomization" in probe.stderr:
        print("SKIPPED: gdb cannot give a program the same addresses in every run here")
        sys.exit(77)
    # gdb before 14 cannot restore the registers of a processor with AMX, which it does after each call of a function.
    calls = subprocess.run([gdb, "-nx", "-batch", "-ex", "break main", "-ex", "run", "-ex", "print (int)getpid()", program],
                           capture_output=True, text=True, timeout=60)
    if "extended state" in calls.stderr:
        print(f"SKIPPED: this gdb cannot call functions of a program on this processor: {calls.stderr.strip().splitlines()[-1]}")
        sys.exit(77)
    steps = session()
    if len(steps) < 40:
        sys.exit(f"{PAGE}: only {len(steps)} commands were found")
    with tempfile.NamedTemporaryFile("w", suffix=".gdb") as script:
        script.write("set debuginfod enabled off\nset width 0\n")
        for index, (_, command, _) in enumerate(steps):
            script.write(f"echo \\n{MARK}{index}\\n\n{command}\n")
        script.flush()
        result = subprocess.run([gdb, "-nx", "-q", "-batch", "-x", script.name, program], capture_output=True, text=True,
                                timeout=400, cwd=ROOT, env=dict(os.environ, LC_ALL="C", OMP_WAIT_POLICY="passive"))
    printed = [[] for _ in steps]
    current = []
    for line in result.stdout.splitlines():
        if line.startswith(MARK):
            current = printed[int(line.removeprefix(MARK))]
        else:
            current.append(line)
    wrong = 0
    for (_, command, expected), lines in zip(steps, printed):
        at = 0
        for number, text in expected:
            found = next((i for i in range(at, len(lines)) if fits(text, lines[i])), None)
            if found is None:
                wrong += 1
                print(f"{PAGE}:{number}: '{command}' does not print\n    {text}\nbut\n    " + "\n    ".join(line[:200] for line in lines))
            else:
                at = found + 1
    if wrong or result.returncode != 0:
        sys.exit(f"{wrong} lines differ; gdb ended with status {result.returncode}\n{result.stderr[-2000:]}")
    print(f"{len(steps)} commands, {sum(len(expected) for _, _, expected in steps)} lines as in the page")


main()
