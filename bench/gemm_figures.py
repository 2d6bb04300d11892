"""Figures of the matrix product: fused epilogues, compile times, the emulator, and what only a GPU can tell."""
import glob
import json
import os
import statistics
import tempfile
import time

from measure import ROOT, alternate, json_lines

PROMISED_FUSED = 1.1
FUSED = [("f32", 1024, "gelu(acc + bias[n]) + residual[m, n]"), ("f32", 2048, "gelu(acc + bias[n]) + residual[m, n]"),
         ("f32", 4096, "gelu(acc + bias[n]) + residual[m, n]"), ("f32", 1024, "relu(alpha*acc + beta*c + bias[n])"),
         ("f32", 1024, "silu(acc + bias[m])"), ("f32", 1024, "tanh(acc)"), ("f32", 1024, "acc * scale_a[m] * scale_b[n]"),
         ("f64", 1024, "gelu(acc + bias[n]) + residual[m, n]"), ("f64", 2048, "gelu(acc + bias[n]) + residual[m, n]")]


def fused_epilogues(a, results):
    """Time with an epilogue over the time of the plain product: two processes of ours in turn."""
    for data_type, size, epilogue in FUSED:
        def seconds(text, data_type=data_type, size=size):
            return json_lines([a.cosmati, "bench", "gemm", "--backend", "cpu", "--size", f"{size}x{size}x{size}", "--type", data_type,
                               "--slices", 5, "--slice-seconds", 0.1, "--set", "alpha=0.5", "--set", "beta=0.25", "--epilogue", text,
                               "--json"])[-1]["best_slice_seconds"]

        fused, plain, ratio = alternate(lambda: seconds(epilogue), lambda: seconds("acc"))
        results.report(f"GEMM {data_type} {size}, {epilogue}", ratio, PROMISED_FUSED, "x", at_least=False, peer="plain product",
                       ours=fused, peers=plain)


def suite(name):
    """The options of each problem of a suite, word by word."""
    with open(os.path.join(ROOT, "bench", "suites", name + ".txt"), encoding="utf-8") as file:
        return [line.split() for line in file if line.startswith("--size")]


def compile_times(a, results):
    """Each kernel in a process of its own, into an empty cache; then all of them from the cache."""
    types = (["f32"], ["f64"], ["f16"], ["f16", "--accumulator", "f16"], ["bf16"], ["s8"])
    problems = suite("figure9") + [[*ragged, "--type", *words] for ragged in suite("gemm-awkward") for words in types]
    with tempfile.TemporaryDirectory() as cache:
        def compile_one(problem):
            return json_lines([a.cosmati, "compile", "gemm", *problem, "--arch", "sm_90a", "--threads", 1, "--cache", cache, "--json"])[-1]

        compiled = [line for line in map(compile_one, problems) if not line["cached"]]
        loaded = [line["seconds"] for line in map(compile_one, problems)]
    seconds = [line["seconds"] for line in compiled]
    slowest = max(compiled, key=lambda line: line["seconds"])
    results.report("compile time, median", statistics.median(seconds), 0.3, "s", at_least=False, note=f"{len(seconds)} kernels")
    results.report("compile time, largest", slowest["seconds"], 0.8, "s", at_least=False,
                   note=f"{slowest['problem']} {slowest['type']} {slowest['kernel']}")
    results.report("load from the cache, largest", max(loaded) * 1e3, 5, "ms", at_least=False, note=f"{len(loaded)} kernels")


def emulator(a, results):
    line = json_lines([a.cosmati, "bench", "gemm", "--backend", "emulator", "--size", "128x128x64", "--hot", "--json"])[-1]
    results.report("emulator, f32 128x128x64", line["best_slice_seconds"] * 1e3, 5, "ms", at_least=False,
                   note=f"median of single calls {line['median_seconds'] * 1e3:.3g} ms")


def gpu_lines():
    """What `cosmati bench --json` wrote on machines with a GPU: bench/results/*/*.jsonl but for the figures themselves. Of
    each line: gpu, driver, commit, subject, problem, type, accumulator, kernel, peer, ratio (to the best of cuBLASLt's
    algorithms), share_of_peak (of the peak that a micro-benchmark found), host_seconds (of one call), verified."""
    lines = []
    for path in sorted(glob.glob(os.path.join(ROOT, "bench", "results", "*", "*.jsonl"))):
        with open(path, encoding="utf-8") as file:
            lines += [json.loads(text) for text in file if text.startswith("{")]
    return [line for line in lines if line.get("verb") == "bench" and line.get("gpu")]


class Measured(float):
    """A value that knows the line that it stands in."""

    def __new__(cls, value, line=None):
        measured = super().__new__(cls, value)
        measured.line = line
        return measured


def best_of(lines, value, data_type, accumulator, multiply, size="10240x4096x4096"):
    """The best value of each problem of this size, that of the article's figure, of the kernels with this multiply."""
    best = {}
    for line in lines:
        ours = line["policy"] and line["type"] == data_type and line["accumulator"] == accumulator and f" {multiply}," in line["policy"]
        if ours and line["problem"].startswith(size + " ") and line[value] is not None and line["verified"] is not False:
            best[line["problem"]] = max(Measured(line[value], line), best.get(line["problem"], 0))
    return list(best.values())


