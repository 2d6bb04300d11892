#!/usr/bin/env python3
"""`cosmati run gemm` against numpy: layouts, batches, epilogues, types, file orders. usage: check_matrices.py PROGRAM BACKEND"""
import math, sys
import numpy as np
from program import Program, from_bf16, from_e4m3, to_bf16

program = Program(sys.argv[1], sys.argv[2])
random = np.random.default_rng(11)
normal = lambda *shape: random.normal(size=shape).astype(np.float32)
wide = lambda array: array.astype(np.float64)


def layouts_and_orders():
    for layout in ("nn", "nt", "tn", "tt"):
        for order in ("C", "F"):
            m, n, k = (int(v) for v in random.integers(1, 70, 3))
            a, b = normal(m, k), normal(k, n)
            in_a = np.asarray(a.T if layout[0] == "t" else a, order=order)
            in_b = np.asarray(b.T if layout[1] == "t" else b, order=order)
            got = program.run("gemm", "--a", program.save("a", in_a), "--b", program.save("b", in_b), "--layout", layout)
            program.close(f"gemm {m}x{n}x{k} {layout} {order}", got, wide(a) @ wide(b), np.abs(a) @ np.abs(b))


def batches():
    a, b, c = normal(3, 7, 5), normal(3, 5, 4), normal(3, 7, 4)
    names = [program.save(*pair) for pair in (("a", a), ("b", b), ("c", c), ("a2", a[0]), ("b2", b[0]), ("c2", c[0]))]
    A, B, C = map(wide, (a, b, c))
    program.close("batched", program.run("gemm", "--a", names[0], "--b", names[1]), A @ B)
    program.close("shared b", program.run("gemm", "--a", names[0], "--b", names[4]), A @ B[0])
    program.close("shared a", program.run("gemm", "--a", names[3], "--b", names[1]), A[0] @ B)
    program.close("shared c", program.run("gemm", "--a", names[0], "--b", names[1], "--c", names[5], "--set", "beta=-0.5"), A @ B - 0.5 * C[0])
    program.close("batch of one", program.run("gemm", "--a", program.save("a1", a[:1]), "--b", names[4]), (A[:1] @ B[0]))
    program.close("per batch", program.run("gemm", "--a", names[0], "--b", names[1], "--epilogue", "acc * s[batch]", "--operand",
                                           "s=" + program.save("s", np.float32([1, -2, 3]))), A @ B * np.array([1, -2, 3]).reshape(3, 1, 1))
    transposed = program.run("gemm", "--a", program.save("at", a.transpose(0, 2, 1).copy()), "--b", names[1], "--layout", "tn")
    program.close("batched tn", transposed, A @ B)


def epilogues():
    m, n, k = 13, 21, 9
    a, b, c, bias, residual, scale = normal(m, k), normal(k, n), normal(m, n), normal(n), normal(m, n), normal(m)
    A, B, C = map(wide, (a, b, c))
    words = ["--a", program.save("a", a), "--b", program.save("b", b), "--c", program.save("c", c)]
    operands = [w for name, v in (("bias", bias), ("residual", residual), ("scale", scale)) for w in ("--operand", f"{name}={program.save(name, v)}")]
    erf = np.vectorize(math.erf)
    gelu = lambda v: v * 0.5 * (1 + erf(v / math.sqrt(2)))
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    P = A @ B
    for text, wanted in {
        "relu(acc + bias[n])": np.maximum(P + bias, 0),
        "gelu(acc + bias[n]) + residual[m, n]": gelu(P + bias) + residual,
        "clamp(acc * scale[m], -1, 1)": np.clip(P * scale[:, None], -1, 1),
        "select(acc > 0, acc, 0.1*acc)": np.where(P > 0, P, 0.1 * P),
        "acc * sigmoid(acc) - c": P * sigmoid(P) - C,
        "max(acc, c) / 4": np.maximum(P, C) / 4,
        "exp(-abs(acc)) + sqrt(abs(c))": np.exp(-np.abs(P)) + np.sqrt(np.abs(C)),
        "leaky_relu(acc, 0.2) + elu(c, 1.0)": np.where(P > 0, P, 0.2 * P) + np.where(C > 0, C, np.exp(np.minimum(C, 0)) - 1),
        "round(acc)": None,
    }.items():
        got = program.run("gemm", *words, *operands, "--epilogue", text)
        if wanted is None:
            program.check(got is not None and np.all(got == np.round(got)) and np.all(np.abs(got - P) <= 0.5 + 1e-4), text)
        else:
            program.close(text, got, wanted, np.abs(A) @ np.abs(B) + 2)
    got = program.run("gemm", *words, *operands, "--epilogue", "let t = acc + bias[n]; store(pre, t); relu(t)", "--store", "pre=" + program.file("pre.npy"))
    program.close("result beside a store", got, np.maximum(P + bias, 0))
    program.close("stored", program.load("pre.npy"), P + bias)
    got = program.run("gemm", *words, "--set", "alpha=1.5", "--set", "beta=-2")
    program.close("alpha and beta", got, 1.5 * P - 2 * C)
    nan = program.save("nan", np.full((m, n), np.nan, np.float32))
    program.close("beta 0 does not read c", program.run("gemm", *words[:4], "--c", nan, "--set", "beta=0"), P)
    # c is added by default; if the epilogue does not read it, a warning is printed.
    program.close("c without beta", program.run("gemm", *words), P + C)
    program.close("c without beta, but alpha", program.run("gemm", *words, "--set", "alpha=-2"), C - 2 * P)
    for more, warns in (([], False), (["--set", "beta=0"], True), (["--epilogue", "alpha*acc + beta*c"], True), (["--epilogue", "acc"], True), (["--epilogue", "acc - c"], False)):
        told = program.call("run", "gemm", *words, *more, "--backend", program.backend, "--out", program.file("out.npy")).stderr
        program.check(("--c is not used" in told) == warns, f"c with {more}: {told!r}")
    warned = program.call("run", "gemm", *words, *operands, "--backend", program.backend, "--out", program.file("out.npy"))
    program.check("bias" in warned.stderr and "warning" in warned.stderr, "unused operands are warned of: " + warned.stderr)


