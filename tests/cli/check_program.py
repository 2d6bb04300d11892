#!/usr/bin/env python3
"""Exit statuses, sentences, help, JSON Lines and the other verbs. usage: check_program.py PROGRAM [libcuda_fake.so [--without PART,...]]"""
import json, os, sys
import numpy as np
from program import Program

program = Program(sys.argv[1], "reference")
fake_driver = sys.argv[2] if len(sys.argv) > 2 else None
os.environ["COSMATI_LIBCUDA"] = "/nowhere/libcuda.so"  # the same results on machines with a GPU
f32 = lambda *shape: np.ones(shape, np.float32)


def says(done, *words):
    text = done.stderr
    program.check(text.startswith("cosmati: ") and text.count("\n") <= 4, f"one sentence on stderr: {text!r}")
    for word in words:
        program.check(word in text, f"{done.args[1:]} says {word!r}: {text!r}")
    program.check("terminate" not in text and "what()" not in text, text)


def help_and_version():
    for words in (["--help"], ["run", "--help"], ["verify", "--help"], ["bench", "--help"], ["explain", "--help"], ["compile", "--help"], ["tune", "--help"], ["tune", "gemm", "--help"], ["find", "--help"], ["find", "conv", "--help"], ["plot", "--help"], ["list", "--help"], ["info", "--help"],
                  *([verb, subject, "--help"] for verb in ("run", "verify", "bench", "explain", "compile") for subject in ("gemm", "conv", "pool", "lrn", "adam"))):
        program.check("Example: cosmati " in program.call(*words).stdout, f"{words} shows an example")
    program.check(program.call("--version").stdout.startswith("cosmati "), "--version")


def misspelled():
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
    says(run("gemm", "--a", a, "--b", ok_b, "--compute", "bf16", *out), "bf16", "tf32", "bf16x6")
    says(run("gemm", "--a", a, "--b", ok_b, "--type", "f64", "--compute", "bf16x6", *out), "bf16x6", "f32", "f64")
    says(run("gemm", "--a", a, "--b", ok_b, "--kernel", "nosuch", *out), "nosuch", "reference")
    says(run("gemm", "--a", a, "--b", ok_b, "--threads", "-3", *out), "-3")
    says(run("gemm", "--a", a, "--b", ok_b, "--threads", "two", *out), "two")
    says(run("gemm", "--a", a, "--b", ok_b, "--out", "/nowhere/o.npy"), "/nowhere/o.npy")
    # Outputs are checked before the work, so that nothing is left half-written.
    fresh = program.file("fresh.npy")
    epilogue = ["--epilogue", "store(pre, acc); acc", "--out", fresh]
    says(run("gemm", "--a", a, "--b", ok_b, *epilogue, "--store", "pre=/nowhere/p.npy"), "/nowhere/p.npy")
    says(run("gemm", "--a", a, "--b", ok_b, *epilogue, "--store", "pre=" + fresh), "fresh.npy", "--out", "--store pre")
    says(run("sgd", "--parameter", a, "--gradient", a, "--out", fresh, "--out-velocity", program.file("v.npy")), "--out-velocity", "no such output")
    says(run("gemm", "--a", a, "--b", ok_b, "--out", program.folder.name), "is a folder")
    program.check(not os.path.exists(fresh), "a refused request writes nothing")
    run("gemm", "--a", a, "--b", ok_b, "--epilogue", "store(pre, acc); acc", "--out", "/dev/null", "--store", "pre=/dev/null", expect=0)
    says(run("adam", "--parameter", a, "--gradient", a, "--step", "0", *out), "--step 0", "from 1")
    says(run("sgd", "--parameter", a, "--gradient", a, "--d-type", "f16", *out), "unknown option --d-type", "other than sgd and adam")
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
    says(run("dropout", "--x", x, "--step", "-3", *out), "--step -3")
    says(run("pool", "--x", x, "--dy", program.save("dy", f32(1, 3, 4, 4)), "--window", "2", "--stride", "2", "--mode", "max", "--direction", "backward", "--d-type", "f16", *out), "--d-type f16", "f32")
    says(program.call("verify", "gemm", "--size", "3x4", expect=2), "3x4")
    says(program.call("verify", "gemm", "--size", "9:3:1x4x4", expect=2), "9:3:1")
    says(program.call("bench", "gemm", "--suite", "gemm-squar", expect=2), "gemm-square")
    says(program.call("bench", "gemm", "--size", "8x8x8", "--fail-below", "0.9", expect=2), "--peer")
    for name, content in (("empty", b""), ("text", b"hello"), ("cut", open(a, "rb").read()[:-5]), ("long", open(a, "rb").read() + b"x")):
        open(program.file(name + ".npy"), "wb").write(content)
        says(run("gemm", "--a", program.file(name + ".npy"), "--b", ok_b, *out), name + ".npy")


