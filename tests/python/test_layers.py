"""Layers against numpy."""
import numpy as np
import pytest

import cosmati

RANDOM = np.random.default_rng(3)


def normal(*shape, dtype=np.float32):
    return RANDOM.normal(size=shape).astype(dtype)


def close(a, b):
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("shape, dim", [((5,), 0), ((4, 7), -1), ((4, 7), 0), ((2, 3, 4, 5), 1)])
def test_softmax(shape, dim):
    x = normal(*shape)
    e = np.exp(x - x.max(dim, keepdims=True))
    expected = e / e.sum(dim, keepdims=True)
    out = np.zeros(shape, np.float32)
    assert cosmati.softmax(x, dim, out=out) is out
    close(out, expected)
    close(cosmati.log_softmax(x, dim), np.log(expected))
    with pytest.raises(ValueError, match="valid values"):
        cosmati.softmax(x, len(shape))


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_cross_entropy(dtype):
    x, labels = normal(6, 5), np.array([0, 4, 2, 2, 1, 3], dtype)
    expected = np.mean(np.log(np.exp(x).sum(1)) - x[np.arange(6), labels])
    for reduction, factor in (("mean", 1), ("sum", 6)):
        loss = cosmati.cross_entropy(x, labels, reduction=reduction)
        assert type(loss) is np.ndarray and loss.shape == () and loss.dtype == np.float32
        close(loss, expected * factor)
        for shape in ((), (1,)):
            out = np.zeros(shape, np.float32)
            assert cosmati.cross_entropy(x, labels, reduction=reduction, out=out) is out
            close(out, expected * factor)
    close(cosmati.cross_entropy(x, np.repeat(labels, 2)[::2]), expected)
    for wrong in (labels + 1, labels - 1):
        with pytest.raises(ValueError, match="5|-1"):
            cosmati.cross_entropy(x, wrong)
    with pytest.raises(ValueError, match="4294967296; valid values: 0 to 4"):
        cosmati.cross_entropy(x, labels.astype(np.int64) + 2**32 * (labels == 0))
    with pytest.raises(ValueError, match="'none' is not supported: .*log_softmax"):
        cosmati.cross_entropy(x, labels, reduction="none")
    with pytest.raises(ValueError, match="valid values: 'mean', 'sum'"):
        cosmati.cross_entropy(x, labels, reduction="max")


def test_batch_norm():
    x, mean, variance, weight, bias = normal(3, 4, 5, 2), normal(4), np.abs(normal(4)) + 1, normal(4), normal(4)
    along = (slice(None), None, None)
    close(cosmati.batch_norm(x, mean, variance, weight, bias),
          (x - mean[along]) / np.sqrt(variance[along] + 1e-5) * weight[along] + bias[along])
    of_batch, spread = x.mean((0, 2, 3)), x.var((0, 2, 3))
    expected = .9 * mean + .1 * of_batch, .9 * variance + .1 * spread * 30 / 29
    close(cosmati.batch_norm(x, mean, variance, training=True), (x - of_batch[along]) / np.sqrt(spread[along] + 1e-5))
    close(mean, expected[0])
    close(variance, expected[1])
    with pytest.raises(ValueError, match="running_mean"):
        cosmati.batch_norm(x, None, None)


@pytest.mark.parametrize("shape, groups", [((3, 6), 2), ((2, 6, 5), 3), ((2, 4, 3, 5), 1), ((1, 4, 2, 3, 4), 4)])
def test_group_norm(shape, groups):
    x, weight, bias = normal(*shape) + 3, normal(shape[1]), normal(shape[1])
    rows = x.reshape(shape[0], groups, -1)
    u = ((rows - rows.mean(-1, keepdims=True)) / np.sqrt(rows.var(-1, keepdims=True) + 1e-5)).reshape(shape)
    of_channel = (-1,) + (1,) * (len(shape) - 2)
    out = np.zeros(shape, np.float32)
    assert cosmati.group_norm(x, groups, out=out) is out
    close(out, u)
    close(cosmati.group_norm(x, groups, weight, bias), u * weight.reshape(of_channel) + bias.reshape(of_channel))
    for wrong in (0, 5, 7):
        with pytest.raises(ValueError, match="num_groups"):
            cosmati.group_norm(x, wrong)


