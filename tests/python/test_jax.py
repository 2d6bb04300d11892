"""JAX arrays: immutable, so results are new arrays."""
import numpy as np
import pytest

import cosmati
from cosmati import _interop

jax = pytest.importorskip("jax")
A = np.arange(12, dtype=np.float32).reshape(3, 4)


def normal(*shape, seed=1):
    return jax.numpy.asarray(np.random.default_rng(seed).normal(size=shape).astype(np.float32))


def close(a, b):
    assert isinstance(a, jax.Array)
    np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)


def test_products():
    a = jax.numpy.asarray(A)
    d = cosmati.gemm(a, a.T, epilogue="acc + bias[n]", bias=jax.numpy.ones(3))
    assert isinstance(d, jax.Array) and (np.asarray(d) == A @ A.T + 1).all()
    narrow = cosmati.gemm(a.astype(jax.numpy.bfloat16), a.T.astype(jax.numpy.bfloat16))
    assert narrow.dtype == jax.numpy.bfloat16
    assert cosmati.softmax(a).dtype == a.dtype and isinstance(cosmati.conv2d(a[None, None], a[None, None]), jax.Array)
    with pytest.raises(ValueError, match="read-only"):
        cosmati.gemm(a, a.T, out=jax.numpy.zeros((3, 3)))


def test_elementwise():
    x, y = normal(2, 3, 4), normal(4, seed=2)
    close(cosmati.elementwise("relu(x)*s + y", x=x, y=y, s=2.5), jax.numpy.maximum(x, 0) * 2.5 + y)
    close(cosmati.elementwise("x + 1", x=x.transpose(2, 0, 1)), x.transpose(2, 0, 1) + 1)
    assert cosmati.elementwise("x + 1", x=x[:0]).shape == (0, 3, 4)
    narrow = cosmati.elementwise("2*x", x=jax.numpy.ones(5, "bfloat16"))
    assert isinstance(narrow, jax.Array) and narrow.dtype == "bfloat16" and (narrow == 2).all()
    out = np.zeros((2, 3, 4), np.float32)
    assert cosmati.elementwise("x + y", x=x, y=y, out=out) is out and (out == np.asarray(x + y)).all()


def test_batch_norm():
    x, mean, variance, weight, bias = normal(3, 4, 5), normal(4), abs(normal(4)) + 1, normal(4, seed=2), normal(4, seed=3)
    column = (slice(None), None)
    close(cosmati.batch_norm(x, mean, variance, weight, bias), (x - mean[column]) / (variance[column] + 1e-5) ** .5 * weight[column] + bias[column])
    of_batch, spread = x.mean((0, 2)), x.var((0, 2))
    expected = (x - of_batch[column]) / (spread[column] + 1e-5) ** .5
    close(cosmati.batch_norm(x, None, None, training=True), expected)
    y, *running = cosmati.batch_norm(x, mean, variance, training=True)
    for found, wanted in zip((y, *running), (expected, .9 * mean + .1 * of_batch, .9 * variance + .1 * spread * 15 / 14)):
        close(found, wanted)
    y, new, none = cosmati.batch_norm(x, mean, None, training=True, momentum=.5)
    close(new, .5 * mean + .5 * of_batch)
    assert none is None
    own = np.array(mean)
    close(cosmati.batch_norm(x, own, None, training=True), expected)  # of numpy: updated in place
    np.testing.assert_allclose(own, .9 * mean + .1 * of_batch, rtol=2e-5, atol=2e-6)


def test_cross_entropy():
    x, target = normal(6, 5), jax.numpy.asarray([0, 4, 2, 2, 1, 3])
    expected = (jax.nn.logsumexp(x, 1) - x[jax.numpy.arange(6), target]).sum()
    loss = cosmati.cross_entropy(x, target, reduction="sum")
    assert loss.shape == ()
    close(loss, expected)
    with pytest.raises(ValueError, match="5"):
        cosmati.cross_entropy(x, target + 1)


def test_new_array_of_a_gpu():
    """Views of it have the same elements, and finished() returns it in the shape that it was asked for."""
    new = _interop.NewJaxArray(jax.numpy.ones(1), (4, 3), "float32", 0)
    view = new.reshape((2, 6))
    told = view.__cuda_array_interface__
    assert told["shape"] == (2, 6) and told["data"] == new.__cuda_array_interface__["data"] and new.shape == (4, 3)