def unavailable():
    a = program.save("a", f32(4, 4))
    says(program.call("run", "gemm", "--a", a, "--b", a, "--out", program.file("o.npy"), "--backend", "cuda", expect=3), "no NVIDIA driver", "/nowhere/libcuda.so")
    says(program.call("run", "gemm", "--a", a, "--b", a, "--out", program.file("o.npy"), "--backend", "gpu", expect=2), "gpu")
    says(program.call("bench", "gemm", "--size", "8x8x8", "--peer", "cublaslt", "--slices", "1", expect=3), "cublaslt")
    says(program.call("bench", "gemm", "--size", "8x8x8", "--peer", "onednn", "--type", "f64", "--slices", "1", expect=3), "onednn")


def gpus():
    a = program.save("a", f32(4, 4))
    run = lambda *words, expect=2, **environment: program.call("run", "gemm", "--a", a, "--b", a, "--out", program.file("o.npy"), *words, expect=expect, **environment)
    info = lambda **environment: {(line["kind"], line["name"]): line for line in json_lines(program.call("info", "--json", **environment), "here", "state")}
    # A described GPU that is not installed.
    text = program.call("info", "--describe", "h200").stdout
    program.check("compute_capability = 9.0\n" in text and "multiprocessors = 132\n" in text, text)
    file = program.file("card.txt")
    open(file, "w").write(text.replace("= 132", "= 99"))
    program.check(program.call("info", "--describe", file).stdout == text.replace("= 132", "= 99"), "a description is read as it was written")
    says(program.call("info", "--describe", "h201", expect=2), "h201", "h200, h100, a100, rtx4090, t4")
    says(program.call("info", "--describe", "0", expect=3), "no NVIDIA driver")
    open(program.file("bad.txt"), "w").write("name = x\nsms = 3\n")
    says(program.call("explain", "gemm", "--size", "8x8x8", "--device-description", program.file("bad.txt"), expect=2), "bad.txt:2", "sms", "multiprocessors")
    for backend in ("auto", "cuda"):
        says(run("--device-description", file, "--backend", backend), file, "a described GPU cannot execute")
        says(program.call("verify", "gemm", "--device-description", "h200", "--backend", backend, expect=2), "a described GPU cannot execute")
        says(program.call("bench", "gemm", "--size", "8x8x8", "--device-description", "h200", "--backend", backend, expect=2), "a described GPU cannot execute")
    says(run("--device-description", "h200", "--backend", "cpu"), "unknown processor 'h200'", "sse2-only, avx2-laptop, avx512-server, 64-core-server")
    says(run("--device-description", "h200", "--backend", "reference"), "cpu", "emulator")
    if any(line["subject"] == "gemm" and line["backend"] == "cuda" for line in json_lines(program.call("list", "kernels", "--json"), "backend")):
        lines = json_lines(program.call("explain", "gemm", "--size", "64x64x64", "--device-description", "h200", "--json"), "gpu", "backend")
        program.check(all(line["gpu"] == "NVIDIA H200" and line["backend"] == "cuda" for line in lines), "explain for a GPU that is not here")
    # Choice of driver and device.
    says(run("--device", "-1"), "--device -1")
    says(run("--backend", "cuda", expect=3, COSMATI_LIBCUDA="libm.so.6"), "libm.so.6", "is not an NVIDIA driver")
    explained = json_lines(program.call("explain", "gemm", "--size", "8x8x8", "--json"), "backend")
    program.check({line["backend"] for line in explained} == {"cpu"}, "auto is cpu where there is no driver")
    program.check(not info()[("backend", "cuda")]["here"] and not info()[("toolkit", "CUDA driver")]["here"], "info says that there is no driver")
    if fake_driver is None:
        return
    fake = {"COSMATI_LIBCUDA": fake_driver}
    lines = info(**fake, COSMATI_FAKE_DEVICES="2")
    program.check(lines[("backend", "cuda")]["here"] and lines[("toolkit", "CUDA driver")]["state"] == "CUDA 12.2", str(lines))
    program.check(all(word in lines[("device", "cuda 1")]["state"] for word in ("Fake H200", "9.0", "132")), str(lines))
    program.check("name = Fake H200\n" in program.call("info", "--describe", "0", **fake).stdout, "a GPU that is here is described")
    says(run("--backend", "cuda", "--device", "3", expect=3, **fake), "device 3 is not available")
    says(run("--backend", "cuda", expect=3, **fake, COSMATI_FAKE_INIT="100"), "cuInit: no CUDA-capable device is detected (CUDA_ERROR_NO_DEVICE, 100)")
    says(run("--backend", "cuda", expect=3, **fake, COSMATI_FAKE_DEVICES="0"), "no device")
    run("--backend", "auto", expect=0, **fake, COSMATI_FAKE_DEVICES="0")
    transforms = ("explain", "conv", "--n", "16", "--c", "64", "--h", "56", "--w", "56", "--k", "64", "--r", "15", "--s", "15", "--pad", "7")
    def fft_line(*described, **environment):
        return [line for line in program.call(*transforms, *described, **environment).stdout.splitlines() if line.startswith("fft ")][0]
    absent = {**fake, "COSMATI_CUFFT": "/nowhere/libcufft.so"}
    refused = fft_line("--backend", "cuda", **absent)
    program.check("rejected" in refused and "COSMATI_CUFFT names /nowhere/libcufft.so, which cannot be read" in refused, "a GPU of this machine needs cuFFT")
    program.check("chosen" in fft_line("--device-description", "h200", **absent), "a described GPU has cuFFT")
    without = program.file("without.txt")
    open(without, "w").write(text.replace("cufft_failure = ", "cufft_failure = cuFFT was left out"))
    refused = fft_line("--device-description", without, **absent)
    program.check("rejected" in refused and "cuFFT was left out" in refused, "a described GPU may have none")


