// Converts the structs of the C interface. Each function throws Error(bad_request) with the name of the
// invalid field, its value, and the valid values.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "cosmati/ops/epilogue.h"
#include "cosmati/ops/gemm.h"
#include "src/c_api/status.h"

namespace cosmati::c_api {

// Rank 0 means an absent tensor.
TensorDescription tensor_of(char const* operation, char const* name, cosmati_tensor const& tensor);

// For a tensor that this direction or mode does not use: its rank must be 0. `owner` names the direction or
// mode that uses it.
void check_none(char const* operation, char const* name, cosmati_tensor const& tensor, char const* owner);

// Returns `value` as one of the first `count` values of an enumeration.
int choice_of(char const* operation, char const* name, int value, int count);
template <class Enumeration>
Enumeration enumerator_of(char const* operation, char const* name, int value, int count) {
  return static_cast<Enumeration>(choice_of(operation, name, value, count));
}

// `text` may be null: acc. Tensors that the text does not name are rejected.
Epilogue epilogue_of(char const* operation, char const* text, cosmati_named_tensor const* tensors,
                     std::size_t count, std::span<std::string_view const> indices);

// Messages begin with `operation`.
GemmProblem gemm_of(char const* operation, cosmati_gemm const& gemm);

void check_size(char const* operation, std::size_t size, std::size_t expected);

// Checks the struct passed to cosmati_..._problem as far as possible without reading its other fields.
template <class Struct>
Struct const& checked(char const* operation, Struct const* given, cosmati_problem_t* problem) {
  if (given == nullptr) refuse(std::string(operation) + ": the description of the problem is null");
  if (problem == nullptr) refuse(std::string(operation) + ": the pointer to the problem is null");
  check_size(operation, given->size, sizeof(Struct));
  return *given;
}

}  // namespace cosmati::c_api
