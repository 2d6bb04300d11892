#!/usr/bin/env python3
"""`cosmati run` activation, softmax, layer, RMS and group normalization, losses, dropout, reduce, add, sgd, adam against numpy. usage: check_vectors.py PROGRAM BACKEND"""
import itertools, math, sys
import numpy as np
from program import Program, from_bf16, to_bf16

program = Program(sys.argv[1], sys.argv[2])
random = np.random.default_rng(13)
normal = lambda *shape: random.normal(size=shape).astype(np.float32)
wide = lambda array: array.astype(np.float64)
erf = np.vectorize(math.erf)


def differences(function, x, weights, step=1e-5):
    """Returns d sum(weights * function(x)) / dx by central differences, element by element."""
    gradient = np.zeros_like(x)
    for index in np.ndindex(*x.shape):
        h = np.zeros_like(x)
        h[index] = step
        gradient[index] = np.sum(weights * (function(x + h) - function(x - h))) / (2 * step)
    return gradient


def activations():
    x, dy = normal(7, 11) * 2, normal(7, 11)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    functions = {
        ("relu",): lambda v: np.maximum(v, 0),
        ("leaky_relu",): lambda v: np.where(v > 0, v, 0.01 * v),
        ("leaky_relu", "--alpha", 0.2): lambda v: np.where(v > 0, v, 0.2 * v),
        ("elu",): lambda v: np.where(v > 0, v, np.exp(np.minimum(v, 0)) - 1),
        ("elu", "--alpha", 0.5): lambda v: np.where(v > 0, v, 0.5 * (np.exp(np.minimum(v, 0)) - 1)),
        ("sigmoid",): sigmoid,
        ("tanh",): np.tanh,
        ("scaled_tanh",): lambda v: 1.7159 * np.tanh(2 * v / 3),
        ("scaled_tanh", "--alpha", 2, "--beta", 0.5): lambda v: 2 * np.tanh(0.5 * v),
        ("gelu",): lambda v: v * 0.5 * (1 + erf(v / math.sqrt(2))),
        ("gelu_tanh",): lambda v: 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))),
        ("silu",): lambda v: v * sigmoid(v),
    }
    fx, fdy = program.save("x", x), program.save("dy", dy)
    for words, function in functions.items():
        got = program.run("activation", "--x", fx, "--function", *words)
        program.close(f"{words}", got, function(wide(x)), 2)
        got = program.run("activation", "--x", fx, "--dy", fdy, "--direction", "backward", "--function", *words)
        program.close(f"{words} backward", got, wide(dy) * (function(wide(x) + 1e-6) - function(wide(x) - 1e-6)) / 2e-6, 2)
    # At 0 and -0 the slope is the left derivative: PyTorch's convention.
    zeros = ["--x", program.save("zeros", np.float32([0, -0.0])), "--dy", program.save("fives", np.float32([5, 5])), "--direction", "backward"]
    for words, slope in {("relu",): 0, ("leaky_relu",): 0.01, ("leaky_relu", "--alpha", 0.25): 0.25, ("elu",): 1, ("elu", "--alpha", 0.5): 0.5}.items():
        program.close(f"{words} at 0", program.run("activation", *zeros, "--function", *words), np.float64([5 * slope] * 2))
        got = program.run("activation", "--x", program.save("nan", np.float32([np.nan, 1])), *zeros[2:], "--function", *words)
        program.check(got is not None and np.isnan(got[0]) and got[1] == 5, f"{words} keeps NaN backward: {got}")
    program.check(np.isnan(program.run("activation", "--x", program.save("nan", np.float32([np.nan, 1])), "--function", "relu")[0]), "relu keeps NaN")
    fortran = program.run("activation", "--x", program.save("f", np.asfortranarray(x)), "--function", "relu")
    program.equal("Fortran order", fortran, np.maximum(x, 0))
    bits = program.run("activation", "--x", program.save("b", to_bf16(x)), "--type", "bf16", "--function", "relu")
    program.equal("bf16", bits, to_bf16(np.maximum(from_bf16(to_bf16(x)), 0)))