def misaligned():
    for size in ("17x33x9", "64x64x64"):
        lines = json_lines(program.call("verify", "gemm", "--size", size, "--misalign", "4", "--type", "f64,f32,s8", "--json"), "problem", "correct")
        program.check(len(lines) == 3 and all(line["correct"] and "misaligned by 4" in line["problem"] for line in lines), f"verify --misalign: {lines}")
    says(program.call("verify", "gemm", "--misalign", "64", expect=2), "--misalign 64", "0 to 63")
    says(program.call("verify", "gemm", "--misalign", "-4", expect=2), "--misalign -4")


def json_lines(done, *keys):
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    program.check(bool(lines) and all(k in line for line in lines for k in keys), f"{done.args[1:]}: keys {keys}: {done.stdout[:300]}")
    return lines


def compiled():
    """Kernels for a GPU that is not installed, if NVRTC is available."""
    folder = program.file("kernels")
    compile_ = lambda *words, expect=0: program.call("compile", *words, "--cache", folder, expect=expect)
    says(compile_("gemm", expect=2), "--size")
    says(compile_("gemm", "--size", "64x64x64", "--arch", "sm_91", expect=2), "sm_91", "sm_90a")
    says(compile_("gemm", "--size", "64x64x64", "--arch", "sm_80", "--device-description", "h200", expect=2), "sm_80", "h200", "sm_90a")
    says(compile_("gemm", "--size", "64x64x64", "--backend", "cpu", expect=2), "--backend cpu")
    says(compile_("gemm", "--size", "64x64x64", "--kernel", "nosuch", expect=2), "nosuch", "multistage")
    if not next(line["here"] for line in json_lines(program.call("info", "--json"), "name") if line["name"] == "NVRTC"):
        says(compile_("gemm", "--size", "64x64x64", expect=3), "NVRTC")
        return
    (pool,) = json_lines(compile_("pool", "--size", "1x3x8x8", "--window", "2", "--json"), "registers", "local_bytes", "policy")
    program.check(pool["policy"].startswith("windows 1 x 3 x 4 x 4") and pool["local_bytes"] == 0, str(pool))
    keys = ("problem", "kernel", "policy", "seconds", "bytes", "registers", "local_bytes", "shared_bytes", "cached", "cache_file")
    lines = json_lines(compile_("gemm", "--size", "64x64x64,128x64x64", "--type", "f32,f64", "--json"), *keys)
    program.check(len(lines) == 4 and all(line["registers"] > 0 and line["architecture"] == "sm_90a" for line in lines), f"compile: {lines}")
    program.check(all(os.path.dirname(line["cache_file"]) == folder and os.path.isfile(line["cache_file"]) for line in lines), "compiled kernels lie in --cache")
    again = json_lines(compile_("gemm", "--size", "64x64x64,128x64x64", "--type", "f32,f64", "--json"), *keys)
    program.check(all(line["cached"] for line in again), "the second time they come from the cache")
    program.check([line["registers"] for line in again] == [line["registers"] for line in lines], "and are the same")
    text = compile_("gemm", "--size", "64x64x64").stdout
    program.check("cached" in text and "from the cache: median" in text, text)
    out = program.file("kernel.cubin")
    for arch in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a"):
        lines = json_lines(compile_("gemm", "--size", "32x32x32", "--arch", arch, "--out", out, "--json"), *keys)
        program.check(lines[0]["architecture"] == arch and open(out, "rb").read(4) == b"\x7fELF" and os.path.getsize(out) == lines[0]["bytes"], f"--out for {arch}")
    says(compile_("gemm", "--size", "32x32x32,64x64x64", "--out", out, expect=2), "one kernel")
    lines = json_lines(compile_("gemm", "--size", "64x64x64", "--type", "f16", "--accumulator", "f16", "--policy", "small", "--json"), *keys)
    program.check("mma" in lines[0]["policy"] and "small" in lines[0]["policy"] and "f16 sums" in lines[0]["problem"], f"f16 sums: {lines}")
    says(compile_("gemm", "--size", "64x64x64", "--accumulator", "f16", expect=2), "f16", "valid values: f32")


