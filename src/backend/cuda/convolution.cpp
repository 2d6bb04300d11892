// A convolution's kernel: its text, from the cache or the compiler to the device, and its launches.
#include "src/backend/cuda/convolution.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/backend/cuda/driver/module.h"
#include "src/backend/cuda/executor.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/backend/cuda/packing.h"
#include "src/backend/cuda/repack.h"
#include "src/backend/cuda/unroll.h"
#include "src/backend/cuda/warp_specialized_convolution.h"
#include "src/backend/launch_tag.h"
#include "src/jit/cache.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter_copy.h"
#include "src/plan/conv/kernel_parts.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/places.h"
#include "src/plan/conv/program.h"
#include "src/plan/conv/tensor_windows.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::cuda {
namespace {

using Problem = ConvolutionProblem;

constexpr unsigned direct_threads = 128;

std::string source_text(plan::WindowForm const& form, OperandAccess const& access, bool stepwise) {
  return fmt::format("WindowSource<{}, Along::{}, {}, DepthDigits::{}, {}>", name_of(form.type),
                     access.along == Along::depth ? "depth" : "outer", access.width,
                     stepwise ? "stepwise" : "each", form.windowed);
}

RepackPass filter_pass(Plan<Problem> const& plan) {
  plan::FilterCopy const copy = plan::filter_copy(plan.problem);
  return {plan.device.gpu, copy.filter, plan::filter_repack(plan.recipe.product),
          copy.outer,      copy.depth,  copy.batch};
}

class ComposedConvolution final : public Kernel<Problem> {
 public:
  ComposedConvolution(Plan<Problem> const& plan, Function function)
      : problem_(plan.problem),
        recipe_(plan.recipe),
        forms_(plan::planned_forms(plan.problem, plan.recipe)),
        ordinal_(plan.device.gpu.ordinal),
        shared_bytes_(convolution_shared_bytes(plan)),
        function_(std::move(function)),
        unroll_(plan),
        filter_(filter_pass(plan)) {
    function_.allow_shared_bytes(shared_bytes_);
    if (plan::run_together(recipe_, forms_)) places_ = plan::places_of(forms_, recipe_);
  }

  void enqueue(Problem::Arguments const& given, std::byte* workspace, Stream stream) const override {
    Current const current(ordinal_);
    Problem::Arguments arguments = given;
    arguments.w = filter_.enqueue(given.w, workspace, stream);
    plan::with_epilogue_arguments(problem_, [&]<class Epilogue>(Epilogue epilogue) {
      if (!places_.list.empty()) return enqueue_together(epilogue, arguments, workspace, stream);
      for (plan::ConvolutionForm const& form : forms_) {
        if (form.rows() == 0 || form.columns() == 0) continue;
        plan::fill_epilogue(epilogue, form, arguments);
        enqueue_form(form, epilogue, arguments, workspace, stream);
      }
    });
  }

