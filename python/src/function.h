// Functions of the module: Python's calling convention for functions that may throw.
#pragma once
#include <exception>
#include <new>

#include "python/src/object.h"

namespace cosmati::python {

// Returns what `body` returns, or null with Python's error set if it throws.
template <class Body>
PyObject* guarded(Body const& body) {
  try {
    return body().release();
  } catch (Raised const&) {
    return nullptr;
  } catch (std::bad_alloc const&) {
    return PyErr_NoMemory();
  } catch (std::exception const& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

inline void expect(Py_ssize_t count, Py_ssize_t expected) {
  if (count != expected) raise(PyExc_TypeError, "_native was called with a wrong number of arguments");
}

// The entry of a function (arguments, count) in the module's table.
template <auto function>
constexpr PyMethodDef method(char const* name, char const* documentation) {
  PyObject* (*const entry)(PyObject*, PyObject* const*,
                           Py_ssize_t) = [](PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&] { return function(arguments, count); });
  };
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(entry)), METH_FASTCALL,
          documentation};
}

}  // namespace cosmati::python
