// Arguments of epilogues: pointers and strides of the operands, the stores and c, and the scalars.
#pragma once
#include <algorithm>
#include <type_traits>

#include "cosmati/ops/gemm.h"
#include "src/plan/gemm/launch.h"

namespace cosmati::cuda {

// `arguments`: of a product, or of another problem that becomes one without a c.
template <class Epilogue, class Arguments>
void fill_epilogue(Epilogue& epilogue, plan::CanonicalGemm const& form, std::size_t scalars,
                   Arguments const& arguments) {
  if constexpr (!std::is_same_v<Epilogue, NoEpilogueArguments>) {
    if constexpr (requires { arguments.c; })
      if (form.c.present) epilogue.source = plan::matrix_arguments(form.c, arguments.c, form.by_pointers);
    for (std::size_t i = 0; i < form.operands.size(); ++i)
      epilogue.operands[i] = plan::matrix_arguments(form.operands[i], arguments.operands[i]);
    for (std::size_t i = 0; i < form.stores.size(); ++i)
      epilogue.stores[i] = plan::matrix_arguments(form.stores[i], arguments.stores[i]);
    std::copy_n(arguments.scalars.begin(), scalars, epilogue.scalars);  // more may have been given
  }
}

}  // namespace cosmati::cuda
