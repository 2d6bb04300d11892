"""Arrays of CuPy and JAX on a real GPU: results, types, views, streams. Skips missing libraries; runs under pytest, or alone."""
import unittest

import numpy as np

import cosmati

try:
    import cupy
    GPU = cupy.cuda.runtime.getDeviceCount() > 0
except Exception:  # no CuPy, no driver, or no GPU
    GPU = False
try:
    import jax
    JAX_GPU = jax.default_backend() == "gpu"
except Exception:
    JAX_GPU = False


def samples(seed=1):
    random = np.random.default_rng(seed)
    return (random.integers(-4, 5, shape).astype(np.float32) for shape in ((20, 30), (30, 10), (10,)))


@unittest.skipUnless(GPU, "CuPy sees no GPU here")
class Cupy(unittest.TestCase):
    def test_results_types_and_views(self):
        a, b, bias = samples()
        expected = np.maximum(a @ b + bias, 0)
        for dtype in (np.float32, np.float64, np.float16):
            x, y, z = (cupy.asarray(one.astype(dtype)) for one in (a, b, bias))
            d = cosmati.gemm(x, y, epilogue="relu(acc + bias[n])", bias=z)
            self.assertIsInstance(d, cupy.ndarray)
            self.assertEqual(d.dtype, dtype)
            self.assertTrue((cupy.asnumpy(d) == expected).all())
            out = cupy.zeros((10, 20), dtype).T
            self.assertIs(cosmati.gemm(cupy.asfortranarray(x), y, epilogue="relu(acc + bias[n])", bias=z, out=out), out)
            self.assertTrue((cupy.asnumpy(out) == expected).all())
            strided = cosmati.gemm(x[::2, 1::3], y[1::3, ::-1][:, ::-1])
            self.assertTrue((cupy.asnumpy(strided) == a[::2, 1::3] @ b[1::3]).all())

    def test_other_operations(self):
        x = cupy.random.default_rng(1).standard_normal((4, 3, 9, 8), dtype=np.float32)
        w = cupy.random.default_rng(2).standard_normal((5, 3, 3, 3), dtype=np.float32)
        y = cosmati.conv2d(x, w, padding=1)
        expected = cosmati.conv2d(cupy.asnumpy(x), cupy.asnumpy(w), padding=1)
        np.testing.assert_allclose(cupy.asnumpy(y), expected, rtol=1e-4, atol=1e-4)
        np.testing.assert_allclose(cupy.asnumpy(cosmati.softmax(x)).sum(-1), 1, rtol=1e-5)
        np.testing.assert_allclose(cupy.asnumpy(cosmati.elementwise("relu(x) + y", x=x, y=x)), cupy.asnumpy(cupy.maximum(x, 0) + x))
        np.testing.assert_allclose(float(cosmati.reduce(x)), float(x.sum()), rtol=1e-3, atol=1e-3)

    def test_streams(self):
        a = cupy.ones((2048, 2048), np.float32)
        for _ in range(20):
            with cupy.cuda.Stream(non_blocking=True) as stream:
                b = a * 2  # on this stream
                d = cosmati.gemm(b, b)
                e = d + 1
                stream.synchronize()
            self.assertTrue(bool((e == 4 * 2048 + 1).all()))


@unittest.skipUnless(JAX_GPU, "JAX sees no GPU here")
class Jax(unittest.TestCase):
    def test_results(self):
        a, b, bias = samples()
        expected = np.maximum(a @ b + bias, 0)
        for dtype in ("float32", "float16", "bfloat16"):
            x, y, z = (jax.numpy.asarray(one, dtype) for one in (a, b, bias))
            for _ in range(20):
                d = cosmati.gemm(x, y, epilogue="relu(acc + bias[n])", bias=z)
                self.assertIsInstance(d, jax.Array)
                self.assertEqual(d.dtype, x.dtype)
                self.assertTrue((np.asarray(d + 1, np.float32) == expected.astype(d.dtype).astype(np.float32) + 1).all())
        self.assertTrue(np.allclose(np.asarray(cosmati.softmax(jax.numpy.ones((3, 4)))), 0.25))

    def test_what_needs_filled_arrays(self):
        x = jax.numpy.asarray(np.random.default_rng(1).standard_normal((5, 4, 3), np.float32))
        y = cosmati.elementwise("relu(x) + r", x=x, r=x[0, 0])
        self.assertIsInstance(y, jax.Array)
        np.testing.assert_allclose(np.asarray(y), np.maximum(x, 0) + np.asarray(x[0, 0]), rtol=1e-6)
        mean, variance = jax.numpy.zeros(4), jax.numpy.ones(4)
        y, mean, variance = cosmati.batch_norm(x, mean, variance, training=True)
        np.testing.assert_allclose(np.asarray(mean), 0.1 * np.asarray(x).mean((0, 2)), rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(np.asarray(variance), 0.9 + 0.1 * np.asarray(x).var((0, 2), ddof=1), rtol=1e-4)
        np.testing.assert_allclose(np.asarray(y).std((0, 2)), 1, rtol=1e-3)


if __name__ == "__main__":
    print("CuPy on a GPU:", GPU, "JAX on a GPU:", JAX_GPU)
    unittest.main(verbosity=2)