def types():
    m, n, k = 17, 11, 40
    a8, b8 = random.integers(-128, 128, (m, k)).astype(np.int8), random.integers(-128, 128, (k, n)).astype(np.int8)
    got = program.run("gemm", "--a", program.save("a", a8), "--b", program.save("b", b8))
    program.equal("s8 to s32", got, a8.astype(np.int32) @ b8.astype(np.int32))
    u8 = random.integers(0, 256, (m, k)).astype(np.uint8)
    got = program.run("gemm", "--a", program.save("a", u8), "--b", program.save("b", b8))
    program.equal("u8 s8 to s32", got, u8.astype(np.int32) @ b8.astype(np.int32))
    a, b = random.normal(size=(m, k)), random.normal(size=(k, n))
    got = program.run("gemm", "--a", program.save("a", a), "--b", program.save("b", b))
    program.check(got is not None and got.dtype == np.float64, "f64 stays f64")
    program.close("f64", got, a @ b, relative=1e-13)
    half_a, half_b = a.astype(np.float16), b.astype(np.float16)
    got = program.run("gemm", "--a", program.save("a", half_a), "--b", program.save("b", half_b))
    program.check(got is not None and got.dtype == np.float16, "f16 stays f16")
    program.close("f16", got, wide(half_a) @ wide(half_b), relative=1e-2)
    got = program.run("gemm", "--a", program.file("a.npy"), "--b", program.file("b.npy"), "--d-type", "f32")
    program.check(got is not None and got.dtype == np.float32, "--d-type f32")
    program.close("f16 to f32", got, wide(half_a) @ wide(half_b), np.abs(wide(half_a)) @ np.abs(wide(half_b)))
    bits_a, bits_b = to_bf16(a), to_bf16(b)
    wanted = wide(from_bf16(bits_a)) @ wide(from_bf16(bits_b))
    got = program.run("gemm", "--a", program.save("a", bits_a), "--b", program.save("b", bits_b), "--type", "bf16")
    program.check(got is not None and got.dtype == np.uint16, "bf16 leaves as u16")
    if got is not None:
        program.close("bf16", from_bf16(got), wanted, relative=1e-2)
    got = program.run("gemm", "--a", program.file("a.npy"), "--b", program.file("b.npy"), "--type", "bf16", "--d-type", "f32")
    program.close("bf16 to f32", got, wanted)
    e_a, e_b = (random.integers(0, 120, s).astype(np.uint8) | (random.integers(0, 2, s) << 7).astype(np.uint8) for s in ((m, k), (k, n)))
    got = program.run("gemm", "--a", program.save("a", e_a), "--b", program.save("b", e_b), "--type", "e4m3", "--d-type", "f32")
    A, B = from_e4m3(e_a), from_e4m3(e_b)
    program.close("e4m3 to f32", got, A @ B, np.abs(A) @ np.abs(B))
    got = program.run("gemm", "--a", program.file("a.npy"), "--b", program.file("b.npy"), "--type", "e4m3", "--d-type", "f32", "--compute", "fast_accumulation")
    program.close("fast accumulation", got, A @ B, np.abs(A) @ np.abs(B), relative=2**-8)
    f_a, f_b = a.astype(np.float32), b.astype(np.float32)
    got = program.run("gemm", "--a", program.save("a", f_a), "--b", program.save("b", f_b), "--compute", "tf32")
    cut = lambda v: ((v.view(np.uint32).astype(np.uint64) + 0xFFF + ((v.view(np.uint32) >> 13) & 1)) & 0xFFFFE000).astype(np.uint32).view(np.float32)
    program.close("tf32", got, wide(cut(f_a)) @ wide(cut(f_b)), np.abs(f_a) @ np.abs(f_b), relative=2e-6)
    exact = wide(f_a) @ wide(f_b)
    program.check(got is not None and np.max(np.abs(got - exact)) > 1e-5, "tf32 is not f32")
    on_gpu = program.backend in ("emulator", "cuda")  # processors multiply exactly
    for mode, relative in (("bf16x3", 5e-5), ("bf16x6", 1.5e-6), ("bf16x9", 1.5e-6), ("tf32x3", 2.5e-6)):
        by_pieces = ("--kernel", f"{mode[:4]}_products") if on_gpu else ()
        got = program.run("gemm", "--a", program.file("a.npy"), "--b", program.file("b.npy"), "--compute", mode, *by_pieces)
        program.close(mode, got, exact, np.abs(f_a) @ np.abs(f_b), relative=relative)
        if by_pieces and mode == "bf16x3":
            program.check(got is not None and np.max(np.abs(got - exact)) > 1e-6, "three products are not six")
    f_a[0, 0], f_a[1, 1], f_a[2, 2], f_b[3, 0] = np.inf, np.nan, 3.4e38, -np.inf
    got = program.run("gemm", "--a", program.save("a", f_a), "--b", program.save("b", f_b), "--compute", "bf16x6", *(("--kernel", "bf16_products") if on_gpu else ()))
    with np.errstate(invalid="ignore"):
        wanted = wide(f_a) @ wide(f_b)
    alike = np.abs(wanted) < 1e38
    program.check(got is not None and np.array_equal(np.isnan(got), np.isnan(wanted)) and np.array_equal(got[np.isinf(wanted)], wanted[np.isinf(wanted)]),
                  "infinities and NaN of pieces are those of IEEE arithmetic")
    program.check(got is not None and np.all(np.isfinite(got[alike])), "and do not spread")


