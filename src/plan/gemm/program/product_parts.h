// Launch arguments of a product's kernels other than operands: the epilogue and the destination. The
// emulator's kernels evaluate every epilogue, and store every type, on the host.
#pragma once
#include <algorithm>
#include <type_traits>

#include "src/plan/gemm/launch.h"

namespace cosmati::reference {
class ElementEpilogue;
}

namespace cosmati::plan {

struct HostProductEpilogue {
  reference::ElementEpilogue const* expression = nullptr;  // null: the identity
  TensorDescription const* source = nullptr;               // description of c; null if the expression does
                                                           // not use it
  void const* source_data = nullptr;                       // or an array of pointers
  bool swapped = false;
  bool by_pointers = false;
};
struct HostProductDestination {
  MatrixArguments matrix;
  DataType type = DataType::f32;
};

// `arguments` are those of a problem, or of a program's run.
template <class Epilogue, class Arguments>
void fill_epilogue(Epilogue& epilogue, CanonicalGemm const& form, std::size_t scalars,
                   Arguments const& arguments, void const* c = nullptr) {
  if constexpr (!std::is_same_v<Epilogue, NoEpilogueArguments>) {
    if (form.c.present) epilogue.source = matrix_arguments(form.c, c, form.by_pointers);
    for (std::size_t i = 0; i < form.operands.size(); ++i)
      epilogue.operands[i] = matrix_arguments(form.operands[i], arguments.operands[i]);
    for (std::size_t i = 0; i < form.stores.size(); ++i)
      epilogue.stores[i] = matrix_arguments(form.stores[i], arguments.stores[i]);
    std::copy_n(arguments.scalars.begin(), scalars, epilogue.scalars);  // the caller may have passed more
  }
}

}  // namespace cosmati::plan
