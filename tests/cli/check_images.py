#!/usr/bin/env python3
"""`cosmati run` conv, pool, batchnorm, lrn, transform against numpy. usage: check_images.py PROGRAM BACKEND"""
import itertools, sys
import numpy as np
from program import Program

program = Program(sys.argv[1], sys.argv[2])
random = np.random.default_rng(12)
normal = lambda *shape: random.normal(size=shape).astype(np.float32)
wide = lambda array: array.astype(np.float64)
AXES = {"nchw": (0, 1, 2, 3), "nhwc": (0, 2, 3, 1), "chwn": (1, 2, 3, 0)}
to = lambda array, layout: np.ascontiguousarray(array.transpose(AXES[layout]))


def taps(x, window, stride, pad, dilation, fill):
    """Returns x[n, c, h, w] of each tap as an array (R*S, N, C, P, Q), and the indices h*W + w, or -1 outside."""
    (R, S), (top, bottom, left, right) = window, pad
    H, W = x.shape[2:]
    P = (H + top + bottom - dilation[0] * (R - 1) - 1) // stride[0] + 1
    Q = (W + left + right - dilation[1] * (S - 1) - 1) // stride[1] + 1
    values, places = np.full((R * S, *x.shape[:2], P, Q), fill), np.full((R * S, P, Q), -1)
    for (r, s), p, q in itertools.product(itertools.product(range(R), range(S)), range(P), range(Q)):
        h, w = p * stride[0] + r * dilation[0] - top, q * stride[1] + s * dilation[1] - left
        if 0 <= h < H and 0 <= w < W:
            values[r * S + s, :, :, p, q], places[r * S + s, p, q] = x[:, :, h, w], h * W + w
    return values, places


