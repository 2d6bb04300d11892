"""Arrays of other libraries: JAX, and objects that speak DLPack or the CUDA array interface only."""
import numpy as np
import pytest

import cosmati
from cosmati import _native

A = np.arange(12, dtype=np.float32).reshape(3, 4)


class Exporter:
    """An array of an unknown library."""

    def __init__(self, array, versioned=True, device=None):
        self.array, self.versioned, self.device = array, versioned, device

    def __dlpack_device__(self):
        return self.device or self.array.__dlpack_device__()

    def __dlpack__(self, **options):
        if not self.versioned and "max_version" in options:
            raise TypeError("max_version is not known here")
        return self.array.__dlpack__(**options)


@pytest.mark.parametrize("versioned", [True, False])
def test_dlpack(versioned):
    a = Exporter(A[:, ::2].T, versioned)
    assert _native.describe(a, "a")[:4] == ("float32", (2, 3), (2, 4), -1)
    d = cosmati.gemm(a, A)
    assert type(d) is np.ndarray and (d == A[:, ::2].T @ A).all()
    out = np.zeros((2, 4), np.float32)
    wrapped = Exporter(out, versioned)
    assert cosmati.gemm(a, A, out=wrapped) is wrapped and (out == d).all()


def test_subclasses_and_scalars():
    class Own(np.ndarray):
        pass

    assert (cosmati.gemm(A.view(Own), A.T) == A @ A.T).all()
    assert (cosmati.gemm(A, A.T, epilogue="acc * s", s=np.float64(2)) == 2 * (A @ A.T)).all()


def test_what_is_no_array():
    for thing in (None, "a", 3, [[1.0]], object()):
        with pytest.raises(TypeError, match="'a'"):
            cosmati.gemm(thing, A)

    class Broken:
        @property
        def __array_struct__(self):
            raise RuntimeError("broken")

    with pytest.raises(RuntimeError, match="broken"):
        cosmati.gemm(Broken(), A)


def test_structured_strides():
    records = np.zeros(5, [("tag", "i1"), ("value", "f4", 3)])
    with pytest.raises(ValueError, match="multiple of 4"):
        cosmati.gemm(records["value"], A[:, :3].T)


def test_cuda_array_interface():
    """A machine without a GPU says so."""
    class OnGpu:
        __cuda_array_interface__ = {"data": (0, False), "typestr": "<f4", "shape": (3, 4), "strides": None, "version": 3, "stream": 7}

    array = OnGpu()
    assert _native.describe(array, "a")[:4] == ("float32", (3, 4), (4, 1), 0)
    with pytest.raises(ValueError, match="one device|out="):
        cosmati.gemm(array, A.T)
    with pytest.raises(ValueError, match="cuda:0.*the host|the host.*cuda:0"):
        cosmati.gemm(A, array, out=A.copy())