def softmaxes():
    for shape, axis in (((5, 9), 1), ((5, 9), 0), ((5, 9), -1), ((2, 3, 4), 1), ((2, 3, 4), -3), ((6,), 0), ((2, 3, 2, 3, 2), 2)):
        x, dy = normal(*shape) * 5, normal(*shape)
        e = np.exp(wide(x) - wide(x).max(axis, keepdims=True))
        y = e / e.sum(axis, keepdims=True)
        fx, fdy = program.save("x", x), program.save("dy", dy)
        name = f"softmax {shape} axis {axis}"
        program.close(name, program.run("softmax", "--x", fx, "--axis", axis), y, 1)
        program.close(name + " log", program.run("softmax", "--x", fx, "--axis", axis, "--log"), np.log(y), 20)
        D = wide(dy)
        for log, saved, dx in ((False, y, y * (D - (D * y).sum(axis, keepdims=True))), (True, np.log(y), D - y * D.sum(axis, keepdims=True))):
            words = ["--dy", fdy, "--axis", axis, "--direction", "backward", *(["--log"] if log else [])]
            program.close(f"{name} backward {log}", program.run("softmax", "--y", program.save("y", saved.astype(np.float32)), *words), dx, 4)
            program.close(f"{name} backward from x {log}", program.run("softmax", "--x", fx, *words), dx, 4)
    program.close("the last axis unless told", program.run("softmax", "--x", program.save("x", x)), np.exp(wide(x)) / np.exp(wide(x)).sum(-1, keepdims=True), 1)


