"""NaN and infinities by every kernel of a backend: docs/nonfinite.md against IEEE arithmetic in numpy.

check_nonfinite.py PROGRAM BACKEND [x]: with a third word, without verify
"""
import json, sys
import numpy as np
from program import Program

program = Program(sys.argv[1], sys.argv[2])
np.seterr(all="ignore")
random = np.random.default_rng(7)
TRANSFORMS = ("winograd", "fft")
INF, NAN = np.float32("inf"), np.float32("nan")


def kernels(subject):
    lines = [json.loads(line) for line in program.call("list", "kernels", "--json").stdout.splitlines()]
    return [line["kernel"] for line in lines if line["subject"] == subject and line["backend"] == program.backend]


def by_kernel(subject, words, names):
    """Returns the result of each kernel that supports the problem."""
    for name in names:
        path = program.file("out.npy")
        done = program.try_run(subject, *words, "--kernel", name, "--backend", program.backend, "--out", path)
        if done.returncode == 0:
            ran.add(name)
            yield name, np.load(path)
        else:
            program.check(done.returncode in (2, 3), f"{subject} by {name}: exit {done.returncode}: {done.stderr.strip()[:200]}")


def is_right(got, wanted):
    """Returns, element by element, whether both are NaN, the same infinity, or close to each other."""
    near = 0.2 if got.dtype == np.float16 else 1e-4
    got, wanted = got.astype(np.float64), wanted.astype(np.float64)
    return (np.isnan(got) & np.isnan(wanted)) | (got == wanted) | (np.abs(got - wanted) <= near * (1 + np.abs(wanted)))


ORDERS = {"nchw": (0, 1, 2, 3), "nhwc": (0, 2, 3, 1), "chwn": (1, 2, 3, 0)}  # number of files


def taps(size, outputs, filter, stride, pad, dilation):
    """Yields (window, tap, position) along one axis; the position is None outside."""
    for p in range(outputs):
        for r in range(filter):
            place = p * stride + r * dilation - pad
            yield p, r, place if 0 <= place < size else None


