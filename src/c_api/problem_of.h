// The objects of the C interface for one kind of problem: every operation instantiates these templates.
#pragma once
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>

#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/epilogue.h"
#include "cosmati/ops/optimizer.h"
#include "src/c_api/objects.h"
#include "src/c_api/status.h"

namespace cosmati::c_api {

// The external names of a problem, where they differ from the library's.
struct Names {
  std::string note;  // appended to messages, which use the library's names; empty: nothing
  char const* (*outside)(char const* name) = [](char const* name) { return name; };
};

// Calls `body`; appends the note to what it throws.
template <class Body>
auto with_note(Names const& names, Body const& body) {
  try {
    return body();
  } catch (Error const& error) {
    if (names.note.empty()) throw;
    throw Error(error.code(), error.what() + names.note);
  }
}

// Calls visit(name, member) for scalars of a run other than an epilogue's.
template <class Problem, class Visit>
void visit_numbers(Problem const& problem, Visit const& visit) {
  using Arguments = typename Problem::Arguments;
  if constexpr (std::is_same_v<Problem, DropoutProblem>) visit("step", &Arguments::step);
  if constexpr (std::is_same_v<Problem, OptimizerProblem>) {
    visit("rate", &Arguments::rate);
    if (problem.kind == OptimizerKind::adam) visit("step", &Arguments::step);
  }
}

template <class Problem>
constexpr bool has_epilogue = requires(Problem problem) {
  problem.epilogue;
};

// The arguments of one run, from those given by name.
template <class Problem>
class Binding {
 public:
  using Arguments = typename Problem::Arguments;
  Binding(Problem const& problem, Names const& names, Given& given)
      : problem_(problem), names_(names), given_(given) {
    Problem::visit_tensors(problem,
                           [&](char const* name, Role, TensorDescription const& tensor, auto member) {
                             arguments.*member = data(names.outside(name), tensor);
                           });
    visit_numbers(problem, [&](char const* name, auto member) {
      using Number = std::remove_reference_t<decltype(arguments.*member)>;
      arguments.*member = whole_where_needed<Number>(name, number(name));
    });
    if constexpr (has_epilogue<Problem>) bind(problem.epilogue);
    if (cosmati_argument const* const left = given.unused()) refuse_unused(*left);
  }
  Binding(Binding const&) = delete;
  Binding& operator=(Binding const&) = delete;

  Arguments arguments = {};

 private:
  void bind(Epilogue const& epilogue) {
    auto const& expression = epilogue.expression;
    for (std::size_t i = 0; i < epilogue.operands.size(); ++i)
      operands_[i] = data(expression.operands()[i].name.c_str(), epilogue.operands[i]);
    for (std::size_t i = 0; i < epilogue.stores.size(); ++i)
      stores_[i] = data(expression.stores()[i].name.c_str(), epilogue.stores[i]);
    std::size_t const scalars = expression.scalars().size();
    for (std::size_t i = 0; i < scalars; ++i) scalars_[i] = number(expression.scalars()[i].name.c_str());
    arguments.operands = {operands_, epilogue.operands.size()};
    arguments.stores = {stores_, epilogue.stores.size()};
    arguments.scalars = {scalars_, scalars};
  }

  void* data(char const* name, TensorDescription const& tensor) {
    cosmati_argument const* const argument = given_.find(name);
    if (argument == nullptr) {
      if (tensor.layout.size() == 0) return nullptr;
      refuse("argument " + std::string(name) + ", " + to_string(tensor) + ", is missing; " + balance());
    }
    return const_cast<void*>(argument->data);
  }

  double number(char const* name) {
    cosmati_argument const* const argument = given_.find(name);
    if (argument == nullptr) refuse("argument " + std::string(name) + ", a scalar, is missing; " + balance());
    if (argument->data != nullptr)
      refuse("argument " + std::string(name) +
             " is a scalar: expected a value (cosmati_number), not an address");
    return argument->value;
  }

  template <class Number>
  static Number whole_where_needed(char const* name, double value) {
    if constexpr (std::is_integral_v<Number>)
      if (!(value >= 0 && value <= 0x1p53 && value == std::floor(value)))
        refuse("argument " + std::string(name) + " is " + std::to_string(value) +
               "; valid values: an integer from 0 to 2^53");
    return static_cast<Number>(value);
  }

  [[noreturn]] void refuse_unused(cosmati_argument const& left) {
    std::string const name = left.name;
    if (given_.find(left.name) != &left) refuse("argument " + name + " is given twice");
    refuse("argument " + name + " is not part of this problem; " + balance());
  }

