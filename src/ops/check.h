// Building blocks for the validation of problems. Each function throws Error(bad_request) with the operation,
// the tensor, its value and the valid values.
#pragma once
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "cosmati/ops/epilogue.h"
#include "cosmati/ops/operation.h"

namespace cosmati {

// A tensor of a problem and its name in messages.
struct Named {
  char const* name;
  TensorDescription const& tensor;
};

// Throws "OPERATION: message".
[[noreturn]] void refuse(char const* operation, std::string const& message);

// Two index tuples of a layout with the same offset.
struct SharedPlace {
  Shape first, second;  // rank 0 if there are too many tuples to check and the strides allow overlap
};
// Returns two such tuples, or nullopt if there are none. Exact, unlike Layout::overlaps(), if the search
// takes at most a million steps. Strides must not be negative.
std::optional<SharedPlace> shared_place(Layout const& layout);

// Checks that the tensor is present, without negative extents or strides and without overflow, and that an
// output has no overlapping elements.
void check_tensor(char const* operation, Named tensor, Role role);

void check_rank(char const* operation, Named tensor, int lowest, int highest);
inline void check_rank(char const* operation, Named tensor, int rank) {
  check_rank(operation, tensor, rank, rank);
}
void check_same_shape(char const* operation, Named tensor, Named model);
void check_shape(char const* operation, Named tensor, Shape const& expected);
void check_type(char const* operation, Named tensor, std::initializer_list<DataType> legal);
void check_finite(char const* operation, char const* name, double value);
// Checks that lowest <= value < 2^31.
void check_at_least(char const* operation, char const* name, Index value, Index lowest);

// Checks the tensors bound to an epilogue's names against the result, whose dimensions are named `indices`.
void check_epilogue(char const* operation, Epilogue const& epilogue,
                    std::span<std::string_view const> indices, Named result, bool has_source);

// Checks every tensor that the problem uses.
template <class Problem>
void check_tensors(char const* operation, Problem const& problem) {
  Problem::visit_tensors(problem, [&](char const* name, Role role, TensorDescription const& tensor, auto) {
    check_tensor(operation, {name, tensor}, role);
  });
}

}  // namespace cosmati
