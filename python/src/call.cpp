// Keeps plans by problem, and runs them.
#include "python/src/call.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

namespace cosmati::python {
namespace {

// The maximum number of plans kept. Beyond it, all are dropped; those in use live until their users release
// them.
constexpr std::size_t max_plans = 4096;

// Accessed under the GIL, which fork holds, so that a child process finds it consistent. Never freed, because
// threads may still be inside a call when the process ends.
std::unordered_map<std::string, std::shared_ptr<Plan const>>& plans() {
  static auto& known = *new std::unordered_map<std::string, std::shared_ptr<Plan const>>();
  return known;
}

// One handle per device, created on first use: a process that never passes a GPU array never initializes
// CUDA.
cosmati_handle_t handle_of(int device) {
  static auto& known = *new std::unordered_map<int, cosmati_handle_t>();
  auto const found = known.find(device);
  if (found != known.end()) return found->second;
  if (device != host)
    Object::checked(PyObject_CallMethod(imported("cosmati._interop").get(), "find_nvrtc", nullptr));
  cosmati_handle_t handle = nullptr;
  std::string const backend = device == host ? "cpu" : "cuda:" + std::to_string(device);
  cosmati_status status{};
  {
    WithoutGil const others;
    status = cosmati_create(backend.c_str(), nullptr, &handle);
  }
  check(status);
  auto const [at, added] = known.emplace(device, handle);
  if (!added) cosmati_destroy(handle);  // another thread has created one meanwhile
  return at->second;
}

// The thread's own workspace on the host. Large workspaces are not kept.
class HostWorkspace {
 public:
  HostWorkspace(HostWorkspace const&) = delete;
  HostWorkspace& operator=(HostWorkspace const&) = delete;
  HostWorkspace() = default;
  ~HostWorkspace() { std::free(memory_); }

  void* at_least(std::size_t bytes) {
    if (bytes <= bytes_) return memory_;
    std::free(memory_);
    bytes_ = (bytes + 4095) / 4096 * 4096;
    memory_ = std::aligned_alloc(64, bytes_);
    if (memory_ == nullptr) bytes_ = 0;
    return memory_;
  }
  void let_go_if_large() {
    if (bytes_ <= kept) return;
    std::free(std::exchange(memory_, nullptr));
    bytes_ = 0;
  }