def half_sums():
    for backend in ("cpu", "emulator", "reference"):
        lines = json_lines(program.call("verify", "gemm", "--type", "f16", "--accumulator", "f16", "--count", "6", "--backend", backend, "--json"), "correct", "problem")
        program.check(len(lines) == 6 and all(line["correct"] and "f16 sums" in line["problem"] for line in lines), f"sums in f16 on {backend}: {lines}")
    # 9 * 300 exceeds 2048, up to which f16 represents every integer.
    for depth, exact in ((200, True), (300, False)):
        lines = json_lines(program.call("verify", "gemm", "--size", f"9x8x{depth}", "--type", "f16", "--accumulator", "f16", "--integers", "--json"), "exact")
        program.check(lines[0]["exact"] == exact and lines[0]["correct"], f"sums in f16 of {depth} small integers")
    says(program.call("verify", "gemm", "--size", "9x8x7", "--type", "bf16", "--accumulator", "f16", expect=2), "f16", "valid values: f32")


def policies():
    lines = json_lines(program.call("list", "policies", "--json"), "kernel", "multiply", "sums", "policy", "block", "warp", "thread", "stages", "threads", "cluster", "ping_pong")
    program.check({line["policy"] for line in lines} >= {"small", "medium", "large", "tall", "wide", "huge"}, "the named policies")
    program.check({(line["multiply"], line["sums"]) for line in lines} == {("fma", "f32"), ("fma", "f64"), ("half2", "f16"), ("dp4a", "s32"), ("mma", "f32"), ("mma", "f64"), ("wmma", "f32"), ("wmma", "f64"), ("wgmma", "f32")}, "for each multiply and type of sums")
    program.check(program.call("list", "policies").stdout.count("\n") == len(lines) + 1, "a row each")
    kernels = {(line["backend"], line["kernel"]) for line in json_lines(program.call("list", "kernels", "--json"), "kernel") if line["subject"] == "gemm"}
    program.check({(backend, kernel) for backend in ("cuda", "emulator") for kernel in ("warp_specialized", "multistage", "double_buffered", "bf16_products")} <= kernels, f"kernels of GPUs: {kernels}")
    explained = json_lines(program.call("explain", "gemm", "--size", "512x512x512", "--device-description", "h200", "--json"), "recipe", "predicted_seconds")
    program.check(all(line["recipe"] and line["predicted_seconds"] > 0 for line in explained if line["verdict"] != "refused"), f"explain tells recipes and predictions: {explained}")
    chosen = [line for line in explained if line["verdict"] == "chosen"][0]
    program.check(chosen["recipe"] in program.call("explain", "gemm", "--size", "512x512x512", "--device-description", "h200").stdout, "in the table, too")
    wgmma = lambda *words, expect=0: program.call("verify", "gemm", "--backend", "emulator", "--kernel", "warp_specialized", "--size", "70x40x100", *words, expect=expect)
    for kind in ("bf16", "f16", "tf32", "s8"):
        program.check("1 problem, passed" in wgmma("--type", kind).stdout, f"wgmma of {kind} in the emulator")
    says(wgmma("--type", "bf16", "--device-description", "a100", expect=2), "wgmma needs compute capability 9.0")
    says(wgmma("--type", "f32", expect=2), "multiply wgmma does not support f32 and f32 with sums in f32")
    says(wgmma("--type", "bf16", "--policy", "large", expect=2), "valid policies: emulated")
    emulated = {line["kernel"] for line in json_lines(program.call("list", "kernels", "--json"), "kernel") if (line["subject"], line["backend"]) == ("conv", "emulator")}
    count = 1 if left_out else 3  # sanitizers make a problem take seconds, and test_plan runs each kernel
    for kernel in sorted(emulated - {"image_slices"}):  # which is for more than 2^31 pixels
        lines = json_lines(program.call("verify", "conv", "--kernel", kernel, "--type", "f16", "--count", count, "--backend", "emulator", "--json"), "kernel", "correct")
        program.check([(line["kernel"], line["correct"]) for line in lines] == [(kernel, True)] * count, f"random problems for {kernel}: {lines}")
    says(program.call("verify", "conv", "--kernel", "winograd", "--stride", "2", "--backend", "emulator", expect=2), "supports none of 200 random problems", "of the last: ")
    says(program.call("verify", "conv", "--kernel", "winogradd", "--backend", "emulator", expect=2), "unknown kernel 'winogradd'")
    suite = [line for line in json_lines(program.call("list", "suites", "--json"), "suite", "problems") if line["suite"] == "figure9"]
    program.check(not suite or suite[0]["problems"] == 24, f"figure9: {suite}")


