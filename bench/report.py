#!/usr/bin/python3
"""Writes docs/performance.md from the JSON Lines in bench/results/; `make figures` calls it."""
import glob
import json
import os

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
HEAD = """# Performance

Written by `bench/report.py` from `bench/results/`; do not edit. Every figure is measured again by `make figures` (comparisons with
PyTorch need `TORCH_PYTHON=/path/to/a/python/that/has/it`). Peers run in processes of their own, in turn with ours; ratios are medians of
the ratios pair by pair.
"""


def samples(line):
    """The spread behind a figure, in a few words."""
    words = [line["note"]] if "note" in line else []
    if "seeds" in line:
        words.append("seeds " + ", ".join(f"{seed}: {value:.2f}" for seed, value in line["seeds"].items()))
    for key, name in (("samples", "samples"), ("ours", "ours"), ("peers", line.get("peer", "peer"))):
        if isinstance(line.get(key), list):
            words.append(f"{name} " + ", ".join(f"{value:.4g}" for value in line[key]))
    return "; ".join(words)


def table(path):
    """One file of results as a table."""
    with open(path, encoding="utf-8") as file:
        lines = [json.loads(text) for text in file if text.strip()]
    if not lines:
        return ""
    newest = max(lines, key=lambda line: line["date"])
    state = (newest["commit"], newest["date"])
    text = f"\n## {newest['machine']}\n\nCommit {state[0]}, {state[1]}, where no other is named.\n\n"
    text += "| figure | measured | promised | | behind it |\n| --- | ---: | ---: | --- | --- |\n"
    for line in lines:
        sign = "≥" if line["at_least"] else "≤"
        if "reason" in line:
            text += f"| {line['figure']} | | {sign} {line['promised']:g} {line['unit']} | not measured here | {line['reason']} |\n"
            continue
        verdict = "met" if line["met"] else "**short**"
        behind = [samples(line)] if samples(line) else []
        if (line["commit"], line["date"]) != state:
            behind.append(f"commit {line['commit']}, {line['date']}")
        text += (f"| {line['figure']} | {line['value']:.5g} {line['unit']} | {sign} {line['promised']:g} {line['unit']} | "
                 f"{verdict} | {'; '.join(behind)} |\n")
    return text


results = sorted(glob.glob(os.path.join(ROOT, "bench", "results", "*", "figures.jsonl")))
with open(os.path.join(ROOT, "docs", "performance.md"), "w", encoding="utf-8") as output:
    output.write(HEAD + "".join(table(path) for path in results))