def in_suite(lines, suite, value="ratio", **fields):
    """The newest value of each problem of a suite."""
    newest = {}
    for line in lines:
        if line.get("suite") == suite and line.get(value) and all(line[name] == wanted for name, wanted in fields.items()):
            key = line["problem"]
            if key not in newest or line["time"] >= newest[key]["time"]:
                newest[key] = line
    return list(newest.values())


PRIMITIVES = {"element-wise": ("activation", "add", "elementwise", "dropout", "adam"), "pooling": ("pool",), "batch normalisation": ("batchnorm",),
              "softmax": ("softmax",), "transforms": ("transform",)}


def gpu(_, results):
    lines = gpu_lines()

    def report(name, values, choose, promised, unit, at_least=True, source=None):
        if not values:
            results.skip(name, "needs a GPU", promised=promised, unit=unit, at_least=at_least)
            return
        first = max(source or [value.line for value in values], key=lambda line: line["time"])
        results.report(name, choose(values), promised, unit, at_least=at_least, samples=values if len(values) < 20 else [],
                       note=f"driver {first['driver']}; {len(values)} problems", recorded=True, machine=first["gpu"],
                       commit=first["commit"][:12], date=time.strftime("%Y-%m-%d", time.gmtime(first["time"])))

    def report_suite(name, least, mean, peer, **fields):
        source = in_suite(lines, name, **fields)
        ratios = [line["ratio"] for line in source]
        what = " ".join([name, *fields.values()])
        report(f"suite {what} to {peer}, geometric mean", ratios, statistics.geometric_mean, mean, "x", source=source)
        if least:
            report(f"suite {what} to {peer}, least", ratios, min, least, "x", source=source)

    ratios = best_of(lines, "ratio", "f32", "f32", "fma")
    report("figure 9, f32 to cuBLASLt, least of the layouts", ratios, min, 0.95, "x")
    report("figure 9, f32 to cuBLASLt, mean of the layouts", ratios, statistics.mean, 0.98, "x")
    report("figure 9, s8 of the dp4a peak", best_of(lines, "share_of_peak", "s8", "s32", "dp4a"), min, 0.9, "of peak")
    report("figure 9, f64 of the FMA peak", best_of(lines, "share_of_peak", "f64", "f64", "fma"), min, 0.8, "of peak")
    report("figure 9, f16 (f16 sums) of the FMA peak", best_of(lines, "share_of_peak", "f16", "f16", "half2"), min, 0.8, "of peak")
    report("f16 by wmma, 4096^3, to cuBLASLt, least of the layouts", best_of(lines, "ratio", "f16", "f32", "wmma", "4096x4096x4096"), min, 0.5, "x")
    for data_type in ("f16", "bf16"):
        report(f"{data_type} by multistage, 4096^3, to cuBLASLt", best_of(lines, "ratio", data_type, "f32", "mma", "4096x4096x4096"), min, 0.65, "x")
        report(f"figure 9, {data_type} to cuBLASLt, least of the layouts", best_of(lines, "ratio", data_type, "f32", "wgmma"), min, 0.95, "x")
    report("figure 9, f64 by tensor cores to cuBLASLt, least of the layouts", best_of(lines, "ratio", "f64", "f64", "mma"), min, 0.9, "x")
    for size, promised in (("2048x2048x2048", 0.9), ("4096x4096x4096", 0.95), ("8192x8192x8192", 0.95)):
        report(f"tf32, {size}, to cuBLASLt, least of the layouts", best_of(lines, "ratio", "tf32", "f32", "wgmma", size), min, promised, "x")
    report("e4m3 TN, 4096^3, to cuBLASLt", best_of(lines, "ratio", "e4m3", "f32", "wgmma", "4096x4096x4096"), min, 0.95, "x")
    for name in ("squares", "llm", "deep", "skinny"):
        report_suite(name, 0.6, 0.9, "cuBLASLt", type="bf16")
    report_suite("ragged", None, 1.0, "cuBLASLt", type="bf16")
    for name in ("vgg16", "resnet50", "deepbench"):
        report_suite(name, None, 1.0, "cuDNN", type="f32")
        report_suite(name, None, 0.85, "cuDNN", type="f16")
    for name in ("dcgan", "lenet", "mobilenet", "odd"):
        report_suite(name, None, 1.0, "cuDNN", type="f32")
        report_suite(name, None, 1.0, "cuDNN", type="f16")
    for what, subjects in PRIMITIVES.items():
        for data_type in ("f32", "f16"):
            newest = {}
            for line in lines:
                if line["subject"] in subjects and line["type"] == data_type and line["bytes"] >= 64e6 and line["share_of_copy"]:
                    if line["time"] >= newest.get(line["problem"], line)["time"]:
                        newest[line["problem"]] = line
            report(f"{what}, {data_type}, of the bandwidth of a copy, least", [line["share_of_copy"] for line in newest.values()], min, 0.85,
                   "of a copy", source=list(newest.values()))
    # A call that enqueues one kernel: none that copies operands first, or added up parts by counters that it cleared.
    products = [line for line in lines if line["subject"] == "gemm" and line["policy"]]
    single = [line for line in products if " first, " not in line["policy"] and line["policy"].endswith(" 1 splits")]
    host = [line["host_seconds"] * 1e6 for line in single if line["host_seconds"] is not None]
    report("host time of one call, median", host, statistics.median, 4, "us", at_least=False, source=single)


GROUPS = {"fused": fused_epilogues, "compile": compile_times, "emulator": emulator, "gpu": gpu}