def tuning():
    """Plans with a tuning file, for a GPU that is not installed."""
    explain = lambda *words, expect=0: program.call("explain", "gemm", "--layout", "tn", "--type", "bf16", "--device-description", "h200", *words, expect=expect)
    line = ('gemm a=bf16/k8 b=bf16/k8 c=none d=bf16/8 sum=f32 epilogue=light m=512 n=512 k=1024 batch=1 gpu="NVIDIA H200, 9.0, 132 multiprocessors" kernel=multistage '
            'policy=block_m=64,block_n=64,block_k=32,warp_m=32,warp_n=32,thread_m=4,thread_n=8,stages=3,multiply=mma splits=2 measured=512x512x1024x1 seconds=5e-6 planned=7e-6 '
            'driver="CUDA 13.0" version="cosmati" time=2026-01-31T23:59:59Z')
    file = program.file("tuning.txt")
    chosen = lambda *words: [entry for entry in json_lines(explain("--json", *words), "recipe", "tuning") if entry["verdict"] == "chosen"][0]
    open(file, "w").write("# measured\n" + line + "\n")
    entry = chosen("--size", "512x504x1000", "--tuning", file)
    program.check(entry["kernel"] == "multistage" and entry["recipe"].startswith("tuned 64x64x32, ") and entry["recipe"].endswith("2 splits"), f"the plan goes by the line: {entry}")
    program.check(entry["tuning"] == f"measured, {file}, line 2: 512x512x1024x1 took 5 us, as planned 7 us", f"and says so: {entry}")
    program.check("measured, " + file in explain("--size", "512x512x1024", "--tuning", file).stdout, "in the table, too")
    program.check(chosen("--size", "512x512x512", "--tuning", file)["tuning"] is None, "other sizes are planned as ever")
    program.check(not chosen("--size", "512x512x1024")["recipe"].startswith("tuned"), "nothing is read that was not named")
    open(file, "w").write(line.replace("stages=3", "stages=7") + "\n")
    program.check("line 1 is ignored: stages = 7" in explain("--size", "512x512x1024", "--tuning", file).stdout, "what makes no kernel is ignored, and told")
    open(file, "w").write("# measured\n\n" + line.replace("splits=2", "splits=two") + "\n")
    says(explain("--size", "512x512x1024", "--tuning", file, expect=2), file + ", line 3: splits=two")
    says(explain("--size", "512x512x1024", "--tuning", program.file("none.txt"), expect=2), "none.txt")
    says(program.call("tune", "gemm", "--size", "8x8x8", "--backend", "cpu", "--out", file, expect=3), "--backend cuda", "cpu")
    says(program.call("tune", "gemm", "--size", "8x8x8", expect=2), "--out")
    says(program.call("tune", "gemm", "--out", file, expect=2), "--suite")
    says(program.call("tune", "gemm", "--size", "8x8x8", "--out", file, "--budget", "0", expect=2), "--budget 0", "1 to 3600")
    says(program.call("tune", "gemm", "--size", "8x8x8", "--out", file, "--policy", "small", expect=2), "unknown option --policy", "tune chooses the policy")
    says(program.call("tune", "gemm", "--size", "8x8x8", "--out", file, "--tuning", file, expect=2), "--tuning")
    program.check(open(file).read().count("splits=two") == 1, "a request that is refused leaves the file alone")


