"""Convolutions, their gradients and pooling, against loops over the formulas in the docstrings."""
import itertools

import numpy as np
import pytest

import cosmati

RANDOM = np.random.default_rng(2)
GEOMETRIES = [dict(), dict(stride=2, padding=1), dict(stride=(1, 2), padding=(2, 0), dilation=(1, 2)), dict(padding=1, groups=2)]


def integers(*shape):
    return RANDOM.integers(-3, 4, shape).astype(np.float32)


def pair(value):
    return value if isinstance(value, tuple) else (value, value)


def taps(x, w, shape, stride=1, padding=0, dilation=1, groups=1):
    """Yields (index of x, index of w, index of y) for each product of a convolution."""
    stride, padding, dilation = pair(stride), pair(padding), pair(dilation)
    channels, filters = w[1], w[0] // groups
    for n, k, p, q in itertools.product(*map(range, shape)):
        for c, r, s in itertools.product(range(channels), range(w[2]), range(w[3])):
            h, v = p * stride[0] - padding[0] + r * dilation[0], q * stride[1] - padding[1] + s * dilation[1]
            if 0 <= h < x[2] and 0 <= v < x[3]:
                yield (n, k // filters * channels + c, h, v), (k, c, r, s), (n, k, p, q)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_convolution_and_gradients(geometry):
    x, w = integers(2, 4, 7, 6), integers(4, 4 // geometry.get("groups", 1), 3, 2)
    y = cosmati.conv2d(x, w, **geometry)
    products = list(taps(x.shape, w.shape, y.shape, **geometry))
    expected, dx, dw = np.zeros_like(y), np.zeros_like(x), np.zeros_like(w)
    dy = integers(*y.shape)
    for i, j, k in products:
        expected[k] += x[i] * w[j]
        dx[i] += dy[k] * w[j]
        dw[j] += dy[k] * x[i]
    assert (y == expected).all()
    assert (cosmati.conv2d_input_grad(x.shape, w, dy, **geometry) == dx).all()
    assert (cosmati.conv2d_weight_grad(x, w.shape, dy, **geometry) == dw).all()
    # The same with channels last, in and out.
    last = np.ascontiguousarray(x.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    out = np.zeros((y.shape[0], *y.shape[2:], y.shape[1]), np.float32).transpose(0, 3, 1, 2)
    assert cosmati.conv2d(last, w, out=out, **geometry) is out and (out == expected).all()


@pytest.mark.parametrize("geometry", [dict(), dict(stride=2, padding=1, output_padding=1), dict(stride=(2, 1), dilation=2)])
def test_transposed(geometry):
    x, w = integers(2, 3, 4, 5), integers(3, 2, 3, 3)
    y = cosmati.conv_transpose2d(x, w, **geometry)
    forward = {name: value for name, value in geometry.items() if name != "output_padding"}
    expected = np.zeros_like(y)
    for i, j, k in taps(y.shape, w.shape, x.shape, **forward):
        expected[i] += x[k] * w[j]
    assert (y == expected).all()
    with pytest.raises(ValueError, match="output_padding"):
        cosmati.conv_transpose2d(x, w, output_padding=7)


def test_bias_and_epilogue():
    x, w, bias = integers(1, 2, 4, 4), integers(3, 2, 3, 3), integers(3)
    y = cosmati.conv2d(x, w)
    shifted = y + bias[:, None, None]
    assert (cosmati.conv2d(x, w, bias) == shifted).all()
    assert (cosmati.conv2d(x, w, bias, epilogue="relu(acc + bias[k]) + r[n, k, p, q]", r=y) == np.maximum(shifted, 0) + y).all()
    plan = cosmati.plan_conv2d(x, w, bias, kernel="reference")
    assert 0 < plan.expected_error < 1e-14 < cosmati.plan_conv2d(x, w, bias).expected_error < 1e-6  # sums in float64, in float32
    assert plan.kernel == "reference" and (plan(x, w, bias) == shifted).all()
    with pytest.raises(ValueError, match="the plan was made for"):
        plan(x[:, :, :3], w, bias)


@pytest.mark.parametrize("geometry", [dict(kernel_size=2), dict(kernel_size=3, stride=2, padding=1), dict(kernel_size=(2, 3), stride=2, ceil_mode=True)])
def test_pooling(geometry):
    x = RANDOM.normal(size=(2, 3, 7, 8)).astype(np.float32)
    window, padding = pair(geometry["kernel_size"]), geometry.get("padding", 0)
    stride = pair(geometry.get("stride", window))
    y, indices = cosmati.max_pool2d(x, return_indices=True, **geometry)
    mean, inside = cosmati.avg_pool2d(x, **geometry), cosmati.avg_pool2d(x, count_include_pad=False, **geometry)
    rounded = (lambda value: -(-value // 1)) if geometry.get("ceil_mode") else (lambda value: value // 1)
    assert y.shape[2:] == tuple(int(rounded((n + 2 * padding - w) / s)) + 1 for n, w, s in zip(x.shape[2:], window, stride))
    for n, c, p, q in itertools.product(*map(range, y.shape)):
        h, v = p * stride[0] - padding, q * stride[1] - padding
        seen = x[n, c, max(h, 0):h + window[0], max(v, 0):v + window[1]]
        taps_in_padded = min(window[0], 7 + padding - h) * min(window[1], 8 + padding - v)
        assert y[n, c, p, q] == seen.max() == x[n, c].ravel()[indices[n, c, p, q]]
        np.testing.assert_allclose(inside[n, c, p, q], seen.mean(), rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(mean[n, c, p, q], seen.sum() / taps_in_padded, rtol=1e-5, atol=1e-6)


VOLUMES = [dict(), dict(stride=(2, 1, 2), padding=(1, 0, 1)), dict(stride=2, padding=(2, 1, 0), dilation=(2, 1, 1), groups=2)]


def triple(value):
    return value if isinstance(value, tuple) else (value,) * 3


def taps_of_volumes(x, w, y, stride=1, padding=0, dilation=1, groups=1):
    """Like taps(), for shapes (N, C, D, H, W)."""
    stride, padding, dilation = triple(stride), triple(padding), triple(dilation)
    for n, k, *at in itertools.product(*map(range, y)):
        for c, *tap in itertools.product(*map(range, w[1:])):
            place = tuple(at[i] * stride[i] - padding[i] + tap[i] * dilation[i] for i in range(3))
            if all(0 <= place[i] < x[2 + i] for i in range(3)):
                yield (n, k // (w[0] // groups) * w[1] + c, *place), (k, c, *tap), (n, k, *at)


@pytest.mark.parametrize("geometry", VOLUMES)
def test_volumes(geometry):
    x, w, bias = integers(2, 4, 5, 4, 5), integers(4, 4 // geometry.get("groups", 1), 2, 3, 2), integers(4)
    y = cosmati.conv3d(x, w, bias, **geometry)
    dy = integers(*y.shape)
    expected, dx, dw = np.zeros_like(y) + bias[:, None, None, None], np.zeros_like(x), np.zeros_like(w)
    for i, j, k in taps_of_volumes(x.shape, w.shape, y.shape, **geometry):
        expected[k] += x[i] * w[j]
        dx[i] += dy[k] * w[j]
        dw[j] += dy[k] * x[i]
    assert (y == expected).all()
    assert (cosmati.conv3d_input_grad(x.shape, w, dy, **geometry) == dx).all()
    assert (cosmati.conv3d_weight_grad(x, w.shape, dy, **geometry) == dw).all()
    rest = integers(*y.shape)
    assert (cosmati.conv3d(x, w, bias, epilogue="relu(acc + bias[k]) + r[n, k, o, p, q]", r=rest, **geometry)
            == np.maximum(expected, 0) + rest).all()


def test_transposed_volumes():
    x, w = integers(1, 2, 3, 2, 3), integers(2, 3, 2, 2, 1)
    y = cosmati.conv_transpose3d(x, w, stride=(2, 1, 2), output_padding=(1, 0, 0))
    assert y.shape == (1, 3, 7, 3, 5)
    expected = np.zeros_like(y)
    for i, j, k in taps_of_volumes(y.shape, w.shape, x.shape, stride=(2, 1, 2)):
        expected[i] += x[k] * w[j]
    assert (y == expected).all()


def test_pooling_of_volumes():
    x = RANDOM.normal(size=(2, 3, 5, 6, 7)).astype(np.float32)
    window, stride, padding = (2, 3, 2), (1, 2, 2), (1, 0, 1)
    y = cosmati.max_pool3d(x, window, stride, padding)
    mean = cosmati.avg_pool3d(x, window, stride, padding, count_include_pad=False)
    placed, indices = cosmati.max_pool3d(x, window, stride, padding, return_indices=True)
    assert y.shape == mean.shape == (2, 3, 6, 2, 4) and (placed == y).all()
    for n, c, *at in itertools.product(*map(range, y.shape)):
        first = [at[i] * stride[i] - padding[i] for i in range(3)]
        seen = x[(n, c, *(slice(max(f, 0), f + w) for f, w in zip(first, window)))]
        assert y[(n, c, *at)] == seen.max() == x[n, c].ravel()[indices[(n, c, *at)]]
        np.testing.assert_allclose(mean[(n, c, *at)], seen.mean(), rtol=1e-5, atol=1e-6)


def test_errors():
    with pytest.raises(ValueError, match="expected 5"):
        cosmati.conv3d(integers(1, 2, 4, 4), integers(3, 2, 3, 3))
    with pytest.raises(ValueError, match="stride = .*three"):
        cosmati.conv3d(integers(1, 2, 4, 4, 4), integers(3, 2, 3, 3, 3), stride=(1, 2))
    x, w = integers(1, 2, 4, 4), integers(3, 2, 3, 3)
    for call, words in ((lambda: cosmati.conv2d(x[0], w), "3 dimensions"), (lambda: cosmati.conv2d(x, w, stride=0), "stride"),
                        (lambda: cosmati.conv2d(x, w, padding=(1, 2, 3)), "padding"),
                        (lambda: cosmati.conv2d(x, w[:, :1]), "w"), (lambda: cosmati.conv2d(x, w, groups=2), "groups|w")):
        with pytest.raises(ValueError, match=words):
            call()
