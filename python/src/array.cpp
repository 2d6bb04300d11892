// Reads arrays by the cheapest protocol that their type supports.
#include "python/src/array.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <unordered_map>
#include <utility>

namespace cosmati::python {
namespace {

struct TypeName {
  char const* name;   // numpy's and PyTorch's
  char const* brief;  // the library's
  char kind;          // numpy's kind; 'V': identified by name only
  std::uint8_t code;  // DLPack's
  std::uint8_t bytes;
};
// In the order of cosmati_type.
constexpr std::array<TypeName, 10> types = {{{"float64", "f64", 'f', 2, 8},
                                             {"float32", "f32", 'f', 2, 4},
                                             {"tfloat32", "tf32", 0, 255, 4},
                                             {"float16", "f16", 'f', 2, 2},
                                             {"bfloat16", "bf16", 'V', 4, 2},
                                             {"float8_e4m3fn", "e4m3", 'V', 10, 1},
                                             {"float8_e5m2", "e5m2", 'V', 12, 1},
                                             {"int8", "s8", 'i', 0, 1},
                                             {"uint8", "u8", 'u', 1, 1},
                                             {"int32", "s32", 'i', 0, 4}}};

std::string quoted(char const* name) { return std::string("'").append(name).append("'"); }

[[noreturn]] void refuse_type(char const* name, std::string const& type) {
  std::string valid;
  for (TypeName const& one : types)
    if (one.kind != 0) valid += (valid.empty() ? "" : ", ") + std::string(one.name);
  raise(PyExc_TypeError, "the elements of " + quoted(name) + " are " + type + "; valid types: " + valid);
}

std::string string_of(Object const& object) {
  Object const text = Object::checked(PyObject_Str(object.get()));
  return text_of(text.get());
}

bool has(PyObject* object, char const* name) { return PyObject_HasAttrString(object, name) == 1; }

// The package of the type or of its base type.
std::string library_of(PyObject* type) {
  Object const bases = attribute(type, "__mro__");
  for (Py_ssize_t i = 0; i < PyTuple_Size(bases.get()); ++i) {
    std::string library = string_of(attribute(PyTuple_GetItem(bases.get(), i), "__module__"));
    library.resize(std::min(library.find('.'), library.size()));
    for (char const* one : {"numpy", "torch", "cupy", "jax", "jaxlib"})
      if (library == one) return library;
  }
  return "another library";
}

Family family_of(PyTypeObject* type, char const* name) {
  auto* const object = reinterpret_cast<PyObject*>(type);
  Family family{Protocol::dlpack, {}, nullptr, false};
  family.library = library_of(object);
  std::string const module = string_of(attribute(object, "__module__"));
  std::string const class_name = string_of(attribute(object, "__name__"));
  family.plain_tensor = (module == "torch" && class_name == "Tensor") ||
                        (module == "torch.nn.parameter" && class_name == "Parameter");
  if (has(object, "__dlpack_c_exchange_api__")) {
    Object const capsule = attribute(object, "__dlpack_c_exchange_api__");
    void* const found = PyCapsule_GetPointer(capsule.get(), "dlpack_exchange_api");
    if (found == nullptr) PyErr_Clear();
    auto const* exchange = static_cast<DLExchange const*>(found);
    while (exchange != nullptr && exchange->version.major > 1) exchange = exchange->previous;
    if (exchange != nullptr && exchange->version.major == 1 && exchange->view != nullptr) {
      family.protocol = Protocol::exchange;
      family.exchange = exchange;
      return family;
    }
  }
  if (has(object, "__array_struct__"))
    family.protocol = Protocol::array_struct;
  else if (has(object, "__dlpack__"))
    family.protocol = Protocol::dlpack;
  else if (has(object, "__cuda_array_interface__"))
    family.protocol = Protocol::cuda_array;
  else
    raise(PyExc_TypeError,
          quoted(name) + " is of type " + string_of(attribute(object, "__name__")) +
              "; expected an array of numpy, PyTorch, CuPy or JAX, or one that has __dlpack__ "
              "or __cuda_array_interface__");
  return family;
}

// Known types are kept alive.
Family const& known_family(PyTypeObject* type, char const* name) {
  static auto& known = *new std::unordered_map<PyTypeObject*, Family const*>();
  static std::pair<PyTypeObject*, Family const*> last{};  // most calls have arrays of one type
  if (last.first == type) return *last.second;
  auto const found = known.find(type);
  if (found != known.end()) return *(last = *found).second;
  auto const* const family = new Family(family_of(type, name));
  Py_INCREF(reinterpret_cast<PyObject*>(type));
  known.emplace(type, family);
  return *family;
}

// Element types from other packages (ml_dtypes) are identified by name.
int type_of_description(PyObject* object, char const* name) {
  static auto& known = *new std::unordered_map<PyObject*, int>();
  Object description = attribute(object, "dtype");
  auto const found = known.find(description.get());
  if (found != known.end()) return found->second;
  std::string const spelled = string_of(attribute(description.get(), "name"));
  int const type = type_of_name(spelled);
  if (type < 0) refuse_type(name, spelled);
  known.emplace(description.release(), type);
  return type;
}

// The largest power of two up to 16 that the address is a multiple of.
std::int64_t alignment_of(void const* data) {
  auto const address = reinterpret_cast<std::uintptr_t>(data) | 16;
  return static_cast<std::int64_t>(address & (~address + 1));
}

void check_rank(int rank, char const* name) {
  if (rank > COSMATI_MAX_RANK)
    raise(PyExc_ValueError, quoted(name) + " has " + std::to_string(rank) + " dimensions; at most " +
                                std::to_string(COSMATI_MAX_RANK) + " are allowed");
}

// `strides` in units of `unit` bytes; null: contiguous.
template <class Integer>
void set_layout(Array& array, char const* name, Integer const* shape, Integer const* strides,
                std::int64_t unit) {
  cosmati_tensor& tensor = array.tensor;
  std::int64_t const bytes = bytes_of_type(tensor.type);
  std::int64_t step = 1;
  for (int d = tensor.rank - 1; d >= 0; --d) {
    tensor.extent[d] = shape[d];
    std::int64_t const stride = strides == nullptr ? step * bytes : strides[d] * unit;
    step *= shape[d];
    if (shape[d] <= 1 && stride < 0) continue;
    if (stride < 0)
      raise(PyExc_ValueError, "the strides of " + quoted(name) +
                                  " contain a negative value; expected 0 or more: pass a contiguous copy");
    if (stride % bytes != 0)
      raise(PyExc_ValueError, "a stride of " + quoted(name) + " is " + std::to_string(stride) +
                                  " bytes; expected a multiple of " + std::to_string(bytes) +
                                  ", the size of an element");
    tensor.stride[d] = stride / bytes;
  }
  tensor.alignment = alignment_of(array.data);
}

void read_struct(Array& array, char const* name) {
  static PyObject* const attribute_name = PyUnicode_InternFromString("__array_struct__");
  // Frees the capsule's memory; the array's memory stays.
  Object const capsule = Object::checked(PyObject_GetAttr(array.object, attribute_name));
  auto const* const told = static_cast<ArrayInterface const*>(PyCapsule_GetPointer(capsule.get(), nullptr));
  if (told == nullptr) throw Raised();
  if ((told->flags & array_not_swapped) == 0) refuse_type(name, "not in this machine's byte order");
  int type = -1;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i].kind == told->kind && types[i].bytes == told->item_bytes && told->kind != 'V')
      type = static_cast<int>(i);
  if (type < 0) type = type_of_description(array.object, name);
  check_rank(told->rank, name);
  array.tensor.type = type;
  array.tensor.rank = told->rank;
  array.data = told->data;
  array.writable = (told->flags & array_writable) != 0;
  set_layout(array, name, told->shape, told->strides, 1);
}