def finding():
    """Measurements by find, and plans that use its file."""
    file = program.file("found.txt")
    problem = ("conv", "--size", "4x16x20x20x16x3x3", "--pad", "1", "--threads", "1")
    for backend in ("cpu", "emulator"):
        where = (*problem, "--backend", backend)
        found = json_lines(program.call("find", *where, "--seconds", "0.01", "--out", file, "--json"), "kernel", "seconds", "workspace_bytes", "planned", "class")
        program.check([line["rank"] for line in found] == list(range(1, len(found) + 1)), f"ranks: {found}")
        program.check(all(x["seconds"] <= y["seconds"] for x, y in zip(found, found[1:])), f"the fastest first: {found}")
        explained = json_lines(program.call("explain", *where, "--json"), "verdict")
        chosen = [line["kernel"] for line in explained if line["verdict"] == "chosen"]
        program.check([line["kernel"] for line in found if line["planned"]] == chosen, f"the plan's own is told: {found}")
        possible = {line["kernel"] for line in explained if line["verdict"] != "refused"} - {"reference"}
        program.check({line["kernel"] for line in found} == (possible or {"reference"}), f"each that accepts: {found}, {possible}")
        # A line for the slowest kernel changes the plan for this problem only.
        text = open(file).read().replace("kernel=" + found[0]["kernel"] + " ", "kernel=" + found[-1]["kernel"] + " ")
        open(file, "w").write(text)
        taken = lambda *words: [line for line in json_lines(program.call("explain", *words, "--json"), "verdict", "tuning") if line["verdict"] == "chosen"][0]
        entry = taken(*where, "--tuning", file)
        program.check(entry["kernel"] == found[-1]["kernel"], f"the plan goes by the line: {entry}")
        program.check(entry["tuning"].startswith(f"measured, {file}, line ") and ": 4x16x20x20x16x3x3 took " in entry["tuning"], f"and says so: {entry}")
        other = ("conv", "--size", "4x16x20x20x16x3x3", "--pad", "0", "--threads", "1", "--backend", backend)
        program.check(taken(*other, "--tuning", file)["tuning"] is None, "other problems are planned as ever")
        if len(found) > 1:
            ignored = json_lines(program.call("explain", *where, "--tuning", file, "--max-workspace", "0", "--json"), "verdict", "tuning")
            refused = [line for line in ignored if line["kernel"] == found[-1]["kernel"] and line["verdict"] == "refused"]
            program.check(all("is ignored: the kernel is rejected" in line["tuning"] for line in refused), f"limits go before a line: {ignored}")
    program.check("2 classes" in program.call("find", *problem, "--backend", "emulator", "--seconds", "0.001", "--out", file).stdout, "one line for a class")
    x, w = program.save("find_x", np.random.default_rng(1).normal(size=(4, 16, 20, 20)).astype(np.float32)), program.save("find_w", f32(16, 16, 3, 3))
    run = json_lines(program.call("run", "conv", "--x", x, "--w", w, "--pad", "1", "--threads", "1", "--backend", "cpu", "--tuning", file, "--out", program.file("find_y.npy"), "--json"), "kernel")
    line = [text for text in open(file) if text.startswith("conv backend=cpu ")][0]
    program.check(f"kernel={run[0]['kernel']} " in line, f"run goes by it: {run}, {line}")
    gemm = json_lines(program.call("find", "gemm", "--size", "64x64x64", "--backend", "cpu", "--seconds", "0.001", "--out", file, "--json"), "kernel", "class")
    program.check(gemm[0]["class"].startswith("gemm backend=cpu a=f32/"), f"products, too: {gemm}")
    program.check(len(json_lines(program.call("find", "pool", "--size", "2x3x8x8", "--window", "2", "--backend", "cpu", "--seconds", "0.001", "--naive", "--json"), "kernel")) >= 2, "every subject, and the naive loops")
    most = json_lines(program.call("find", *problem, "--backend", "emulator", "--seconds", "0.001", "--max-workspace", "0", "--deterministic", "--json"), "workspace_bytes")
    program.check(most and all(line["workspace_bytes"] == 0 for line in most), f"within the limit: {most}")
    exact = json_lines(program.call("find", *problem, "--backend", "emulator", "--seconds", "0.001", "--max-error", "1e-6", "--json"), "expected_error")
    program.check(exact and all(line["expected_error"] is None or line["expected_error"] <= 1e-6 for line in exact), f"within the error: {exact}")
    program.check("exceeds the limit 1e-12" in program.call("find", *problem, "--backend", "emulator", "--max-error", "1e-12", expect=2).stderr, "an error that none keeps")
    before = open(file).read()
    conv = [text for text in before.splitlines() if text.startswith("conv backend=cpu")][0]
    for old, new, complaint in (("direction=forward", "direction=up", "direction=up; expected forward, data, filter or bias"), ("x=f32/nchw", "x=f23/nchw", "x=f23/nchw"), ("/nchw/", "/hwcn/", "a layout of nchw, nhwc or chwn"),
                                ("stride=1,1", "stride=1", "stride=1; expected 2 integers separated by commas"), (" groups=1", "", "the key groups is missing"), (" groups=1", " groups=1 group=1", "unknown key 'group' in a line for conv"),
                                ("backend=cpu", "backend=tpu", "backend=tpu"), ("kernel=", "kernel=-", "a name as cosmati list kernels prints them")):
        bad = program.file("bad.txt")
        open(bad, "w").write("# one\n" + conv.replace(old, new, 1) + "\n")
        program.check(old in conv, f"{old} in {conv}")
        says(program.call("explain", *problem, "--backend", "cpu", "--tuning", bad, expect=2), bad + ", line 2: ", complaint)
        says(program.call("find", *problem, "--backend", "cpu", "--out", bad, expect=2), bad + ", line 2: ", complaint)
    says(program.call("find", "conv", expect=2), "--suite")
    says(program.call("find", *problem, "--seconds", "0", expect=2), "--seconds 0", "0.0001 to 60")
    says(program.call("find", *problem, "--tuning", file, expect=2), "--tuning", "--out")
    says(program.call("find", *problem, "--backend", "cpu", "--kernel", "reference", "--out", file, expect=2), "--out", "--kernel")
    says(program.call("find", "pool", "--size", "2x3x8x8", "--window", "2", "--out", file, expect=2), "gemm and conv", "pool")
    program.check(open(file).read() == before, "a request that is refused leaves the file alone")


