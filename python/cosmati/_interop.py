"""Functions that the extension calls: numpy types, and arrays and streams of other libraries."""
import copy
import ctypes
import glob
import importlib.util
import os
import sys

from . import _native


def open_driver():
    return ctypes.CDLL(os.environ.get("COSMATI_LIBCUDA") or "libcuda.so.1")


def numpy_dtype(name):
    import numpy
    if name == "bfloat16" or name.startswith("float8"):
        import ml_dtypes
        return numpy.dtype(getattr(ml_dtypes, name))
    return numpy.dtype(name)


def empty(library, like, shape, name, device):
    """Returns a new, uninitialized array of the library on the device."""
    if library == "torch":
        import torch
        return torch.empty(shape, dtype=getattr(torch, name), device=like.device)
    if library == "cupy":
        import cupy
        with cupy.cuda.Device(device):
            return cupy.empty(shape, numpy_dtype(name))
    if device < 0:  # finished() returns a view of it to the caller
        import numpy
        return numpy.empty(shape, numpy_dtype(name))
    if library.startswith("jax"):
        return NewJaxArray(like, shape, name, device)
    raise ValueError(f"new arrays of {library} on a GPU are not supported; pass out=")


def filled(like, shape, name, value):
    """Returns a new array of like's library on its device."""
    array = _native.empty(like, shape, name)
    if isinstance(array, NewJaxArray):
        import jax.numpy
        return jax.numpy.full(shape, value, name, device=like.device).block_until_ready()
    array[...] = value
    return array


class NewJaxArray:
    """A JAX array on a GPU that has not been exposed yet and may therefore be written, although JAX arrays are immutable."""

    def __init__(self, like, shape, name, device):
        import jax.numpy
        self.array = jax.numpy.empty(shape, name, device=like.device).block_until_ready()
        self.name, self.number, self.shape = name, device, tuple(shape)

    @property
    def __cuda_array_interface__(self):
        return {"typestr": self.name, "shape": self.shape, "strides": None, "version": 3,
                "data": (self.array.unsafe_buffer_pointer(), False)}

    def reshape(self, shape):
        """Returns a view for the library to write."""
        view = copy.copy(self)
        view.shape = tuple(shape)
        return view

    def finished(self):
        """Returns the array after waiting for the default stream, which computes it, since JAX uses its own streams."""
        driver, context = open_driver(), ctypes.c_void_p()
        driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), self.number)
        driver.cuCtxPushCurrent_v2(context)
        failed = driver.cuStreamSynchronize(None)
        driver.cuCtxPopCurrent_v2(ctypes.byref(context))
        driver.cuDevicePrimaryCtxRelease_v2(self.number)
        if failed:
            raise OSError(f"the GPU reports error {failed}")
        return self.array if self.shape == self.array.shape else self.array.reshape(self.shape)


def finished(like, array):
    """Returns the result as an array of the inputs' library."""
    if isinstance(array, NewJaxArray):
        return array.finished()
    if type(array) is not type(like) and type(like).__module__.startswith("jax"):
        import jax.numpy
        return jax.numpy.asarray(array)
    return array


def current_stream(library, device):
    """Returns the handle of the library's current stream on the device; 0: the default stream."""
    if library == "torch":
        return sys.modules["torch"].cuda.current_stream(device).cuda_stream
    if library == "cupy":
        cupy = sys.modules["cupy"]
        with cupy.cuda.Device(device):
            return cupy.cuda.get_current_stream().ptr
    return 0


def can_open(library):
    try:
        ctypes.CDLL(library)
        return True
    except OSError:
        return False


def driver_version():
    """Returns the version of CUDA that the installed driver supports, such as 12040, or 0 without one. Does not initialize it."""
    version = ctypes.c_int(0)
    try:
        open_driver().cuDriverGetVersion(ctypes.byref(version))
    except (OSError, AttributeError):
        pass
    return version.value


def find_nvrtc():
    """Tells the library where NVRTC from NVIDIA's PyPI packages is, unless the system has one of the same major version. A driver
    of CUDA 12 rejects machine code of CUDA 13, so NVRTC 12 is preferred with it."""
    if os.environ.get("COSMATI_NVRTC"):
        return
    packages = importlib.util.find_spec("nvidia")
    places = (packages.submodule_search_locations or []) if packages else []
    found = {os.path.basename(path): path for place in places for path in sorted(glob.glob(os.path.join(place, "*", "lib", "libnvrtc.so.1[23]")))}
    if not found:
        return
    for name in ("libnvrtc.so.12", "libnvrtc.so.13") if 0 < driver_version() < 13000 else ("libnvrtc.so.13", "libnvrtc.so.12"):
        if can_open(name) or can_open("/usr/local/cuda/lib64/" + name):
            return
        if name in found:
            os.environ["COSMATI_NVRTC"] = found[name]
            return


def cuda_array(array):
    """(type, address, writable, device, stream, shape, strides in bytes) of __cuda_array_interface__."""
    told = array.__cuda_array_interface__
    address, read_only = told["data"]
    device = ctypes.c_int(0)
    if address:
        ordinal = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
        open_driver().cuPointerGetAttribute(ctypes.byref(device), ordinal, ctypes.c_uint64(address))
    names = {"<f8": "float64", "<f4": "float32", "<f2": "float16", "|i1": "int8", "|u1": "uint8", "<i4": "int32"}
    kind = names.get(told["typestr"], told["typestr"])
    return kind, address, not read_only, device.value, told.get("stream") or 0, told["shape"], told.get("strides")
