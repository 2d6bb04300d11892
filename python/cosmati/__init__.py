"""Matrix products, convolutions and what surrounds them, on arrays of numpy, PyTorch, CuPy and JAX::

    d = cosmati.gemm(a, b, epilogue="relu(acc + bias[n])", bias=bias)

For every function of this package:

Arrays
    may be of numpy (with the types of ml_dtypes), PyTorch, CuPy, JAX, or of any type that has ``__dlpack__`` or
    ``__cuda_array_interface__``. Their elements are float64, float32, float16, bfloat16, float8_e4m3fn, float8_e5m2, int8,
    uint8 or int32. Strides of 0 or more are taken as they are, without a copy: transposed, sliced and broadcast views.
    Results are new arrays of the library of the first array, or `out`, which must not share memory with an input.
Devices
    The first array decides: what lies on the host is computed by this machine's processor, what lies on a GPU on that GPU. All
    arrays of a call lie on one device.
Asynchrony
    On the host the result is there when a function returns. On a GPU the work is enqueued on the current stream of the first
    array's library (torch.cuda.current_stream(), cupy.cuda.get_current_stream(); else the default stream), and the function
    returns; new arrays of JAX are waited for. The first call of a problem makes its plan, which takes milliseconds, or on a GPU a second; later ones find it.
Errors
    TypeError: an argument is no array, or of a type that is not listed here. ValueError: shapes, strides or an epilogue that do
    not go together, or an output that may not be written. NotAvailableError: no kernel, library or device is here for this.
    MemoryError, OSError: the system refused. The sentences are those of the library.
Threads
    Functions may be called from any number of threads at once; the GIL is released while a plan is made and while the
    processor computes. A process may fork as long as it has not used a GPU.
"""
from ._convolutions import (avg_pool2d, conv2d, conv2d_input_grad, conv2d_weight_grad, conv_transpose2d, max_pool2d,
                            plan_conv2d)
from . import _layers
from ._layers import *
from ._native import NotAvailableError, version as __version__
from ._plan import Plan
from ._products import gemm, grouped_gemm, plan_gemm

__all__ = sorted(["NotAvailableError", "Plan", "avg_pool2d", "conv2d", "conv2d_input_grad", "conv2d_weight_grad", "conv_transpose2d",
                  "gemm", "grouped_gemm", "max_pool2d", "plan_conv2d", "plan_gemm", *_layers.__all__])