def suites():
    """The suites shipped with the program."""
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "bench", "suites")
    listed = {line["suite"]: line for line in json_lines(program.call("list", "suites", "--json"), "suite", "problems", "about")}
    program.check({"squares", "llm", "deep", "skinny", "ragged", "batched", "grouped"} <= set(listed), f"suites: {sorted(listed)}")
    program.check(listed.get("llm", {}).get("problems") == 110, "a line of a suite may hold a list")
    # Convolutions: each line is planned on the CPU and for a GPU, as the command line requests.
    for name, problems in {"lenet": 9, "dcgan": 16, "vgg16": 27, "resnet50": 69, "mobilenet": 90, "deepbench": 90, "large_filters": 26, "odd": 36, "resnext50": 21, "depthwise": 12, "other_layers": 48, "more_layers": 58}.items():
        program.check(listed.get(name, {}).get("problems") == problems, f"{name}: {listed.get(name)}")
        for words in (["--backend", "cpu"], ["--backend", "cuda", "--device-description", "h200", "--direction", "filter", "--layout", "nhwc", "--type", "f16"]):
            lines = json_lines(program.call("explain", "conv", "--suite", name, *words, "--json"), "problem", "verdict")
            chosen = [line["problem"] for line in lines if line["verdict"] == "chosen"]
            program.check(len(chosen) == len(set(chosen)) == problems, f"{name} {words}: {len(chosen)} problems are planned")
            kinds = {problem.split()[0] for problem in chosen}
            program.check(kinds == {"data" if name == "dcgan" else "forward" if "cpu" in words else "filter"}, f"{name}: the command line's direction, where the suite has none: {kinds}")
    only = json_lines(program.call("explain", "conv", "--suite", "odd", "--images", "1,16", "--json"), "problem", "verdict")
    only = [line["problem"] for line in only if line["verdict"] == "chosen"]
    program.check({problem.split()[1] for problem in only} == {"n1", "n16"} and len(only) == len(set(only)) == 24,
                  f"--images takes the place of a suite's batch sizes: {len(only)} problems")
    verified = json_lines(program.call("verify", "conv", "--suite", "odd", "--images", "1", "--most-operations", "3e7", "--json"), "correct")
    program.check(len(verified) == 7 and all(line["correct"] for line in verified), f"of the suite odd, {len(verified)} verified")
    says(program.call("verify", "conv", "--suite", "odd", "--most-operations", "10", expect=2), "all 36 problems", "--most-operations 10")
    unmeasured = json_lines(program.call("bench", "conv", "--suite", "lenet", "--images", "64", "--slices", "1", "--slice-seconds", "0.001", "--verify-below", "1e6", "--json"), "verified", "suite")
    program.check([(line["verified"], line["suite"]) for line in unmeasured] == [(None, "lenet")] * 3, "--verify-below leaves the reference out")
    program.check(set(listed) == {name[:-4] for name in os.listdir(folder)}, "every file is a suite")
    for name in os.listdir(folder):
        first = open(os.path.join(folder, name)).readline()
        program.check(first.startswith("# ") and listed[name[:-4]]["about"], f"{name} begins with a comment that says what it is")


def placed():
    """bench on arrays with gaps and misalignment."""
    bench = lambda *words, expect=0: program.call("bench", "gemm", "--slices", "1", "--slice-seconds", "0.005", *words, expect=expect)
    for backend in ("cpu", "reference", "emulator"):
        lines = json_lines(bench("--size", "9x8x7x2", "--layout", "tn", "--gap", "3", "--misalign", "1", "--type", "f32,f64", "--backend", backend, "--json"), "problem", "verified")
        program.check([line["problem"] for line in lines] == ["9x8x7x2 tn gap 3 misaligned by 1"] * 2 and all(line["verified"] for line in lines), f"placed on {backend}: {lines}")
    says(bench("--size", "8x8x8", "--gap", "-1", expect=2), "--gap -1", "0 to 65536")
    says(bench("--size", "8x8x8", "--misalign", "64", expect=2), "--misalign 64", "0 to 63")
    if next(line["here"] for line in json_lines(program.call("info", "--json"), "name") if line["name"] == "NVRTC"):
        compiled = lambda *words: json_lines(program.call("compile", "gemm", "--size", "256x256x256", "--type", "bf16", "--cache", program.file("kernels"), "--json", *words), "policy")[0]
        program.check("d by 8," in compiled()["policy"] and "d by 1," in compiled("--misalign", "1")["policy"], "compile plans for the placement")


    explained = lambda *words: [line for line in json_lines(program.call("explain", "gemm", "--size", "256x256x256", "--type", "bf16", "--device-description", "h200", "--json", *words), "recipe")
                                if line["verdict"] == "chosen"][0]
    program.check(", d by 8," in explained()["recipe"] and ", d by 1," in explained("--misalign", "1")["recipe"], "explain plans for the placement")
    program.check(explained("--gap", "3")["problem"].endswith(" gap 3") and any(way in explained("--gap", "3")["recipe"] for way in ("repacked first", "by threads")), "explain plans for gaps")
    says(program.call("explain", "gemm", "--size", "8x8x8", "--gap", "-1", expect=2), "--gap -1", "0 to 65536")
    told = program.call("explain", "gemm", "--size", "256x256x256", "--gap", "3", "--type", "bf16", "--device-description", "h200").stdout
    program.check("Terms:" in told and "repacked first: " in told and "two alternating tiles: " not in told, f"explain says what the terms of its recipes mean: {told}")


