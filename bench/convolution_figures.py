"""Compares convolutions on the CPU with PyTorch; used by figures.py."""
import math
import os
import re
import statistics
import tempfile

from measure import ROOT, json_lines, torch_name

PEERS = os.path.join(ROOT, "bench", "peers")
# Number of interleaved rounds for each group of layers, chosen by their duration.
SUITES = {"lenet": 3, "dcgan": 3, "odd": 3, "resnet50": 3, "vgg16": 3, "mobilenet": 3, "large_filters": 1, "deepbench": 1}
FORMATS = ("nchw", "nhwc")
SLICE_SECONDS = 0.05


def without_format(problem):
    return re.sub(r" n(chw|hwc)$", "", problem)


def fastest(lines):
    """Returns the seconds of each problem in the faster memory format."""
    best = {}
    for line in lines:
        name = without_format(line["problem"])
        best[name] = min(best.get(name, math.inf), line["median_seconds"])
    return best


def ours(a, suite):
    """Returns the JSON Lines of a suite with 1 and 16 images, in both memory formats."""
    lines = []
    for layout in FORMATS:
        lines += json_lines([a.cosmati, "bench", "conv", "--suite", suite, "--images", "1,16", "--layout", layout, "--type", "f32",
                             "--backend", "cpu", "--verify-below", 1e6, "--slices", 2, "--slice-seconds", SLICE_SECONDS, "--json"])
    return lines


def theirs(a, threads, problems):
    with tempfile.TemporaryFile("w+") as file:
        file.write("".join(problem + "\n" for problem in problems))
        file.seek(0)
        return json_lines([a.torch, f"{PEERS}/torch_conv.py", threads, 2 * SLICE_SECONDS], stdin=file)


def ratio_of_suite(a, suite, times):
    """Returns the geometric mean over the layers of PyTorch's seconds / ours, each the median of `times` rounds, and the layers."""
    threads = len(os.sched_getaffinity(0))
    ratios = {}
    for _ in range(times):
        lines = ours(a, suite)
        mine = fastest(lines)
        peer = fastest(theirs(a, threads, [line["problem"] for line in lines]))
        for problem, seconds in mine.items():
            ratios.setdefault(problem, []).append(peer[problem] / seconds)
    layers = {problem: statistics.median(values) for problem, values in ratios.items()}
    return math.exp(statistics.mean(math.log(ratio) for ratio in layers.values())), layers


def suites_against_torch(a, results):
    name = "convolutions on the CPU, N = 1 and 16, against PyTorch"
    if not a.torch:
        results.skip(name, "no --torch PYTHON")
        return
    all_layers = []
    for suite, times in SUITES.items():
        ratio, layers = ratio_of_suite(a, suite, times)
        all_layers += layers.values()
        results.report(f"conv {suite}, CPU, N = 1 and 16, against PyTorch", ratio, 1.0, "x", peer=torch_name(a.torch), layers=layers)
    mean = math.exp(statistics.mean(math.log(ratio) for ratio in all_layers))
    results.report(name, mean, 1.0, "x", peer=torch_name(a.torch), layers_in_all=len(all_layers))


GROUPS = {"conv": (suites_against_torch, "processor")}