def norms():
    """Normalizes rows of several dimensions, with and without parameters, around means of 0 and of 3000, which f32 rounds by 1e-4."""
    for layer, shape, axis, center, given in itertools.product((True, False), ((7, 33), (3, 4, 5), (2, 2, 700), (5, 4097)), (0, 1, -1), (0, 3000), (True, False)):
        axes = tuple(range(axis % len(shape), len(shape)))
        x, dy = normal(*shape) + np.float32(center), normal(*shape)
        weight, bias = normal(*shape[axes[0]:]) + 1, normal(*shape[axes[0]:])
        X, W, B = wide(x), wide(weight) if given else 1, wide(bias) if given and layer else 0
        mean = X.mean(axes, keepdims=True) if layer else 0
        inverse = 1 / np.sqrt(((X - mean) ** 2).mean(axes, keepdims=True) + 1e-3)
        u = (X - mean) * inverse
        subject, name = "layernorm" if layer else "rmsnorm", f"{'layer' if layer else 'rms'}norm {shape} axis {axis} around {center} {given}"
        words = [subject, "--x", program.save("x", x), "--axis", axis, "--epsilon", 1e-3]
        parameters = ["--weight", program.save("weight", weight)] if given else []
        biases = ["--bias", program.save("bias", bias)] if given and layer else []
        saves = ["--save-inverse", program.file("inverse.npy"), *(["--save-mean", program.file("mean.npy")] if layer else [])]
        program.close(name, program.run(*words, *parameters, *biases, *saves), u * W + B, 3, 4e-6)
        program.close(name + " inverse", program.load("inverse.npy", True), inverse, relative=4e-6)
        if layer:
            program.close(name + " mean", program.load("mean.npy", True), mean, abs(center) + 1, 1e-6)
            U = (X - wide(program.load("mean.npy", True))) * wide(program.load("inverse.npy", True))
        else:
            U = X * wide(program.load("inverse.npy", True))
        g = wide(dy) * W
        dx = inverse * (g - (g.mean(axes, keepdims=True) if layer else 0) - U * (g * U).mean(axes, keepdims=True))
        more = ["--dy", program.save("dy", dy), "--direction", "backward", "--inverse", program.file("inverse.npy")]
        more += ["--mean", program.file("mean.npy"), "--out-bias", program.file("db.npy")] if layer else []
        got = program.run(*words, *parameters, *more, "--out-weight", program.file("dw.npy"))
        program.close(name + " dx", got, dx, np.abs(inverse) * 10)
        rows = tuple(range(axes[0]))
        program.close(name + " dweight", program.load("dw.npy"), (wide(dy) * U).sum(rows), 10)
        if layer:
            program.close(name + " dbias", program.load("db.npy"), wide(dy).sum(rows), 10)
    for shape, groups, order, center, given in itertools.product(((3, 6), (2, 12, 5), (2, 6, 3, 5), (1, 6, 2, 3, 4), (2, 4, 1999)), (1, 2), (None, "nhwc", "chwn"),
                                                                 (0, 3000), (True, False)):
        n, channels, axes = shape[0], shape[1], {None: range(len(shape)), "nhwc": (0, *range(2, len(shape)), 1), "chwn": (*range(1, len(shape)), 0)}[order]
        x, dy, weight, bias = normal(*shape) + np.float32(center), normal(*shape), normal(channels) + 1, normal(channels)
        rows, of_channel = wide(x).reshape(n, groups, -1), (1, channels) + (1,) * (len(shape) - 2)
        W, B = (wide(weight).reshape(of_channel), wide(bias).reshape(of_channel)) if given else (1, 0)
        mean = rows.mean(-1)
        inverse = 1 / np.sqrt(rows.var(-1) + 1e-3)
        name = f"groupnorm {shape} groups {groups} {order} around {center} {given}"
        back = lambda array: array.transpose(np.argsort(axes))
        words = ["groupnorm", "--x", program.save("x", x.transpose(axes)), "--groups", groups, "--epsilon", 1e-3, *(["--layout", order] if order else [])]
        parameters = ["--weight", program.save("weight", weight)] if given else []
        biases = ["--bias", program.save("bias", bias)] if given else []
        saves = ["--save-inverse", program.file("inverse.npy"), "--save-mean", program.file("mean.npy")]
        u = ((rows - mean[..., None]) * inverse[..., None]).reshape(shape)
        program.close(name, back(program.run(*words, *parameters, *biases, *saves)), u * W + B, 3, 4e-6)
        program.close(name + " inverse", program.load("inverse.npy", True), inverse, relative=4e-6)
        program.close(name + " mean", program.load("mean.npy", True), mean, abs(center) + 1, 1e-6)
        I = wide(program.load("inverse.npy", True))[..., None]
        U = (rows - wide(program.load("mean.npy", True))[..., None]) * I
        g = (wide(dy) * W).reshape(rows.shape)
        dx = (I * (g - g.mean(-1, keepdims=True) - U * (g * U).mean(-1, keepdims=True))).reshape(shape)
        more = ["--dy", program.save("dy", dy.transpose(axes)), "--direction", "backward", "--inverse", program.file("inverse.npy"), "--mean", program.file("mean.npy"),
                "--out-bias", program.file("db.npy"), "--out-weight", program.file("dw.npy")]
        program.close(name + " dx", back(program.run(*words, *parameters, *more)), dx, inverse.max() * 10)
        others = (0, *range(2, len(shape)))
        program.close(name + " dweight", program.load("dw.npy"), (wide(dy) * U.reshape(shape)).sum(others), 100)
        program.close(name + " dbias", program.load("db.npy"), wide(dy).sum(others), 100)
    constant = np.full((3, 259), 30001.25, np.float32)
    program.close("a constant row is the bias", program.run("layernorm", "--x", program.save("x", constant)), np.zeros((3, 259)), 1, 1e-4)


