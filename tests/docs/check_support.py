#!/usr/bin/python3
"""The tables of docs/support.md against the program: which GPUs there are by name, their compute capability, and what the planner accepts on
each of them.

usage: check_support.py PROGRAM     exit status 1 and a line for each difference
"""
import json
import os
import re
import subprocess
import sys

import snippets

# What each row of "Features by architecture" means: products of these types that a kernel accepts with a policy.
FEATURES = {
    "`double_buffered`: fma, half2, dp4a": [("f32", "double_buffered", "multiply=fma"), ("s8", "double_buffered", "multiply=dp4a"),
                                            ("f16", "double_buffered", "multiply=half2", "--accumulator", "f16")],
    "`gemv` and `tiny`: fma": [(name, kernel, "multiply=fma") for name in ("f32", "f64") for kernel in ("gemv", "tiny")],
    "`tiny`: `mma.sync` of f16, bf16, tf32": [(name, "tiny", "multiply=mma") for name in ("f16", "bf16", "tf32")],
    "WMMA of f16 and integers": [("f16", "double_buffered", "multiply=wmma"), ("s8", "double_buffered", "multiply=wmma")],
    "WMMA of bf16, tf32, f64": [(name, "double_buffered", "multiply=wmma") for name in ("bf16", "tf32", "f64")],
    "`multistage`: cp.async": [("f32", "multistage", "multiply=fma")],
    "`mma.sync` of f16, bf16, tf32, integers, f64": [(name, "multistage", "multiply=mma") for name in ("f16", "bf16", "tf32", "s8", "f64")],
    "`mma.sync` of fp8": [(name, "multistage", "multiply=mma") for name in ("e4m3", "e5m2")],
    "`warp_specialized`: TMA and wgmma": [("f16", "warp_specialized", ""), ("tf32", "warp_specialized", ""), ("e4m3", "warp_specialized", "")],
    "`warp_specialized` of f64: TMA and `mma.sync`": [("f64", "warp_specialized", "multiply=mma")],
}
# Decided by the architecture when a kernel is compiled: the planner does not query them.
OF_THE_COMPILER = {"`mma.sync` of f64, large shapes", "clusters"}
# Sizes for kernels that are not meant for large products.
SIZES = {"gemv": "1x512x512", "tiny": "16x16x16x64"}
failures = []


def explain(gpu, element, kernel="", policy="", *others):
    command = [sys.argv[1], "explain", "gemm", "--size", SIZES.get(kernel, "512x512x512"), "--layout", "tn", "--backend", "cuda", "--type", element, "--device-description", gpu, "--json"]
    command += ["--kernel", kernel] * bool(kernel) + ["--policy", policy] * bool(policy) + list(others)
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


def capability_of(gpu):
    """Returns the capability stated when wgmma is rejected, or 9.0 if it is not rejected."""
    entry, = (one for one in map(json.loads, explain(gpu, "f16").stdout.splitlines()) if one.get("kernel") == "warp_specialized")
    return re.search(r" has (\d+\.\d+)$", entry["reason"])[1] if entry["reason"] else "9.0"


def belongs(capability, heading):
    """Returns whether a column's heading, such as "8.0, 8.6 to 8.8" or "10.0, 12.x", names the capability."""
    number = tuple(map(int, capability.split(".")))
    for part in heading.split(", "):
        first, *last = (tuple(int(word) if word != "x" else 99 for word in one.split(".")) for one in part.split(" to "))
        if first[1] == 99 and number[0] == first[0] or first <= number <= (last or [first])[0]:
            return True
    return False


def table(text, heading):
    rows = [[cell.strip() for cell in line.strip("|\n").split("|")] for line in text.split(f"## {heading}\n")[1].split("\n## ")[0].splitlines() if line.startswith("|")]
    return rows[0], rows[2:]


with open(os.path.join(snippets.ROOT, "docs", "support.md"), encoding="utf-8") as file:
    text = file.read()
valid = set(re.search(r"valid values: (.*), or a file", explain("nonsense", "f32").stderr)[1].split(", "))
named = {}
for capability, names, _ in table(text, "GPUs")[1]:
    for name in names.split(", "):
        named[name] = capability
        found = capability_of(name) if name in valid else capability
        if found != capability:
            failures.append(f"{name} is of compute capability {capability}; the program says {found}")
if set(named) != valid:
    failures.append(f"the GPUs are {sorted(named)}; the program knows {sorted(valid)}")

headings, rows = table(text, "Features by architecture")
if [row[0] for row in rows if row[0] not in OF_THE_COMPILER] != list(FEATURES):
    failures.append(f"the features are {[row[0] for row in rows]}; this check knows {list(FEATURES)}")
checked = 0
for feature, *cells in rows:
    for name, capability in named.items():
        column, = (i for i, heading in enumerate(headings[1:]) if belongs(capability, heading))
        for product in FEATURES.get(feature, []):
            checked += 1
            accepted = explain(name, *product).returncode == 0
            if accepted != (cells[column] != ""):
                failures.append(f"{feature} on {name}: '{cells[column]}', but {product} is {'accepted' if accepted else 'refused'}")
# docs/convolution.md follows a strided data gradient through these files; each must have the functions that are named for it.
with open(os.path.join(snippets.ROOT, "docs", "convolution.md"), encoding="utf-8") as file:
    path = re.findall(r"^\| `([a-z_/]+\.(?:cpp|h))` \| (.*) \|$", file.read().split("file by file")[1].split("\n\n")[1], re.MULTILINE)
if not 10 <= len(path) <= 15:
    failures.append(f"docs/convolution.md follows a strided data gradient through {len(path)} host files; at most 15")
for name, what in path:
    with open(os.path.join(snippets.ROOT, name), encoding="utf-8") as file:
        code = file.read()
    failures += [f"docs/convolution.md: {name} has no {word}" for word in re.findall(r"`([\w:]+)`", what) if not re.search(rf"\b{word}\b", code)]

print("\n".join(failures) or f"docs/support.md: {len(named)} GPUs and {checked} verdicts of the planner are as the tables say")
sys.exit(1 if failures or checked < 100 else 0)
