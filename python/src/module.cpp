// The module cosmati._native, the functions that cosmati/*.py calls.
#include <string>

#include "python/src/call.h"
#include "python/src/function.h"
#include "python/src/product.h"
#include "python/src/torch_operators.h"

namespace cosmati::python {
namespace {

constexpr char const* plan_name = "cosmati.plan";
using SharedPlan = std::shared_ptr<Plan const>;

Object capsule_of(SharedPlan plan) {
  return Object::checked(PyCapsule_New(new SharedPlan(std::move(plan)), plan_name, [](PyObject* capsule) {
    delete static_cast<SharedPlan*>(PyCapsule_GetPointer(capsule, plan_name));
  }));
}

SharedPlan const& plan_of(PyObject* capsule) {
  void* const plan = PyCapsule_GetPointer(capsule, plan_name);
  if (plan == nullptr) throw Raised();
  return *static_cast<SharedPlan const*>(plan);
}

// `mode`: None runs the problem; a capsule runs it with this plan; (options, measured) plans it.
Object finish(Call& call, PyObject* mode, Object result) {
  if (mode == Py_None) {
    call.run();
    return result;
  }
  if (PyTuple_Check(mode) != 0)
    return capsule_of(
        call.plan(text_of(PyTuple_GetItem(mode, 0)), PyObject_IsTrue(PyTuple_GetItem(mode, 1)) == 1));
  call.run(plan_of(mode));
  return result;
}

// gemm(a, b, c, alpha, beta, epilogue, out, accumulator, compute, operands, mode)
Object gemm(PyObject* const* given, Py_ssize_t count) {
  expect(count, 11);
  Call call(gemm_operation);
  Object result = describe_product(call, given);
  return finish(call, given[10], std::move(result));
}

// Prefixes the message of the current error with the number of the product.
void add_number(Py_ssize_t number) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_Format(type, "product %zd: %S", number, value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

// grouped_gemm(products): a list of tuples of the arguments of describe_product; returns a list of results.
Object grouped_gemm(PyObject* const* given, Py_ssize_t count) {
  expect(count, 1);
  Group group;
  Py_ssize_t const members = PyList_Size(given[0]);
  Object results = Object::checked(PyList_New(members));
  for (Py_ssize_t i = 0; i < members; ++i) {
    PyObject* own[10];
    for (Py_ssize_t j = 0; j < 10; ++j)
      if ((own[j] = PyTuple_GetItem(PyList_GetItem(given[0], i), j)) == nullptr) throw Raised();
    try {
      Object result = describe_product(group.add(), own);
      if (PyList_SetItem(results.get(), i, result.release()) != 0) throw Raised();
    } catch (Raised const&) {
      add_number(i);
      throw;
    }
  }
  if (members > 0) group.run();
  return results;
}

// run(operation, fields, epilogue, operands, mode): `fields` are numbers of the problem's struct by name, and
// arrays by "field", "field:argument", ":argument" and, if they are written, "=field:argument".
Object run(PyObject* const* given, Py_ssize_t count) {
  expect(count, 5);
  Operation const* const operation = find_operation(text_of(given[0]));
  if (operation == nullptr)
    raise(PyExc_RuntimeError, "there is no operation " + std::string(text_of(given[0])));
  Call call(*operation);
  if (given[2] != Py_None) call.set_epilogue(text_of(given[2]));
  PyObject *name = nullptr, *value = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(given[1], &at, &name, &value) != 0;) {
    if (value == Py_None) continue;
    std::string_view field = text_of(name);
    if (is_number(value) || PyTuple_Check(value) != 0) {
      call.set(field, value);
      continue;
    }
    bool const written = field.starts_with('=');
    if (written) field.remove_prefix(1);
    std::size_t const colon = field.find(':');
    char const* const argument = colon == field.npos ? field.data() : field.data() + colon + 1;
    Array const array = array_of(value, argument);
    if (written) check_writable(array, operation->name, argument);
    call.set_tensor(field.substr(0, colon), argument, array);
  }
  for (Py_ssize_t at = 0; PyDict_Next(given[3], &at, &name, &value) != 0;)
    call.set_operand(text_of(name), value);
  return finish(call, given[4], Object::borrowed(Py_None));
}

// empty(like, shape, type): an array of the same library on the same device; type None: that of `like`.
Object empty(PyObject* const* given, Py_ssize_t count) {
  expect(count, 3);
  Array const like = array_of(given[0], "x");
  std::int64_t shape[COSMATI_MAX_RANK]{};
  Py_ssize_t const rank = PyTuple_Size(given[1]);
  if (rank < 0 || rank > COSMATI_MAX_RANK) raise(PyExc_ValueError, "a shape of too many dimensions");
  for (Py_ssize_t d = 0; d < rank; ++d) shape[d] = integer_of(PyTuple_GetItem(given[1], d));
  int const type = given[2] == Py_None ? like.tensor.type : type_of_name(text_of(given[2]));
  return empty_like(like, {shape, static_cast<std::size_t>(rank)}, type);
}

// describe(array, name): (name of the type, shape, strides in elements, device: -1 for the host, library).
Object describe(PyObject* const* given, Py_ssize_t count) {
  expect(count, 2);
  Array const array = array_of(given[0], text_of(given[1]));
  auto const tuple = [&](std::int64_t const* values) {
    Object result = Object::checked(PyTuple_New(array.tensor.rank));
    for (int d = 0; d < array.tensor.rank; ++d)
      PyTuple_SetItem(result.get(), d, Object::checked(PyLong_FromLongLong(values[d])).release());
    return result;
  };
  return Object::checked(
      Py_BuildValue("sNNis", name_of_type(array.tensor.type), tuple(array.tensor.extent).release(),
                    tuple(array.tensor.stride).release(), array.device, array.family->library.c_str()));
}

// plan_facts(plan): (kernel, explanation, bytes of workspace, backend, expected error).
Object plan_facts(PyObject* const* given, Py_ssize_t count) {
  expect(count, 1);
  SharedPlan const& plan = plan_of(given[0]);
  return Object::checked(Py_BuildValue("ssnsd", cosmati_plan_kernel(plan->plan),
                                       cosmati_plan_explanation(plan->plan),
                                       static_cast<Py_ssize_t>(plan->workspace_bytes), plan->backend.c_str(),
                                       cosmati_plan_expected_error(plan->plan)));
}

PyMethodDef methods[] = {
    method<gemm>("gemm", "A matrix product; cosmati.gemm."),
    method<grouped_gemm>("grouped_gemm", "Matrix products as one problem; cosmati.grouped_gemm."),
    method<torch_gemm>("torch_gemm", "The operators cosmati::gemm and cosmati::gemm_epilogue of PyTorch."),
    method<direct_kernel>("direct_kernel", "An autograd kernel for PyTorch; cosmati.torch.differentiable."),
    method<run>("run", "Any other operation, by the fields of its struct in cosmati.h."),
    method<empty>("empty", "A new array like another."),
    method<describe>("describe", "Type, shape, strides in elements, device and library of an array."),
    method<plan_facts>("plan_facts",
                       "Kernel, explanation, bytes of workspace, backend and expected error of a plan."),
    {nullptr, nullptr, 0, nullptr}};

int fill(PyObject* module) {
  not_available_error = PyErr_NewExceptionWithDoc(
      "cosmati.NotAvailableError", "A backend, device, library or kernel is not available on this machine.",
      PyExc_RuntimeError, nullptr);
  if (not_available_error == nullptr) return -1;
  Py_INCREF(not_available_error);
  if (PyModule_AddObject(module, "NotAvailableError", not_available_error) != 0) return -1;
  if (cosmati_version() / 100 != COSMATI_VERSION_NUMBER / 100) {
    PyErr_SetString(PyExc_ImportError, "libcosmati and cosmati._native have different versions");
    return -1;
  }
  return PyModule_AddStringConstant(
      module, "version",
      (std::to_string(cosmati_version() / 10000) + "." + std::to_string(cosmati_version() / 100 % 100) + "." +
       std::to_string(cosmati_version() % 100))
          .c_str());
}

PyModuleDef_Slot slots[] = {{Py_mod_exec, reinterpret_cast<void*>(&fill)}, {0, nullptr}};
PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_native", "Cosmati's C interface.", 0, methods, slots, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace cosmati::python

extern "C" __attribute__((visibility("default"))) PyObject* PyInit__native() {
  return PyModuleDef_Init(&cosmati::python::definition);
}
