// The problems of the C interface as tables of their structs' fields.
#pragma once
#include <cstddef>
#include <span>
#include <string_view>

#include "cosmati.h"

namespace cosmati::python {

enum class FieldKind { tensor, integer32, integer64, pair, real };

struct Field {
  char const* name;
  std::size_t offset;
  FieldKind kind;
};

struct Operation {
  char const* name;
  std::size_t bytes;  // bytes of its struct
  void (*set_defaults)(void*);
  cosmati_status (*make)(void const*, cosmati_problem_t*);
  std::span<Field const> fields;
  std::size_t epilogue;  // offset of epilogue, epilogue_tensors and epilogue_tensor_count; 0: it has none
};

extern Operation const gemm_operation;
Operation const* find_operation(std::string_view name);  // null: there is none

}  // namespace cosmati::python
