// Which type the composed kernel's parameters have, or those of one problem of a group.
#pragma once
#include "cosmati/gemm/tensor_source.h"
#include "src/plan/gemm/launch.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {

// Calls use(GemmParameters<...>{}) for operands of these types, and what the copy engine stores as a Maps.
template <class A, class B, class Maps, class Use>
decltype(auto) with_parameters_by(GemmRecipe const& recipe, CanonicalGemm const& form, std::size_t scalars,
                                  Use&& use) {
  return with_epilogue_arguments(form, scalars, [&]<class Epilogue>(Epilogue const&) {
    if (recipe.policy.main_loop != MainLoop::warp_specialized) return use(MatrixGemmParameters<Epilogue>{});
    return stores_by_engine(recipe.policy, form) ? use(GemmParameters<A, B, Epilogue, Maps>{})
                                                 : use(GemmParameters<A, B, Epilogue, MatrixArguments>{});
  });
}

template <class Use>
decltype(auto) with_group_parameters(GemmRecipe const& recipe, CanonicalGemm const& common,
                                     std::size_t scalars, Use&& use) {
  using Maps = TensorMapOfProblem;
  return with_parameters_by<Maps, Maps, Maps>(recipe, common, scalars, use);
}

inline std::size_t parameter_bytes(GemmRecipe const& recipe, CanonicalGemm const& form, std::size_t scalars,
                                   bool in_group) {
  using Maps = TensorArguments;
  using Strides = MatrixArguments;
  auto const size = []<class Parameters>(Parameters const&) { return sizeof(Parameters); };
  if (in_group) return with_group_parameters(recipe, form, scalars, size);
  if (form.by_pointers)
    return with_parameters_by<TensorMapArray, TensorMapArray, TensorMapArray>(recipe, form, scalars, size);
  if (recipe.a.by_threads)
    return recipe.b.by_threads ? with_parameters_by<Strides, Strides, Maps>(recipe, form, scalars, size)
                               : with_parameters_by<Strides, Maps, Maps>(recipe, form, scalars, size);
  return recipe.b.by_threads ? with_parameters_by<Maps, Strides, Maps>(recipe, form, scalars, size)
                             : with_parameters_by<Maps, Maps, Maps>(recipe, form, scalars, size);
}

}  // namespace cosmati::plan
