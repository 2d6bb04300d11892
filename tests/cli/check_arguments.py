#!/usr/bin/env python3
"""Zero-dimensional arrays, integers of any width, options without effect, and files without stray output. usage: check_arguments.py PROGRAM"""
import io, os, subprocess, sys
import numpy as np
from program import Program

program = Program(sys.argv[1], "cpu")
f32 = lambda *shape: np.ones(shape, np.float32)


def refused(*words, says):
    """Expects one sentence that contains all of `says`, status 2, and no output file."""
    out = program.file("refused.npy")
    text = program.call("run", *words, "--backend", "cpu", "--out", out, expect=2).stderr
    program.check(text.startswith("cosmati: ") and not os.path.exists(out), f"{words}: {text!r}")
    for word in says:
        program.check(word in text, f"{words} says {word!r}: {text!r}")


def without_dimensions():
    x = program.save("scalar", np.float32(-3))
    one = program.save("one", f32(1))
    for words, wanted in {
        ("activation", "--x", x, "--function", "relu"): 0, ("activation", "--x", x, "--dy", x, "--direction", "backward", "--function", "relu"): 0,
        ("add", "--a", x, "--b", x): -6, ("add", "--a", x): -3, ("softmax", "--x", x): 1, ("dropout", "--x", x, "--probability", 0): -3,
        ("softmax", "--x", x, "--dy", x, "--direction", "backward"): 0, ("elementwise", "--x", x, "--epilogue", "acc*2"): -6,
        ("reduce", "--x", x): -3, ("reduce", "--x", x, "--keep-axes"): -3, ("sgd", "--parameter", x, "--gradient", x, "--rate", 1): 0,
    }.items():
        program.equal(" ".join(words[:1]) + " of ()", program.run(*words), np.float32(wanted))
    for subject in (("add", "--a", one, "--b", x), ("activation", "--x", x, "--dy", one, "--function", "relu", "--direction", "backward"), ("sgd", "--parameter", x, "--gradient", one)):
        refused(*subject, says=["f32 ()", "f32 (1)", "equal"])
    for subject in (("conv", "--x", x, "--w", x), ("gemm", "--a", x, "--b", x), ("transform", "--x", x), ("pool", "--x", x), ("cross-entropy", "--x", x, "--labels", x)):
        refused(*subject, says=["f32 () has 0 dimensions"])
    wide = program.save("wide", f32(2, 1, 3))
    refused("batchnorm", "--x", wide, "--scale", x, "--bias", one, "--training", says=["f32 () has 0 dimensions", "(C)"])
    refused("elementwise", "--x", one, "--operand", "b=" + x, "--epilogue", "acc + b[i]", says=["()", "(1)"])


