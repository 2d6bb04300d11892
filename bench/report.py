#!/usr/bin/python3
"""Writes docs/performance.md from the JSON Lines in bench/results/; `make figures` calls it.

usage: report.py [--check]     --check: writes nothing; exit status 1 if the document is not what it would write
"""
import glob
import json
import os
import statistics
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DOCUMENT = os.path.join(ROOT, "docs", "performance.md")
HEAD = """# Performance

Written by `bench/report.py` from `bench/results/`; do not edit. One section for each machine on which figures were measured. Each is
measured again by `make figures` (comparisons with PyTorch need `TORCH_PYTHON=/path/to/a/python/that/has/it`; figures of a GPU follow from the
files that `cosmati bench --json` wrote there). Peers run in processes of their own, in turn with ours. Ratios (x) are medians pair by pair: with ≥, of our speed to the
peer's; with ≤, of our time to that of the plain product. Samples and seeds are given as least to largest (how many).

Withdrawn figures were taken against cuDNN's legacy `cudnnFind*Ex` calls; users have its graph interface, which is faster ([measuring.md](measuring.md)). They
are neither met nor short until they have been measured against that.
"""
# The first whose word a figure's name has: the kinds in the order of the document.
KINDS = (("Networks", ("LeNet-5", "MNIST", "DCGAN")),
         ("Epilogues", ("(acc", "*acc", "acc *")),
         ("Compiling and starting", ("compile time", "load from the cache", "start-up", "git clone", "host time", "emulator")),
         ("Convolutions", ("conv", "suite vgg16", "suite resnet50", "suite deepbench", "suite dcgan", "suite lenet", "suite mobilenet",
                           "suite odd")),
         ("Matrix products", ("GEMM", "figure 9", "to cuBLASLt")),
         ("Other operations", ("",)))


def kind_of(figure):
    return next(kind for kind, words in KINDS if any(word in figure for word in words))


def number(value):
    return f"{value:,.0f}" if abs(value) >= 10000 else f"{value:.4g}"


def spread(values):
    """Of a list of samples."""
    if len(values) < 2:
        return number(values[0])
    return f"{number(min(values))} to {number(max(values))} ({len(values)})"


def behind(line):
    """What a figure rests on, in a few words."""
    words = [line["note"]] if "note" in line else []
    if "seeds" in line:
        words.append(f"seeds {spread(list(line['seeds'].values()))}")
    if line.get("samples") and isinstance(line["samples"], list):
        words.append(f"samples {spread(line['samples'])}")
    if isinstance(line.get("ours"), list) and isinstance(line.get("peers"), list):
        words.append(f"ours {number(statistics.median(line['ours']))}, {line.get('peer', 'peer')} {number(statistics.median(line['peers']))}")
    return "; ".join(words)


def withdrawn(line):
    return " to cuDNN" in line["figure"] and line.get("interface") != "graph"


def state(line):
    return "withdrawn" if withdrawn(line) else "met" if line["met"] else "**short**"


def promise(line):
    return f"{'≥' if line['at_least'] else '≤'} {number(line['promised'])} {line['unit']}".strip()


def table(lines):
    text = "| figure | measured | promised | | commit, date | details |\n| --- | ---: | ---: | --- | --- | --- |\n"
    for line in lines:
        text += (f"| {line['figure']} | {number(line['value'])} {line['unit']} | {promise(line)} | {state(line)} | "
                 f"{line['commit']}, {line['date']} | {behind(line)} |\n")
    return text


def document():
    lines = []
    for path in sorted(glob.glob(os.path.join(ROOT, "bench", "results", "*", "figures.jsonl"))):
        with open(path, encoding="utf-8") as file:
            lines += [json.loads(text) for text in file if text.strip()]
    text = HEAD
    measured = [line for line in lines if "reason" not in line]
    for line in measured:  # but for noise
        if line["unit"] == "of peak" and line["value"] > 1.05:
            sys.exit(f"{line['figure']} on {line['machine']}: {number(line['value'])} of the peak; the figure or the peak is wrong, measure again")
    for machine in dict.fromkeys(line["machine"] for line in measured):
        own = [line for line in measured if line["machine"] == machine]
        states = [state(line) for line in own]
        text += f"\n## {machine}\n\n{len(own)} figures, {states.count('met')} met, {states.count('**short**')} short, {states.count('withdrawn')} withdrawn.\n"
        for kind, _ in KINDS:
            if chosen := [line for line in own if kind_of(line["figure"]) == kind]:
                text += f"\n### {kind}\n\n{table(chosen)}"
    if missing := [line for line in lines if "reason" in line]:
        text += "\n## Promised, and measured nowhere yet\n\n| figure | promised | why |\n| --- | ---: | --- |\n"
        text += "".join(f"| {line['figure']} | {promise(line)} | {line['reason']} |\n" for line in missing)
    return text


if __name__ == "__main__":
    if "--check" in sys.argv[1:]:
        with open(DOCUMENT, encoding="utf-8") as present:
            if present.read() != document():
                sys.exit("docs/performance.md is not what bench/report.py writes; run it")
    else:
        with open(DOCUMENT, "w", encoding="utf-8") as output:
            output.write(document())
