// The programs of direct, implicit_gemm and unroll_gemm: products over the windows of a tensor, one per phase
// of a data gradient, in a single launch or one launch each.
#include "src/plan/conv/product_program.h"

#include <fmt/format.h>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/phases.h"
#include "src/plan/conv/unroll.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/policies.h"
#include "src/program/launch_tag.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr unsigned direct_threads = 128;  // DirectTraits

WindowSourceTraits source_of(WindowForm const& form, OperandAccess const& access, bool stepwise) {
  return {form.type, access.along, access.width, stepwise, form.windowed};
}

// The variant of a product that the emulator has: its own policies, with runs of 16 bytes or single elements.
ProductTraits emulated_product(ConvolutionRecipe const& recipe, KernelTypes const& types) {
  GemmRecipe const& product = recipe.product;
  DataType const type = types.image;
  MainLoop const main_loop = type == DataType::f32 ? product.policy.main_loop : MainLoop::double_buffered;
  bool const by_mma = product.policy.multiply == Multiply::mma;
  int const full = 16 / size_of(type);
  bool const narrow = type == DataType::f64 || type == DataType::s32;
  bool const across = product.a.along == Along::mn && product.b.along == Along::mn,
             deep = product.a.along == Along::k && product.b.along == Along::k;
  WindowSourceTraits a{type, Along::k, 1, recipe.stepwise, true}, b = a;
  if (type == DataType::f32 && across && recipe.stepwise && product.a.width == 1 && product.b.width >= full)
    a = {type, Along::mn, 1, true, true}, b = {type, Along::mn, full, true, false};
  else if (!narrow && product.a.width >= full && product.b.width >= full &&
           ((across && !recipe.stepwise) || (deep && recipe.stepwise)))
    a = b = {type, product.a.along, full, recipe.stepwise, true};
  return {by_mma ? emulator::emulated_policy(MainLoop::multistage, Multiply::mma, size_of(type))
                 : emulator::emulated_policy(
                       main_loop == MainLoop::multistage ? main_loop : MainLoop::double_buffered,
                       type == DataType::s8 ? Multiply::dp4a : Multiply::fma),
          a,
          b,
          product.sum,
          types.epilogue,
          types.destination};
}

std::string traits_of(ConvolutionProgram const& made, ConvolutionForm const& form,
                      ConvolutionRecipe const& recipe) {
  KernelTypes types = made.types_of(form);
  if (made.is_emulated())
    return recipe.is_direct() ? DirectTraits{types}.print() : emulated_product(recipe, types).print();
  if (!recipe.is_direct())
    return ProductTraits{recipe.product.policy,
                         source_of(form.a, recipe.product.a, recipe.stepwise),
                         source_of(form.b, recipe.product.b, recipe.stepwise),
                         form.sum,
                         types.epilogue,
                         types.destination}
        .print();
  ConvolutionForm single = form;
  single.d.width = 1;
  return DirectTraits{{form.a.type, form.b.type, form.sum, types.epilogue, destination_text(single)}}.print();
}

// One product: its operands, and the destination of its results.
struct ProductLaunch {
  ConvolutionForm form;
  ConvolutionRecipe recipe;
  KernelOperand a, b;

  template <class Parameters>
  void fill(program::Run const& run, Index first_group, Parameters& to) const {
    to.m = form.rows(), to.n = form.columns(), to.k = form.depth();
    to.a = window_arguments(form.a, a.of(run));
    to.b = window_arguments(form.b, b.of(run));
    to.schedule = schedule_of(recipe.product, run.workspace);
    fill_destination(to.d, form.d, ConvolutionProgram::result(run));
    fill_epilogue(to.epilogue, form, run);
    to.schedule.tag = fresh_launch_tag();
    to.schedule.first_batch = first_group;
  }
};

void launch_unrolling(ConvolutionProgram& made, std::size_t kernel, ConvolutionForm const& form,
                      UnrollRecipe recipe) {
  if (made.is_emulated())
    recipe.width = emulated_unrolling(size_of(form.unrolled.type), recipe.along, recipe.width).width;
  UnrollLaunch const launch = unroll_launch(form, recipe, nullptr, nullptr);
  if (launch.blocks == 0) return;
  made.launch_groups<UnrollParameters>(
      kernel, {launch.blocks, 1, form.groups},
      [form, recipe, image = made.image](program::Run const& run, Index first_group, UnrollParameters& to) {
        to = unroll_launch(form, recipe, image.of(run), run.workspace).parameters;
        to.first_batch = first_group;
      });
}

}  // namespace

std::string WindowSourceTraits::print() const {
  return fmt::format("WindowSource<{}, Along::{}, {}, DepthDigits::{}, {}>", name_of(type),
                     along == Along::k ? "k" : "mn", width, stepwise ? "stepwise" : "each", windowed);
}

std::string ProductTraits::print() const {
  return fmt::format("GemmTraits<GemmPolicy{{{}}},\n{},\n{},\n{},\n{},\n{}>", initializer(policy), a.print(),
                     b.print(), name_of(sum), epilogue, destination);
}