def integers():
    whole = np.arange(-3, 3).reshape(2, 3)
    for kind in (np.int16, np.int64):
        a = program.save("whole", whole.astype(kind))
        for name, kind_here in (("f32", np.float32), ("f64", np.float64), ("s8", np.int8), ("s32", np.int32)):
            got = program.run("add", "--a", a, "--type", name)
            program.equal(f"{kind.__name__} as {name}", got, whole)
            program.check(got is not None and got.dtype == kind_here, f"{name}: {got.dtype}")
        refused("add", "--a", a, says=["whole.npy", "s16" if kind == np.int16 else "s64", "--a-type"])
    refused("add", "--a", program.save("large", np.array([1, 300, 301])), "--type", "s8", says=["large.npy", "300 at (1)", "s8"])
    refused("add", "--a", program.save("odd", np.array([2**24, 2**24 + 1])), "--type", "f32", says=["odd.npy", "16777217 at (1)", "f32"])
    # Operands, c and parameters take the requested type; with integer products they become s32, the type of the
    # sums.
    a, b, bias = np.arange(12).reshape(3, 4), np.arange(20).reshape(4, 5) - 9, np.arange(5) * 1000
    files = ["--a", program.save("a", a), "--b", program.save("b", b), "--operand", "bias=" + program.save("bias", bias),
             "--c", program.save("c", np.full((3, 5), 70000)), "--epilogue", "acc + bias[n] + c"]
    for name in ("f32", "f64", "s8"):
        got = program.run("gemm", *files, "--type", name)
        program.equal("gemm of int64 as " + name, got, a @ b + bias + 70000)
    refused("gemm", *files, "--type", "f16", says=["c.npy", "70000 at (0, 0)", "f16"])
    refused("gemm", *files, "--a-type", "s8", "--b-type", "s8", says=["s64", "--type"])
    x = np.arange(12, dtype=np.float32).reshape(2, 3, 2)
    ones = program.save("ones", np.ones(3, np.int64))
    got = program.run("batchnorm", "--x", program.save("x", x), "--scale", ones, "--bias", ones, "--mean", ones, "--variance", ones, "--epsilon", 0, "--type", "f32")
    program.equal("batchnorm with int64 parameters", got, x)
    # Arrays that a mode does not read are reported, and do not affect the type of outputs.
    done = program.call("run", "batchnorm", "--x", program.file("x.npy"), "--scale", program.save("s", f32(3)), "--bias", program.file("s.npy"), "--training",
                        "--mean", program.save("m", np.ones(3)), "--out", program.file("o.npy"), "--save-mean", program.file("mean.npy"), "--backend", "cpu")
    program.check("--mean" in done.stderr and np.load(program.file("mean.npy")).dtype == np.float32, done.stderr)


def options_without_meaning():
    x, w, dy = program.save("x", f32(1, 3, 8, 8)), program.save("w", f32(4, 3, 3, 3)), program.save("dy", f32(1, 4, 6, 6))
    conv = {"forward": ["--x", x, "--w", w], "data": ["--dy", dy, "--w", w, "--input-size", "8,8"], "filter": ["--x", x, "--dy", dy, "--filter-size", "3"],
            "transposed": ["--x", dy, "--w", w], "bias": ["--dy", dy]}
    legal = {"--input-size": ("data",), "--filter-size": ("filter",), "--output-size": ("transposed",), "--output-pad": ("transposed",)}
    for direction, files in conv.items():
        words = ["conv", *files, "--direction", direction]
        program.check(program.run(*words) is not None, direction)
        for option, directions in legal.items():
            if direction not in directions:
                refused(*words, *([] if option in words else [option, "1,1"]), says=[option, "--direction " + direction, "--direction " + directions[0]])
    for option in ("--stride", "--pad", "--dilation", "--groups"):
        refused("conv", *conv["bias"], "--direction", "bias", option, "2", says=[option + " 2", "bias"])
    program.call("verify", "conv", "--size", "1x2x5x5x2x3x3", "--filter-size", "3", expect=2)
    program.call("verify", "conv", "--size", "1x2x5x5x2x3x3", "--direction", "bias", "--stride", "2", "--pad", "1")
    nine = program.save("nine", f32(1, 2, 9, 9))
    four, five = program.save("four", f32(1, 2, 4, 4)), program.save("five", f32(1, 2, 5, 5))
    back = ["pool", "--x", nine, "--direction", "backward", "--dy"]
    refused("pool", "--x", nine, "--storage-order", "column", says=["--storage-order column", "--indices"])
    refused("pool", "--x", nine, "--storage-order", "colum", says=["did you mean column?"])
    refused(*back, four, "--indices", program.file("i.npy"), says=["--indices", "--direction backward"])
    refused("pool", "--x", nine, "--mode", "average", "--indices", program.file("i.npy"), says=["--indices", "--mode average", "--mode max"])
    refused(*back, four, "--ceil", says=["four.npy", "4 rows", "--ceil", "5"])
    for words in ([five, "--ceil"], [five], [four]):
        program.check(program.run(*back, *words) is not None, f"backward {words}")
    refused("activation", "--x", x, "--function", "relu", "--alpha", "1", says=["--alpha", "--function relu", "leaky_relu"])
    refused("activation", "--x", x, "--function", "elu", "--beta", "1", says=["--beta", "scaled_tanh"])
    refused("add", "--a", x, "--beta", "1", says=["--beta", "--b FILE"])
    refused("rbf", "--x", program.save("rows", f32(2, 3)), "--centres", program.file("rows.npy"), "--rubbish", "1", says=["--rubbish", "--labels"])