def convolve(direction, first, second, extents, stride, pad, dilation, groups, padding):
    """forward: x, w; data: dy, w; filter: x, dy. `padding`: multiplies the zeros outside, too."""
    n, c, h, w, k, r, s, p, q = extents
    one, other = first.astype(np.float64), second.astype(np.float64)
    shape = {"forward": (n, k, p, q), "data": (n, c, h, w), "filter": (k, c // groups, r, s)}[direction]
    out = np.zeros(shape)
    for P, R, y in taps(h, p, r, stride, pad, dilation):
        for Q, S, x in taps(w, q, s, stride, pad, dilation):
            outside = y is None or x is None
            for g in range(groups):
                C, K = slice(g * c // groups, (g + 1) * c // groups), slice(g * k // groups, (g + 1) * k // groups)
                if direction == "forward" and (padding or not outside):
                    image = np.zeros((n, c // groups)) if outside else one[:, C, y, x]
                    out[:, K, P, Q] += (image[:, None] * other[None, K, :, R, S]).sum(2)
                elif direction == "data" and not outside:
                    out[:, C, y, x] += (one[:, K, P, Q][:, :, None] * other[None, K, :, R, S]).sum(1)
                elif direction == "filter" and (padding or not outside):
                    image = np.zeros((n, c // groups)) if outside else one[:, C, y, x]
                    out[K, :, R, S] += (other[:, K, P, Q][:, :, None] * image[:, None]).sum(0)
    if direction == "data" and padding:  # every position meets every tap; without a window, taps meet zeros
        for Y in range(h):
            for X in range(w):
                for R in range(r):
                    for S in range(s):
                        a, b = Y + pad - R * dilation, X + pad - S * dilation
                        inside = a >= 0 and b >= 0 and a % stride == 0 and b % stride == 0 and a // stride < p and b // stride < q
                        for g in range(groups):
                            K = slice(g * k // groups, (g + 1) * k // groups)
                            C = slice(g * c // groups, (g + 1) * c // groups)
                            if not inside:
                                out[:, C, Y, X] += (0 * other[K, :, R, S]).sum(0)
    return out


def convolution(title, direction, first, second, extents, stride=1, pad=0, dilation=1, groups=1, layout="nchw"):
    n, c, h, w, k, r, s, p, q = extents
    arrays = {"forward": ("x", "w"), "data": ("dy", "w"), "filter": ("x", "dy")}[direction]
    words = ["--direction", direction, "--stride", stride, "--pad", pad, "--dilation", dilation, "--groups", groups, "--layout", layout]
    order = ORDERS[layout]
    for name, array in zip(arrays, (first, second)):
        words += ["--" + name, program.save(name, np.ascontiguousarray(array.transpose(order)))]
    words += {"forward": [], "data": ["--input-size", f"{h},{w}"], "filter": ["--filter-size", f"{r},{s}"]}[direction]
    plain = convolve(direction, first, second, extents, stride, pad, dilation, groups, False)
    padded = convolve(direction, first, second, extents, stride, pad, dilation, groups, True)
    for name, got in by_kernel("conv", words, conv_kernels):
        got = got.transpose(np.argsort(order))
        right = is_right(got, plain) | (np.isnan(padded) & np.isnan(got))
        if name in TRANSFORMS:  # no infinity or NaN is lost; the rest of its image and filter may be affected
            spoiled = spread(direction, first, second, plain.shape, groups)
            right |= spoiled & (np.isfinite(plain) | ~np.isfinite(got))
        at = tuple(np.argwhere(~right)[0]) if not right.all() else None
        program.check(at is None, f"{title} {direction} by {name}: {np.sum(~right)} of {right.size} wrong, {at} is {at and got[at]}, not {at and plain[at]}")


def spread(direction, first, second, shape, groups):
    """Marks the planes of images and filters that may be transformed together with a non-finite value."""
    bad = [~np.isfinite(array.astype(np.float64)) for array in (first, second)]
    mask = np.zeros(shape, bool)
    for n in range(shape[0]):
        for k in range(shape[1]):
            if direction == "forward":
                mask[n, k] = bad[0][n].any() or bad[1][k].any()
            else:
                mask[n, k] = bad[0].any() or bad[1].any()
    return mask


def spoil(array, count, values=(INF, -INF, NAN)):
    array = array.copy()
    for value in random.permutation(values)[:count]:
        array.flat[random.integers(array.size)] = value
    return array


def normal(*shape):
    return random.normal(size=shape).astype(np.float32)


def convolutions():
    """Small convolutions in every direction and layout and several types, with a non-finite value in either factor."""
    ones, half = np.ones((1, 1, 4, 4), np.float32), np.full((1, 1, 3, 3), 0.5, np.float32)
    half[0, 0, 0, 0] = INF
    convolution("an infinite corner of a filter", "forward", ones, half, (1, 1, 4, 4, 1, 3, 3, 4, 4), pad=1)
    cases = [((2, 3, 7, 6, 4, 3, 3), 1, 1, 1, 1, "nchw", "f4"), ((2, 4, 9, 8, 6, 3, 3), 2, 1, 1, 2, "nhwc", "f4"),
             ((1, 8, 8, 8, 8, 1, 1), 1, 0, 1, 1, "nchw", "f4"), ((2, 4, 8, 9, 4, 3, 2), 1, 1, 2, 4, "nchw", "f4"),
             ((3, 2, 12, 11, 5, 5, 5), 3, 2, 1, 1, "nchw", "f2"), ((16, 3, 8, 8, 8, 5, 5), 1, 2, 1, 1, "chwn", "f4"),
             ((2, 8, 6, 6, 8, 2, 2), 2, 0, 1, 1, "nhwc", "f2"), ((2, 16, 10, 10, 16, 3, 3), 1, 1, 1, 1, "nhwc", "f2")]
    if program.backend == "emulator":  # slow, so only in this case
        cases = cases[:2] + cases[3:5] + cases[7:]
    for (n, c, h, w, k, r, s), stride, pad, dilation, groups, layout, kind in cases:
        p = (h + 2 * pad - dilation * (r - 1) - 1) // stride + 1
        q = (w + 2 * pad - dilation * (s - 1) - 1) // stride + 1
        extents = (n, c, h, w, k, r, s, p, q)
        x, filter, dy = (array.astype(kind) for array in (normal(n, c, h, w), normal(k, c // groups, r, s), normal(n, k, p, q)))
        options = dict(stride=stride, pad=pad, dilation=dilation, groups=groups, layout=layout)
        for direction, first, second in (("forward", x, filter), ("data", dy, filter), ("filter", x, dy)):
            title = f"{extents} {kind} {options}"
            convolution(title + " spoiled first", direction, spoil(first, 2), second, extents, **options)
            convolution(title + " spoiled second", direction, first, spoil(second, 1), extents, **options)


def products():
    names = kernels("gemm")
    for m, n, k, types in ((17, 33, 40, ()), (64, 64, 64, ("--type", "bf16")), (64, 128, 64, ("--type", "f16")), (5, 7, 9, ("--type", "f64"))):
        kind = {"bf16": np.float32, "f64": np.float64}.get(types[1] if types else "", np.float32)
        a, b = spoil(normal(m, k), 2).astype(kind), spoil(normal(k, n), 1).astype(kind)
        if "f16" in types:
            a, b = a.astype(np.float16), b.astype(np.float16)
        wanted = np.zeros((m, n))
        for i in range(k):
            wanted += np.outer(a[:, i].astype(np.float64), b[i].astype(np.float64))
        for name, got in by_kernel("gemm", ["--a", program.save("a", a), "--b", program.save("b", b), *types, "--d-type", "f32"], names):
            same = np.array_equal(np.isnan(got), np.isnan(wanted)) and np.array_equal(got[np.isinf(wanted)], wanted[np.isinf(wanted)])
            program.check(same and np.isfinite(got[np.isfinite(wanted)]).all(), f"{m}x{n}x{k} {types} by {name}: classes differ")
    c = np.full((4, 4), np.nan, np.float32)
    ones = program.save("ones", np.ones((4, 4), np.float32))
    for name, got in by_kernel("gemm", ["--a", ones, "--b", ones, "--c", program.save("c", c), "--set", "beta=0"], names):
        program.check(np.array_equal(got, np.full((4, 4), 4, np.float32)), f"beta 0 reads c by {name}: {got.ravel()[:4]}")


def activations():
    x = np.float32([-INF, INF, NAN, -1, 0, 2])
    path, dy = program.save("x", x), program.save("dy", np.ones_like(x))
    # At minus infinity, infinity and NaN: the value and the derivative.
    wanted = {"relu": ([0, INF, NAN], [0, 1, NAN]), "leaky_relu": ([-INF, INF, NAN], [0.01, 1, NAN]), "elu": ([-1, INF, NAN], [0, 1, NAN]),
              "sigmoid": ([0, 1, NAN], [0, 0, NAN]), "tanh": ([-1, 1, NAN], [0, 0, NAN]), "gelu": ([NAN, INF, NAN], None),
              "gelu_tanh": ([NAN, INF, NAN], None), "silu": ([NAN, INF, NAN], None)}
    names = kernels("activation")
    for function, (value, derivative) in wanted.items():
        for direction, numbers in (("forward", value), ("backward", derivative)):
            if numbers is None:
                continue
            words = ["--x", path, "--function", function] + (["--dy", dy, "--direction", direction] if direction == "backward" else [])
            for name, got in by_kernel("activation", words, names):
                program.check(is_right(got[:3], np.float32(numbers)).all() and np.isfinite(got[3:]).all(),
                              f"{function} {direction} by {name}: {got}, not {numbers}")


def conversions():
    x = program.save("x", np.float32([-INF, INF, NAN, 1e30]))
    for kind, wanted in (("f16", [-INF, INF, NAN, INF]), ("s8", [-128, 127, 0, 127]), ("u8", [0, 255, 0, 255])):
        got = program.run("elementwise", "--x", x, "--epilogue", "acc", "--d-type", kind)
        program.check(got is not None and is_right(got, np.array(wanted)).all(), f"to {kind}: {got}, not {wanted}")


def hard(subject, count, *words):
    done = program.try_verb("verify", subject, "--backend", program.backend, "--data", "hard", "--count", count, *words)
    program.check(done.returncode == 0, f"verify {subject} {' '.join(map(str, words))}: {done.stderr.strip()[:200]}\n{done.stdout[-1500:]}")


ran = set()
conv_kernels = kernels("conv")
convolutions()
unused = set(conv_kernels) - ran - {"row_reduction", "image_slices", "one_image_at_a_time", "gemm"}
print("convolutions by", ", ".join(sorted(ran)), "| none by", ", ".join(sorted(unused)))
products()
activations()
conversions()
if len(sys.argv) <= 3:
    for subject in ("gemm", "conv", "pool", "activation", "batchnorm", "layernorm", "rmsnorm", "groupnorm", "lrn", "softmax", "cross-entropy", "rbf", "dropout", "transform",
                    "reduce", "add", "elementwise", "sgd", "adam"):
        hard(subject, 12 if program.backend == "emulator" else 60)
program.finish()