 private:
  static constexpr std::size_t kept = std::size_t{64} << 20;
  void* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

cosmati_status run_on_host(Plan const& plan, cosmati_argument const* arguments, std::size_t count,
                           bool& memory) {
  thread_local HostWorkspace workspace;
  void* const place = plan.workspace_bytes == 0 ? nullptr : workspace.at_least(plan.workspace_bytes);
  memory = plan.workspace_bytes == 0 || place != nullptr;
  if (!memory) return COSMATI_OUT_OF_MEMORY;
  cosmati_status const status =
      cosmati_run(plan.plan, arguments, count, place, plan.workspace_bytes, nullptr);
  workspace.let_go_if_large();
  return status;
}

// True if the object reports that it has no dimensions. Keeps an error that is set.
bool is_scalar(PyObject* object) {
  PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
  PyErr_Fetch(&type, &value, &traceback);
  PyObject* const rank = PyObject_GetAttrString(object, "ndim");
  bool const result = rank != nullptr && PyLong_Check(rank) != 0 && PyLong_AsLong(rank) == 0;
  Py_XDECREF(rank);
  PyErr_Restore(type, value, traceback);
  return result;
}

// Workspace on a GPU for arrays of libraries whose allocators are not used: one per stream, since runs on a
// stream are sequential. It grows and is never freed.
void* stream_workspace(int device, void* stream, std::size_t bytes) {
  struct Workspace {
    cosmati_memory_t memory = nullptr;
    std::size_t bytes = 0;
  };
  static auto& known = *new std::map<std::pair<int, void*>, Workspace>();
  Workspace& workspace = known[{device, stream}];
  if (workspace.bytes < bytes) {
    check(cosmati_wait(handle_of(device), stream));
    cosmati_free(std::exchange(workspace.memory, nullptr));
    workspace.bytes = 0;
    check(cosmati_allocate(handle_of(device), bytes, &workspace.memory));
    workspace.bytes = bytes;
  }
  return cosmati_address(workspace.memory);
}

void append(std::string& key, void const* data, std::size_t bytes) {
  key.append(static_cast<char const*>(data), bytes);
}

// The plan of `key`; if none is kept, the one that `create` makes.
template <class Create>
std::shared_ptr<Plan const> kept(std::string const& key, Create const& create) {
  auto const found = plans().find(key);
  if (found != plans().end()) return found->second;
  std::string const own = key;  // other threads may run while the GIL is released
  auto const created = create(own);
  if (plans().size() >= max_plans) plans().clear();
  return plans().emplace(own, created).first->second;
}

// Plans the problem that `make` creates, without holding the GIL.
template <class Make>
std::shared_ptr<Plan> planned(int device, Make const& make, char const* options, bool measured) {
  cosmati_handle_t const handle = handle_of(device);
  auto result = std::make_shared<Plan>();
  cosmati_status status{};
  {
    WithoutGil const others;
    cosmati_problem_t problem = nullptr;
    status = make(&problem);
    if (status == COSMATI_SUCCESS)
      status = (measured ? cosmati_find_plan : cosmati_make_plan)(handle, problem, options, &result->plan);
    cosmati_problem_destroy(problem);
  }
  check(status);
  result->workspace_bytes = cosmati_plan_workspace(result->plan);
  result->backend = cosmati_backend(handle);
  return result;
}

// Runs the plan on the device of `first`, on its stream.
void execute(Plan const& plan, Array const& first, cosmati_argument const* arguments, std::size_t count) {
  cosmati_status status{};
  bool memory = true;
  if (first.device == host) {
    WithoutGil const others;
    status = run_on_host(plan, arguments, count, memory);
  } else {
    // PyTorch and CuPy free it in the order of the stream.
    Object workspace;
    void* place = nullptr;
    if (first.family->library != "torch" && first.family->library != "cupy") {
      place = stream_workspace(first.device, first.stream, plan.workspace_bytes);
    } else if (plan.workspace_bytes > 0) {
      auto const bytes = static_cast<std::int64_t>(plan.workspace_bytes);
      workspace = empty_like(first, {&bytes, 1}, COSMATI_U8);
      place = array_of(workspace.get(), "workspace").data;
    }
    WithoutGil const others;
    status = cosmati_run(plan.plan, arguments, count, place, plan.workspace_bytes, first.stream);
  }
  if (!memory)
    raise(PyExc_MemoryError,
          "no memory for a workspace of " + std::to_string(plan.workspace_bytes) + " bytes");
  check(status);
}

std::string place_of(int device) { return device == host ? "the host" : "cuda:" + std::to_string(device); }

}  // namespace

PyObject* not_available_error = nullptr;

void check(cosmati_status status) {
  if (status == COSMATI_SUCCESS) return;
  PyObject* type = PyExc_RuntimeError;
  switch (status) {
    case COSMATI_BAD_REQUEST:
    case COSMATI_BAD_FILE: type = PyExc_ValueError; break;
    case COSMATI_UNAVAILABLE: type = not_available_error; break;
    case COSMATI_OUT_OF_MEMORY: type = PyExc_MemoryError; break;
    case COSMATI_SYSTEM: type = PyExc_OSError; break;
    default: break;
  }
  raise(type, cosmati_last_error());
}

Call::Call(Operation const& operation) : operation_(operation) { operation.set_defaults(memory_); }

void Call::set(std::string_view name, PyObject* value) {
  for (Field const& field : operation_.fields) {
    if (name != field.name) continue;
    std::byte* const at = memory_ + field.offset;
    auto const put = [&](auto number, std::size_t index = 0) {
      std::memcpy(at + index * sizeof number, &number, sizeof number);
    };
    switch (field.kind) {
      case FieldKind::integer32: return put(static_cast<std::int32_t>(integer_of(value)));
      case FieldKind::integer64: return put(static_cast<std::int64_t>(integer_of(value)));
      case FieldKind::real: return put(number_of(value));
      case FieldKind::pair:
        for (std::size_t i = 0; i < 2; ++i)
          put(static_cast<std::int64_t>(
                  integer_of(Object::checked(PySequence_GetItem(value, static_cast<Py_ssize_t>(i))).get())),
              i);
        return;
      case FieldKind::tensor: break;
    }
  }
  raise(PyExc_RuntimeError, std::string(operation_.name) + " has no number " + std::string(name));
}

void Call::set_tensor(std::string_view name, char const* argument, Array const& array) {
  bool found = name.empty();
  for (Field const& field : operation_.fields) {
    if (found || name != field.name || field.kind != FieldKind::tensor) continue;
    found = true;
    cosmati_tensor before;
    std::memcpy(&before, memory_ + field.offset, sizeof before);
    cosmati_tensor tensor = array.tensor;
    if (before.rank > 0) {  // several arguments of one description
      std::int64_t const alignment = std::min(before.alignment, tensor.alignment);
      before.alignment = tensor.alignment = alignment;
      if (std::memcmp(&before, &tensor, sizeof before) != 0)
        raise(PyExc_ValueError, std::string(operation_.name) + ": " + argument +
                                    " differs in type, extent or stride from the arrays that it must match");
    }
    std::memcpy(memory_ + field.offset, &tensor, sizeof tensor);
  }
  if (!found) raise(PyExc_RuntimeError, std::string(operation_.name) + " has no tensor " + std::string(name));
  if (*argument != 0) add_array(argument, array);
}

void Call::add_argument(cosmati_argument const& argument) {
  if (argument_count_ == maximum)
    raise(PyExc_ValueError,
          std::string(operation_.name) + ": more than " + std::to_string(maximum) + " arguments");
  arguments_[argument_count_++] = argument;
}

void Call::add_array(char const* name, Array const& array) {
  add_argument(cosmati_data(name, array.data));
  if (array.capsule) capsules_[capsule_count_++] = array.capsule;
  if (first_name_ == nullptr) {
    first_name_ = name;
    first_ = array;
  } else if (array.device != first_.device) {
    raise(PyExc_ValueError, std::string(operation_.name) + ": " + name + " is on " + place_of(array.device) +
                                ", " + first_name_ + " on " + place_of(first_.device) +
                                "; all must be on one device");
  }
}

void Call::set_number(char const* name, double value) { add_argument(cosmati_number(name, value)); }

void Call::set_operand(char const* name, PyObject* object) {
  if (is_number(object)) return set_number(name, number_of(object));
  Array array;
  try {
    array = array_of(object, name);
  } catch (Raised const&) {  // a scalar of a type that arrays do not support: int64
    if (!is_scalar(object)) throw;
    PyErr_Clear();
  }
  if (array.tensor.rank == 0 && array.device == host)
    return set_number(name, number_of(Object::checked(PyNumber_Float(object)).get()));
  // store(name, value) writes to it.
  if (!array.writable && std::strstr(epilogue_, "store") != nullptr) {
    std::string_view const text = epilogue_;
    for (std::size_t at = text.find("store"); at != text.npos; at = text.find("store", at + 1)) {
      std::size_t const begin = text.find_first_not_of(" (", at + 5);
      if (begin != text.npos && text.substr(begin, std::strlen(name)) == name &&
          text.find_first_of(" ,", begin) == begin + std::strlen(name))
        raise(PyExc_ValueError,
              std::string(operation_.name) + ": " + name + " is an output, but it is read-only");
    }
  }
  add_array(name, array);
  operands_[operand_count_++] = {name, array.tensor};
}

void Call::write_key(std::string& key) const {
  key.clear();
  append(key, operation_.name, std::strlen(operation_.name) + 1);
  append(key, &first_.device, sizeof first_.device);
  append(key, memory_, operation_.bytes);
  append(key, epilogue_, std::strlen(epilogue_) + 1);
  for (std::size_t i = 0; i < operand_count_; ++i) {
    append(key, operands_[i].name, std::strlen(operands_[i].name) + 1);
    append(key, &operands_[i].tensor, sizeof operands_[i].tensor);
  }
}

std::shared_ptr<Plan const> Call::plan(char const* options, bool measured) {
  static std::string key;
  write_key(key);
  std::size_t const problem = key.size();
  if (*options != 0 || measured) (key += options) += measured ? "\1" : "";
  return kept(key, [&](std::string const& own) {
    write_epilogue();
    auto const make = [&](cosmati_problem_t* made) { return operation_.make(memory_, made); };
    auto const result = planned(first_.device, make, options, measured);
    result->key = own.substr(0, problem);
    return result;
  });
}

void Call::write_epilogue() {
  if (operation_.epilogue != 0 && *epilogue_ != 0) {
    cosmati_named_tensor const* const operands = operands_.data();
    std::byte* const at = memory_ + operation_.epilogue;
    std::memcpy(at, &epilogue_, sizeof epilogue_);
    std::memcpy(at + sizeof epilogue_, &operands, sizeof operands);
    std::memcpy(at + sizeof epilogue_ + sizeof operands, &operand_count_, sizeof operand_count_);
  } else if (operand_count_ > 0) {
    raise(PyExc_ValueError,
          std::string(operation_.name) + ": " + operands_[0].name + " was given, but no epilogue names it");
  }
}

void Call::run(std::shared_ptr<Plan const> plan) {
  if (plan == nullptr) {
    plan = this->plan();
  } else {
    std::string own;
    write_key(own);
    if (own != plan->key)
      raise(PyExc_ValueError,
            std::string(operation_.name) +
                ": these arrays differ in type, shape, stride, alignment or epilogue from those "
                "that the plan was made for");
  }
  execute(*plan, first_, arguments_.data(), argument_count_);
}

void Group::run() {
  Call const& first = members_.front();
  for (Call const& member : members_)
    if (member.first_.device != first.first_.device)
      raise(PyExc_ValueError, "grouped_gemm: one product has arrays on " + place_of(member.first_.device) +
                                  ", another on " + place_of(first.first_.device) +
                                  "; all must be on one device");
  auto const plan = this->plan();  // rejects products that do not have the same arguments
  execute(*plan, first.first_, arguments(), first.argument_count_);
}

std::shared_ptr<Plan const> Group::plan() {
  static std::string key, own;
  key = "grouped";
  for (Call const& member : members_) {
    member.write_key(own);
    key += own;
  }
  return kept(key, [&](std::string const&) {
    std::vector<cosmati_gemm> gemms;
    for (Call& member : members_) {
      member.write_epilogue();
      gemms.push_back(member.as<cosmati_gemm>());
    }
    cosmati_grouped_gemm group = cosmati_default_grouped_gemm();
    group.members = gemms.data();
    group.count = gemms.size();
    auto const make = [&](cosmati_problem_t* made) { return cosmati_grouped_gemm_problem(&group, made); };
    return planned(members_.front().first_.device, make, "", false);
  });
}

// The arguments of the first member, with the pointers of all members in place of its own.
cosmati_argument const* Group::arguments() {
  Call const& first = members_.front();
  arguments_ = first.arguments_;
  pointers_.resize(first.argument_count_ * members_.size());
  for (std::size_t j = 0; j < first.argument_count_; ++j) {
    void const** const pointers = pointers_.data() + j * members_.size();
    bool array = false;  // arrays without elements may have no address
    for (std::size_t i = 0; i < members_.size(); ++i) {
      cosmati_argument const& own = members_[i].arguments_[j];
      if (std::memcmp(&own.value, &arguments_[j].value, sizeof own.value) != 0)
        raise(PyExc_ValueError, std::string("grouped_gemm: ") + arguments_[j].name + " = " +
                                    std::to_string(own.value) + " in product " + std::to_string(i) + ", " +
                                    std::to_string(arguments_[j].value) +
                                    " in product 0; expected one number for all");
      pointers[i] = own.data;
      array = array || own.data != nullptr;
    }
    if (array) arguments_[j].data = pointers;
  }
  return arguments_.data();
}

}  // namespace cosmati::python
