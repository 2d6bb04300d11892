// Runs one problem on a backend and on the reference and compares every element of every output, with a bound
// that follows from the types and the number of terms. Outputs are poisoned first and lie between guard
// bytes.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "cosmati/ops/epilogue.h"
#include "cosmati/ops/operation.h"
#include "tests/support/guarded.h"

namespace cosmati::test {

// The values of inputs.
enum class Values { normal, small_integers, positive };

// The permitted error of an output: terms * eps * (the result for absolute values of all inputs) + relative *
// |reference| + absolute, in addition to rounding to its type. eps is that of f32, or of f64 if an input is
// f64.
struct Bound {
  double terms = 4;
  double relative = 0;
  double absolute = 0;
  bool exact = false;  // requires the correctly rounded reference
  bool uses_magnitude = true;
};

template <class Problem>
concept HasEpilogue = requires(Problem problem) {
  problem.epilogue;
};

// One problem with its inputs.
template <class Problem>
class Trial {
 public:
  using Arguments = typename Problem::Arguments;

  Trial(Problem const& problem, unsigned seed, Values values = Values::normal)
      : problem_(problem), random_(seed) {
    Problem::visit_tensors(problem_, [&](char const* name, Role role, TensorDescription const& t, auto) {
      if (role == Role::output) return;
      fill(inputs_[name] = std::make_shared<Guarded>(t), values);
    });
    if constexpr (HasEpilogue<Problem>) {
      for (auto const& t : problem_.epilogue.operands) {
        operands_.push_back(std::make_shared<Guarded>(t));
        fill(operands_.back(), values);
      }
      std::uniform_int_distribution<int> small(1, 3);
      for (std::size_t i = 0; i < problem_.epilogue.expression.scalars().size(); ++i)
        scalars_.push_back(values == Values::small_integers ? small(random_) : small(random_) * 0.375);
    }
  }

  Guarded& input(std::string const& name) { return *inputs_.at(name); }
  Arguments& settings() { return settings_; }  // non-tensor arguments: learning rate, step
  Problem const& problem() const { return problem_; }

  // The bytes of every output, to compare two runs.
  using Outputs = std::map<std::string, std::shared_ptr<Guarded>>;

  Outputs run(Prepared<Problem> const& prepared) {
    Outputs outputs;
    std::vector<void const*> operands;
    std::vector<void*> stores;
    Arguments arguments = bind(prepared.plan().problem, outputs, operands, stores, false);
    std::vector<std::byte> workspace(prepared.workspace_bytes() + 128, std::byte{0xff});
    auto const address = reinterpret_cast<std::uintptr_t>(workspace.data());
    std::byte* const aligned = workspace.data() + (64 - address % 64) % 64;
    std::byte* const end = aligned + prepared.workspace_bytes();
    prepared.run(arguments, aligned);
    EXPECT_TRUE(std::all_of(end, workspace.data() + workspace.size(), [](std::byte b) {
      return b == std::byte{0xff};
    })) << "bytes after the workspace have changed";
    for (auto& [name, output] : outputs)
      EXPECT_TRUE(output->intact()) << name << ": bytes outside it have changed";
    return outputs;
  }

  // Like expect_close(), and requires that a kernel other than the reference is chosen.
  void expect_fast_and_close(Device const& device, Bound const& bound) {
    EXPECT_NE(expect_close(device, bound), "reference") << explanation_;
  }

  // Plans, runs and compares; returns the name of the kernel that ran.
  std::string expect_close(Device const& device, Bound const& bound, std::string const& kernel = {}) {
    auto const prepared = prepare(make_plan(problem_, device, {.kernel = kernel}));
    if (prepared.plan().kernel == "reference")
      explanation_ = explain(prepared.plan().considered, "reference");
    Outputs const got = run(prepared);
    compare(got, bound, prepared.plan().kernel);
    return prepared.plan().kernel;
  }

  void compare(Outputs const& got, Bound const& bound, std::string const& kernel) {
    Outputs const truth = run_reference(false);
    Outputs magnitude;
    if (bound.uses_magnitude && !bound.exact) magnitude = run_reference(true);
    double const eps = wide() ? 0x1p-53 : 0x1p-24;
    for (auto const& [name, output] : got) {
      Rounding const rounding = rounding_of(output->description().type);
      int shown = 0;
      for (Index i = 0; i < output->size() && shown < 3; ++i) {
        double const exact = truth.at(name)->get(i), value = output->get(i);
        if (equals_rounded(output->description().type, exact, value)) continue;
        double const size = magnitude.empty() ? 0 : std::abs(magnitude.at(name)->get(i));
        double const allowed = bound.exact ? 0
                                           : bound.terms * eps * size + bound.relative * std::abs(exact) +
                                                 bound.absolute + 2 * rounding.relative * std::abs(exact) +
                                                 2 * rounding.absolute;
        double const error = std::abs(value - exact);
        if (error <= allowed) continue;
        ++shown;
        ADD_FAILURE() << kernel << ": " << name << " " << to_string(output->description()) << " element " << i
                      << " is " << value << ", should be " << exact << ", error " << error << ", allowed "
                      << allowed;
      }
    }
  }

 private:
  static bool equals_rounded(DataType type, double exact, double value) {
    double buffer = 0;
    store(type, &buffer, 0, exact);
    double const rounded = load(type, &buffer, 0);
    return rounded == value || exact == value || (std::isnan(rounded) && std::isnan(value));
  }

  void fill(std::shared_ptr<Guarded> const& tensor, Values values) {
    bool const integer = is_integer(tensor->description().type);
    std::uniform_int_distribution<int> small(tensor->description().type == DataType::u8 ? 0 : -3, 3);
    std::normal_distribution<double> normal(0, 1);
    for (Index i = 0; i < tensor->size(); ++i)
      tensor->set(i, values == Values::small_integers ? small(random_)
                     : integer                        ? small(random_) * 5
                     : values == Values::positive     ? std::abs(normal(random_)) + 0.1
                                                      : normal(random_));
  }