void read_tensor(Array& array, DLTensor const& tensor, char const* name) {
  int type = -1;
  for (std::size_t i = 0; i < types.size(); ++i)
    if (types[i].code == tensor.type.code && types[i].bytes * 8 == tensor.type.bits && tensor.type.lanes == 1)
      type = static_cast<int>(i);
  if (type < 0)
    refuse_type(name,
                has(array.object, "dtype") ? string_of(attribute(array.object, "dtype")) : "of another type");
  check_rank(tensor.rank, name);
  switch (tensor.device.type) {
    case dl_cpu:
    case dl_cuda_host: array.device = host; break;
    case dl_cuda:
    case dl_cuda_managed: array.device = tensor.device.id; break;
    default:
      raise(PyExc_ValueError, quoted(name) + " is on a device of DLPack type " +
                                  std::to_string(tensor.device.type) +
                                  "; expected the host or a CUDA device");
  }
  array.tensor.type = type;
  array.tensor.rank = tensor.rank;
  array.data = static_cast<char*>(tensor.data) + tensor.byte_offset;
  set_layout(array, name, tensor.shape, tensor.strides, bytes_of_type(type));
}

void* stream_from_python(std::string const& library, int device) {
  Object const interop = imported("cosmati._interop");
  Object const stream =
      Object::checked(PyObject_CallMethod(interop.get(), "current_stream", "si", library.c_str(), device));
  return PyLong_AsVoidPtr(stream.get());
}

