#!/usr/bin/env python3
"""Exit statuses, sentences, help, JSON Lines and the other verbs. usage: check_program.py PROGRAM"""
import json, os, sys
import numpy as np
from program import Program

program = Program(sys.argv[1], "reference")
f32 = lambda *shape: np.ones(shape, np.float32)


def says(done, *words):
    text = done.stderr
    program.check(text.startswith("cosmati: ") and text.count("\n") <= 4, f"one sentence on stderr: {text!r}")
    for word in words:
        program.check(word in text, f"{done.args[1:]} says {word!r}: {text!r}")
    program.check("terminate" not in text and "what()" not in text, text)


def help_and_version():
    for words in (["--help"], ["run", "--help"], ["verify", "--help"], ["bench", "--help"], ["explain", "--help"], ["list", "--help"], ["info", "--help"],
                  *([verb, subject, "--help"] for verb in ("run", "verify", "bench", "explain") for subject in ("gemm", "conv", "pool", "lrn", "adam"))):
        program.check("Example: cosmati " in program.call(*words).stdout, f"{words} shows an example")
    program.check(program.call("--version").stdout.startswith("cosmati "), "--version")


def misspelt():
    says(program.call(expect=2), "verb", "run")
    says(program.call("veriffy", expect=2), "did you mean verify?")
    says(program.call("run", expect=2), "gemm")
    says(program.call("run", "gem", expect=2), "did you mean gemm?")
    says(program.call("run", "gemm", "--epiloge", "acc", expect=2), "--epiloge", "did you mean --epilogue?")
    says(program.call("run", "gemm", "stray", expect=2), "stray")
    says(program.call("run", "gemm", "--a", expect=2), "--a")
    says(program.call("bench", "gemm", "--size", "8x8x8", "--suit", "x", expect=2), "did you mean --suite?")


def bad_requests():
    a, b = program.save("a", f32(3, 4)), program.save("b", f32(5, 6))
    out = ["--out", program.file("o.npy")]
    ok_b = program.save("ok", f32(4, 6))
    run = lambda *words, expect=2: program.call("run", *words, expect=expect)
    says(run("gemm", "--a", a, "--b", b, *out), a, b, "4", "5")
    says(run("gemm", "--a", a, *out), "--b")
    says(run("gemm", "--a", a, "--b", ok_b), "--out")
    says(run("gemm", "--a", program.file("none.npy"), "--b", b, *out), "none.npy")
    says(run("gemm", "--a", program.save("one", f32(3)), "--b", b, *out), "one.npy", "dimensions")
    says(run("gemm", "--a", a, "--b", ok_b, "--layout", "nx", *out), "nx", "nn, nt, tn, tt")
    says(run("gemm", "--a", a, "--b", ok_b, "--type", "f23", *out), "f23", "f32")
    says(run("gemm", "--a", a, "--b", ok_b, "--epilogue", "relu(acc", *out), "^")
    says(run("gemm", "--a", a, "--b", ok_b, "--epilogue", "acc + bias[n]", *out), "bias")
    says(run("gemm", "--a", a, "--b", ok_b, "--epilogue", "acc + bias[n]", "--operand", "bias=" + program.save("bias", f32(7)), *out), "bias", "7", "6")
    says(run("gemm", "--a", a, "--b", ok_b, "--set", "beta=1", *out), "c")
    says(run("gemm", "--a", a, "--b", ok_b, "--set", "alpha", *out), "alpha=1.5")
    says(run("gemm", "--a", a, "--b", ok_b, "--store", "pre=x.npy", *out), "pre")
    says(run("gemm", "--a", a, "--b", ok_b, "--accumulator", "f16", *out), "f16", "f32")
    says(run("gemm", "--a", a, "--b", ok_b, "--compute", "bf16", *out), "bf16", "tf32")
    says(run("gemm", "--a", a, "--b", ok_b, "--kernel", "nosuch", *out), "nosuch", "reference")
    says(run("gemm", "--a", a, "--b", ok_b, "--threads", "-3", *out), "-3")
    says(run("gemm", "--a", a, "--b", ok_b, "--threads", "two", *out), "two")
    says(run("gemm", "--a", a, "--b", ok_b, "--out", "/nowhere/o.npy"), "/nowhere/o.npy")
    x, w = program.save("x", f32(1, 3, 8, 8)), program.save("w", f32(4, 3, 3, 3))
    says(run("conv", "--x", x, "--w", program.save("w2", f32(4, 2, 3, 3)), *out), "2", "3")
    says(run("conv", "--x", x, "--w", program.save("w3", f32(4, 3, 3)), *out), "w3.npy", "3 dimensions")
    unused = run("conv", "--x", x, "--w", w, "--dy", x, *out, expect=0)
    program.check("warning" in unused.stderr and "--dy" in unused.stderr, "an unused input is told: " + unused.stderr)
    says(run("conv", "--x", x, "--w", w, "--direction", "foward", *out), "did you mean forward?")
    says(run("conv", "--x", x, "--w", w, "--stride", "0", *out), "--stride")
    says(run("conv", "--x", x, "--w", w, "--pad", "1,2,3", *out), "--pad", "top,bottom,left,right")
    says(run("conv", "--x", x, "--w", w, "--groups", "2", *out), "2")
    says(run("conv", "--dy", x, "--w", w, "--direction", "data", *out), "--input-size")
    says(run("pool", "--x", x, "--window", "9", *out), "9")
    says(run("softmax", "--x", x, "--axis", "4", *out), "4", "-4 to 3")
    says(run("reduce", "--x", x, "--axes", "0,9", *out), "0,9")
    says(run("activation", "--x", x, "--function", "rleu", *out), "did you mean relu?")
    says(run("batchnorm", "--x", x, "--scale", program.save("s", f32(4)), "--bias", program.file("s.npy"), "--mean", program.file("s.npy"), "--variance", program.file("s.npy"), *out), "3")
    says(run("cross-entropy", "--x", a, "--labels", program.save("l", np.array([0, 1, 4])), *out), "4")
    says(run("cross-entropy", "--x", a, "--labels", program.save("l", np.array([0.5, 1, 2])), *out), "l.npy", "0.5")
    says(run("dropout", "--x", x, "--probability", "1.5", *out), "1.5")
    says(program.call("verify", "gemm", "--size", "3x4", expect=2), "3x4")
    says(program.call("verify", "gemm", "--size", "9:3:1x4x4", expect=2), "9:3:1")
    says(program.call("bench", "gemm", "--suite", "gemm-squar", expect=2), "gemm-square")
    says(program.call("bench", "gemm", "--size", "8x8x8", "--fail-below", "0.9", expect=2), "--peer")
    for name, content in (("empty", b""), ("text", b"hello"), ("cut", open(a, "rb").read()[:-5]), ("long", open(a, "rb").read() + b"x")):
        open(program.file(name + ".npy"), "wb").write(content)
        says(run("gemm", "--a", program.file(name + ".npy"), "--b", ok_b, *out), name + ".npy")


