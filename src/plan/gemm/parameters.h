// The type of the composed kernel's parameters, or of those of one problem of a group.
#pragma once
#include "cosmati/gemm/tensor_source.h"
#include "src/plan/gemm/program/product_parts.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {

template <class A, class B>
using EmulatedParameters = GemmParameters<A, B, HostProductEpilogue, HostProductDestination>;

// Calls use(GemmParameters<...>{}) for operands of these types and, as Maps, the maps through which TMA
// stores; the emulator's kernels store by threads.
template <class A, class B, class Maps, class Use>
decltype(auto) with_parameters_by(GemmRecipe const& recipe, CanonicalGemm const& form, std::size_t scalars,
                                  Use&& use) {
  return with_epilogue_arguments(form, scalars, [&]<class Epilogue>(Epilogue const&) {
    if (recipe.policy.main_loop != MainLoop::warp_specialized) return use(MatrixGemmParameters<Epilogue>{});
    return stores_by_tma(recipe.policy, form) ? use(GemmParameters<A, B, Epilogue, Maps>{})
                                              : use(GemmParameters<A, B, Epilogue, MatrixArguments>{});
  });
}
template <class A, class B, class Use>
decltype(auto) with_emulated_parameters(GemmRecipe const& recipe, Use&& use) {
  return recipe.policy.main_loop == MainLoop::warp_specialized
             ? use(EmulatedParameters<A, B>{})
             : use(EmulatedParameters<MatrixArguments, MatrixArguments>{});
}

// The same for a product that is not a member of a group.
template <class Use>
decltype(auto) with_product_parameters(bool emulated, GemmRecipe const& recipe, CanonicalGemm const& form,
                                       std::size_t scalars, Use&& use) {
  using Maps = TensorArguments;
  using Strides = MatrixArguments;
  bool const a_by_threads = recipe.a.by_threads, b_by_threads = recipe.b.by_threads;
  if (emulated) {
    if (form.by_pointers) return with_emulated_parameters<AddressedTensors, AddressedTensors>(recipe, use);
    return a_by_threads || b_by_threads ? with_emulated_parameters<Strides, Strides>(recipe, use)
                                        : with_emulated_parameters<Maps, Maps>(recipe, use);
  }
  if (form.by_pointers)
    return with_parameters_by<AddressedTensors, AddressedTensors, AddressedTensors>(recipe, form, scalars,
                                                                                    use);
  if (a_by_threads)
    return b_by_threads ? with_parameters_by<Strides, Strides, Maps>(recipe, form, scalars, use)
                        : with_parameters_by<Strides, Maps, Maps>(recipe, form, scalars, use);
  return b_by_threads ? with_parameters_by<Maps, Strides, Maps>(recipe, form, scalars, use)
                      : with_parameters_by<Maps, Maps, Maps>(recipe, form, scalars, use);
}

template <class Use>
decltype(auto) with_group_parameters(bool emulated, GemmRecipe const& recipe, CanonicalGemm const& common,
                                     std::size_t scalars, Use&& use) {
  using Maps = TensorMapOfProblem;
  return emulated ? with_emulated_parameters<Maps, Maps>(recipe, use)
                  : with_parameters_by<Maps, Maps, Maps>(recipe, common, scalars, use);
}

}  // namespace cosmati::plan
