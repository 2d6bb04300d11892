// Turns a plan into a launch: the grid, and the parameters that do not depend on pointer types.
#pragma once
#include <cstddef>

#include "cosmati/gemm/arguments.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

struct GemmGrid {
  unsigned tiles = 0;      // x; for stream-K the resident blocks
  unsigned splits = 1;     // y
  unsigned max_batch = 0;  // per launch; a larger batch takes several
  bool stays = false;      // stream-K: blocks iterate over the matrices
  unsigned matrices = 1;   // per block

  unsigned z(Index batch) const {
    return stays ? 1 : static_cast<unsigned>((batch + matrices - 1) / matrices);
  }
};

GemmGrid grid_of(GemmRecipe const& recipe, CanonicalGemm const& problem);

// `data` points to the first element or, if by_pointers, to an array of pointers to the first elements of the
// batch.
MatrixArguments matrix_arguments(MatrixForm const& form, void const* data, bool by_pointers = false);

// Calls use(Arguments{}) with the type of epilogue arguments of the composed kernel of `form`.
template <class Use>
decltype(auto) with_epilogue_arguments(CanonicalGemm const& form, std::size_t scalars, Use&& use) {
  if (form.identity) return use(NoEpilogueArguments{});
  return few_arguments_do(static_cast<int>(form.operands.size()), static_cast<int>(form.stores.size()),
                          static_cast<int>(scalars))
             ? use(FewEpilogueArguments{})
             : use(ManyEpilogueArguments{});
}

// Returns the schedule, except for the matrices and the tag, which each launch sets.
ScheduleArguments schedule_of(GemmRecipe const& recipe, std::byte* workspace);

// Fills the parameters that are common to all kernel families.
template <class Parameters>
void fill_product(Parameters& parameters, CanonicalGemm const& form, GemmRecipe const& recipe, void const* a,
                  void const* b, std::byte* workspace) {
  parameters.m = form.m;
  parameters.n = form.n;
  parameters.k = form.k;
  parameters.a = matrix_arguments(form.a, form.swapped ? b : a, form.by_pointers);
  parameters.b = matrix_arguments(form.b, form.swapped ? a : b, form.by_pointers);
  parameters.schedule = schedule_of(recipe, workspace);
}

}  // namespace cosmati::plan
