"""Arrays on a GPU, with the fake driver: the device, stream and workspace that a call uses."""
import os
import subprocess
import sys

import pytest

FAKE = os.environ.get("COSMATI_FAKE_LIBCUDA", "")
SETUP = """
import contextlib, ctypes, os, re, sys, types
import numpy as np
import cosmati
from cosmati import _interop

driver = ctypes.CDLL(os.environ["COSMATI_LIBCUDA"])
_interop.find_nvrtc()
assert driver.cuInit(0) == 0
context, stream = ctypes.c_void_p(), ctypes.c_void_p()
assert driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0 and driver.cuCtxSetCurrent(context) == 0
assert driver.cuStreamCreate(ctypes.byref(stream), 0) == 0
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]

class ndarray:
    asked, made = [], []
    def __init__(self, array): self.array = array
    def __dlpack_device__(self): return (2, 0)
    def __dlpack__(self, stream):
        self.asked.append(stream)
        capsule = self.array.__dlpack__()
        ctypes.c_int.from_address(capsule_pointer(capsule, b"dltensor") + 8).value = 2  # the device: CUDA
        return capsule

def array(*shape, dtype=np.float32):
    ndarray.made.append(shape)
    bytes_ = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.ones(bytes_ + 256, np.uint8)
    begin = -memory.ctypes.data % 256  # where GPUs' allocators begin
    return ndarray(memory[begin:begin + bytes_].view(dtype).reshape(shape))

class String(ctypes.Structure):  # std::string of libstdc++
    _fields_ = [("text", ctypes.c_char_p), ("length", ctypes.c_size_t), ("inside", ctypes.c_char * 16)]

nothing = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda launch: None)
set_kernel = driver["_ZN4fake10set_kernelERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEEPFvRKNS_6LaunchEE"]

def with_kernels(function, *arguments, **named):
    # Kernels that compute nothing take the names that are asked for.
    for attempt in range(9):
        try:
            return function(*arguments, **named)
        except OSError as error:
            name = re.search("has no kernel '(.*)'", str(error))
            if not name:
                raise
            text = name[1].encode()
            set_kernel(ctypes.byref(String(text, len(text))), nothing)

ndarray.__module__ = MODULE
cupy = sys.modules["cupy"] = types.ModuleType("cupy")
current = types.SimpleNamespace(ptr=stream.value)
cupy.cuda = types.SimpleNamespace(Device=lambda number: contextlib.nullcontext(), get_current_stream=lambda: current)
cupy.empty = lambda shape, dtype: array(*shape, dtype=dtype)
a, b = array(64, 32), array(32, 16)
"""


def run(text, module="cupy"):
    told = subprocess.run([sys.executable, "-c", SETUP.replace("MODULE", repr(module)) + text], capture_output=True, text=True,
                          env=dict(os.environ, COSMATI_LIBCUDA=FAKE))
    if "run-time compiler NVRTC was not found" in told.stderr:
        pytest.skip("no NVRTC here")
    assert told.returncode == 0, told.stdout + told.stderr
    return told.stdout


pytestmark = pytest.mark.skipif(not os.path.exists(FAKE), reason="COSMATI_FAKE_LIBCUDA names no driver that pretends")


def test_stream_and_result():
    run("""
d = with_kernels(cosmati.gemm, a, b)
assert type(d) is ndarray and d.array.shape == (64, 16) and d.array.dtype == np.float32
assert set(ndarray.asked) == {stream.value}
current.ptr = 77  # no stream of the driver's
try:
    cosmati.gemm(a, b)
    sys.exit("a stream that does not exist was taken")
except OSError as error:
    assert "stream" in str(error) or "handle" in str(error) or "400" in str(error), error
""")


def test_plan_and_devices():
    run("""
plan = with_kernels(cosmati.plan_gemm, a, b)
assert plan.backend == "cuda" and plan.kernel != "reference", plan
try:
    cosmati.gemm(a, np.ones((32, 16), np.float32))
    sys.exit("arrays on two devices were taken")
except ValueError as error:
    assert "b is on the host, a on cuda:0" in str(error), error
""")


def test_workspace():
    """CuPy allocates the workspace; for libraries without an allocator there is one per stream."""
    text = """
del ndarray.made[:]
a, b, d = array(64, 8192), array(8192, 64), array(64, 64)
need = with_kernels(cosmati.plan_gemm, a, b, out=d).workspace_bytes
assert need > 0
del ndarray.made[:]
cosmati.gemm(a, b, out=d)
cosmati.gemm(a, b, out=d)
print(ndarray.made == [(need,)] * 2, ndarray.made)
"""
    assert run(text).startswith("True")
    assert run(text, "numba").startswith("False []")


def test_jax():
    """New JAX arrays on a GPU are written through views before they are exposed."""
    run("""
jax, jax.numpy = types.ModuleType("jax"), types.ModuleType("jax.numpy")
sys.modules |= {"jax": jax, "jax.numpy": jax.numpy}
ndarray.device = 0
ndarray.shape = property(lambda self: self.array.shape)
ndarray.reshape = lambda self, shape: ndarray(self.array.reshape(shape))
ndarray.block_until_ready = lambda self: self
ndarray.unsafe_buffer_pointer = lambda self: self.array.ctypes.data
for operator in ("__add__", "__mul__"):
    setattr(ndarray, operator, lambda self, other: ndarray(getattr(self.array, operator)(getattr(other, "array", other))))
jax.numpy.empty = jax.numpy.full = lambda shape, *_, device: array(*shape)
x, running = array(4, 8, 6), array(8)
y = with_kernels(cosmati.elementwise, "x * 2", x=x)
assert type(y) is ndarray and y.shape == (4, 8, 6)
y = with_kernels(cosmati.batch_norm, x, running, running)
assert type(y) is ndarray and y.shape == (4, 8, 6)
y, mean, variance = with_kernels(cosmati.batch_norm, x, running, running, training=True)
assert type(y) is type(mean) is ndarray and y.shape == (4, 8, 6) and mean.shape == variance.shape == (8,)
""", "jaxlib.fake")
