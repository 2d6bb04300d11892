#!/usr/bin/python3
"""Writes docs/performance.md, docs/pictures/speed.svg and the figures that README.md and docs/chapter.md quote from the JSON Lines in bench/results/; `make figures` calls it.

usage: report.py [--check] [COSMATI]     COSMATI: the program of this tree (build/release/bin/cosmati), which prints the digests of kernels
    --check: writes nothing; exit status 1 if a document differs from what it would write, apart from stale marks
A figure is stale if the code measured has changed since, or is not recorded: a GPU's kernels by the digests that `bench --digest`
prints, everything else by the digest of its sources (bench/sources.py).
"""
import collections
import glob
import json
import os
import re
import statistics
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "gpu"))
import rooflines  # noqa: E402
import rows  # noqa: E402
import sources  # noqa: E402
import speed_picture  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
RESULTS = os.path.join(ROOT, "bench", "results")
HEAD = """# Performance

Written by `bench/report.py` from `bench/results/`; do not edit. There is one section per machine. `make figures` measures the figures of a CPU again
(comparisons with PyTorch need `TORCH_PYTHON=/path/to/a/python/that/has/it`), `bench/gpu/figures.sh` those of a GPU; the
last column has the command that measures each figure (`cosmati` is `build/release/bin/cosmati`). [measuring.md](measuring.md) explains the numbers. Ratios (x) are medians over pairs of slices: with ≥,
our speed relative to the peer's; with ≤, our time relative to that of the plain product. Samples and seeds are given as minimum to maximum (count).

A figure is *stale* if the code on which it was measured has changed since, or is not recorded. Withdrawn figures were measured against cuDNN's
legacy `cudnnFind*Ex` calls; users get its graph interface, which is faster. They count as neither met nor short.
"""
STALE = ", *stale*"
# Kinds of figures in the order of the document. A figure belongs to the first kind one of whose words its
# name contains.
KINDS = (("Networks", ("LeNet-5", "MNIST", "DCGAN")),
         ("Epilogues", ("(acc", "*acc", "acc *")),
         ("Compiling and starting", ("compile time", "load from the cache", "start-up", "git clone", "host time", "emulator", "planning", "Llama")),
         ("Convolutions", ("conv", "suite vgg16", "suite resnet50", "suite deepbench", "suite dcgan", "suite lenet", "suite mobilenet",
                           "suite odd")),
         ("Matrix products", ("GEMM", "figure 9", "to cuBLASLt")),
         ("Other operations", ("",)))
# The statistics of a row's problems (bench/gpu/table.txt): name, field, function, unit and factor.
METRICS = {"mean": ("geometric mean", "ratio", statistics.geometric_mean, "x", 1), "least": ("least", "ratio", min, "x", 1),
           "peak": ("least", "share_of_peak", min, "of peak", 1), "copy": ("least", "share_of_copy", min, "of a copy", 1),
           "host": ("median", "host_seconds", statistics.median, "us", 1e6)}


def kind_of(figure):
    return next(kind for kind, words in KINDS if any(word in figure for word in words))


def number(value):
    return f"{value:,.0f}" if abs(value) >= 10000 else f"{value:.4g}"


def spread(values):
    """Formats the range of a list of samples."""
    if len(values) < 2:
        return number(values[0])
    return f"{number(min(values))} to {number(max(values))} ({len(values)})"


def behind(line):
    """Describes the measurements behind a figure in a few words."""
    words = [line["note"]] if "note" in line else []
    if "seeds" in line:
        words.append(f"seeds {spread(list(line['seeds'].values()))}")
    if line.get("samples") and isinstance(line["samples"], list):
        words.append(f"samples {spread(line['samples'])}")
    if isinstance(line.get("ours"), list) and isinstance(line.get("peers"), list):
        words.append(f"ours {number(statistics.median(line['ours']))}, {line.get('peer', 'peer')} {number(statistics.median(line['peers']))}")
    elif "peer_version" in line:
        words.append(line["peer_version"])
    return "; ".join(words)


def plain(name):
    """Escapes a name so that Markdown shows it unchanged, since two asterisks in a line mean emphasis."""
    return name.replace("*", "\\*")


def state(line):
    if " to cuDNN" in line["figure"] and not line.get("peer_version"):
        return "withdrawn"
    return "no promise" if line["promised"] is None else "met" if line["met"] else "**short**"


def promise(line):
    return "" if line["promised"] is None else f"{'≥' if line['at_least'] else '≤'} {number(line['promised'])} {line['unit']}".strip()