  bool wide() const {
    bool result = false;
    Problem::visit_tensors(problem_, [&](char const*, Role role, TensorDescription const& t, auto) {
      if (role != Role::output && t.type == DataType::f64) result = true;
    });
    return result;
  }

  // Returns arguments with new outputs; in_out tensors start as copies of their inputs. `absolute`: uses the
  // absolute values of all inputs.
  Arguments bind(Problem const& problem, Outputs& outputs, std::vector<void const*>& operands,
                 std::vector<void*>& stores, bool absolute) {
    Arguments arguments = settings_;
    Problem::visit_tensors(problem,
                           [&](char const* name, Role role, TensorDescription const& t, auto member) {
                             if constexpr (std::is_same_v<decltype(member), void const * Arguments::*>) {
                               arguments.*member = absolute_of(inputs_.at(name), absolute);
                             } else {
                               arguments.*member = output_of(name, role, t, outputs, absolute);
                             }
                           });
    if constexpr (HasEpilogue<Problem>) {
      for (auto const& operand : operands_) operands.push_back(absolute_of(operand, absolute));
      for (std::size_t i = 0; i < problem.epilogue.stores.size(); ++i) {
        auto output = std::make_shared<Guarded>(problem.epilogue.stores[i]);
        stores.push_back(output->data());
        outputs["store " + std::to_string(i)] = output;
      }
      arguments.operands = operands;
      arguments.scalars = scalars_;
      arguments.stores = stores;
    }
    return arguments;
  }

  void* output_of(char const* name, Role role, TensorDescription const& description, Outputs& outputs,
                  bool absolute) {
    auto output = std::make_shared<Guarded>(description);
    if (role == Role::in_out)
      for (Index i = 0; i < output->size(); ++i) {
        double const value = inputs_.at(name)->get(i);
        output->set(i, absolute ? std::abs(value) : value);
      }
    outputs[name] = output;
    return output->data();
  }

  // Returns a copy with absolute values, which lives as long as this object.
  void const* absolute_of(std::shared_ptr<Guarded> const& tensor, bool absolute) {
    if (!absolute || is_integer(tensor->description().type)) return tensor->data();
    auto copy = std::make_shared<Guarded>(tensor->description());
    for (Index i = 0; i < tensor->size(); ++i) copy->set(i, std::abs(tensor->get(i)));
    kept_.push_back(copy);
    return copy->data();
  }

  // The reference results: every tensor in f64 and row-major, except labels and indices.
  Outputs run_reference(bool absolute) {
    Problem exact = problem_;
    Problem::visit_tensors(exact, [&](char const* name, Role, TensorDescription& t, auto) {
      t = describe(is_index(name) ? t.type : DataType::f64, t.shape());
    });
    if constexpr (HasEpilogue<Problem>)
      for (auto& t : exact.epilogue.stores) t = describe(DataType::f64, t.shape());
    Device const device{.backend = Backend::reference};
    auto const prepared = prepare(make_plan(exact, device));
    Outputs outputs, inputs;
    std::vector<void const*> operands;
    std::vector<void*> stores;
    Problem::visit_tensors(exact, [&](char const* name, Role role, TensorDescription const& t, auto) {
      if (role == Role::output) return;
      inputs[name] = std::make_shared<Guarded>(t);
      for (Index i = 0; i < t.layout.size(); ++i) inputs[name]->set(i, inputs_.at(name)->get(i));
    });
    inputs_.swap(inputs);
    prepared.run(bind(exact, outputs, operands, stores, absolute));
    inputs_.swap(inputs);
    return outputs;
  }

  static bool is_index(std::string const& name) { return name == "labels" || name == "indices"; }

  Problem problem_;
  std::mt19937 random_;
  Outputs inputs_;
  std::vector<std::shared_ptr<Guarded>> operands_;
  std::vector<std::shared_ptr<Guarded>> kept_;
  std::vector<double> scalars_;
  std::string explanation_;
  Arguments settings_{};
};

// Reproducible random choices.
class Choice {
 public:
  explicit Choice(unsigned seed) : random_(seed) {}
  template <class Value>
  Value of(std::initializer_list<Value> values) {
    std::uniform_int_distribution<std::size_t> any(0, values.size() - 1);
    return values.begin()[any(random_)];
  }
  Index between(Index low, Index high) { return std::uniform_int_distribution<Index>(low, high)(random_); }
  bool heads() { return between(0, 1) == 1; }

  // The shape with a random order of dimensions in memory, sometimes with gaps.
  Layout layout(Shape const& shape) {
    int order[max_rank];
    for (int d = 0; d < shape.rank; ++d) order[d] = d;
    std::shuffle(order, order + shape.rank, random_);
    Layout result{shape, {}};
    Index step = between(0, 3) == 0 ? 2 : 1;
    for (int i = 0; i < shape.rank; ++i) {
      result.stride[order[i]] = step;
      step = step * std::max<Index>(shape[order[i]], 1) + (between(0, 3) == 0 ? between(1, 5) : 0);
    }
    return result;
  }

 private:
  std::mt19937 random_;
};

// Compares all outputs byte by byte.
template <class Outputs>
bool same_bytes(Outputs const& a, Outputs const& b) {
  for (auto const& [name, output] : a) {
    Guarded& other = *b.at(name);
    for (Index i = 0; i < output->size(); ++i)
      if (!(output->get(i) == other.get(i)) && !(std::isnan(output->get(i)) && std::isnan(other.get(i))))
        return false;
  }
  return true;
}

}  // namespace cosmati::test