def groups():
    """Products of different sizes, and batches by pointers."""
    for backend in ("cpu", "emulator"):
        lines = json_lines(program.call("verify", "gemm", "--group", "random", "--count", "6", "--backend", backend, "--json"), "problem", "correct")
        program.check(len(lines) == 6 and all(line["correct"] and " in a group: " in line["problem"] for line in lines), f"random groups on {backend}: {lines}")
    lines = json_lines(program.call("verify", "gemm", "--size", "9x8x16x5", "--by-pointers", "--layout", "tn", "--type", "bf16", "--kernel", "warp_specialized", "--backend", "emulator", "--json"), "problem", "kernel", "correct")
    program.check([line["problem"] for line in lines] == ["9x8x16x5 tn by pointers"] and lines[0]["correct"], f"by pointers: {lines}")
    gpu = lambda *words: json_lines(program.call("explain", "gemm", *words, "--type", "bf16", "--layout", "tn", "--backend", "cuda", "--device-description", "h200", "--json"), "kernel", "verdict", "recipe")
    chosen = [line for line in gpu("--group", "8x1024x512x4096,2048x8x1024") if line["verdict"] == "chosen"][0]
    program.check(chosen["kernel"] == "warp_specialized" and chosen["recipe"].startswith("9 members with "), f"a group's plan: {chosen}")
    chosen = [line for line in gpu("--size", "1024x1024x1024x64", "--by-pointers") if line["verdict"] == "chosen"][0]
    program.check(chosen["kernel"] == "warp_specialized", f"the plan of a batch by pointers: {chosen}")
    says(program.call("verify", "gemm", "--group", "8x8", expect=2), "--group", "8x8")
    says(program.call("verify", "gemm", "--group", "8x8x8", "--size", "8x8x8", expect=2), "--group and a size are mutually exclusive")
    says(program.call("bench", "gemm", "--group", "8x8x8", "--peer", "onednn", expect=3), "peer onednn")
    line = json_lines(program.call("bench", "gemm", "--group", "8x9x7,3x0x4", "--slices", "1", "--slice-seconds", "0.01", "--json"), "problem", "verified")[0]
    program.check(line["problem"] == "2 in a group: 8x9x7,3x0x4 nn" and line["verified"], f"bench of a group: {line}")


def other_verbs():
    a = program.save("a", f32(4, 4))
    # The first call does not measure the operation, so it is reported separately; --time requests later calls.
    run = ["run", "gemm", "--a", a, "--b", a, "--out", program.file("o.npy")]
    line = json_lines(program.call(*run, "--json"), "verb", "kernel", "setup_seconds", "first_call_seconds", "seconds")[0]
    program.check(line["setup_seconds"] > 0 and line["first_call_seconds"] > 0 and line["seconds"] is None, f"run without --time: {line}")
    line = json_lines(program.call(*run, "--time", "--json"), "verb")[0]
    program.check(0 < line["seconds"] <= line["setup_seconds"] + line["first_call_seconds"], f"run --time: {line}")
    program.check("setup " in (text := program.call(*run).stdout) and "first call " in text and "later calls" not in text, text)
    program.check("later calls " in (text := program.call(*run, "--time").stdout) and "median of " in text, text)
    # Later calls run after the outputs are written, so a state takes only one step.
    p, g = program.save("p", f32(4)), program.save("g", f32(4))
    program.call("run", "sgd", "--parameter", p, "--gradient", g, "--rate", 0.25, "--out", program.file("stepped.npy"), "--time")
    program.equal("one step of sgd with --time", np.load(program.file("stepped.npy")), np.float32([0.75] * 4))
    kinds = {line["kind"] for line in json_lines(program.call("info", "--json"), "kind", "name", "here", "state")}
    program.check({"backend", "device", "library", "peer", "toolkit", "cache"} <= kinds, f"info tells of {kinds}")
    for what in ("kernels", "suites", "policies", "epilogue-functions"):
        program.check(program.call("list", what).stdout.strip() != "", f"list {what} prints something")
    names = " ".join(line["function"] for line in json_lines(program.call("list", "epilogue-functions", "--json"), "function"))
    program.check(all(name in names for name in ("relu(", "gelu(", "clamp(", "erf(", "select(")), names)
    explained = json_lines(program.call("explain", "gemm", "--size", "64x64x64", "--json"), "kernel", "verdict", "reason")
    program.check([line["verdict"] for line in explained].count("chosen") == 1, "one kernel is chosen")
    program.check(all(line["reason"] for line in explained if line["verdict"] == "refused"), "refusals have reasons")
    subjects = ("gemm", "conv", "pool", "activation", "batchnorm", "layernorm", "rmsnorm", "groupnorm", "softmax", "lrn", "cross-entropy", "rbf", "dropout", "transform", "reduce", "add", "elementwise", "sgd", "adam")
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


parts = (help_and_version, misspelled, bad_requests, unavailable, gpus, misaligned, compiled, half_sums, policies, tuning, finding, suites, placed, groups, other_verbs)
left_out = sys.argv[4].split(",") if sys.argv[3:4] == ["--without"] else []
if unknown := set(left_out) - {part.__name__ for part in parts}:
    sys.exit(f"check_program.py: unknown parts {unknown}")
for part in parts:
    if part.__name__ not in left_out:
        part()
program.finish()
