"""Matrix products, convolutions and related operations for arrays of numpy, PyTorch, CuPy and JAX::

    d = cosmati.gemm(a, b, epilogue="relu(acc + bias[n])", bias=bias)

For every function of this package:

Arrays
    may be numpy (including ml_dtypes), PyTorch, CuPy or JAX arrays, or any objects with ``__dlpack__`` or
    ``__cuda_array_interface__``. Valid element types are float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8,
    uint8 or int32. Non-negative strides are supported without a copy: transposed, sliced and broadcast views.
    Results are new arrays of the first array's library, or `out`, which must not share memory with an input.
Devices
    The first array determines the device: host arrays are computed by the CPU, GPU arrays by that GPU. All arrays of a call
    must be on the same device.
Asynchrony
    On the host, the result is complete when a function returns. On a GPU, the work is enqueued on the current stream of the
    first array's library (torch.cuda.current_stream(), cupy.cuda.get_current_stream(); else the default stream), and the
    function returns, except that new JAX arrays are waited for. The first call of a problem makes its plan, which takes
    milliseconds or, on a GPU, a second; later calls reuse it.
Errors
    TypeError: an argument is not an array, or has an element type that is not listed here. ValueError: shapes, strides or
    epilogue do not match, or an output is read-only. NotAvailableError: a kernel, library or device is not available.
    MemoryError, OSError: an allocation or a system call failed. Messages are those of the library.
Threads
    Functions may be called from any number of threads concurrently; the GIL is released while a plan is made and while the CPU
    computes. A process may fork as long as it has not used a GPU.
"""
from ._convolutions import (avg_pool2d, avg_pool3d, conv2d, conv2d_input_grad, conv2d_weight_grad, conv3d, conv3d_input_grad,
                            conv3d_weight_grad, conv_transpose2d, conv_transpose3d, max_pool2d, max_pool3d, plan_conv2d)
from . import _layers
from ._layers import *
from ._native import NotAvailableError, version as __version__
from ._plan import Plan
from ._products import gemm, grouped_gemm, plan_gemm

__all__ = sorted(["NotAvailableError", "Plan", "avg_pool2d", "avg_pool3d", "conv2d", "conv2d_input_grad", "conv2d_weight_grad",
                  "conv3d", "conv3d_input_grad", "conv3d_weight_grad", "conv_transpose2d", "conv_transpose3d",
                  "gemm", "grouped_gemm", "max_pool2d", "max_pool3d", "plan_conv2d", "plan_gemm", *_layers.__all__])
