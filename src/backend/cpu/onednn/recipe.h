// Makes a candidate of the planner from a function that lists primitives for a problem.
#pragma once
#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "src/backend/cpu/onednn/post_ops.h"
#include "src/backend/cpu/onednn/program.h"
#include "src/backend/cpu/pointwise.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/plan/make_plan.h"

namespace cosmati::cpu::onednn {

// The part of an epilogue that follows the primitives: it reads the accumulator from a temporary or from the
// result itself.
struct Tail {
  Pointwise pointwise;
  std::optional<Program::Slot> accumulator;  // absent: the result
};

template <class Problem>
struct Recipe {
  using Arguments = typename Problem::Arguments;
  using Pointer = void const* (*)(Arguments const&, int index);

  Program program;
  std::vector<std::pair<Pointer, int>> pointers;  // pointers to the program's arguments, and their indices
  std::optional<Tail> tail;
  Pointer result = nullptr;  // with a tail: its output
  Pointer source = nullptr;  // with a tail: c

  // `index` is for arguments that are lists: operand `index`.
  Program::Slot argument(Pointer pointer, Descriptor const& memory, int index = 0) {
    pointers.emplace_back(pointer, index);
    return program.argument(memory);
  }
  std::size_t workspace_bytes() const {
    return program.workspace_bytes() + (tail ? tail->pointwise.workspace_bytes() : 0);
  }
};

// The operands of post-operations become arguments of the program.
template <class Problem>
void bind_post_ops(Recipe<Problem>& recipe, PostOps const& post, Descriptor const& bias,
                   std::vector<Program::Binding>& bindings) {
  auto const operand = [](typename Problem::Arguments const& run, int index) {
    return run.operands[static_cast<std::size_t>(index)];
  };
  if (post.bias >= 0) bindings.emplace_back(DNNL_ARG_BIAS, recipe.argument(operand, bias, post.bias));
  for (std::size_t i = 0; i < post.operands.size(); ++i)
    bindings.emplace_back(DNNL_ARG_ATTR_MULTIPLE_POST_OP(post.positions[i]) | DNNL_ARG_SRC_1,
                          recipe.argument(operand, post.memories[i], post.operands[i]));
}

inline constexpr std::size_t max_pointers = 12 + max_epilogue_operands;

// Prepares a recipe; `Build` is Recipe<Problem> (*)(Problem const&, Device const&).
template <class Problem, auto build>
class RecipeKernel final : public HostKernel<Problem> {
 public:
  RecipeKernel(Problem const& problem, Device const& device)
      : threads_(device.threads), recipe_(make(problem, device)) {}

  void run(typename Problem::Arguments const& arguments, std::byte* workspace) const override {
    std::array<void*, max_pointers> pointers;
    for (std::size_t i = 0; i < recipe_.pointers.size(); ++i)
      pointers[i] = const_cast<void*>(recipe_.pointers[i].first(arguments, recipe_.pointers[i].second));
    ThreadCount const threads(threads_);
    recipe_.program.run({pointers.data(), recipe_.pointers.size()}, workspace);
    if constexpr (requires { arguments.scalars; })
      if (recipe_.tail) run_tail(arguments, workspace);
  }

 private:
  static Recipe<Problem> make(Problem const& problem, Device const& device) {
    auto const alone = one_maker_at_a_time();
    ThreadCount const threads(device.threads);
    Recipe<Problem> recipe = build(problem, device);
    recipe.program.create();
    return recipe;
  }
  void run_tail(typename Problem::Arguments const& arguments, std::byte* workspace) const {
    Tail const& tail = *recipe_.tail;
    void* const result = const_cast<void*>(recipe_.result(arguments, 0));
    PointwiseArguments const tail_arguments{
        tail.accumulator ? workspace + recipe_.program.offset(*tail.accumulator) : result,
        recipe_.source ? recipe_.source(arguments, 0) : nullptr,
        arguments.operands,
        arguments.scalars,
        result,
        arguments.stores};
    tail.pointwise.run(tail_arguments, workspace + recipe_.program.workspace_bytes());
  }

  int threads_;
  Recipe<Problem> recipe_;
};

// oneDNN's own naive loops are not faster than the reference.
inline bool is_slow(dnnl::primitive_desc_base const& primitive) {
  return std::string(primitive.impl_info_str()).find("ref") != std::string::npos;
}

// Thrown by a build function: the obstacle and the valid values.
class Unsupported : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <class Problem, auto build>
std::string violates_build(Problem const& problem, Device const& device) {
  try {
    auto const alone = one_maker_at_a_time();
    ThreadCount const threads(device.threads);
    build(problem, device);
    return {};
  } catch (Unsupported const& reason) {
    return reason.what();
  } catch (dnnl::error const& error) {
    return std::string("oneDNN has no implementation for these types and layouts on this processor (") +
           error.what() + ")";
  }
}

// Requires one of the types `legal` for every tensor; the message names the first tensor with another type.
template <class Problem>
std::string violates_types(Problem const& problem, std::initializer_list<DataType> legal) {
  std::string violation;
  Problem::visit_tensors(problem, [&](char const* name, Role, TensorDescription const& description, auto) {
    if (!violation.empty() || std::find(legal.begin(), legal.end(), description.type) != legal.end()) return;
    std::string names;
    for (DataType type : legal) names += (names.empty() ? "" : ", ") + std::string(name_of(type));
    violation =
        std::string("tensor ") + name + " is " + name_of(description.type) + "; oneDNN supports " + names;
  });
  return violation;
}

template <class Problem>
std::string violates_size(Problem const& problem, Device const&) {
  std::string violation;
  Problem::visit_tensors(problem, [&](char const* name, Role, TensorDescription const& description, auto) {
    if (violation.empty() && description.layout.size() == 0)
      violation = std::string("tensor ") + name + " " + to_string(description.shape()) +
                  " is empty; each extent must be at least 1";
  });
  return violation;
}

template <class Problem>
std::string violates_f32(Problem const& problem, Device const&) {
  return violates_types(problem, {DataType::f32});
}

// A candidate with the given requirements, plus two more: the tensors have elements, and `build` succeeds.
template <class Problem, auto build>
Candidate<Problem> recipe_candidate(char const* name,
                                    std::vector<typename Candidate<Problem>::Requirement> requirements) {
  requirements.insert(requirements.begin(), {violates_size<Problem>});
  requirements.push_back({violates_build<Problem, build>});
  return {name, std::move(requirements),
          [](Problem const& problem, Device const& device) {
            auto const alone = one_maker_at_a_time();
            ThreadCount const threads(device.threads);
            return build(problem, device).workspace_bytes();
          },
          [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
            return std::make_unique<RecipeKernel<Problem, build>>(plan.problem, plan.device);
          }};
}

}  // namespace cosmati::cpu::onednn