def table(lines):
    text = "| figure | measured | promised | | commit, date | details | command |\n| --- | ---: | ---: | --- | --- | --- | --- |\n"
    for line in lines:
        text += (f"| {plain(line['figure'])} | {number(line['value'])} {line['unit']} | {promise(line)} | {state(line)}{STALE if line['stale'] else ''} | "
                 f"{line['commit']}, {line['date']} | {behind(line)} | `{line['command']}` |\n")
    return text


def peer_of(lines):
    """Returns name, version and interface: "cuDNN 9.19.0 (graph)"."""
    versions = sorted({line["peer_version"] for line in lines if line["peer_version"]})
    interfaces = collections.Counter(line["peer_interface"] for line in lines if line["peer_interface"]).most_common()
    return " and ".join(versions) + (f" ({', '.join(f'{name} {count}' for name, count in interfaces)})" if interfaces else "")


def figures_of(row, lines, stale):
    """Yields the figures of one row of the table of a GPU."""
    for word in row.promise.split():
        metric, sign, promised = re.fullmatch(r"([a-z]+)(?:([<>])=([0-9.]+))?", word).groups()
        name, field, choose, unit, factor = METRICS[metric]
        values = [line[field] * factor for line in lines if line[field] is not None]
        if not values:
            continue
        last, value = max(lines, key=lambda line: line["time"]), choose(values)
        note = f"{len(values)} problems, {number(min(values))} to {number(max(values))}; {last['driver']}"
        for count, what in ((sum(bool(line["peer_refusal"]) for line in lines), "refused by the peer"),
                            (sum(line["verified"] is False for line in lines), "**FAILED**"),
                            (sum(line["peer_verified"] is False for line in lines), "where the peer's result differs"),
                            (sum(line["timing"] != "graphs" for line in lines), "timed by single calls")):
            note += f"; {count} {what}" if count else ""
        promised = None if promised is None else float(promised)
        yield {"figure": f"{row.name}, {name}", "value": value, "promised": promised, "unit": unit, "at_least": sign != "<", "note": note,
               "met": all(line["verified"] is not False for line in lines) and (promised is None or (value >= promised) == (sign != "<")), "machine": last["gpu"], "commit": last["commit"][:12],
               "date": time.strftime("%Y-%m-%d", time.gmtime(last["time"])), "command": last["command"], "stale": stale,
               **({"peer_version": peer_of(lines), "peer": peer_of(lines)} if field == "ratio" else {})}


def digests_now(program, folder, commands):
    """Returns the digests of the kernels that this tree would run on the GPU of these results, by command."""
    device = os.path.join(folder, "device.txt")
    return rows.digests(program, device if os.path.exists(device) else "h200", commands)


def gpu_figures(folder, program):
    """Returns the figures of the rows of bench/gpu/table.txt that were measured, and the names of these rows."""
    results = rows.by_command(rows.json_lines(os.path.join(folder, "table.jsonl")))
    now = digests_now(program, folder, results) if program and results else {}
    figures, measured = [], []
    for row in rows.read():
        commands = [command for command in (rows.command(row), rows.command(row, whole=True)) if results.get(command)]
        if not commands:
            continue
        measured.append(row.name)
        command = max(commands, key=lambda one: results[one][-1]["time"])
        figures += figures_of(row, results[command], not rows.is_whole(results[command], now.get(command, [])))
    return figures, measured


def all_figures(program):
    """Returns the figures of all machines, and the rows not measured on any of them. `program`: None if staleness does not matter."""
    lines, missing = [], [row.name for row in rows.read()]
    for folder in sorted(glob.glob(os.path.join(RESULTS, "*"))):
        for path in sorted(glob.glob(os.path.join(folder, "*.jsonl"))):
            if os.path.basename(path) not in ("figures.jsonl", "former.jsonl"):
                continue
            for line in rows.json_lines(path):
                line["stale"] = "digest" not in line or line["digest"] != sources.digest(line["sources"])
                lines.append(line)
        figures, measured = gpu_figures(folder, program)
        lines += figures
        missing = [name for name in missing if name not in measured]
    return lines, missing