def losses():
    x, labels = normal(6, 5) * 3, random.integers(0, 5, 6)
    loss = lambda v: np.mean(np.log(np.exp(v).sum(1)) - v[np.arange(6), labels])
    for kind in (np.int64, np.int32, np.uint8):
        words = ["--x", program.save("x", x), "--labels", program.save("labels", labels.astype(kind))]
        program.close(f"cross-entropy {kind}", program.run("cross-entropy", *words), loss(wide(x)))
    got = program.run("cross-entropy", *words, "--direction", "backward")
    program.close("cross-entropy backward", got, differences(loss, wide(x), 1.0), 1)
    centres = normal(5, 4)
    z = normal(6, 4)
    distances = lambda v, c: ((v[:, None] - c[None]) ** 2).sum(2)
    words = ["--x", program.save("x", z), "--centres", program.save("c", centres)]
    Z, C = wide(z), wide(centres)
    program.close("rbf distances", program.run("rbf", *words), distances(Z, C), 20)
    dy = normal(6, 5)
    got = program.run("rbf", *words, "--dy", program.save("dy", dy), "--direction", "backward", "--out-centres", program.file("dc.npy"))
    program.close("rbf backward of distances", got, differences(lambda v: distances(v, C), Z, wide(dy)), 10)
    program.close("rbf centres of distances", program.load("dc.npy"), differences(lambda c: distances(Z, c), C, wide(dy)), 10)
    for rubbish in (None, 1.5):
        def rbf_loss(v, c):
            d = distances(v, c)
            constant = 0 if rubbish is None else math.exp(-rubbish)
            return np.mean(d[np.arange(6), labels] + np.log(constant + np.exp(-d).sum(1)))
        more = [*words, "--labels", program.file("labels.npy"), *([] if rubbish is None else ["--rubbish", rubbish])]
        got = program.run("rbf", *more, "--out-distances", program.file("d.npy"))
        program.close(f"rbf loss {rubbish}", got, rbf_loss(Z, C), 10)
        program.close("its distances", program.load("d.npy"), distances(Z, C), 20)
        got = program.run("rbf", *more, "--direction", "backward", "--out-centres", program.file("dc.npy"))
        program.close(f"rbf backward {rubbish}", got, differences(lambda v: rbf_loss(v, C), Z, 1.0), 5)
        program.close(f"rbf centres {rubbish}", program.load("dc.npy"), differences(lambda c: rbf_loss(Z, c), C, 1.0), 5)


def dropouts():
    x = normal(200, 50) + 10
    words = ["--x", program.save("x", x), "--probability", 0.3]
    first = program.run("dropout", *words, "--seed", 5)
    kept = first != 0
    program.check(abs(kept.mean() - 0.7) < 0.02, f"dropout keeps {kept.mean()}")
    program.close("what stays is scaled", first[kept], wide(x)[kept] / 0.7)
    program.equal("the seed decides", program.run("dropout", *words, "--seed", 5), first)
    program.check(not np.array_equal(program.run("dropout", *words, "--seed", 6), first), "another seed, another mask")
    program.check(not np.array_equal(program.run("dropout", *words, "--seed", 5, "--step", 1), first), "another step, another mask")
    program.equal("order of the file does not matter", program.run("dropout", "--x", program.save("f", np.asfortranarray(x)), *words[2:], "--seed", 5), first)
    back = program.run("dropout", "--dy", words[1], *words[2:], "--seed", 5, "--direction", "backward")
    program.equal("backward has the same mask", back, first)