@pytest.mark.parametrize("shape, normalized", [((5,), 5), ((4, 7), 7), ((2, 3, 4), (3, 4)), ((2, 3, 4), [4]), ((3, 2000), 2000)])
def test_layer_norm_and_rms_norm(shape, normalized):
    last = (normalized,) if isinstance(normalized, int) else tuple(normalized)
    axes = tuple(range(len(shape) - len(last), len(shape)))
    x, weight, bias = normal(*shape) + 3, normal(*last), normal(*last)
    u = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)
    out = np.zeros(shape, np.float32)
    assert cosmati.layer_norm(x, normalized, out=out) is out
    close(out, u)
    close(cosmati.layer_norm(x, normalized, weight, bias), u * weight + bias)
    close(cosmati.layer_norm(x, normalized, bias=bias), u + bias)
    square = (x * x).mean(axes, keepdims=True)
    close(cosmati.rms_norm(x, normalized, weight), x / np.sqrt(square + np.finfo(np.float32).eps) * weight)
    close(cosmati.rms_norm(x, normalized, eps=.5), x / np.sqrt(square + .5))
    for wrong in (6000, (), (2, *shape)):
        with pytest.raises(ValueError, match="normalized_shape"):
            cosmati.layer_norm(x, wrong)


@pytest.mark.parametrize("size", [1, 3, 5])
def test_local_response_norm(size):
    x = normal(2, 7, 3, 3)
    base = np.stack([(x[:, max(c - (size - 1) // 2, 0):c + size // 2 + 1] ** 2).sum(1) for c in range(7)], 1)
    close(cosmati.local_response_norm(x, size, alpha=.5, beta=.75, k=2), x / (2 + .5 / size * base) ** .75)


@pytest.mark.parametrize("operation, function", [("sum", np.sum), ("mean", np.mean), ("max", np.max), ("min", np.min),
                                                 ("sum-of-squares", lambda x, axis, keepdims: np.sum(x * x, axis, keepdims=keepdims))])
@pytest.mark.parametrize("axis, keepdims", [(None, False), (0, True), (-1, False), ((0, 2), False)])
def test_reduce(operation, function, axis, keepdims):
    x = normal(3, 4, 5)
    found, expected = cosmati.reduce(x, operation, axis, keepdims), function(x, axis=axis, keepdims=keepdims)
    assert found.shape == expected.shape
    close(found, expected)
    with pytest.raises(ValueError, match="valid values"):
        cosmati.reduce(x, "product")
    with pytest.raises(ValueError, match="axis"):
        cosmati.reduce(x, axis=3)


@pytest.mark.parametrize("shape", [(), (7,), (5, 6), (2, 3, 4), (2, 3, 4, 5), (0, 3)])
def test_elementwise(shape):
    x, y = normal(*shape, 8)[..., 0:6:2], normal(*shape, 3)
    row = normal(3)
    close(cosmati.elementwise("relu(x)*s + y*row", x=x, y=y, row=row, s=2.5), np.maximum(x, 0) * 2.5 + y * row)
    out = np.zeros((*shape, 6), np.float32)[..., ::2]
    assert cosmati.elementwise("x + y", x=x, y=y, out=out) is out
    close(out, x + y)
    packed = np.zeros((*shape, 3), np.float32)
    cosmati.elementwise("max(y, row)", y=y, row=row, out=packed)
    close(packed, np.maximum(y, row))


def test_elementwise_types_and_errors():
    x = normal(4, 5, dtype=np.float64)
    found = cosmati.elementwise("x / 3", x=x)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, x / 3, rtol=1e-15)
    for call, words in ((lambda: cosmati.elementwise("x + y", x=x, y=x[:3]), "broadcast"), (lambda: cosmati.elementwise("c + 1", c=x), "c is reserved"),
                        (lambda: cosmati.elementwise("x + y", x=x), "y"), (lambda: cosmati.elementwise("x", x=x, out=x[:2].copy()), "out")):
        with pytest.raises(ValueError, match=words):
            call()
