// A matrix product from Python's arguments.
#pragma once
#include "python/src/call.h"

namespace cosmati::python {

// Describes a product by a, b, c, alpha, beta, epilogue, out, accumulator, compute and operands, and returns
// what it writes.
Object describe_product(Call& call, PyObject* const* given);

}  // namespace cosmati::python