def reductions():
    x = normal(3, 4, 5, 2)
    X = wide(x)
    operations = {"sum": np.sum, "mean": np.mean, "max": np.max, "min": np.min, "sum-of-squares": lambda v, **k: np.sum(v * v, **k)}
    for (operation, function), axes in itertools.product(operations.items(), ((0,), (0, 2, 3), (-1,), (1, -1), (0, 1, 2, 3))):
        words = ["--x", program.save("x", x), "--axes", ",".join(map(str, axes)), "--operation", operation]
        program.close(f"{operation} {axes}", program.run("reduce", *words), function(X, axis=axes), 30)
        program.close(f"{operation} {axes} kept", program.run("reduce", *words, "--keep-axes"), function(X, axis=axes, keepdims=True), 30)
    program.close("all axes", program.run("reduce", "--x", program.file("x.npy")), X.sum(), 30)
    program.close("Fortran order", program.run("reduce", "--x", program.save("f", np.asfortranarray(x)), "--axes", 1), X.sum(1), 30)
    b = normal(3, 4, 5, 2)
    words = ["--a", program.save("a", x), "--b", program.save("b", np.asfortranarray(b)), "--alpha", 2, "--beta", -0.5]
    program.close("add", program.run("add", *words), 2 * X - 0.5 * wide(b))
    program.close("scale", program.run("add", *words[:2], "--alpha", -3), -3 * X)


def optimizers():
    p, g, v, s = normal(4, 5), normal(4, 5), normal(4, 5), np.abs(normal(4, 5))
    files = [program.save(*f) for f in (("p", p), ("g", g), ("v", v), ("s", s))]
    P, V, S = wide(p), wide(v), wide(s)
    G = wide(g) + 0.1 * P
    words = ["--parameter", files[0], "--gradient", files[1], "--weight-decay", 0.1, "--rate", 0.05]
    program.close("sgd", program.run("sgd", *words), P - 0.05 * G)
    moved = 0.9 * V + G
    momentum = [*words, "--velocity", files[2], "--momentum", 0.9, "--out-velocity", program.file("v1.npy")]
    program.close("sgd with momentum", program.run("sgd", *momentum), P - 0.05 * moved)
    program.close("velocity", program.load("v1.npy"), moved)
    program.close("nesterov", program.run("sgd", *momentum, "--nesterov"), P - 0.05 * (G + 0.9 * moved))
    program.close("velocity from zero", program.run("sgd", *words, "--momentum", 0.9), P - 0.05 * G)
    first, second = 0.8 * V + 0.2 * G, 0.95 * S + 0.05 * G * G
    adam = ["--first", files[2], "--second", files[3], "--step", 3, "--beta1", 0.8, "--beta2", 0.95, "--epsilon", 1e-6,
            "--out-first", program.file("m1.npy"), "--out-second", program.file("s1.npy")]
    wanted = P - 0.05 * (first / (1 - 0.8**3)) / (np.sqrt(second / (1 - 0.95**3)) + 1e-6)
    program.close("adam", program.run("adam", *words, *adam), wanted)
    program.close("first moment", program.load("m1.npy"), first)
    program.close("second moment", program.load("s1.npy"), second)
    program.close("the files of the inputs stay", np.load(files[0]), P)


def expressions():
    x, bias, scale, residual = normal(3, 5, 4, 6), normal(5), normal(3, 5), normal(3, 5, 4, 6)
    files = {name: program.save(name, array) for name, array in (("bias", bias), ("scale", scale), ("residual", residual))}
    operands = [word for name, file in files.items() for word in ("--operand", f"{name}={file}")]
    text = "let t = acc * scale[n, c] + s * bias[c]; store(pre, t); relu(t) + residual[n, c, h, w]"
    pre = program.file("pre.npy")
    words = ["--x", program.save("x", x), *operands, "--set", "s=0.5", "--store", f"pre={pre}", "--epilogue", text]
    t = wide(x) * wide(scale)[:, :, None, None] + 0.5 * wide(bias)[None, :, None, None]
    program.close("an expression of four arrays", program.run("elementwise", *words), np.maximum(t, 0) + wide(residual), 4)
    program.close("what it stores", program.load("pre.npy"), t, 4)
    row = normal(4099)
    program.close("one dimension", program.run("elementwise", "--x", program.save("r", row), "--epilogue", "tanh(acc) * acc"), np.tanh(wide(row)) * wide(row), 2)


for part in (expressions, activations, softmaxes, norms, losses, dropouts, reductions, optimizers):
    part()
program.finish()
