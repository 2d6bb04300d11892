// One call: a problem, its arrays and numbers; its plan, which is made once and kept; the run.
#pragma once
#include <array>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cosmati.h"
#include "python/src/array.h"
#include "python/src/operations.h"

namespace cosmati::python {

// The plan of one problem, shared by the runs that use it.
struct Plan {
  Plan() = default;
  Plan(Plan const&) = delete;
  Plan& operator=(Plan const&) = delete;
  ~Plan() { cosmati_plan_destroy(plan); }

  cosmati_plan_t plan = nullptr;
  std::size_t workspace_bytes = 0;
  std::string key;  // identifies the problem, to check that a call has the same one
  std::string backend;
};

// Throws Raised with the library's sentence: ValueError, NotAvailableError, MemoryError, OSError or
// RuntimeError.
void check(cosmati_status status);
extern PyObject* not_available_error;

class Call {
  friend class Group;

 public:
  explicit Call(Operation const& operation);

  // A struct's field; for a number `value` is a Python int, float or pair.
  void set(std::string_view field, PyObject* value);
  // A tensor of the struct, and the run's argument of that name; either may be empty.
  void set_tensor(std::string_view field, char const* argument, Array const& array);
  // An argument of the run, whose tensor of the struct the caller sets.
  void add_array(char const* argument, Array const& array);
  // "": no epilogue.
  void set_epilogue(char const* text) { epilogue_ = text; }
  // An array or a number that the epilogue names.
  void set_operand(char const* name, PyObject* object);
  void set_number(char const* name, double value);

  template <class Struct>
  Struct& as() {
    return *reinterpret_cast<Struct*>(memory_);
  }

  // The plan that was made for this problem before, or a new one. `options` are those of cosmati_make_plan,
  // or, with `measured`, of cosmati_find_plan.
  std::shared_ptr<Plan const> plan(char const* options = "", bool measured = false);
  // Runs `plan`, or plan() if it is null. ValueError: `plan` was made for another problem.
  void run(std::shared_ptr<Plan const> plan = nullptr);

 private:
  static constexpr std::size_t maximum = 32;

  void add_argument(cosmati_argument const& argument);
  void write_key(std::string& key) const;
  // Sets the epilogue of the problem. ValueError: there are operands, but no epilogue.
  void write_epilogue();

  Operation const& operation_;
  alignas(8) std::byte memory_[1024];
  char const* epilogue_ = "";
  std::array<cosmati_named_tensor, maximum> operands_;
  std::array<cosmati_argument, maximum> arguments_;
  std::array<Object, maximum> capsules_;
  std::size_t operand_count_ = 0, argument_count_ = 0, capsule_count_ = 0;
  Array first_;  // determines the device, stream and library of the others
  char const* first_name_ = nullptr;
};

// Matrix products of different sizes as one problem: calls of gemm_operation, which are not run themselves.
class Group {
 public:
  Call& add() { return members_.emplace_back(gemm_operation); }
  // Computes all products, of which there is at least one.
  void run();

 private:
  std::shared_ptr<Plan const> plan();
  cosmati_argument const* arguments();

  std::deque<Call> members_;
  std::array<cosmati_argument, Call::maximum> arguments_;
  std::vector<void const*> pointers_;
};

}  // namespace cosmati::python
