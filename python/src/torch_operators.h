// Kernels of PyTorch's operators (cosmati/torch.py) that PyTorch calls without Python's interpreter.
#pragma once
#include "python/src/object.h"

namespace cosmati::python {

// torch_gemm(a, b, c=None, alpha=1.0, beta=0.0, epilogue=None, names="", operands=[], number_names="",
// numbers=[]): cosmati::gemm, and cosmati::gemm_epilogue, whose names are separated by spaces.
Object torch_gemm(PyObject* const* given, Py_ssize_t count);

// direct_kernel(record, below, reaches_device, compute): an autograd kernel f(key set, *arguments). If
// nothing lies between autograd and the device, that is, if reaches_device(key set) is true (called once for
// each key set), f returns compute(*arguments), or torch_gemm(*arguments) if `compute` is None; otherwise it
// returns below(key set, *arguments). If an argument requires a gradient and gradients are recorded, f
// instead returns record(key set, *arguments), with None for a key set that reaches the device.
Object direct_kernel(PyObject* const* given, Py_ssize_t count);

}  // namespace cosmati::python
