// The module cosmati._native, the functions that cosmati/*.py calls.
#include <algorithm>
#include <cstring>
#include <string>

#include "python/src/call.h"

namespace cosmati::python {
namespace {

// Calls a function that may throw.
template <auto function>
PyObject* guarded(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  try {
    return function(arguments, count).release();
  } catch (Raised const&) {
    return nullptr;
  } catch (std::bad_alloc const&) {
    return PyErr_NoMemory();
  } catch (std::exception const& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    return nullptr;
  }
}

void expect(Py_ssize_t count, Py_ssize_t expected) {
  if (count != expected) raise(PyExc_TypeError, "_native was called with a wrong number of arguments");
}

// The names in an epilogue.
bool names(char const* text, char const* word) {
  auto const part_of_word = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  std::size_t const length = std::strlen(word);
  for (char const* at = std::strstr(text, word); at != nullptr; at = std::strstr(at + 1, word))
    if ((at == text || !part_of_word(at[-1])) && !part_of_word(at[length])) return true;
  return false;
}

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

// The action: None runs the problem; a capsule runs it with this plan; (options, measured) plans it.
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

int product_type(Array const& a) {
  switch (a.tensor.type) {
    case COSMATI_S8:
    case COSMATI_U8: return COSMATI_S32;
    case COSMATI_E4M3:
    case COSMATI_E5M2: return COSMATI_F32;
    default: return a.tensor.type;
  }
}

void check_writable(Array const& array, char const* operation, char const* name) {
  if (!array.writable)
    raise(PyExc_ValueError, std::string(operation) + ": " + name + " is an output, but it is read-only");
}

std::int64_t batch_of(Array const& array) { return array.tensor.rank == 3 ? array.tensor.extent[0] : 1; }

// A single matrix, or a batch of one, is used for every product of a larger batch.
void repeat(cosmati_tensor& tensor, std::int64_t batch) {
  if (tensor.rank == 3 && tensor.extent[0] == 1 && batch != 1) tensor.extent[0] = batch, tensor.stride[0] = 0;
}

// Describes a product by a, b, c, alpha, beta, epilogue, out, accumulator, compute and operands, and returns
// what it writes.
Object describe_product(Call& call, PyObject* const* given) {
  auto& problem = call.as<cosmati_gemm>();
  Array a = array_of(given[0], "a"), b = array_of(given[1], "b"), c;
  double const alpha = number_of(given[3]), beta = number_of(given[4]);
  bool has_c = given[2] != Py_None;
  char const* text = given[5] == Py_None ? nullptr : text_of(given[5]);
  bool has_alpha = alpha != 1, has_beta = beta != 1 && beta != 0;
  if (text == nullptr) {
    has_c = has_c && beta != 0;
    has_beta = has_beta && has_c;
    text = has_alpha ? (has_c ? (has_beta ? "alpha*acc + beta*c" : "alpha*acc + c") : "alpha*acc")
                     : (has_c ? (has_beta ? "acc + beta*c" : "acc + c") : "");
  } else {
    bool const names_alpha = names(text, "alpha"), names_beta = names(text, "beta");
    if ((has_alpha && !names_alpha) || (has_beta && !names_beta))
      raise(PyExc_ValueError, std::string("gemm: ") + (has_alpha && !names_alpha ? "alpha" : "beta") +
                                  " was given, and the epilogue '" + text + "' does not name it");
    has_alpha = names_alpha, has_beta = names_beta;
  }
  call.set_epilogue(text);
  if (a.tensor.rank < 2 || a.tensor.rank > 3 || b.tensor.rank < 2 || b.tensor.rank > 3)
    raise(PyExc_ValueError, "gemm: a has " + std::to_string(a.tensor.rank) + " dimensions, b " +
                                std::to_string(b.tensor.rank) +
                                "; expected 2, or 3 with a leading batch axis");
  std::int64_t const batch = std::max(batch_of(a), batch_of(b));
  std::int64_t const extent[] = {batch, a.tensor.extent[a.tensor.rank - 2],
                                 b.tensor.extent[b.tensor.rank - 1]};
  bool const batched = a.tensor.rank == 3 || b.tensor.rank == 3;
  repeat(a.tensor, batch);
  repeat(b.tensor, batch);
  Object result = given[6] != Py_None
                      ? Object::borrowed(given[6])
                      : empty_like(a, {batched ? extent : extent + 1, batched ? 3u : 2u}, product_type(a));
  Array const d = array_of(result.get(), "out");
  if (given[6] != Py_None) check_writable(d, "gemm", "out");
  if (given[8] != Py_None) {  // compute
    if (std::strcmp(text_of(given[8]), "tf32") == 0) {
      for (cosmati_tensor* const one : {&a.tensor, &b.tensor})
        if (one->type == COSMATI_F32) one->type = COSMATI_TF32;
    } else if (std::strncmp(text_of(given[8]), "bf16x", 5) == 0 && std::strlen(text_of(given[8])) == 6 &&
               std::strchr("369", text_of(given[8])[5]) != nullptr) {
      problem.bf16_products = text_of(given[8])[5] - '0';
    } else if (std::strcmp(text_of(given[8]), "f32") != 0) {
      raise(PyExc_ValueError, "gemm: compute = '" + std::string(text_of(given[8])) +
                                  "'; valid values: None, 'f32', 'tf32', 'bf16x3', 'bf16x6', 'bf16x9'");
    }
  }
  if (given[7] != Py_None) {  // accumulator
    char const* const type = text_of(given[7]);
    problem.accumulate_in_f16 = std::strcmp(type, "f16") == 0 ? 1 : 0;
    if (problem.accumulate_in_f16 == 0 && std::strcmp(type, "f32") != 0)
      raise(PyExc_ValueError,
            "gemm: accumulator = '" + std::string(type) + "'; valid values: None, 'f32', 'f16'");
  }
  call.set_tensor("a", "a", a);
  call.set_tensor("b", "b", b);
  if (has_c) {
    c = array_of(given[2], "c");
    repeat(c.tensor, batch);
    call.set_tensor("c", "c", c);
  }
  call.set_tensor("d", "d", d);
  if (has_alpha) call.set_number("alpha", alpha);
  if (has_beta) call.set_number("beta", beta);
  PyObject *name = nullptr, *operand = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(given[9], &at, &name, &operand) != 0;)
    call.set_operand(text_of(name), operand);
  return result;
}

// gemm(a, b, c, alpha, beta, epilogue, out, accumulator, compute, operands, mode)
Object gemm(PyObject* const* given, Py_ssize_t count) {
  expect(count, 11);
  Call call(gemm_operation);
  Object result = describe_product(call, given);
  return finish(call, given[10], std::move(result));
}

// Begins the sentence of the error that is set with the number of the product.
void add_number(Py_ssize_t number) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyErr_Format(type, "product %zd: %S", number, value);
  Py_XDECREF(type);
  Py_XDECREF(value);
  Py_XDECREF(traceback);
}

// grouped_gemm(products): a list of tuples of what describe_product takes; the list of what it returns.
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
// arrays by "field", "field:argument", ":argument" and, if it is written, "=field:argument".
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

// describe(array, name): (name of the type, shape, strides in elements, device: -1 of the host, library).
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

template <auto function>
constexpr PyMethodDef method(char const* name, char const* documentation) {
  return {name, reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&guarded<function>)),
          METH_FASTCALL, documentation};
}

PyMethodDef methods[] = {
    method<gemm>("gemm", "A matrix product; cosmati.gemm."),
    method<grouped_gemm>("grouped_gemm", "Matrix products as one problem; cosmati.grouped_gemm."),
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