def groups_and_pointers():
    sizes = ((40, 9, 24), (1, 5, 3), (7, 0, 2), (3, 4, 0))
    a, b = [normal(m, k) for m, n, k in sizes], [normal(k, n) for m, n, k in sizes]
    files = lambda name, arrays: ",".join(program.save(f"{name}{i}", array) for i, array in enumerate(arrays))
    bias, outs = [normal(n) for m, n, k in sizes], [program.file(f"d{i}.npy") for i in range(len(sizes))]
    words = ("run", "gemm", "--group", "files", "--a", files("a", a), "--b", files("b", b), "--backend", program.backend, "--out", ",".join(outs))
    program.call(*words)
    for i, out in enumerate(outs):
        program.close(f"member {i} of a group", program.load(out), wide(a[i]) @ wide(b[i]))
    program.call(*words, "--epilogue", "relu(acc * s + bias[n])", "--set", "s=-2", "--operand", "bias=" + files("bias", bias))
    for i, out in enumerate(outs):
        program.close(f"member {i} with an epilogue", program.load(out), np.maximum(-2 * wide(a[i]) @ wide(b[i]) + bias[i], 0),
                      2 * np.abs(a[i]) @ np.abs(b[i]) + np.abs(bias[i]))
    x, y = normal(4, 5, 8), normal(4, 8, 6)
    got = program.run("gemm", "--a", program.save("x", x), "--b", program.save("y", y), "--by-pointers")
    program.close("by pointers", got, wide(x) @ wide(y), np.abs(x) @ np.abs(y))


for part in (layouts_and_orders, batches, epilogues, types, groups_and_pointers):
    part()
program.finish()
