"""COSMATI_MAX_CPU_ISA: every operation agrees with the reference under each value, and our kernels, oneDNN and OpenBLAS obey it.

check_isa.py PROGRAM"""
import json, os, re, sys
import numpy as np
from program import Program

for name in ("ONEDNN_MAX_CPU_ISA", "OPENBLAS_CORETYPE"):  # every call says its own limits
    os.environ.pop(name, None)
program = Program(sys.argv[1], "cpu")
LEVELS = ["SSE2", "AVX2", "AVX512"]
CORES = {"SSE2": ("Prescott",), "AVX2": ("Haswell",), "AVX512": ("SkylakeX",)}
ONEDNN = {"SSE2": "Intel SSE4.1", "AVX2": "Intel AVX2", "AVX512": "Intel AVX-512"}


def json_lines(done):
    return [json.loads(line) for line in done.stdout.splitlines()]


def info(**environment):
    return {(line["kind"], line["name"]): line["state"] for line in json_lines(program.call("info", "--json", **environment))}


def level_of(processor):
    return next((level for level in reversed(LEVELS) if f", {level}" in processor), "SSE2")


def onednn_isa(**environment):
    """Returns the instruction set that oneDNN reports for a product."""
    a = program.save("a", np.ones((40, 40), np.float32))
    done = program.call("run", "gemm", "--backend", "cpu", "--kernel", "onednn_matmul", "--a", a, "--b", a, "--out", program.file("d.npy"),
                        ONEDNN_VERBOSE="1", **environment)
    found = re.search(r"isa:([^\n]*)", done.stdout)
    return found[1] if found else "oneDNN said nothing"


def explained(*words, **environment):
    return {line["kernel"]: line for line in json_lines(program.call("explain", *words, "--backend", "cpu", "--json", **environment))}


def limits():
    here = level_of(info(COSMATI_MAX_CPU_ISA="")[("device", "cpu")])
    program.check("not set; SSE2, AVX2 or AVX512" in info(COSMATI_MAX_CPU_ISA="")[("limit", "COSMATI_MAX_CPU_ISA")], "info names the variable where it is not set")
    for value in LEVELS:
        lines = info(COSMATI_MAX_CPU_ISA=value)
        effective = min(value, here, key=LEVELS.index)
        program.check(level_of(lines[("device", "cpu")]) == effective, f"{value}: {lines[('device', 'cpu')]}")
        program.check(value in lines.get(("limit", "COSMATI_MAX_CPU_ISA"), ""), f"{value}: info says so")
        if value == effective and "kernels for" in lines[("library", "OpenBLAS")]:
            program.check(lines[("library", "OpenBLAS")].endswith(CORES[value]), f"{value}: {lines[('library', 'OpenBLAS')]}")
            program.check(onednn_isa(COSMATI_MAX_CPU_ISA=value).startswith(ONEDNN[value]), f"{value}: oneDNN uses {onednn_isa(COSMATI_MAX_CPU_ISA=value)}")
        kernel = explained("pool", "--size", "16x6x14x14", "--window", "2,2", "--layout", "chwn", COSMATI_MAX_CPU_ISA=value)["chwn16"]
        program.check((kernel["verdict"] == "refused") == (effective == "SSE2"), f"{value}: chwn16 is {kernel['verdict']}")
        # 8-bit products without VNNI would saturate.
        bytes_ = explained("gemm", "--size", "64x64x64", "--type", "s8", COSMATI_MAX_CPU_ISA=value)["onednn_matmul"]
        program.check(effective == "AVX512" or "VNNI" in (bytes_["reason"] or ""), f"{value}: s8 by onednn_matmul is {bytes_}")
    bytes_ = explained("gemm", "--size", "64x64x64", "--type", "s8", ONEDNN_MAX_CPU_ISA="AVX2")["onednn_matmul"]
    program.check("VNNI" in (bytes_["reason"] or ""), f"ONEDNN_MAX_CPU_ISA=AVX2: s8 by onednn_matmul is {bytes_}")
    laptop = explained("gemm", "--size", "8x8x8", "--device-description", "avx2-laptop", "--threads", "3")["reference"]
    program.check([laptop[key] for key in ("instruction_set", "cores", "threads", "l1_bytes", "l2_bytes", "l3_bytes")] == ["AVX2", 8, 3, 32 << 10, 512 << 10, 16 << 20], f"explain says what it planned for: {laptop}")
    told = program.call("explain", "gemm", "--size", "8x8x8", "--device-description", "64-core-server").stdout
    program.check("on cpu, 64 threads (AVX512_BF16, 64 cores, 32 KiB L1d, 1 MiB L2, 256 MiB L3):" in told, f"explain says what it planned for: {told[:200]}")
    if here == "AVX512":
        program.check(onednn_isa(COSMATI_MAX_CPU_ISA="AVX512", ONEDNN_MAX_CPU_ISA="AVX").startswith("Intel AVX"), "oneDNN's own limit holds where it is lower")
        program.check(not onednn_isa(COSMATI_MAX_CPU_ISA="AVX512", ONEDNN_MAX_CPU_ISA="AVX").startswith("Intel AVX2"), "oneDNN's own limit holds where it is lower")
        program.check(onednn_isa(COSMATI_MAX_CPU_ISA="AVX2", ONEDNN_MAX_CPU_ISA="AVX512_CORE").startswith("Intel AVX2"), "ours holds where it is lower")
    for value in ("AVX", "avx2", "AVX-512", "3"):
        for words in (("info",), ("explain", "gemm", "--size", "8x8x8"), ("verify", "gemm", "--backend", "reference")):
            done = program.call(*words, expect=2, COSMATI_MAX_CPU_ISA=value)
            program.check(done.stderr.strip() == f"cosmati: COSMATI_MAX_CPU_ISA is '{value}'; valid values: SSE2, AVX2 and AVX512", done.stderr)


def results():
    for value in LEVELS:
        for subject, *words in (("gemm",), ("gemm", "--type", "f64"), ("gemm", "--type", "s8"), ("gemm", "--type", "bf16"),
                                ("conv", "--direction", "forward"), ("conv", "--direction", "data"), ("conv", "--direction", "filter"),
                                ("elementwise", "--size", "5x7x9x11", "--epilogue", "gelu(acc) * scale[c] + other[n, c, h, w]"), ("add",),
                                ("pool",), ("activation",), ("batchnorm",), ("layernorm",), ("rmsnorm",), ("groupnorm",), ("lrn",), ("softmax",), ("cross-entropy",), ("rbf",),
                                ("dropout",), ("transform",), ("reduce",), ("sgd",), ("adam",)):
            program.call("verify", subject, *words, "--backend", "cpu", *([] if "--size" in words else ["--count", 30]), "--seed", 1 + LEVELS.index(value), COSMATI_MAX_CPU_ISA=value)


limits()
results()
program.finish()
