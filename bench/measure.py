"""Runs the program and its peers and records their results; used by figures.py. As a script, prints the commit that results record."""
import datetime
import json
import os
import platform
import statistics
import subprocess
import time

import sources

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def commit():
    """Returns COSMATI_COMMIT if it is set (for a copy of the tree without its repository), else the commit checked out, with a + if
    the tree differs from it in more than results."""
    def git(*arguments):
        return subprocess.run(["git", "-C", ROOT, *arguments], capture_output=True, text=True).stdout.strip()
    if told := os.environ.get("COSMATI_COMMIT"):
        return told
    return (git("rev-parse", "--short=12", "HEAD") or "unknown") + ("+" if git("status", "--porcelain", "-uno", "--", ".", ":!bench/results") else "")


def machine():
    """Returns the processor's name and the number of cores."""
    model, flags = platform.processor() or platform.machine(), ""
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        for line in file:
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                model = value.strip()
            elif key.strip() == "flags":
                flags = value
    level = "AVX-512" if " avx512f" in flags else "AVX2" if " avx2" in flags else "x86-64"
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {level}"


def json_lines(command, **options):
    """Runs the command and returns its JSON Lines as dictionaries. If it fails, raises RuntimeError with its error output."""
    result = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if result.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {result.returncode}: {result.stderr.strip()[-500:]}")
    return [json.loads(line) for line in result.stdout.splitlines() if line.startswith("{")]


def torch_name(python):
    """Returns the name with its version: "PyTorch 2.11.0+cpu"."""
    return "PyTorch " + subprocess.run([python, "-c", "import torch; print(torch.__version__)"], capture_output=True, text=True, check=True).stdout.strip()


def seconds_of(command, times=5):
    """Returns the median wall time of the whole process."""
    samples = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run([str(word) for word in command], capture_output=True, check=True)
        samples.append(time.perf_counter() - start)
    return statistics.median(samples)


def alternate(ours, theirs, times=5):
    """Calls ours() and theirs() alternately. Returns both lists of samples, and the median of the pairwise ratios."""
    pairs = [(ours(), theirs()) for _ in range(times)]
    return [a for a, _ in pairs], [b for _, b in pairs], statistics.median(a / b for a, b in pairs)


class Results:
    """A file with one JSON line per figure and machine, and the figures that fell short. A figure measured again replaces its
    line; the others, and those of other machines, are kept, with their own commit and date."""

    def __init__(self, path, where=None):
        self.path = path
        self.short = []
        self.count = 0
        self.base = {"commit": commit(), "machine": where or machine(),
                     "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d")}
        self.lines, self.of_other_machines = {}, []
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                known = [json.loads(text) for text in file if text.startswith("{")]
            self.lines = {line["figure"]: line for line in known if line["machine"] == self.base["machine"]}
            self.of_other_machines = [line for line in known if line["machine"] != self.base["machine"]]

    def begin(self, command, names):
        """Sets the command that measures the following figures, and the set of their sources (bench/sources.py)."""
        self.base.update(command=command, sources=names, digest=sources.digest(names))

    def keep(self, line):
        self.lines[line["figure"]] = dict(self.base, **line)
        with open(self.path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(one) + "\n" for one in (*self.lines.values(), *self.of_other_machines))

    def report(self, name, value, promised, unit, at_least=True, **details):
        """Prints whether the figure is met or by how much it falls short, and writes its line."""
        met = value >= promised if at_least else value <= promised
        difference = abs(value - promised)
        verdict = "met" if met else f"SHORT by {difference:.4g} {unit}"
        sign = ">=" if at_least else "<="
        print(f"{name:58} {value:12.5g} {sign} {promised:<9g} {unit:10} {verdict}", flush=True)
        self.keep(dict(figure=name, value=value, promised=promised, unit=unit, at_least=at_least, met=met, **details))
        self.count += 1
        if not met:
            self.short.append(name)

    def skip(self, name, reason, **promise):
        """Prints why this machine cannot measure a figure; with a promise, also writes a line."""
        print(f"{name:58} not measured: {reason}", flush=True)
        if promise:
            self.keep(dict(figure=name, reason=reason, **promise))


if __name__ == "__main__":
    print(commit())