 private:
  template <class Epilogue>
  void enqueue_form(plan::ConvolutionForm const& form, Epilogue const& epilogue,
                    Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const {
    plan::ConvolutionPointers pointers = plan::pointers_of(problem_, form, arguments);
    void const*& image = form.image_is_a ? pointers.a : pointers.b;
    image = unroll_.enqueue(form, image, workspace, stream);
    ConvolutionParameters<Epilogue> parameters;
    fill(parameters, form, epilogue, pointers, workspace);
    constexpr Index most_groups = 65535;
    for (Index first = 0; first < form.groups; first += most_groups) {
      parameters.schedule.tag = fresh_launch_tag();
      parameters.schedule.first_batch = first;
      auto const groups = static_cast<unsigned>(std::min(most_groups, form.groups - first));
      function_.launch({blocks(form), static_cast<unsigned>(recipe_.product.splits), groups}, threads(),
                       static_cast<unsigned>(shared_bytes_), parameters, stream);
    }
  }
  template <class Epilogue>
  void fill(ConvolutionParameters<Epilogue>& parameters, plan::ConvolutionForm const& form,
            Epilogue const& epilogue, plan::ConvolutionPointers const& pointers, std::byte* workspace) const {
    plan::fill_product(parameters, form, recipe_, pointers.a, pointers.b, workspace);
    parameters.d = plan::digit_arguments(form.d, pointers.d);
    parameters.epilogue = epilogue;
  }
  template <class Epilogue>
  void enqueue_together(Epilogue& epilogue, Problem::Arguments const& arguments, std::byte* workspace,
                        Stream stream) const {
    using Parameters = ConvolutionParameters<Epilogue>;
    PlacesParameters<Parameters, most_places_of_launch> places;
    for (plan::Place const& place : places_.list) {
      plan::ConvolutionForm const& form = forms_[place.form];
      Parameters& parameters = places.place[places.count];
      plan::fill_epilogue(epilogue, form, arguments);
      fill(parameters, form, epilogue, plan::pointers_of(problem_, form, arguments), workspace);
      parameters.schedule = plan::schedule_of(parameters.schedule, place);
      places.first_block[places.count++] = place.first_block;
    }
    places.blocks = static_cast<int>(places_.blocks);
    // The kernel's parameters end with the places that the plan has.
    std::size_t const bytes = sizeof(places) - (most_places_of_launch - forms_.size()) * sizeof(Parameters);
    constexpr Index most_groups = 65535;
    Index const groups = forms_.front().groups;
    for (Index first = 0; first < groups; first += most_groups) {
      for (int i = 0; i < places.count; ++i) {
        places.place[i].schedule.tag = fresh_launch_tag();
        places.place[i].schedule.first_batch = first;
      }
      function_.launch({static_cast<unsigned>(places_.blocks), static_cast<unsigned>(recipe_.product.splits),
                        static_cast<unsigned>(std::min(most_groups, groups - first))},
                       threads(), static_cast<unsigned>(shared_bytes_), &places, bytes, alignof(Parameters),
                       stream);
    }
  }
  unsigned threads() const {
    return recipe_.is_direct() ? direct_threads : static_cast<unsigned>(recipe_.product.policy.threads());
  }
  unsigned blocks(plan::ConvolutionForm const& form) const {
    return static_cast<unsigned>(plan::blocks_of(form, recipe_));
  }

  Problem problem_;
  ConvolutionRecipe recipe_;
  std::vector<plan::ConvolutionForm> forms_;
  plan::Places places_;  // none: a launch for each form
  int ordinal_;
  int shared_bytes_;
  Function function_;
  UnrollPass unroll_;
  RepackPass filter_;  // of a data gradient, or none
};

}  // namespace

jit::Source convolution_source(Plan<Problem> const& plan) {
  ConvolutionRecipe const& recipe = plan.recipe;
  if (auto const program = plan::program_of(plan))
    return kernel_source(program->kernels.front(), plan.device.gpu);
  if (plan::is_window_product(recipe)) return window_product_source(plan);
  std::vector<plan::ConvolutionForm> const forms = plan::planned_forms(plan.problem, recipe);
  plan::ConvolutionForm const& form = forms.front();
  bool const together = plan::run_together(recipe, forms);
  auto const& expression = plan.problem.epilogue.expression;
  std::string text = fmt::format(
      "#include \"cosmati/conv/{}.h\"\n#include \"cosmati/conv/digit_destination.h\"\n{}namespace cosmati "
      "{{\n",
      recipe.is_direct() ? "direct" : "window_source",
      recipe.is_direct() ? ""
      : together         ? "#include \"cosmati/conv/places.h\"\n"
                         : "#include \"cosmati/gemm/kernel.h\"\n");
  text += function_text(plan.problem, form);
  std::string const destination =
      fmt::format("DigitDestination<{}, {}>", name_of(form.d.type), recipe.is_direct() ? 1 : form.d.width);
  if (recipe.is_direct())
    text += fmt::format("using ComposedTraits = DirectTraits<{}, {}, {},\n{},\n{}>;\n", name_of(form.a.type),
                        name_of(form.b.type), name_of(form.sum), epilogue_text(form), destination);
  else
    text += fmt::format("using ComposedTraits = GemmTraits<GemmPolicy{{{}}},\n{},\n{},\n{},\n{},\n{}>;\n",
                        plan::initialiser(recipe.product.policy),
                        source_text(form.a, recipe.product.a, recipe.stepwise),
                        source_text(form.b, recipe.product.b, recipe.stepwise), name_of(form.sum),
                        epilogue_text(form), destination);
  std::size_t const parameter_bytes = plan::with_epilogue_arguments(
      plan.problem, []<class Epilogue>(Epilogue const&) { return sizeof(ConvolutionParameters<Epilogue>); });
  // The host lays out parameters and shared memory for a kernel that it has not compiled.
  text += fmt::format("static_assert(sizeof(ComposedTraits::Params) == {});\n", parameter_bytes);
  text += recipe.is_direct() ? fmt::format("static_assert(ComposedTraits::threads == {});\n", direct_threads)
                             : fmt::format("static_assert(sizeof(ComposedTraits::SharedStorage) == {});\n",
                                           convolution_shared_bytes(plan));
  text += "}\n";
  jit::Source source;
  source.text = std::move(text);
  source.name_expression = together ? fmt::format("cosmati::{}_of_places_kernel<cosmati::ComposedTraits, {}>",
                                                  recipe.is_direct() ? "direct" : "gemm", forms.size())
                                    : fmt::format("cosmati::{}_kernel<cosmati::ComposedTraits>",
                                                  recipe.is_direct() ? "direct_convolution" : "gemm");
  source.architecture = architecture_of(plan.device.gpu);
  source.label = form.identity ? "" : expression.text();
  keep_roundings(source, plan.batch_invariant);
  return source;
}

std::vector<jit::Source> convolution_passes(Plan<Problem> const& plan) {
  if (auto const program = plan::program_of(plan)) {
    std::vector<jit::Source> sources;
    for (std::size_t i = 1; i < program->kernels.size(); ++i)
      sources.push_back(kernel_source(program->kernels[i], plan.device.gpu));
    return sources;
  }
  RepackRecipe const& repack = plan::filter_repack(plan.recipe.product);
  if (plan.recipe.algorithm == ConvolutionAlgorithm::implicit_gemm && repack.bytes > 0)
    return {repack_source(repack, size_of(plan.problem.w.type), architecture_of(plan.device.gpu))};
  if (plan::is_window_product(plan.recipe)) return packing_sources(plan);
  return unroll_sources(plan);
}

int convolution_shared_bytes(Plan<Problem> const& plan) {
  if (auto const program = plan::program_of(plan))
    return static_cast<int>(program->kernels.front().shared_bytes);
  if (plan.recipe.is_direct()) return 0;
  if (plan::is_window_product(plan.recipe))
    return plan::shared_storage_bytes(
        plan.recipe.product,
        plan::window_products(plan.problem, plan.device.gpu, plan.recipe.packing).parts.front().product);
  plan::ConvolutionForm const form = plan::planned_forms(plan.problem, plan.recipe).front();
  return plan::shared_storage_bytes(plan.recipe.product, plan::gemm_view(form));
}

std::unique_ptr<Kernel<Problem>> prepare_convolution(Plan<Problem> const& plan) {
  jit::Cubin const cubin = jit::kernel_cache().get(convolution_source(plan));
  Module const module(plan.device.gpu.ordinal, cubin.image.data());
  if (plan::is_window_product(plan.recipe))
    return prepare_window_product(plan, module.function(cubin.lowered_name));
  return std::make_unique<ComposedConvolution>(plan, module.function(cubin.lowered_name));
}

}  // namespace cosmati::cuda