void read_exchange(Array& array, char const* name) {
  DLTensor tensor{};
  if (array.family->exchange->view(array.object, &tensor) != 0) throw Raised();
  read_tensor(array, tensor, name);
  array.writable = true;
  if (array.device != host &&
      array.family->exchange->current_stream(dl_cuda, array.device, &array.stream) != 0)
    throw Raised();
}

// obj.__dlpack__(): on a GPU, the data can be used on the stream of its library. PyTorch refuses tensors that
// require a gradient.
Object dlpack_capsule(Array& array) {
  Object const told = Object::checked(PyObject_CallMethod(array.object, "__dlpack_device__", nullptr));
  long long const device = integer_of(Object::checked(PySequence_GetItem(told.get(), 0)).get());
  Object const keywords = Object::checked(PyDict_New());
  Object const version = Object::checked(Py_BuildValue("(ii)", 1, 1));
  auto const set = [&](char const* key, PyObject* value) {
    if (PyDict_SetItemString(keywords.get(), key, value) != 0) throw Raised();
  };
  if (device == dl_cuda || device == dl_cuda_managed) {
    int const number = static_cast<int>(integer_of(Object::checked(PySequence_GetItem(told.get(), 1)).get()));
    array.stream = stream_from_python(array.family->library, number);
    // 1 is the default stream: 0 is not allowed.
    auto const stream = reinterpret_cast<std::intptr_t>(array.stream);
    set("stream", Object::checked(PyLong_FromSsize_t(stream == 0 ? 1 : stream)).get());
  }
  set("max_version", version.get());
  Object source = Object::borrowed(array.object);
  if (array.family->library == "torch" && attribute(array.object, "requires_grad").get() == Py_True)
    source = Object::checked(PyObject_CallMethod(array.object, "detach", nullptr));
  Object const method = attribute(source.get(), "__dlpack__");
  Object const none = Object::checked(PyTuple_New(0));
  PyObject* capsule = PyObject_Call(method.get(), none.get(), keywords.get());
  if (capsule == nullptr && PyErr_ExceptionMatches(PyExc_TypeError) != 0) {  // before version 1.0
    PyErr_Clear();
    if (PyDict_DelItemString(keywords.get(), "max_version") != 0) throw Raised();
    capsule = PyObject_Call(method.get(), none.get(), keywords.get());
  }
  return Object::checked(capsule);
}

void read_dlpack(Array& array, char const* name) {
  array.capsule = dlpack_capsule(array);
  if (PyCapsule_IsValid(array.capsule.get(), "dltensor_versioned") == 1) {
    auto const* const managed = static_cast<DLManagedTensorVersioned const*>(
        PyCapsule_GetPointer(array.capsule.get(), "dltensor_versioned"));
    if (managed->version.major != 1) raise(PyExc_TypeError, quoted(name) + " uses DLPack 2; expected 1");
    array.writable = (managed->flags & dl_read_only) == 0;
    read_tensor(array, managed->tensor, name);
  } else {
    auto const* const managed =
        static_cast<DLManagedTensor const*>(PyCapsule_GetPointer(array.capsule.get(), "dltensor"));
    if (managed == nullptr) throw Raised();
    array.writable = true;
    read_tensor(array, managed->tensor, name);
  }
  if (array.family->library.starts_with("jax")) array.writable = false;
}