def convolution(x, w, stride=(1, 1), pad=(0, 0, 0, 0), dilation=(1, 1), groups=1):
    K, Cg, R, S = w.shape
    values, _ = taps(x, (R, S), stride, pad, dilation, 0.0)
    parts = [np.einsum("tncpq,kct->nkpq", values[:, :, g * Cg:(g + 1) * Cg], w[g * K // groups:(g + 1) * K // groups].reshape(K // groups, Cg, R * S)) for g in range(groups)]
    return np.concatenate(parts, 1)


def convolutions():
    x, w, bias = normal(2, 6, 9, 11), normal(4, 3, 3, 2), normal(4)
    options = dict(stride=(2, 1), pad=(1, 2, 0, 1), dilation=(1, 2), groups=2)
    words = ["--stride", "2,1", "--pad", "1,2,0,1", "--dilation", "1,2", "--groups", 2]
    X, W = wide(x), wide(w)
    y = convolution(X, W, **options)
    dy = random.normal(size=y.shape).astype(np.float32)
    dw, dx = np.zeros_like(W), np.zeros_like(X)
    for index in np.ndindex(*W.shape):  # both gradients of sum(dy * y) by linearity
        unit = np.zeros_like(W)
        unit[index] = 1
        dw[index] = np.sum(dy * convolution(X, unit, **options))
    for index in np.ndindex(*X.shape[1:]):
        unit = np.zeros((1, *X.shape[1:]))
        unit[(0, *index)] = 1
        dx[(slice(None), *index)] = np.einsum("nkpq,kpq->n", dy, convolution(unit, W, **options)[0])
    for layout in AXES:
        l = ["--layout", layout, *words]
        fx, fw, fdy = (program.save(n, to(v, layout)) for n, v in (("x", x), ("w", w), ("dy", dy)))
        program.close("forward " + layout, program.run("conv", "--x", fx, "--w", fw, *l), to(y, layout), 5)
        got = program.run("conv", "--x", fx, "--w", fw, "--direction", "forward", *l, "--operand", "bias=" + program.save("bias", bias), "--epilogue", "relu(acc + bias[k])")
        program.close("epilogue " + layout, got, to(np.maximum(y + bias.reshape(1, 4, 1, 1), 0), layout), 5)
        program.close("data " + layout, program.run("conv", "--dy", fdy, "--w", fw, "--direction", "data", "--input-size", "9,11", *l), to(dx, layout), 5)
        program.close("transposed " + layout, program.run("conv", "--x", fdy, "--w", fw, "--direction", "transposed", "--output-size", "9,11", *l), to(dx, layout), 5)
        got = program.run("conv", "--x", fx, "--dy", fdy, "--direction", "filter", "--filter-size", "3,2", *l, "--out-bias", program.file("db.npy"))
        program.close("filter " + layout, got, to(dw, layout), 20)
        program.close("its bias " + layout, program.load("db.npy"), dy.sum((0, 2, 3)), 20)
        program.close("bias " + layout, program.run("conv", "--dy", fdy, "--direction", "bias", "--layout", layout), dy.sum((0, 2, 3)), 20)
    smallest = program.run("conv", "--x", program.save("dy", dy), "--w", program.save("w", w), "--direction", "transposed", *words)
    extents = [(dy.shape[2] - 1) * 2 + 3 - 3, (dy.shape[3] - 1) + 2 * 1 + 1 - 1]
    program.check(smallest is not None and list(smallest.shape[2:]) == extents, f"smallest transposed output {None if smallest is None else smallest.shape}")
    padded = program.run("conv", "--x", program.file("dy.npy"), "--w", program.file("w.npy"), "--direction", "transposed", *words, "--output-pad", "1,0")
    program.check(padded is not None and padded.shape[2] == extents[0] + 1, "--output-pad adds a row")
    line, filters = normal(2, 3, 17), normal(5, 3, 4)
    got = program.run("conv", "--x", program.save("x", line), "--w", program.save("w", filters), "--stride", 2, "--pad", "1,3")
    program.close("one dimension", got, convolution(wide(line)[:, :, None], wide(filters)[:, :, None], (1, 2), (0, 0, 1, 3))[:, :, 0], 5)
    square, three = normal(1, 2, 8, 8), normal(2, 2, 3, 3)
    for pad, ends in (("same-upper", (0, 1, 0, 1)), ("same-lower", (1, 0, 1, 0))):
        got = program.run("conv", "--x", program.save("x", square), "--w", program.save("w", three), "--stride", 2, "--pad", pad)
        program.close(pad, got, convolution(wide(square), wide(three), (2, 2), ends), 5)


def pools():
    x = normal(2, 3, 9, 10)
    for layout, (window, stride, pad, dilation) in itertools.product(AXES, (((2, 2), (2, 2), (0, 0, 0, 0), (1, 1)), ((3, 2), (2, 1), (1, 1, 0, 1), (1, 2)))):
        words = ["--layout", layout, "--window", "%d,%d" % window, "--stride", "%d,%d" % stride, "--pad", "%d,%d,%d,%d" % pad, "--dilation", "%d,%d" % dilation]
        values, places = taps(wide(x), window, stride, pad, dilation, np.nan)
        first = np.nanargmax(values, 0)
        y = np.nanmax(values, 0)
        dy = random.normal(size=y.shape).astype(np.float32)
        fx, fdy = program.save("x", to(x, layout)), program.save("dy", to(dy, layout))
        got = program.run("pool", "--x", fx, "--mode", "max", *words, "--indices", program.file("indices.npy"))
        name = f"{layout} {window} {pad}"
        program.equal("max " + name, got, to(y.astype(np.float32), layout))
        flat = np.arange(6).reshape(2, 3, 1, 1) * 90 + np.take_along_axis(places[:, None, None] + np.zeros_like(values, int), first[None], 0)[0]
        indices = program.load("indices.npy")
        if not program.check(indices is not None, "no indices"):
            continue
        program.check(indices.dtype == np.int64, "indices are int64")
        program.equal("indices " + name, indices, to(flat, layout))
        program.equal("indices point at the maxima", x.ravel()[np.transpose(indices, np.argsort(AXES[layout]))], y.astype(np.float32))
        dx = np.zeros(x.size)
        np.add.at(dx, flat.ravel(), wide(dy).ravel())
        program.close("max backward " + name, program.run("pool", "--x", fx, "--dy", fdy, "--mode", "max", "--direction", "backward", *words), to(dx.reshape(x.shape), layout), 1)
        for mode, count in (("average", (~np.isnan(values)).sum(0)), ("average-with-padding", np.full(y.shape, window[0] * window[1]))):
            program.close(f"{mode} {name}", program.run("pool", "--x", fx, "--mode", mode, *words), to(np.nansum(values, 0) / count, layout), 1)
            dx = np.zeros((6, 90))
            for t in range(values.shape[0]):
                share = (wide(dy) / count).reshape(6, -1)
                inside = places[t].ravel() >= 0
                for plane in range(6):
                    np.add.at(dx[plane], places[t].ravel()[inside], share[plane][inside])
            program.close(f"{mode} backward {name}", program.run("pool", "--x", fx, "--dy", fdy, "--mode", mode, "--direction", "backward", *words), to(dx.reshape(x.shape), layout), 1)
    got = program.run("pool", "--x", program.save("x", x), "--window", 2, "--ceil")
    program.check(got is not None and got.shape == (2, 3, 5, 5), "--ceil keeps the last row")
    program.check(program.run("pool", "--x", program.save("x", x[:, :, 0]), "--window", 3, "--stride", 1).shape == (2, 3, 8), "one dimension")


def normalizations():
    for layout, shape in (("nchw", (4, 3, 5, 6)), ("nhwc", (4, 3, 5, 6)), ("nchw", (7, 5)), ("nhwc", (3, 4, 6))):
        rank = len(shape)
        axes = tuple(range(rank)) if layout == "nchw" else (0, *range(2, rank), 1)
        there = lambda v: np.ascontiguousarray(v.transpose(axes))
        x, dy = normal(*shape), normal(*shape)
        C = shape[1]
        scale, bias, mean, variance = normal(C), normal(C), normal(C), np.abs(normal(C)) + 0.5
        files = {n: program.save(n, v) for n, v in (("x", there(x)), ("dy", there(dy)), ("scale", scale), ("bias", bias), ("mean", mean), ("variance", variance))}
        c = lambda v: wide(v).reshape(1, C, *[1] * (rank - 2))
        sums = (0, *range(2, rank))
        X = wide(x)
        l = ["--layout", layout, "--epsilon", "1e-3"]
        words = lambda *names: [w for n in names for w in ("--" + n, files[n])]
        got = program.run("batchnorm", *words("x", "scale", "bias", "mean", "variance"), *l)
        program.close(f"inference {shape} {layout}", got, there((X - c(mean)) / np.sqrt(c(variance) + 1e-3) * c(scale) + c(bias)), 2)
        own_mean, own_variance = X.mean(sums), X.var(sums)
        hat = (X - c(own_mean)) / np.sqrt(c(own_variance) + 1e-3)
        # With mixed types, no operand is rounded to another's type.
        whole, double = np.arange(1, C + 1, dtype=np.int8), mean.astype(np.float64)
        mixed = program.run("batchnorm", *words("x", "bias", "variance"), "--scale", program.save("whole", whole), "--mean", program.save("double", double), *l)
        program.close(f"mixed types {shape} {layout}", mixed, there((X - c(mean)) / np.sqrt(c(variance) + 1e-3) * c(whole) + c(bias)), 2 * C)
        got = program.run("batchnorm", *words("x", "scale", "bias"), "--training", *l, "--save-mean", program.file("m.npy"), "--save-variance", program.file("v.npy"))
        program.close(f"training {shape} {layout}", got, there(hat * c(scale) + c(bias)), 4, 1e-4)
        program.close("saved mean", program.load("m.npy", keep=True), own_mean, 1)
        program.close("saved variance", program.load("v.npy", keep=True), own_variance, 1)
        D, count = wide(dy), X.size / C
        dscale, dbias = (D * hat).sum(sums), D.sum(sums)
        dx = c(scale) / np.sqrt(c(own_variance) + 1e-3) * (D - c(dbias) / count - hat * c(dscale) / count)
        got = program.run("batchnorm", *words("x", "dy", "scale"), "--mean", program.file("m.npy"), "--variance", program.file("v.npy"), "--direction", "backward", *l,
                          "--out-scale", program.file("ds.npy"), "--out-bias", program.file("db.npy"))
        program.close(f"backward {shape} {layout}", got, there(dx), 4, 1e-4)
        program.close("dscale", program.load("ds.npy"), dscale, 10, 1e-4)
        program.close("dbias", program.load("db.npy"), dbias, 10, 1e-4)
        for slope in (0, 0.2):
            s = [*l, "--slope", slope]
            z = hat * c(scale) + c(bias)
            got = program.run("batchnorm", *words("x", "scale", "bias"), "--training", *s)
            program.close(f"training {shape} {layout} slope {slope}", got, there(np.where(z > 0, z, slope * z)), 4, 1e-4)
            G = D * np.where(z > 0, 1, slope)
            dx = c(scale) / np.sqrt(c(own_variance) + 1e-3) * (G - c(G.sum(sums)) / count - hat * c((G * hat).sum(sums)) / count)
            got = program.run("batchnorm", *words("x", "dy", "scale", "bias"), "--mean", program.file("m.npy"), "--variance", program.file("v.npy"), "--direction", "backward", *s)
            program.close(f"backward {shape} {layout} slope {slope}", got, there(dx), 4, 1e-4)


def response_normalization():
    x, dy = normal(2, 7, 3, 4), normal(2, 7, 3, 4)
    size, alpha, beta, k = 4, 0.3, 0.6, 1.5
    X = wide(x)

    def lrn(v):
        base = np.stack([k + alpha / size * (v[:, max(0, c - (size - 1) // 2):c + size // 2 + 1] ** 2).sum(1) for c in range(7)], 1)
        return v / base**beta

    words = ["--size", size, "--alpha", alpha, "--beta", beta, "--k", k]
    program.close("lrn", program.run("lrn", "--x", program.save("x", x), *words), lrn(X), 1)
    dx = np.zeros_like(X)
    for index in np.ndindex(*X.shape):
        step = np.zeros_like(X)
        step[index] = 1e-5
        dx[index] = np.sum(wide(dy) * (lrn(X + step) - lrn(X - step))) / 2e-5
    program.close("lrn backward", program.run("lrn", "--x", program.save("x", x), "--dy", program.save("dy", dy), "--direction", "backward", *words), dx, 2)
    program.close("lrn nhwc", program.run("lrn", "--x", program.save("x", to(x, "nhwc")), "--layout", "nhwc", *words), to(lrn(X), "nhwc"), 1)


def transforms():
    x = normal(2, 3, 4, 5)
    for source, target in itertools.product(AXES, AXES):
        got = program.run("transform", "--x", program.save("x", to(x, source)), "--from", source, "--to", target)
        program.equal(f"{source} to {target}", got, to(x, target))
    fortran = program.run("transform", "--x", program.save("x", np.asfortranarray(x)), "--to", "nhwc")
    program.equal("from a Fortran-ordered file", fortran, to(x, "nhwc"))
    program.equal("to f16", program.run("transform", "--x", program.save("x", x), "--d-type", "f16"), x.astype(np.float16))


parts = [pools, normalizations, response_normalization, transforms]
if program.has_kernels("conv"):
    parts.insert(0, convolutions)
for part in parts:
    part()
program.finish()
