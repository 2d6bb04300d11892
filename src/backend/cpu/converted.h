// Support for any type and strides through dense f32 or f64 copies in the workspace.
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "cosmati/ops/gemm.h"
#include "cosmati/ops/normalization.h"
#include "src/plan/make_plan.h"

namespace cosmati::cpu {

// Copies elements of `from` to `to` (same shape), converting type and layout, over `threads` threads.
void convert_elements(TensorDescription const& from, void const* source, TensorDescription const& to,
                      void* target, int threads);

// How a tensor is converted for the inner problem.
struct Conversion {
  enum class Order : unsigned char {
    as_in_memory,
    first_slowest,  // for stacks of matrices
    row_major,
  };
  DataType type;  // type of numbers; labels and indices keep theirs
  Order order = Order::as_in_memory;
};

// Returns the description of the same tensor, dense; a repeated input (a stride of 0) remains repeated.
TensorDescription converted_description(std::string_view name, Role role,
                                        TensorDescription const& description, Conversion conversion);

inline std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// The order of dimensions that a fast kernel supports.
inline Conversion::Order conversion_order(GemmProblem const&) { return Conversion::Order::first_slowest; }
inline Conversion::Order conversion_order(BatchNormProblem const&) { return Conversion::Order::row_major; }
inline Conversion::Order conversion_order(RowNormProblem const&) { return Conversion::Order::row_major; }
inline Conversion::Order conversion_order(LrnProblem const&) { return Conversion::Order::row_major; }
template <class Problem>
Conversion::Order conversion_order(Problem const&) {
  return Conversion::Order::as_in_memory;
}

// f64 if an input is f64 or s32, or has 8-bit integers, whose sums f32 would round; otherwise f32.
template <class Problem>
Conversion conversion_of(Problem const& problem) {
  DataType type = DataType::f32;
  Problem::visit_tensors(problem, [&](char const*, Role role, TensorDescription const& description, auto) {
    if (role != Role::output && (description.type == DataType::f64 || is_integer(description.type)))
      type = DataType::f64;
  });
  return {type, conversion_order(problem)};
}

template <class Problem>
Problem converted_problem(Problem problem) {
  if constexpr (requires { problem.compute; }) problem.compute = ComputeMode::exact;  // as processors do
  Conversion const conversion = conversion_of(problem);
  // The accumulator also has the wider type.
  if constexpr (requires { problem.accumulator.reset(); }) problem.accumulator.reset();
  Problem::visit_tensors(problem, [&](char const* name, Role role, TensorDescription& description, auto) {
    TensorDescription const converted = converted_description(name, role, description, conversion);
    // The workspace has the default alignment, regardless of the alignment of the caller's array.
    if (!(converted == description)) description = {converted.type, converted.layout};
  });
  return problem;
}

// Runs the inner kernel on converted copies. Tensors that need no conversion are passed through.
template <class Problem>
class ConvertedKernel final : public HostKernel<Problem> {
 public:
  using Arguments = typename Problem::Arguments;

  ConvertedKernel(Problem const& outer, Plan<Problem> const& inner)
      : outer_(outer),
        conversion_(conversion_of(outer)),
        inner_(prepare(inner)),
        threads_(inner.device.threads) {}

  void run(Arguments const& arguments, std::byte* workspace) const override {
    Arguments inner = arguments;
    std::byte* next = workspace + round_up(inner_.workspace_bytes());
    each_converted([&](Role role, auto member, auto const& outer, auto const& converted) {
      if (role != Role::output) convert_elements(outer, arguments.*member, converted, next, threads_);
      inner.*member = next;
      next += round_up(static_cast<std::size_t>(converted.bytes()));
    });
    inner_.run(inner, workspace);
    each_converted([&](Role role, auto member, auto const& outer, auto const& converted) {
      if constexpr (std::is_same_v<decltype(member), void * Arguments::*>)
        if (role != Role::input)
          convert_elements(converted, inner.*member, outer, arguments.*member, threads_);
    });
  }

 private:
  template <class Visit>
  void each_converted(Visit&& visit) const {
    Problem::visit_tensors(
        outer_, [&](char const* name, Role role, TensorDescription const& outer, auto member) {
          TensorDescription const converted = converted_description(name, role, outer, conversion_);
          if (!(converted == outer)) visit(role, member, outer, converted);
        });
  }

  Problem outer_;
  Conversion conversion_;
  Prepared<Problem> inner_;
  int threads_;
};

template <class Problem>
std::size_t converted_bytes(Problem const& problem) {
  Conversion const conversion = conversion_of(problem);
  std::size_t bytes = 0;
  Problem::visit_tensors(problem, [&](char const* name, Role role, TensorDescription const& outer, auto) {
    TensorDescription const converted = converted_description(name, role, outer, conversion);
    if (!(converted == outer)) bytes += round_up(static_cast<std::size_t>(converted.bytes()));
  });
  return bytes;
}

template <class Problem>
std::string violates_conversion(Problem const& problem, Device const& device) {
  if (converted_bytes(problem) == 0)
    return std::string("nothing to convert: every tensor is dense and ") +
           name_of(conversion_of(problem).type) + " already";
  if (make_plan(converted_problem(problem), device, {}).kernel == "reference")
    return std::string("no fast kernel supports the problem in ") + name_of(conversion_of(problem).type) +
           " either";
  return {};
}

template <class Problem>
Candidate<Problem> converted_candidate() {
  return {"converted",
          {{violates_conversion<Problem>}},
          [](Problem const& problem, Device const& device) {
            auto const inner = make_plan(converted_problem(problem), device, {});
            return round_up(inner.workspace_bytes) + converted_bytes(problem);
          },
          [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
            auto const inner = make_plan(converted_problem(plan.problem), plan.device, {});
            return std::make_unique<ConvertedKernel<Problem>>(plan.problem, inner);
          }};
}

}  // namespace cosmati::cpu