def document(lines, missing):
    text, layers = HEAD, rooflines.tables(RESULTS)
    measured = [line for line in lines if "reason" not in line]
    for line in measured:  # apart from noise
        if line["unit"] == "of peak" and line["value"] > 1.05:
            sys.exit(f"{line['figure']} on {line['machine']}: {number(line['value'])} of the peak; the figure or the peak is wrong, measure again")
    for machine in dict.fromkeys(line["machine"] for line in measured):
        own = [line for line in measured if line["machine"] == machine]
        states = [state(line) for line in own]
        text += (f"\n## {machine}\n\n{len(own)} figures, {states.count('met')} met, {states.count('**short**')} short, "
                 f"{states.count('withdrawn')} withdrawn, {sum(line['stale'] for line in own)} stale.\n")
        for kind, _ in KINDS:
            if chosen := [line for line in own if kind_of(line["figure"]) == kind]:
                text += f"\n### {kind}\n\n{table(chosen)}"
        text += layers.get(machine, "")
    if unmeasured := [line for line in lines if "reason" in line]:
        text += "\n## Promised, and measured nowhere yet\n\n| figure | promised | why |\n| --- | ---: | --- |\n"
        text += "".join(f"| {plain(line['figure'])} | {promise(line)} | {line['reason']} |\n" for line in unmeasured)
    if missing:
        text += "\n## Rows of bench/gpu/table.txt that were not measured\n\n" + "".join(f"- {name}\n" for name in missing)
    return text


BEGIN, END = "<!-- written by bench/report.py -->\n", "<!-- end -->\n"


def ratios_by_peer(lines):
    """Yields (machine, peer, ratios): our speed to that of each peer, for one problem or as the mean of a group."""
    groups = collections.defaultdict(list)
    for line in lines:
        if line.get("unit") == "x" and line["at_least"] and "reason" not in line and "peer" in line and not line["figure"].endswith(", least"):
            version = line.get("peer_version") or line["peer"]
            groups[line["machine"], " ".join(version.split()[:2]).rstrip(",")].append(line["value"])
    return [(machine, peer, values) for (machine, peer), values in groups.items()]


def quotes(lines):
    """Returns the README's table: each peer by name, with the figures in which we are slower."""
    text = ("| on | our speed relative to | figures | minimum | maximum | below 1 |\n| --- | --- | ---: | ---: | ---: | ---: |\n")
    for machine, peer, values in ratios_by_peer(lines):
        interface = ", the better of its graph interface and its legacy calls" if peer.startswith("cuDNN") else ""
        text += (f"| {machine} | {peer}{interface} | {len(values)} | {number(min(values))} x | {number(max(values))} x | "
                 f"{sum(value < 1 for value in values)} |\n")
    return text


def figure9(lines):
    """Returns the table of docs/chapter.md: the means of figure 9's four layouts, by type and machine."""
    found = {}
    for line in lines:
        if "reason" not in line and (name := re.fullmatch(r"figure 9, (.*), four layouts, to cuBLASLt, geometric mean", line["figure"])):
            found.setdefault(name[1], {})[line["machine"]] = f"{number(line['value'])}{STALE if line['stale'] else ''}"
    machines = list(dict.fromkeys(machine for row in found.values() for machine in row))
    rows = [["type", *machines], ["---", *["---:"] * len(machines)], *([name, *(row.get(one, "") for one in machines)] for name, row in found.items())]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_table(path, table):
    """Returns the text of a document with `table` in the place that is marked for it."""
    with open(path, encoding="utf-8") as file:
        head, rest = file.read().split(BEGIN)
    return head + BEGIN + table + END + rest.split(END)[1]


def without_stale(text):
    return re.sub(r", \d+ stale\.", ".", text.replace(STALE, ""))


def main():
    words = [word for word in sys.argv[1:] if word != "--check"]
    check = "--check" in sys.argv[1:]
    program = None if check else os.path.abspath(words[0] if words else os.path.join(ROOT, "build", "release", "bin", "cosmati"))
    lines, missing = all_figures(program)
    readme, docs = os.path.join(ROOT, "README.md"), os.path.join(ROOT, "docs")
    documents = {os.path.join(docs, "performance.md"): document(lines, missing), readme: with_table(readme, quotes(lines)),
                 os.path.join(docs, "chapter.md"): with_table(os.path.join(docs, "chapter.md"), figure9(lines)),
                 os.path.join(docs, "pictures", "speed.svg"): speed_picture.picture(ratios_by_peer(lines))}
    for path, text in documents.items():
        if check:
            with open(path, encoding="utf-8") as present:
                if without_stale(present.read()) != without_stale(text):
                    sys.exit(f"{os.path.relpath(path, ROOT)} is not what bench/report.py writes; run it")
        else:
            with open(path, "w", encoding="utf-8") as output:
                output.write(text)
    if not check:
        print(f"{sum(line.get('stale', False) for line in lines)} of {len(lines)} figures are stale; {len(missing)} rows of GPUs are not measured")


if __name__ == "__main__":
    main()