std::string DirectTraits::print() const { return fmt::format("DirectTraits<{}>", types.print()); }

program::Program product_program(Plan<Problem> const& plan) {
  ConvolutionRecipe const& recipe = plan.recipe;
  bool const direct = recipe.is_direct();
  ConvolutionProgram made(plan);
  std::vector<ConvolutionForm> forms = planned_forms(plan.problem, recipe);
  for (ConvolutionForm& form : forms) form = made.in_kernel(std::move(form));
  ConvolutionForm const& front = forms.front();
  bool const together = run_together(recipe, forms);
  unsigned const shared = direct || made.is_emulated()
                              ? 0
                              : static_cast<unsigned>(shared_storage_bytes(recipe.product, gemm_view(front)));
  program::KernelSpec kernel{
      .headers = {direct ? "conv/direct.h" : "conv/window_source.h", "conv/conv_destination.h"},
      .entry = made.is_emulated() || together ? (direct ? "direct_of_phases_kernel" : "gemm_of_phases_kernel")
               : direct                       ? "direct_convolution_kernel"
                                              : "gemm_kernel",
      .traits = traits_of(made, front, recipe),
      .phases = made.is_emulated() ? max_phases_of_launch
                : together         ? static_cast<int>(forms.size())
                                   : 0,
      .asserted = {direct ? std::pair<std::string, std::size_t>{"ComposedTraits::threads", direct_threads}
                          : std::pair<std::string, std::size_t>{"sizeof(ComposedTraits::SharedStorage)",
                                                                shared}},
      .keeps_roundings = plan.batch_invariant,
      .threads = direct ? direct_threads : static_cast<unsigned>(recipe.product.policy.threads()),
      .shared_bytes = shared};
  if (!direct) kernel.headers.push_back(together ? "conv/phases.h" : "gemm/kernel.h");
  auto const launch_of = [&](ConvolutionForm const& form, KernelOperand const& image) {
    return form.image_is_a ? ProductLaunch{form, recipe, image, made.filter}
                           : ProductLaunch{form, recipe, made.filter, image};
  };
  with_parts(plan, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
    using Parameters = GemmParameters<WindowArguments, WindowArguments, Epilogue, Destination>;
    using ManyPhases = PhasesParameters<Parameters, max_phases_of_launch>;
    std::size_t const number = made.add_kernel<Parameters>(kernel, front);
    if (together) {
      Phases const phases = phases_of(forms, recipe);
      if (phases.list.empty()) return;
      std::vector<ProductLaunch> launches;
      for (Phase const& phase : phases.list) launches.push_back(launch_of(forms[phase.form], made.image));
      // Passes only as many entries of the parameter array as the plan has phases.
      std::size_t const absent = made.is_emulated() ? 0 : max_phases_of_launch - forms.size();
      made.launch_groups<ManyPhases>(
          number, {phases.blocks, recipe.product.splits, front.groups},
          [phases, launches](program::Run const& run, Index first_group, ManyPhases& to) {
            to.blocks = static_cast<int>(phases.blocks);
            for (Phase const& phase : phases.list) {
              Parameters& own = to.phase[to.count];
              launches[static_cast<std::size_t>(to.count)].fill(run, first_group, own);
              own.schedule = schedule_of_phase(own.schedule, phase);
              to.first_block[to.count++] = phase.first_block;
            }
          },
          sizeof(ManyPhases) - absent * sizeof(Parameters));
      return;
    }
    auto const* const unroll = std::get_if<UnrollRecipe>(&recipe.own);
    bool const unrolls = unroll != nullptr && unroll->bytes > 0;
    std::size_t const unrolling =
        unrolls ? made.add_pass(unrolling_kernel(front.unrolled, *unroll, made.is_emulated())) : 0;
    KernelOperand const image = unrolls ? KernelOperand{0, unroll->offset, true} : made.image;
    for (ConvolutionForm const& form : forms) {
      if (form.rows() == 0 || form.columns() == 0) continue;
      if (unrolls) launch_unrolling(made, unrolling, form, *unroll);
      Index const blocks = blocks_of(form, recipe);
      program::Grid const grid{blocks, recipe.product.splits, form.groups};
      ProductLaunch const launch = launch_of(form, image);
      if (made.is_emulated())  // the emulator has only the kernels for several phases
        made.launch_groups<ManyPhases>(
            number, grid, [launch, blocks](program::Run const& run, Index first_group, ManyPhases& to) {
              to.count = 1;
              to.blocks = static_cast<int>(blocks);
              launch.fill(run, first_group, to.phase[0]);
            });
      else
        made.launch_groups<Parameters>(number, grid,
                                       [launch](program::Run const& run, Index first_group, Parameters& to) {
                                         launch.fill(run, first_group, to);
                                       });
    }
  });
  return std::move(made).finish();
}

}  // namespace cosmati::plan
