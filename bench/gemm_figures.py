"""Figures of matrix products: fused epilogues, compile times, the emulator."""
import os
import random
import shlex
import statistics
import tempfile

from measure import ROOT, alternate, json_lines

PROMISED_FUSED = 1.1
FUSED = [("f32", 1024, "gelu(acc + bias[n]) + residual[m, n]"), ("f32", 2048, "gelu(acc + bias[n]) + residual[m, n]"),
         ("f32", 4096, "gelu(acc + bias[n]) + residual[m, n]"), ("f32", 1024, "relu(alpha*acc + beta*c + bias[n])"),
         ("f32", 1024, "silu(acc + bias[m])"), ("f32", 1024, "tanh(acc)"), ("f32", 1024, "acc * scale_a[m] * scale_b[n]"),
         ("f64", 1024, "gelu(acc + bias[n]) + residual[m, n]"), ("f64", 2048, "gelu(acc + bias[n]) + residual[m, n]")]


def fused_epilogues(a, results):
    """Reports the time with an epilogue relative to that of the plain product; two of our processes measure alternately."""
    for data_type, size, epilogue in FUSED:
        def seconds(text, data_type=data_type, size=size):
            return json_lines([a.cosmati, "bench", "gemm", "--backend", "cpu", "--size", f"{size}x{size}x{size}", "--type", data_type,
                               "--slices", 5, "--slice-seconds", 0.1, "--set", "alpha=0.5", "--set", "beta=0.25", "--epilogue", text,
                               "--json"])[-1]["best_slice_seconds"]

        fused, plain, ratio = alternate(lambda: seconds(epilogue), lambda: seconds("acc"))
        results.report(f"GEMM {data_type} {size}, {epilogue}", ratio, PROMISED_FUSED, "x", at_least=False, peer="plain product",
                       ours=fused, peers=plain)


def suite(name):
    """Returns the options of each problem of a suite as lists of words."""
    with open(os.path.join(ROOT, "bench", "suites", name + ".txt"), encoding="utf-8") as file:
        return [line.split() for line in file if line.startswith("--size")]


def compile_times(a, results):
    """Compiles each kernel in a separate process into an empty cache, then loads all of them from the cache."""
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
    with tempfile.TemporaryDirectory() as cache:
        line = json_lines([a.cosmati, "warm", "--model", "llama-8b", "--arch", "sm_90a", "--out", cache, "--json"])[-1]
        missing = compiled_after_warm(a, cache)
    results.report("Llama 8B, compiled afterwards for 1,000 random layers and numbers of tokens", missing, 0, "kernels", at_least=False)
    results.report("Llama 8B, kernels for 1 to 16384 tokens", line["kernels"], 100, "kernels", at_least=False,
                   note=f"{line['problems']} problems; planned in {line['planning_seconds']:.1f} s, compiled in {line['compiling_seconds']:.1f} s")


def compiled_after_warm(a, cache, count=1000):
    """Returns how many kernels the folder lacks for `count` random pairs of a layer of the model and a number of tokens."""
    with open(os.path.join(ROOT, "bench", "models", "llama-8b.txt"), encoding="utf-8") as file:
        layers = [shlex.split(line, comments=True) for line in file if line.startswith("--size")]
    draw = random.Random(1)
    drawn = [(draw.randrange(len(layers)), draw.randint(1, 16384)) for _ in range(count)]
    missing = 0
    for i, (_, size, *options) in enumerate(layers):
        sizes = ",".join(size.replace("TOKENS", str(tokens)) for layer, tokens in drawn if layer == i)
        lines = json_lines([a.cosmati, "compile", "gemm", "--size", sizes, *options, "--arch", "sm_90a", "--cache", cache, "--json"])
        missing += sum(not line["cached"] for line in lines)
    return missing


def planning(a, results):
    """Measures the time of make_plan for products of several suites."""
    lines = []
    for name, *options in (("llm", "--layout", "tn"), ("squares",), ("skinny",), ("deep",), ("ragged",), ("batched",), ("layouts",)):
        lines += [line for line in json_lines([a.cosmati, "explain", "gemm", "--suite", name, "--type", "bf16", *options,
                                               "--device-description", "h200", "--json"]) if line["verdict"] == "chosen"]
    slowest = max(lines, key=lambda line: line["plan_seconds"])
    results.report("planning a product for an H200, median", statistics.median(line["plan_seconds"] for line in lines) * 1e6, 200, "us",
                   at_least=False, note=f"{len(lines)} problems in bf16")
    results.report("planning a product for an H200, largest", slowest["plan_seconds"] * 1e6, 200, "us", at_least=False,
                   note=slowest["problem"])


def emulator(a, results):
    line = json_lines([a.cosmati, "bench", "gemm", "--backend", "emulator", "--size", "128x128x64", "--hot", "--json"])[-1]
    results.report("emulator, f32 128x128x64", line["best_slice_seconds"] * 1e3, 5, "ms", at_least=False,
                   note=f"median of single calls {line['median_seconds'] * 1e3:.3g} ms")


GROUPS = {"fused": (fused_epilogues, "processor"), "compile": (compile_times, "kernels"), "plan": (planning, "program"), "emulator": (emulator, "emulator")}