void read_cuda_array(Array& array, char const* name) {
  Object const interop = imported("cosmati._interop");
  Object const told = Object::checked(PyObject_CallMethod(interop.get(), "cuda_array", "O", array.object));
  auto const at = [&](Py_ssize_t i) { return Object::checked(PySequence_GetItem(told.get(), i)); };
  std::string const type = string_of(at(0));
  array.tensor.type = type_of_name(type);
  if (array.tensor.type < 0) refuse_type(name, type);
  array.data = PyLong_AsVoidPtr(at(1).get());
  array.writable = PyObject_IsTrue(at(2).get()) == 1;
  array.device = static_cast<int>(integer_of(at(3).get()));
  array.stream = PyLong_AsVoidPtr(at(4).get());
  if (PyErr_Occurred() != nullptr) throw Raised();
  Object const shape = at(5), strides = at(6);
  Py_ssize_t const rank = PySequence_Size(shape.get());
  check_rank(static_cast<int>(rank), name);
  std::int64_t extents[COSMATI_MAX_RANK]{}, steps[COSMATI_MAX_RANK]{};
  for (Py_ssize_t d = 0; d < rank; ++d) {
    extents[d] = integer_of(Object::checked(PySequence_GetItem(shape.get(), d)).get());
    if (strides.get() != Py_None)
      steps[d] = integer_of(Object::checked(PySequence_GetItem(strides.get(), d)).get());
  }
  array.tensor.rank = static_cast<int>(rank);
  set_layout(array, name, extents, strides.get() == Py_None ? nullptr : steps, 1);
}

// The numpy.dtype of each type, made when first needed: some need ml_dtypes.
PyObject* numpy_type(int type) {
  static std::array<PyObject*, types.size()> known{};
  PyObject*& description = known[static_cast<std::size_t>(type)];
  if (description == nullptr) {
    Object const interop = imported("cosmati._interop");
    description =
        Object::checked(PyObject_CallMethod(interop.get(), "numpy_dtype", "s", name_of_type(type))).release();
  }
  return description;
}

// True if the tensor is of this type and shape, has elements, and is in row-major order without gaps.
bool has_layout(cosmati_tensor const& tensor, std::span<std::int64_t const> shape, int type) {
  if (tensor.type != type || static_cast<std::size_t>(tensor.rank) != shape.size()) return false;
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0; step *= shape[d])
    if (shape[d] == 0 || tensor.extent[d] != shape[d] || tensor.stride[d] != step) return false;
  return true;
}

// The allocators that PyTorch's compiled code calls, which take two thirds of the time of torch.empty_like or
// less. They are not part of its documented interface: where one is missing, the result is null.
class TorchAllocators {
 public:
  static TorchAllocators const& known() {
    static TorchAllocators const& found = *new TorchAllocators();
    return found;
  }

  Object empty(int device, PyObject* extents, std::span<std::int64_t const> shape, int type) const {
    PyObject* const allocate = device == host ? on_host_ : on_gpu_;
    if (allocate == nullptr || !is_current(device)) return {};
    Object const strides = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
    std::int64_t step = 1;
    for (std::size_t d = shape.size(); d-- > 0; step *= std::max<std::int64_t>(shape[d], 1))
      PyTuple_SetItem(strides.get(), static_cast<Py_ssize_t>(d),
                      Object::checked(PyLong_FromLongLong(step)).release());
    return Object::checked(PyObject_CallFunctionObjArgs(allocate, extents, strides.get(),
                                                        types_[static_cast<std::size_t>(type)], nullptr));
  }

