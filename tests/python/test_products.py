"""gemm and its plans against numpy."""
import ml_dtypes
import numpy as np
import pytest

import cosmati

RANDOM = np.random.default_rng(1)


def integers(*shape, dtype=np.float32):
    """Small integers, whose products are exact in each type."""
    return RANDOM.integers(-3, 4, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_types(dtype):
    a, b = integers(5, 7, dtype=dtype), integers(7, 6, dtype=dtype)
    d = cosmati.gemm(a, b)
    assert type(d) is np.ndarray and d.dtype == dtype
    assert (d.astype(np.float64) == a.astype(np.float64) @ b.astype(np.float64)).all()


@pytest.mark.parametrize("dtype, result", [(np.int8, np.int32), (ml_dtypes.float8_e4m3fn, np.float32),
                                           (ml_dtypes.float8_e5m2, np.float32)])
def test_narrow_types(dtype, result):
    a, b = integers(8, 16, dtype=dtype), integers(16, 8, dtype=dtype)
    d = cosmati.gemm(a, b)
    assert d.dtype == result
    assert (d == a.astype(np.int32) @ b.astype(np.int32)).all()


def test_views_are_taken_as_they_lie():
    whole = integers(40, 60)
    a, b = whole[3:20:2, ::4], whole.T[5:20, 7:30]
    assert (cosmati.gemm(a, b) == a @ b).all()
    out = np.zeros((2 * a.shape[0], 3 * b.shape[1]), np.float32)
    window = out[::2, 1::3]
    assert cosmati.gemm(a, b, out=window) is window
    assert (window == a @ b).all() and not out[1::2].any() and not out[:, ::3].any()
    assert (cosmati.gemm(np.asfortranarray(a), b, out=np.zeros((9, 23), np.float32, order="F")) == a @ b).all()
    assert (cosmati.gemm(np.broadcast_to(a[:1], a.shape), b) == np.broadcast_to(a[:1], a.shape) @ b).all()


def test_batches():
    a, b, matrix = integers(3, 4, 5), integers(3, 5, 6), integers(5, 6)
    assert (cosmati.gemm(a, b) == a @ b).all()
    assert (cosmati.gemm(a, matrix) == a @ matrix).all()
    assert (cosmati.gemm(a[:1], b) == a[:1] @ b).all()
    assert (cosmati.gemm(a, b, integers(1, 4, 6) * 0 + 2, beta=1) == a @ b + 2).all()


def test_scale():
    a, b, c = integers(4, 5), integers(5, 6), integers(4, 6)
    assert (cosmati.gemm(a, b, c, alpha=2, beta=-3) == 2 * (a @ b) - 3 * c).all()
    assert (cosmati.gemm(a, b, c, beta=1) == a @ b + c).all()
    assert (cosmati.gemm(a, b, c * np.nan) == a @ b).all()


def test_epilogues():
    a, b, bias, residual = integers(8, 5), integers(5, 6), integers(6), integers(8, 6)
    expected = np.maximum(a @ b + bias, 0)
    assert (cosmati.gemm(a, b, epilogue="relu(acc + bias[n])", bias=bias) == expected).all()
    before = np.zeros((8, 6), np.float32)
    d = cosmati.gemm(a, b, residual, epilogue="store(before, acc); s*relu(alpha*acc) + c", alpha=0.5, before=before, s=2,
                     out=np.zeros((8, 6), np.float64))
    assert (before == a @ b).all() and d.dtype == np.float64 and (d == np.maximum(a @ b, 0) + residual).all()
    for s in (3, np.float32(4), np.array(5)):  # one plan
        assert (cosmati.gemm(a, b, epilogue="s*acc", s=s) == float(s) * (a @ b)).all()


def test_groups():
    rows, ends = (7, 0, 21, 12), (7, 7, 28)
    tokens, weights, bias = integers(40, 13), integers(4, 13, 6), integers(4, 6)
    expected = [a @ b for a, b in zip(np.split(tokens, ends), weights)]
    found = cosmati.grouped_gemm(np.split(tokens, ends), weights)
    assert [one.shape for one in found] == [(m, 6) for m in rows]
    assert all((one == other).all() for one, other in zip(found, expected))
    whole, before = np.zeros((40, 12), np.float64), np.zeros((40, 6), np.float32)
    out = np.split(whole[:, ::2], ends)
    for s in (2, 3):  # one plan
        given = cosmati.grouped_gemm(np.split(tokens, ends), weights, epilogue="store(before, acc); s*relu(acc + bias[n] + shift[n])",
                                     bias=list(bias), shift=bias[0], before=np.split(before, ends), s=s, out=out)
        assert all(one is other for one, other in zip(given, out)) and not whole[:, 1::2].any()
        assert (whole[:, ::2] == s * np.maximum(np.concatenate([d + c for d, c in zip(expected, bias)]) + bias[0], 0)).all()
        assert (before == np.concatenate(expected)).all()
    sizes = [(3, 4, 5), (1, 9, 2), (6, 1, 8)]
    a, b, c = ([integers(shape[i], shape[j]) for shape in sizes] for i, j in ((0, 1), (1, 2), (0, 2)))
    found = cosmati.grouped_gemm(a, b, c, alpha=2, beta=-1)
    assert all((d == 2 * (x @ y) - z).all() for d, x, y, z in zip(found, a, b, c))
    assert cosmati.grouped_gemm([], []) == []


def test_errors_of_groups():
    a = integers(4, 4)
    refused(ValueError, "b has 1", "a 2", call=lambda: cosmati.grouped_gemm([a, a], [a]))
    refused(ValueError, "bias has 3", call=lambda: cosmati.grouped_gemm([a], [a], epilogue="acc + bias[n]", bias=[a[0]] * 3))
    refused(ValueError, "member 1", "extent 1 of b must be 4", call=lambda: cosmati.grouped_gemm([a, a], [a, a[:3]]))
    refused(ValueError, "member 1", "a is f64", call=lambda: cosmati.grouped_gemm([a, a.astype(np.float64)], [a, a]))
    refused(ValueError, "member 1", call=lambda: cosmati.grouped_gemm([a, a], [a, a], [a, None], beta=1))
    refused(ValueError, "s = 3", "one number for all", call=lambda: cosmati.grouped_gemm([a, a], [a, a], epilogue="s*acc", s=[2, 3]))
    refused(ValueError, "product 1", "1 dimensions", call=lambda: cosmati.grouped_gemm([a, a[0]], [a, a]))
    refused(TypeError, "product 0", "int64", call=lambda: cosmati.grouped_gemm([a.astype(np.int64)], [a]))


def refused(kind, *words, call):
    with pytest.raises(kind) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_errors():
    a = integers(4, 4)
    frozen = integers(4, 4)
    frozen.flags.writeable = False
    refused(ValueError, "extent 1 of b must be 4", call=lambda: cosmati.gemm(a, a[:3]))
    refused(ValueError, "bais", "it has bias", call=lambda: cosmati.gemm(a, a, epilogue="acc + bais[n]", bias=a[0]))
    refused(ValueError, "no epilogue", call=lambda: cosmati.gemm(a, a, bias=a[0]))
    refused(ValueError, "alpha", "does not name", call=lambda: cosmati.gemm(a, a, epilogue="acc", alpha=2))
    refused(ValueError, "negative", call=lambda: cosmati.gemm(a[::-1], a))
    refused(ValueError, "read-only", call=lambda: cosmati.gemm(a, a, out=frozen))
    refused(ValueError, "before", "read-only", call=lambda: cosmati.gemm(a, a, epilogue="store(before, acc); acc", before=frozen))
    refused(ValueError, "1 dimensions", call=lambda: cosmati.gemm(a[0], a))
    for mode in ("bf16x3", "bf16x6", "bf16x9", "tf32x3"):
        assert (cosmati.gemm(a, a, compute=mode) == a @ a).all()
    refused(ValueError, "bf16x6 splits factors of f32", call=lambda: cosmati.gemm(a.astype(np.float64), a, compute="bf16x6"))
    refused(ValueError, "fast_accumulation applies to 8-bit floats", call=lambda: cosmati.gemm(a, a, compute="fast_accumulation"))
    refused(ValueError, "bf16x7", "'bf16x9'", call=lambda: cosmati.gemm(a, a, compute="bf16x7"))
    refused(ValueError, "compute", call=lambda: cosmati.gemm(a, a, compute="f16"))
    refused(ValueError, "accumulator", call=lambda: cosmati.gemm(a, a, accumulator="bf16"))
    refused(TypeError, "int64", "float32", call=lambda: cosmati.gemm(a.astype(np.int64), a))
    refused(TypeError, "byte order", call=lambda: cosmati.gemm(a.astype(">f4"), a))
    refused(TypeError, "list", call=lambda: cosmati.gemm([[1.0]], a))
    refused(TypeError, "complex", call=lambda: cosmati.gemm(a, a * 1j))
    assert issubclass(cosmati.NotAvailableError, RuntimeError)


def test_plans():
    a, b, bias = integers(64, 32), integers(32, 16), integers(16)
    plan = cosmati.plan_gemm(a, b, epilogue="relu(acc + bias[n])", bias=bias, kernel="reference")
    assert plan.kernel == "reference" and plan.backend == "cpu" and plan.workspace_bytes == 0
    assert "reference: chosen" in plan.explain() and "reference" in repr(plan)
    assert (plan(a, b, bias=bias) == np.maximum(a @ b + bias, 0)).all()
    refused(ValueError, "that the plan was made for", call=lambda: plan(a[:8], b, bias=bias))
    refused(ValueError, "that the plan was made for", call=lambda: plan(a.astype(np.float64), b, bias=bias))
    assert 0 < plan.expected_error < 1e-14 < cosmati.plan_gemm(a, b).expected_error < 1e-6  # sums in float64, in float32
    assert cosmati.plan_gemm(a, b, max_error=1e-10).kernel == "reference"
    assert cosmati.plan_gemm(a.astype(np.int8), b.astype(np.int8)).expected_error == 0
    measured = cosmati.plan_gemm(a, b, seconds=0.001)
    assert "measured" in measured.explain() and (measured(a, b) == a @ b).all()
    refused(ValueError, "nonsense", call=lambda: cosmati.plan_gemm(a, b, kernel="nonsense"))