def sizes_in_the_words_of_the_options():
    w = program.save("w", f32(4, 3, 3, 3))
    dy = program.save("dy", f32(1, 4, 6, 7))
    words = ["conv", "--x", dy, "--w", w, "--direction", "transposed"]
    refused(*words, "--output-size", "20,20", "--stride", "2", says=["--output-size 20,20", "dy.npy", "6 rows", "valid values: 13 to 14"])
    refused(*words, "--output-size", "13,20", "--stride", "2", says=["20 columns", "7 columns", "valid values: 15 to 16"])
    refused(*words, "--output-size", "5,5", "--stride", "2", "--pad", "same-lower", says=["--output-size 5,5", "valid values: 11 to 12"])
    refused(*words, "--output-pad", "2,0", "--stride", "2", says=["--output-pad 2,0", "0 to 1"])
    refused(*words, "--output-pad", "1", says=["--output-pad 1", "--output-pad of 0"])
    refused(*words, "--pad", "9", says=["--pad 9", "-10 rows"])
    refused(*words, "--pad", "1,-1,0,0", says=["--pad 1,-1,0,0", "-1 is less than 0"])
    refused(*words, "--output-pad", "1", "--output-size", "9,9", says=["--output-pad 1", "--output-size 9,9"])
    refused(*words, "--output-pad", "1", "--pad", "same-upper", "--stride", "2", says=["--output-pad 1", "--pad same-upper"])
    refused("conv", "--x", w, "--w", w, "--direction", "transposed", says=["w.npy", "4 filters", "3 channels"])
    refused("conv", "--dy", dy, "--w", w, "--direction", "data", "--input-size", "9", says=["--input-size 9", "valid values: 8"])
    for size in ("13,15", "14,16"):
        got = program.run(*words, "--stride", "2", "--output-size", size)
        program.check(got is not None and got.shape[2:] == tuple(map(int, size.split(","))), f"--output-size {size} is legal")


def clean_files():
    # If a file is stdout, it contains only the results.
    x = program.save("x", f32(2, 3))
    words = [program.path, "run", "add", "--a", x, "--backend", "cpu", "--out", "/dev/stdout"]
    for more in ([], ["--json"]):
        done = subprocess.run(words + more, capture_output=True)
        data = io.BytesIO(done.stdout)
        program.check(done.returncode == 0 and np.array_equal(np.load(data), f32(2, 3)) and data.read() == b"", f"/dev/stdout {more}: {done.stdout[-80:]!r}")
        program.check(b"/dev/stdout" in done.stderr, f"the report is on stderr: {done.stderr!r}")
    with open(program.file("redirected.npy"), "wb") as file:
        subprocess.run(words, stdout=file, stderr=subprocess.PIPE)
    program.equal("/dev/stdout > FILE", np.load(program.file("redirected.npy")), f32(2, 3))
    # A failed request leaves no tuning file.
    file = program.file("tuning.txt")
    for words, status in ((["--size", "8x8"], 2), (["--size", "8x8x8", "--backend", "cuda", "--device", "0"], 3), (["--size", "8x8x8", "--seconds", "99"], 2)):
        program.call("find", "gemm", *words, "--out", file, expect=status, COSMATI_LIBCUDA="/nowhere/libcuda.so")
        program.check(not os.path.exists(file), f"find {words} leaves nothing")
    done = program.call("find", "gemm", "--size", "8x8x8", "--backend", "cpu", "--seconds", "0.001", "--out", file)
    program.check("1 classes" in done.stdout and os.path.getsize(file) > 0, "find makes the file")


for part in (without_dimensions, integers, options_without_meaning, sizes_in_the_words_of_the_options, clean_files):
    part()
program.finish()