  // "the problem takes x, w, y and the scalars alpha; got x, y".
  std::string balance() const {
    std::string tensors, numbers;
    auto const list = [](std::string& text, std::string const& name) {
      text += (text.empty() ? "" : ", ") + name;
    };
    Problem::visit_tensors(problem_, [&](char const* name, Role, TensorDescription const&, auto) {
      list(tensors, names_.outside(name));
    });
    visit_numbers(problem_, [&](char const* name, auto) { list(numbers, name); });
    if constexpr (has_epilogue<Problem>) {
      auto const& expression = problem_.epilogue.expression;
      for (auto const& operand : expression.operands()) list(tensors, operand.name);
      for (auto const& store : expression.stores()) list(tensors, store.name);
      for (auto const& scalar : expression.scalars()) list(numbers, scalar.name);
    }
    return "the problem takes " + tensors + (numbers.empty() ? "" : " and the scalars " + numbers) +
           "; got " + given_.names();
  }

  Problem const& problem_;
  Names const& names_;
  Given& given_;
  void const* operands_[max_epilogue_operands];
  void* stores_[max_epilogue_stores];
  double scalars_[max_arguments];
};

template <class Problem>
class PlanOf final : public cosmati_plan {
 public:
  PlanOf(Prepared<Problem> prepared, Names names) : prepared_(std::move(prepared)), names_(std::move(names)) {
    Plan<Problem> const& plan = prepared_.plan();
    kernel = plan.kernel;
    workspace_bytes = plan.workspace_bytes;
    for (Considered const& considered : plan.considered) entries.push_back({considered, 0});
    explain();
  }

  // Adds the measured times to the entries and sorts them, fastest first.
  void order_by(std::vector<Found<Problem>> const& found) {
    for (Entry& entry : entries)
      for (auto const& one : found)
        if (one.prepared.plan().kernel == entry.considered.kernel) entry.measured_seconds = one.seconds;
    std::stable_sort(entries.begin(), entries.end(), [](Entry const& x, Entry const& y) {
      if ((x.measured_seconds > 0) != (y.measured_seconds > 0)) return x.measured_seconds > 0;
      return x.measured_seconds < y.measured_seconds;
    });
    explain();
  }

  void run(Given& given, void* workspace, std::size_t bytes, Stream stream) const override {
    with_note(names_, [&] {
      if (bytes < workspace_bytes)
        refuse("the workspace has " + std::to_string(bytes) + " bytes; this plan needs " +
               std::to_string(workspace_bytes));
      Binding<Problem> const binding(prepared_.plan().problem, names_, given);
      prepared_.run(binding.arguments, workspace, stream);
    });
  }

 private:
  Prepared<Problem> prepared_;
  Names names_;
};

// Arguments of a run are identified only by name: names of the epilogue must differ from those of tensors.
template <class Problem>
void check_names(Problem const& problem, Names const& names) {
  auto const& expression = problem.epilogue.expression;
  auto const check = [&](auto const& list) {
    for (auto const& one : list)
      Problem::visit_tensors(problem, [&](char const* tensor, Role, TensorDescription const&, auto) {
        if (one.name == names.outside(tensor))
          refuse("the epilogue '" + expression.text() + "' uses the name " + one.name +
                 ", which is a tensor of the problem; choose another name");
      });
  };
  check(expression.operands());
  check(expression.stores());
  check(expression.scalars());
}

template <class Problem>
class ProblemOf final : public cosmati_problem {
 public:
  ProblemOf(Problem problem, Names names) : problem_(std::move(problem)), names_(std::move(names)) {
    with_note(names_, [&] { validate(problem_); });
    if constexpr (has_epilogue<Problem>) check_names(problem_, names_);
  }

  std::unique_ptr<cosmati_plan> make_plan(Device const& device, PlanOptions const& options) const override {
    return with_note(names_, [&] {
      return std::make_unique<PlanOf<Problem>>(prepare(cosmati::make_plan(problem_, device, options)),
                                               names_);
    });
  }

  std::unique_ptr<cosmati_plan> find_plan(Device const& device, FindOptions const& options) const override {
    return with_note(names_, [&] {
      auto const found = cosmati::find(problem_, device, options);
      auto plan = std::make_unique<PlanOf<Problem>>(found.front().prepared, names_);
      plan->order_by(found);
      return plan;
    });
  }

 private:
  Problem problem_;
  Names names_;
};

template <class Problem>
void give(cosmati_problem_t* result, Problem problem, Names names = {}) {
  *result = std::make_unique<ProblemOf<Problem>>(std::move(problem), std::move(names)).release();
}

}  // namespace cosmati::c_api
