#!/usr/bin/python3
"""Measures scaling over devices and processes, fits a model, and writes the tables of docs/scale.md and docs/report.md.

usage: scale.py measure COSMATI --data FOLDER [--gpus 1,2] [--ranks 1,2,4,8] [--only WORD] [--card h200|h100] [--out FILE] [--repeat N]
       scale.py sums RANKS [--ranks 2,4,8] [--out FILE]     sums over processes by size; RANKS: build/release/bin/cosmati_ranks
       scale.py fit            the terms of the model, and its predictions for 64 and 1,000 GPUs
       scale.py write [--check]     both pages, between their markers; --check writes nothing, exit status 1 if one differs
FOLDER: Fashion-MNIST or MNIST. With --gpus it measures the devices of one process, else processes on the CPU with one thread each.
Each measurement is one JSON line; a line measured again replaces the previous one. Files are written to /dev/shm if it exists.
"""
import argparse
import collections
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from measure import ROOT, commit, machine  # noqa: E402

RESULTS = os.path.join(ROOT, "bench", "results")
SCALE, REPORT = (os.path.join(ROOT, "docs", name) for name in ("scale.md", "report.md"))
BEGIN, END = "<!-- written by bench/scale.py write -->\n", "<!-- end of what bench/scale.py writes -->\n"
PROCESSOR_COUNTS = (10, 100, 1000)  # image counts of input1.txt, input2.txt and input3.txt
CARDS = ("h200", "h100")  # folders of bench/results with measurements of several GPUs
COUNTS = (10, 100, 880, 1000, 2224, 2512, 4856, 5248)  # image counts of the report's table 4
THEIRS = {1: (39, 65, 248, 278, 485, 536, 955, 1014), 2: (88, 102, 197, 224, 362, 391, 603, 647), 4: (154, 155, 224, 236, 311, 333, 506, 504)}  # ms
IMAGES = 60000  # images of MNIST or Fashion-MNIST per epoch
FASTEST_LINK = 50e9  # bytes/s of a node's network link, assumed
LATENCY = 5e-6  # seconds per message between nodes, assumed
GRADIENT_BYTES = 4 * (5_134_915 + 4_315_585)  # both networks of DCGAN at width 64
SMALL_SUMS = 26  # sums per DCGAN step for the statistics of batch normalizations, forward and backward


# ---- measuring ----

def run(command, **options):
    """Returns the JSON Lines of a command, and its seconds including the start of its processes."""
    start = time.perf_counter()
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}: {done.stderr.strip()[-500:]}")
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")], time.perf_counter() - start


def rate_of(work, lines):
    if work.startswith("generate"):
        line = lines[-1]
        return line["images"] / line["seconds_with_files" if work.endswith("files") else "seconds"]
    rates = [line["images_per_second"] for line in lines if line["event"] in ("epoch", "progress")]
    return statistics.median(rates[1:] or rates)  # the first one includes preparing kernels and recording graphs


