// The tables of the operations and their fields.
#include "python/src/operations.h"

namespace cosmati::python {
namespace {

using enum FieldKind;

template <class Struct, Struct (*defaults)(), cosmati_status (*make)(Struct const*, cosmati_problem_t*)>
constexpr Operation operation(char const* name, std::span<Field const> fields, std::size_t epilogue = 0) {
  return {name,
          sizeof(Struct),
          [](void* target) { *static_cast<Struct*>(target) = defaults(); },
          [](void const* given, cosmati_problem_t* problem) {
            return make(static_cast<Struct const*>(given), problem);
          },
          fields,
          epilogue};
}

#include <operations.inc>  // written by operations.py

}  // namespace

constexpr Operation gemm_operation = all[0];
static_assert(gemm_operation.name == std::string_view("gemm"));

Operation const* find_operation(std::string_view name) {
  for (Operation const& one : all)
    if (name == one.name) return &one;
  return nullptr;
}

}  // namespace cosmati::python