 private:
  TorchAllocators() {
    Object const torch = imported("torch");
    for (std::size_t i = 0; i < types.size(); ++i) types_[i] = optional(torch.get(), {types[i].name});
    on_host_ = optional(torch.get(), {"_C", "_dynamo", "guards", "_empty_strided_cpu"});
    on_gpu_ = optional(torch.get(), {"_C", "_dynamo", "guards", "_empty_strided_cuda"});
    current_ = optional(torch.get(), {"_C", "_cuda_getDevice"});
  }

  static PyObject* optional(PyObject* object, std::initializer_list<char const*> names) {
    Object found = Object::borrowed(object);
    for (char const* const name : names) {
      PyObject* const next = PyObject_GetAttrString(found.get(), name);
      if (next == nullptr) {
        PyErr_Clear();
        return nullptr;
      }
      found = Object::checked(next);
    }
    return found.release();
  }

  // The GPU allocator allocates on the current GPU.
  bool is_current(int device) const {
    if (device == host) return true;
    if (current_ == nullptr) return false;
    Object const current = Object::checked(PyObject_CallNoArgs(current_));
    return integer_of(current.get()) == device;
  }

  std::array<PyObject*, types.size()> types_{};
  PyObject *on_host_ = nullptr, *on_gpu_ = nullptr, *current_ = nullptr;
};

}  // namespace

char const* name_of_type(int type) { return types[static_cast<std::size_t>(type)].name; }
std::int64_t bytes_of_type(int type) { return types[static_cast<std::size_t>(type)].bytes; }

int type_of_name(std::string const& name) {
  for (std::size_t i = 0; i < types.size(); ++i)
    if (name == types[i].name || name == types[i].brief) return static_cast<int>(i);
  return -1;
}

bool is_number(PyObject* object) { return PyFloat_Check(object) != 0 || PyLong_Check(object) != 0; }

Array array_of(PyObject* object, char const* name) {
  Array array;
  array.object = object;
  array.family = &known_family(Py_TYPE(object), name);
  switch (array.family->protocol) {
    case Protocol::array_struct: read_struct(array, name); break;
    case Protocol::exchange: read_exchange(array, name); break;
    case Protocol::dlpack: read_dlpack(array, name); break;
    case Protocol::cuda_array: read_cuda_array(array, name); break;
  }
  return array;
}

void check_writable(Array const& array, char const* operation, char const* name) {
  if (!array.writable)
    raise(PyExc_ValueError, std::string(operation) + ": " + name + " is an output, but it is read-only");
}

Object empty_like(Array const& like, std::span<std::int64_t const> shape, int type) {
  Object const extents = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(shape.size())));
  for (std::size_t d = 0; d < shape.size(); ++d)
    PyTuple_SetItem(extents.get(), static_cast<Py_ssize_t>(d),
                    Object::checked(PyLong_FromLongLong(shape[d])).release());
  if (like.family->library == "numpy") {
    static PyObject* const empty = attribute(imported("numpy").get(), "empty").release();
    return Object::checked(PyObject_CallFunctionObjArgs(empty, extents.get(), numpy_type(type), nullptr));
  }
  if (like.family->plain_tensor) {
    Object result = TorchAllocators::known().empty(like.device, extents.get(), shape, type);
    if (result) return result;
  }
  if (like.family->library == "torch" && has_layout(like.tensor, shape, type)) {  // the next cheapest call
    static PyObject* const same = attribute(imported("torch").get(), "empty_like").release();
    return Object::checked(PyObject_CallFunctionObjArgs(same, like.object, nullptr));
  }
  if (like.family->library == "torch" && like.tensor.type == type) {
    static PyObject* const new_empty = PyUnicode_InternFromString("new_empty");
    return Object::checked(PyObject_CallMethodObjArgs(like.object, new_empty, extents.get(), nullptr));
  }
  static PyObject* const empty = attribute(imported("cosmati._interop").get(), "empty").release();
  return Object::checked(PyObject_CallFunction(empty, "sOOsi", like.family->library.c_str(), like.object,
                                               extents.get(), name_of_type(type), like.device));
}

}  // namespace cosmati::python