def commands(a, places, on_gpus, folder):
    """Yields (work, scaling, images per step or in total, arguments) for this number of devices or processes."""
    generate = ["generate", "dcgan", "--weights", a.weights, "--json"]
    files = ["--output", f"{folder}/o.txt", "--image", f"{folder}/o.bmp"]
    train = ["--data", a.data, "--json", "--save", f"{folder}/m.safetensors"]
    if on_gpus:
        for batch in (1024, 4096):
            for work, words in (("train lenet5, one kernel", []), ("train lenet5", ["--layered"])):
                yield work, "weak", batch, ["train", "lenet5", *train, *words, "--batch", batch * places, "--epochs", 8]
        yield "train lenet5, one kernel", "strong", 4096, ["train", "lenet5", *train, "--batch", 4096, "--epochs", 8]
        dcgan = ["train", "dcgan", *train, "--steps", 300, "--report", 100, "--type", "tf32"]
        yield "train dcgan", "weak", 256, [*dcgan, "--batch", 256 * places]
        yield "train dcgan", "strong", 256, [*dcgan, "--batch", 256]
        for data_type in ("tf32", "bf16"):  # as data-parallel training in PyTorch
            yield (f"train dcgan {data_type}, statistics per GPU", "weak", 256,
                   [*dcgan[:-1], data_type, "--batch", 256 * places, "--statistics", "device"])
        for where in ("device", "host"):
            yield f"generate dcgan f32, {where}", "strong", 400000, [*generate, "--count", 400000, "--measure", where]
        for count in COUNTS:
            yield "generate dcgan f32, host", "strong", count, [*generate, "--count", count, "--measure", "host"]
            yield "generate dcgan f32, files", "strong", count, [*generate, "--count", count, *files]
        return
    yield "train lenet5", "weak", 256, ["train", "lenet5", *train, "--batch", 256 * places, "--epochs", 3]
    yield "train lenet5", "strong", 1024, ["train", "lenet5", *train, "--batch", 1024, "--epochs", 3]
    dcgan = ["train", "dcgan", *train, "--width", 16, "--steps", 24, "--report", 8]
    yield "train dcgan", "weak", 16, [*dcgan, "--batch", 16 * places]
    yield "train dcgan", "strong", 64, [*dcgan, "--batch", 64]
    for count in (256, *PROCESSOR_COUNTS):
        batch = min(16, count // 5)
        yield "generate dcgan f32, host", "strong", count, [*generate, "--count", count, "--batch", batch, "--measure", "host"]
        yield "generate dcgan f32, files", "strong", count, [*generate, "--count", count, "--batch", batch, *files]


def measure(a):
    on_gpus = bool(a.gpus)
    lines = {key_of(line): line for line in read(a.out)}
    for places in a.gpus or a.ranks:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            for work, scaling, images, words in commands(a, places, on_gpus, folder):
                if a.only not in work:
                    continue
                if on_gpus:
                    command = [a.cosmati, *words, "--backend", "cuda", "--gpus", places]
                else:
                    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", places]
                    command = [*mpirun, a.cosmati, *words, "--backend", "cpu", "--threads", 1]
                samples = [run(command) for _ in range(a.repeat)]
                line = {"work": work, "scaling": scaling, "images": images, "places": places, "kind": "gpus" if on_gpus else "ranks",
                        "images_per_second": statistics.median(rate_of(work, found) for found, _ in samples),
                        "command_seconds": statistics.median(seconds for _, seconds in samples), "samples": a.repeat,
                        "commit": commit(), "machine": a.machine or machine()}
                lines[key_of(line)] = line
                print(json.dumps(line), flush=True)
                with open(a.out, "w", encoding="utf-8") as file:
                    file.writelines(json.dumps(one) + "\n" for one in lines.values())


def measure_sums(a):
    lines = {key_of(line): line for line in read(a.out)}
    for places in a.ranks:
        found, _ = run(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-n", places, a.program, "sums"])
        for one in found:
            line = {"work": "sum", "scaling": "none", "images": one["bytes"], "places": places, "kind": "sums", "bytes": one["bytes"],
                    "seconds": one["seconds"], "median_seconds": one["median_seconds"], "commit": commit(), "machine": a.machine or machine()}
            lines[key_of(line)] = line
    with open(a.out, "w", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in lines.values())


def key_of(line):
    if "kind" not in line:  # the line comes from another program
        return json.dumps(line)
    return tuple(line[name] for name in ("kind", "work", "scaling", "images", "places"))


def read(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


# ---- results ----

def gpu_rates(card="h200"):
    """Returns {(work, scaling, images): {GPUs: images/s}}, from this script and, for generating on H200s, from a measurement by hand (f59b6b4)."""
    rates = collections.defaultdict(dict)
    lines = read(os.path.join(RESULTS, card, "scale.jsonl"))
    for line in lines:
        words = line.get("run", "").split()
        if line.get("run") == "table 4":
            rates["generate dcgan f32, host", "strong", line["images"]][line["devices"]] = line["images_per_second"]
        if words and words[0] == "generate" and "gpus" in words:
            places = int(words[words.index("gpus") + 1])
            rates[f"generate dcgan {words[1]}, {words[2]}", "strong", line["images"]][places] = line["images_per_second"]
    for line in lines:
        if line.get("kind") == "gpus":
            rates[line["work"], line["scaling"], line["images"]][line["places"]] = line["images_per_second"]
    return rates


def rank_lines():
    return [line for line in read(os.path.join(RESULTS, "cpu", "scale.jsonl")) if line.get("kind") == "ranks"]


# ---- the model ----

def fit_epoch(series):
    """Fits several series {n: images/s}, by images per device and step, to the seconds of an epoch T(n) = host + device / n + steps(n) * sums,
    where sums count for n > 1 only. Returns host, sums, device of each series and the largest error of T, by least squares over all series."""
    import numpy
    rows, seconds = [], []
    for number, (batch, rates) in enumerate(series.items()):
        for places, rate in sorted(rates.items()):
            own = [1 / places if i == number else 0 for i in range(len(series))]
            rows.append([1, math.ceil(IMAGES / (batch * places)) if places > 1 else 0, *own])
            seconds.append(IMAGES / rate)
    rows, seconds = numpy.array(rows), numpy.array(seconds)
    host, sums, *devices = numpy.linalg.lstsq(rows, seconds, rcond=None)[0]
    return host, sums, devices, abs(rows @ numpy.array([host, sums, *devices]) / seconds - 1).max()


def epoch_rate(host, sums, device, batch, places):
    steps = math.ceil(IMAGES / (batch * places))
    return IMAGES / (host + device / places + (steps * sums if places > 1 else 0))


def reduce_seconds(places, bytes_):
    """Returns the seconds of a ring all-reduce at the speed of a node's link, plus the latency of a tree."""
    return 2 * (places - 1) / places * bytes_ / FASTEST_LINK + 2 * math.ceil(math.log2(places)) * LATENCY


def dcgan_step(rates, places, batch=256):
    """Predicts the seconds of a step on GPUs of several nodes: as measured on one, plus the second pass of normalizations as on four, plus sums."""
    one = batch / rates[1]
    normalization = 4 * batch / rates[4] - one
    return one + normalization + reduce_seconds(places, GRADIENT_BYTES) + SMALL_SUMS * reduce_seconds(places, 4096)


def model_text():
    rates = gpu_rates()
    host, sums, (_, device), error = fit_epoch({batch: rates["train lenet5", "weak", batch] for batch in (1024, 4096)})
    dcgan = rates["train dcgan", "weak", 256]
    text = ["| term | value | from |", "| --- | ---: | --- |",
            f"| LeNet-5, 4096 per GPU: an epoch's work on one device | {device * 1e3:.2f} ms | fit over 1024 and 4096 per GPU, layer by layer, on 1, 2, 4 GPUs: four terms, six times, error at most {error * 100:.1f} % |",
            f"| ... the host's part of an epoch (shuffle, rows, fingerprints) | {host * 1e3:.2f} ms | the same fit |",
            f"| ... sums of a step that do not overlap | {sums * 1e6:.0f} us | the same fit |",
            f"| DCGAN tf32, 256 per GPU: a step on one device | {256e3 / dcgan[1]:.2f} ms | measured |",
            f"| ... more on four (normalizations in two passes, {SMALL_SUMS} small sums, {GRADIENT_BYTES / 1e6:.0f} MB of gradients) | "
            f"{(1024e3 / dcgan[4]) - 256e3 / dcgan[1]:.2f} ms | measured |",
            f"| a message between nodes | {LATENCY * 1e6:.0f} us, {FASTEST_LINK / 1e9:.0f} GB/s per node | assumed |",
            f"| generating f32, per GPU | {rates['generate dcgan f32, host', 'strong', 400000][1]:,.0f} images/s | measured, in host memory |", ""]
    serial = [epoch_rate(host, sums, device, 4096, places) for places in (1, 2, 4)]
    overlapped = [epoch_rate(0, sums, device, 4096, places) for places in (1, 2, 4)]
    text += ["| | 2 | 4 | 64 | 1,000 |", "| --- | ---: | ---: | ---: | ---: |",
             f"| LeNet-5, weak, the host's part between epochs | {serial[1] / serial[0]:.2f}x | {serial[2] / serial[0]:.2f}x | | |",
             f"| ... all of it while the devices work (predicted, at most) | {overlapped[1] / overlapped[0]:.2f}x | {overlapped[2] / overlapped[0]:.2f}x | a batch would hold all images | |"]
    scaled = [places * (256 / dcgan[1]) / dcgan_step(dcgan, places) for places in (64, 1000)]
    own = rates["train dcgan tf32, statistics per GPU", "weak", 256]  # no pass more than on one, and one small sum
    own_scaled = [places * (256 / own[1]) / (1024 / own[4] + reduce_seconds(places, GRADIENT_BYTES) + reduce_seconds(places, 4096)) for places in (64, 1000)]
    text += [f"| DCGAN, weak, 256 per GPU | {dcgan[2] / dcgan[1]:.2f}x (measured) | {dcgan[4] / dcgan[1]:.2f}x (measured) | {scaled[0]:.0f}x | {scaled[1]:.0f}x |",
             f"| ... statistics per GPU | {own[2] / own[1]:.2f}x (measured) | {own[4] / own[1]:.2f}x (measured) | {own_scaled[0]:.0f}x | {own_scaled[1]:.0f}x |"]
    each = rates["generate dcgan f32, host", "strong", 400000][1]
    text += [f"| generating f32, into host memory | 1.99x (measured) | 3.98x (measured) | {64 * each / 1e6:.1f} M images/s | {1000 * each / 1e6:.0f} M images/s |",
             f"| ... bytes of 8-bit images to write | | | {64 * each * 12288 / 1e9:.0f} GB/s | {1000 * each * 12288 / 1e12:.2f} TB/s |"]
    return "\n".join(text) + "\n"


def fit_sums(places):
    """Fits t = latency + bytes / bandwidth to sums over processes of this host by least squares of relative errors; returns None if
    nothing was measured."""
    import numpy
    lines = [line for line in read(os.path.join(RESULTS, "cpu", "scale.jsonl")) if line.get("kind") == "sums" and line["places"] == places]
    if not lines:
        return None
    seconds = numpy.array([line["seconds"] for line in lines])
    rows = numpy.array([[1, line["bytes"]] for line in lines]) / seconds[:, None]
    latency, each = numpy.linalg.lstsq(rows, numpy.ones(len(lines)), rcond=None)[0]
    return latency, 1 / each


def sums_text():
    found = [(places, fit_sums(places)) for places in (2, 4, 8)]
    if not any(fit for _, fit in found):
        return ""
    told = "; ".join(f"{places} ranks {fit[0] * 1e6:.1f} us + bytes / {fit[1] / 1e9:.2f} GB/s" for places, fit in found if fit)
    waits = max(line["median_seconds"] for line in read(os.path.join(RESULTS, "cpu", "scale.jsonl")) if line.get("kind") == "sums" and line["bytes"] <= 4096)
    return (f"A sum over processes of this host takes, fitted to the fastest of 41 from 64 bytes to 16 MB: {told}. The median of up to 4 KB is up to "
            f"{waits * 1e3:.1f} ms, if a process waits for its turn on a core.\n")


# ---- the page ----

def gpu_table(card):
    rates = gpu_rates(card)
    places = [n for n in (1, 2, 4) if any(n in found for found in rates.values())]
    text = ["| images/s | scaling | 1 GPU | " + "".join(f"{n} | " for n in places[1:]) + "includes |", "| --- | --- |" + " ---: |" * len(places) + " --- |"]
    for key in sorted(rates):
        work, scaling, images = key
        if images in COUNTS:
            continue
        found = rates.get(key, {})
        cells = [f"{found[n]:,.0f}" + (f" ({found[n] / found[1]:.2f}x)" if n > 1 and 1 in found else "") if n in found else "" for n in places]
        if work == "train dcgan":
            work += ", tf32"
        what = (f"{images:,} per GPU" if scaling == "weak" else f"{images:,} per step") if work.startswith("train") else f"{images:,} in all"
        includes = ("shuffling, batches, sums, updates; no evaluation, no files" if work.startswith("train") else
                    "the device" if work.endswith("device") else "the device and copies to host memory; no files")
        text.append(f"| {work}, {what} | {scaling} | " + " | ".join(cells) + f" | {includes} |")
    return "\n".join(text) + "\n"


def rank_table():
    lines = rank_lines()
    if not lines:
        return "Not measured yet: `bench/scale.py measure build/release/bin/cosmati --data FOLDER --weights network.bin`.\n"
    where = sorted({f"{line['machine']} ({line['commit']})" for line in lines})
    text = [f"Measured on {'; '.join(where)}: processes of one thread each; if there are more of them than cores, they share these. In parentheses: relative to one process; then the seconds "
            "of the whole command, with `mpirun` and the reading of data.\n",
            "| images/s | scaling | 1 rank | 2 | 4 | 8 |", "| --- | --- | ---: | ---: | ---: | ---: |"]
    by_key = collections.defaultdict(dict)
    for line in lines:
        if line["images"] not in PROCESSOR_COUNTS:
            by_key[line["work"], line["scaling"], line["images"]][line["places"]] = line
    for (work, scaling, images), found in sorted(by_key.items()):
        what = (f"{images} per rank" if scaling == "weak" else f"{images} per step") if work.startswith("train") else f"{images} in all"
        cells = [f"{found[n]['images_per_second']:,.0f} ({found[n]['images_per_second'] / found[1]['images_per_second']:.2f}x), "
                 f"{found[n]['command_seconds']:.1f} s" if n in found else "" for n in (1, 2, 4, 8)]
        text.append(f"| {work}, {what} | {scaling} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n\n" + sums_text()


def table_4():
    """Returns the report's table 4 in milliseconds: theirs, and ours with and without files."""
    text = ["| images | " + " | ".join(f"{count:,}" for count in COUNTS) + " |", "| --- |" + " ---: |" * len(COUNTS)]
    for places in (1, 2, 4):
        text.append(f"| the report, {places} per node, {2 * places} GPUs on two nodes | " + " | ".join(f"{value:,}" for value in THEIRS[places]) + " |")
    for card in CARDS:
        rates = gpu_rates(card)
        for work, what in (("host", "in host memory"), ("files", "with text and BMP")):
            for places in (1, 2, 4):
                found = [rates.get((f"generate dcgan f32, {work}", "strong", count), {}).get(places) for count in COUNTS]
                if any(found):
                    text.append(f"| one process, {places} {card.upper()}{'s' if places > 1 else ''}, {what} | " +
                                " | ".join(f"{count / rate * 1e3:.1f}" if rate else "" for count, rate in zip(COUNTS, found)) + " |")
    lines = {(line["work"], line["images"], line["places"]): line for line in rank_lines()}
    for work, what in (("host", "in host memory"), ("files", "with text and BMP")):
        for places in (1, 2, 4):
            found = [lines.get((f"generate dcgan f32, {work}", count, places)) for count in COUNTS]
            text.append(f"| {places} process{'es' if places > 1 else ''} of one thread, {what} | " +
                        " | ".join(f"{count / line['images_per_second'] * 1e3:,.0f}" if line else "" for count, line in zip(COUNTS, found)) + " |")
    where = sorted({line["machine"] for (work, images, _), line in lines.items() if work.startswith("generate") and images in PROCESSOR_COUNTS})
    return "\n".join(text) + "\n" + (f"\nProcesses: {'; '.join(where)}.\n" if where else "")


def write(a):
    pages = {SCALE: "".join(f"\nOn {card.upper()}s, in one process. An empty cell is not measured yet.\n\n" + gpu_table(card) for card in CARDS) +
                    "\nBy processes on one host without a GPU. " + rank_table() +
                    "\nThe terms of the model, and what follows from them:\n\n" + model_text() + "\n",
             REPORT: "\n" + table_4() + "\n"}
    for path, text in pages.items():
        with open(path, encoding="utf-8") as file:
            page = file.read()
        before, rest = page.split(BEGIN)
        new = before + BEGIN + text + END + rest.split(END)[1]
        if not a.check:
            with open(path, "w", encoding="utf-8") as file:
                file.write(new)
        elif new != page:
            sys.exit(f"{os.path.relpath(path, ROOT)} is not what bench/scale.py write would write")


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    one = verbs.add_parser("measure")
    one.add_argument("cosmati")
    one.add_argument("--data", required=True)
    one.add_argument("--weights", default=os.path.join(ROOT, "share", "cosmati", "dcgan-fashion.safetensors"))
    numbers = lambda text: [int(word) for word in text.split(",")]
    one.add_argument("--gpus", type=numbers)
    one.add_argument("--ranks", type=numbers, default=[1, 2, 4, 8])
    one.add_argument("--only", default="", help="work whose name has the word")
    one.add_argument("--repeat", type=int, default=3)
    one.add_argument("--machine")
    one.add_argument("--card", choices=CARDS, default=CARDS[0], help="for --gpus: the folder in bench/results")
    one.add_argument("--out")
    two = verbs.add_parser("sums")
    two.add_argument("program")
    two.add_argument("--ranks", type=numbers, default=[2, 4, 8])
    two.add_argument("--machine")
    two.add_argument("--out", default=os.path.join(RESULTS, "cpu", "scale.jsonl"))
    verbs.add_parser("fit")
    verbs.add_parser("write").add_argument("--check", action="store_true")
    a = parser.parse_args()
    if a.verb == "measure":
        a.out = a.out or os.path.join(RESULTS, a.card if a.gpus else "cpu", "scale.jsonl")
        measure(a)
    elif a.verb == "sums":
        measure_sums(a)
    elif a.verb == "fit":
        print(sums_text() + model_text(), end="")
    else:
        write(a)


main()
