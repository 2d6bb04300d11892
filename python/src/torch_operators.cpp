// Autograd kernels that compute directly where there is nothing to record.
#include "python/src/torch_operators.h"

#include <algorithm>
#include <cstdint>
#include <unordered_map>

#include "python/src/function.h"
#include "python/src/product.h"

namespace cosmati::python {
namespace {

// Sets values[i] under the i-th name.
void add_named(PyObject* target, PyObject* names, PyObject* values) {
  Object const list = Object::checked(PyUnicode_Split(names, nullptr, -1));
  for (Py_ssize_t i = 0; i < PyList_Size(list.get()); ++i)
    if (PyDict_SetItem(target, PyList_GetItem(list.get(), i),
                       Object::checked(PySequence_GetItem(values, i)).get()) != 0)
      throw Raised();
}

constexpr char const* kernel_name = "cosmati.kernel";

struct Kernel {
  Object record, below, reaches_device, compute;
  std::unordered_map<std::uint64_t, bool> known;  // reaches_device by key set
};

bool reaches_device(Kernel& kernel, PyObject* keys) {
  static PyObject* const representation = PyUnicode_InternFromString("raw_repr");
  Object const bits = Object::checked(PyObject_CallMethodObjArgs(keys, representation, nullptr));
  std::uint64_t const value = PyLong_AsUnsignedLongLong(bits.get());
  if (PyErr_Occurred() != nullptr) throw Raised();
  auto const found = kernel.known.find(value);
  if (found != kernel.known.end()) return found->second;
  Object const result =
      Object::checked(PyObject_CallFunctionObjArgs(kernel.reaches_device.get(), keys, nullptr));
  return kernel.known[value] = PyObject_IsTrue(result.get()) == 1;
}

// True if the argument is a tensor, or a list with one, that requires a gradient.
bool requires_grad(PyObject* argument) {
  static PyObject* const property = PyUnicode_InternFromString("requires_grad");
  if (argument == Py_None || is_number(argument) || PyUnicode_Check(argument) != 0) return false;
  bool const list = PyList_Check(argument) != 0;
  if (list || PyTuple_Check(argument) != 0) {
    Py_ssize_t const count = list ? PyList_Size(argument) : PyTuple_Size(argument);
    for (Py_ssize_t i = 0; i < count; ++i)
      if (requires_grad(list ? PyList_GetItem(argument, i) : PyTuple_GetItem(argument, i))) return true;
    return false;
  }
  return Object::checked(PyObject_GetAttr(argument, property)).get() == Py_True;
}

bool records() {
  static PyObject* const enabled = attribute(imported("torch").get(), "is_grad_enabled").release();
  return Object::checked(PyObject_CallNoArgs(enabled)).get() == Py_True;
}

Object tuple_of(PyObject* const* objects, Py_ssize_t count) {
  Object result = Object::checked(PyTuple_New(count));
  for (Py_ssize_t i = 0; i < count; ++i)
    PyTuple_SetItem(result.get(), i, Object::borrowed(objects[i]).release());
  return result;
}

Object call_kernel(Kernel& kernel, PyObject* const* given, Py_ssize_t count) {
  if (count < 1) raise(PyExc_TypeError, "a kernel was called without a key set");
  bool const direct = reaches_device(kernel, given[0]);
  bool const recorded = std::any_of(given + 1, given + count, requires_grad) && records();
  if (direct && !recorded && kernel.compute.get() == Py_None) return torch_gemm(given + 1, count - 1);
  if (direct && !recorded)
    return Object::checked(PyObject_CallObject(kernel.compute.get(), tuple_of(given + 1, count - 1).get()));
  Object const arguments = tuple_of(given, count);
  if (direct) PyTuple_SetItem(arguments.get(), 0, Object::borrowed(Py_None).release());
  return Object::checked(
      PyObject_CallObject((recorded ? kernel.record : kernel.below).get(), arguments.get()));
}

PyObject* entry(PyObject* capsule, PyObject* const* given, Py_ssize_t count) {
  return guarded([&] {
    auto* const kernel = static_cast<Kernel*>(PyCapsule_GetPointer(capsule, kernel_name));
    if (kernel == nullptr) throw Raised();
    return call_kernel(*kernel, given, count);
  });
}

PyMethodDef entry_method = {"kernel", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&entry)),
                            METH_FASTCALL, "An autograd kernel; cosmati.torch.differentiable."};

}  // namespace

Object torch_gemm(PyObject* const* given, Py_ssize_t count) {
  if (count < 2 || count > 10)
    raise(PyExc_TypeError, "torch_gemm was called with a wrong number of arguments");
  static PyObject* const one = Object::checked(PyFloat_FromDouble(1)).release();
  static PyObject* const zero = Object::checked(PyFloat_FromDouble(0)).release();
  static PyObject* const nothing = Object::checked(PyDict_New()).release();
  Object operands;
  if (count >= 8 && given[5] != Py_None) {
    operands = Object::checked(PyDict_New());
    add_named(operands.get(), given[6], given[7]);
    if (count >= 10) add_named(operands.get(), given[8], given[9]);
  }
  PyObject* const product[] = {given[0],
                               given[1],
                               count > 2 ? given[2] : Py_None,
                               count > 3 ? given[3] : one,
                               count > 4 ? given[4] : zero,
                               count > 5 ? given[5] : Py_None,
                               Py_None,
                               Py_None,
                               Py_None,
                               operands ? operands.get() : nothing};
  Call call(gemm_operation);
  Object result = describe_product(call, product);
  call.run();
  return result;
}

Object direct_kernel(PyObject* const* given, Py_ssize_t count) {
  expect(count, 4);
  auto* const kernel = new Kernel{Object::borrowed(given[0]),
                                  Object::borrowed(given[1]),
                                  Object::borrowed(given[2]),
                                  Object::borrowed(given[3]),
                                  {}};
  Object const capsule = Object::checked(PyCapsule_New(kernel, kernel_name, [](PyObject* own) {
    delete static_cast<Kernel*>(PyCapsule_GetPointer(own, kernel_name));
  }));
  return Object::checked(PyCFunction_NewEx(&entry_method, capsule.get(), nullptr));
}

}  // namespace cosmati::python