def unavailable():
    a = program.save("a", f32(4, 4))
    for backend in ("cuda", "emulator"):
        says(program.call("run", "gemm", "--a", a, "--b", a, "--out", program.file("o.npy"), "--backend", backend, expect=3), backend)
    says(program.call("run", "gemm", "--a", a, "--b", a, "--out", program.file("o.npy"), "--backend", "gpu", expect=2), "gpu")
    says(program.call("bench", "gemm", "--size", "8x8x8", "--peer", "cublaslt", "--slices", "1", expect=3), "cublaslt")
    says(program.call("bench", "gemm", "--size", "8x8x8", "--peer", "onednn", "--type", "f64", "--slices", "1", expect=3), "onednn")


def json_lines(done, *keys):
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    program.check(bool(lines) and all(k in line for line in lines for k in keys), f"{done.args[1:]}: keys {keys}: {done.stdout[:300]}")
    return lines


def other_verbs():
    a = program.save("a", f32(4, 4))
    json_lines(program.call("run", "gemm", "--a", a, "--b", a, "--out", program.file("o.npy"), "--json"), "verb", "kernel", "seconds")
    kinds = {line["kind"] for line in json_lines(program.call("info", "--json"), "kind", "name", "here", "state")}
    program.check({"backend", "device", "library", "peer", "toolkit", "cache"} <= kinds, f"info tells of {kinds}")
    for what in ("kernels", "suites", "policies", "epilogue-functions"):
        program.check(program.call("list", what).stdout.strip() != "", f"list {what} prints something")
    names = " ".join(line["function"] for line in json_lines(program.call("list", "epilogue-functions", "--json"), "function"))
    program.check(all(name in names for name in ("relu(", "gelu(", "clamp(", "erf(", "select(")), names)
    explained = json_lines(program.call("explain", "gemm", "--size", "64x64x64", "--json"), "kernel", "verdict", "reason")
    program.check([line["verdict"] for line in explained].count("chosen") == 1, "one kernel is chosen")
    program.check(all(line["reason"] for line in explained if line["verdict"] == "refused"), "refusals have reasons")
    subjects = ("gemm", "conv", "pool", "activation", "batchnorm", "softmax", "lrn", "cross-entropy", "rbf", "dropout", "transform", "reduce", "add", "sgd", "adam")
    for subject in subjects:
        lines = json_lines(program.call("verify", subject, "--count", "5", "--json"), "correct", "exact", "max_error", "kernel")
        program.check(len(lines) == 5 and all(line["correct"] for line in lines), f"verify {subject}")
    lines = json_lines(program.call("verify", "gemm", "--m", "1:9:4", "--n", "3,5", "--k", "7", "--integers", "--type", "f32,bf16", "--json"), "problem", "type")
    program.check(len(lines) == 12 and all(line["exact"] for line in lines), "ranges and lists, all combinations")
    file = program.file("bench.jsonl")
    for _ in range(2):
        program.call("bench", "gemm", "--size", "32x32x32", "--slices", "2", "--slice-seconds", "0.01", "--json", file)
    lines = [json.loads(line) for line in open(file)]
    program.check(len(lines) == 2 and all(line["verified"] and line["median_seconds"] > 0 for line in lines), "bench adds JSON Lines to a file")
    shapes = program.file("shapes.txt")
    open(shapes, "w").write("subject: gemm\nabout: two\n--size 8x8x8  # small\n--size 16x8x8 --layout tn\n")
    lines = json_lines(program.call("bench", "gemm", "--shapes", shapes, "--slices", "1", "--slice-seconds", "0.01", "--json"), "gflops", "commit")
    program.check([line["problem"] for line in lines] == ["8x8x8 nn", "16x8x8 tn"], "problems of a file")


for part in (help_and_version, misspelt, bad_requests, unavailable, other_verbs):
    part()
program.finish()
