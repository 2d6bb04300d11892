// Prints the traits of the kernel that adds the parts of a split-K product, and fills its parameters.
#include "src/plan/gemm/program/sum_of_parts_launch.h"

#include <fmt/format.h>

#include "src/plan/gemm/program/passes.h"
#include "src/plan/gemm/program/product_kernel.h"
#include "src/plan/gemm/program/product_parts.h"
#include "src/plan/gemm/sum_of_parts.h"

namespace cosmati::plan {
namespace {

template <class Parameters>
void fill_sum(Parameters& to, CanonicalGemm const& form, MatrixForm const& parts, int count,
              program::Run const& run) {
  to.m = form.m;
  to.n = form.n;
  to.parts = run.workspace;
  to.pitch = parts.row_stride;
  to.part_pitch = parts.batch_stride;
  to.count = count;
}

}  // namespace

void append_sum_of_parts(program::Program& program, Plan<GemmProblem> const& plan,
                         CanonicalGemm const& form) {
  GemmRecipe const& recipe = plan.recipe;
  bool const emulated = plan.device.backend == Backend::emulator;
  MatrixForm const parts = kernel_form(form, recipe.policy.partition).d;
  SumOfPartsBlock const block = sum_of_parts_block(recipe);
  epilogue::Expression const& expression = plan.problem.epilogue.expression;
  std::size_t const scalars = expression.scalars().size();
  Index const runs = form.m * ((form.n + SumOfPartsBlock::width - 1) / SumOfPartsBlock::width);
  program::Grid const grid{(runs + block.runs() - 1) / block.runs(), 1, form.batch};
  TensorDescription const source = plan.problem.c;
  DataType const result = plan.problem.d.type;
  auto const add = [&]<class Epilogue, class Destination>(Epilogue const&, Destination const&,
                                                          std::string const& epilogue,
                                                          std::string const& destination, auto const& fill) {
    using Parameters = SumOfPartsParameters<Epilogue, Destination>;
    auto const shared = static_cast<unsigned>(block.shared_bytes());
    std::size_t const kernel =
        add_kernel(program, {.headers = {"gemm/sum_of_parts.h"},
                             .declarations = emulated ? "" : epilogue_declarations(form, expression),
                             .entry = "sum_of_parts_kernel",
                             .traits = SumOfPartsTraits{block, parts.type, epilogue, destination}.print(),
                             .asserted = {{"sizeof(ComposedTraits::Params)", sizeof(Parameters)}},
                             .starts_early = true,
                             .threads = SumOfPartsBlock::threads,
                             .shared_bytes = shared,
                             .label = "adding parts of k"});
    launch_batch<Parameters>(
        program, kernel, grid,
        [fill, form, parts, count = recipe.splits](program::Run const& run, Index first, Parameters& to) {
          fill_sum(to, form, parts, count, run);
          to.first_batch = first;
          fill(run, to);
        });
  };
  auto const tensor = [source](program::Run const& run, bool is_result) {
    return run.tensors[is_result && source.present() ? 3 : 2];
  };
  if (emulated)
    return add(HostProductEpilogue{}, HostProductDestination{}, "HostEpilogue", "HostDestination",
               [=](program::Run const& run, auto& to) {
                 bool const has_source = form.c.present;
                 to.epilogue = {run.epilogue, has_source ? &source : nullptr,
                                has_source ? tensor(run, false) : nullptr, form.swapped, false};
                 to.d = {matrix_arguments(form.d, tensor(run, true)), result};
               });
  bool const along_m = direction_of_result(form) == Along::mn;
  std::string const destination = fmt::format("StridedDestination<{}, {}{}>", name_of(form.d.type),
                                              form.d.width, along_m ? ", Along::mn" : "");
  with_epilogue_arguments(form, scalars, [&]<class Epilogue>(Epilogue const& epilogue) {
    add(epilogue, MatrixArguments{}, epilogue_text(form), destination,
        [=](program::Run const& run, auto& to) {
          fill_epilogue(to.epilogue, form, scalars, run, tensor(run, false));
          to.d = matrix_arguments(form.d, tensor(run, true));
        });
  });
}

}  // namespace cosmati::plan
