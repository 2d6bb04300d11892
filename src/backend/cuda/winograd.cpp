// Sources of the transforms before and after the products of winograd, and their launches.
#include "src/backend/cuda/winograd.h"

#include <fmt/format.h>

#include "src/backend/cuda/driver/module.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"
#include "src/plan/conv/kernel_parts.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/winograd/winograd.h"

namespace cosmati::cuda {
namespace {

using Problem = ConvolutionProblem;

char const* name_of_run(WinogradRun run) {
  switch (run) {
    case WinogradRun::channels: return "channels";
    case WinogradRun::columns: return "columns";
    case WinogradRun::pixel: break;
  }
  return "pixel";
}

std::string elements(DataType type) {
  return fmt::format("cosmati::WinogradElements<cosmati::{}>", name_of(type));
}

jit::Source transform(Gpu const& gpu, std::string name_expression, char const* label) {
  jit::Source source;
  source.text = "#include \"cosmati/conv/winograd.h\"\n";
  source.name_expression = std::move(name_expression);
  source.architecture = architecture_of(gpu);
  source.label = label;
  return source;
}

jit::Source result_source(Plan<Problem> const& plan, plan::ConvolutionForm const& form) {
  WinogradRecipe const& recipe = plan.recipe.winograd;
  std::size_t const bytes = plan::with_epilogue_arguments(plan.problem, []<class Epilogue>(Epilogue const&) {
    return sizeof(WinogradResultParameters<Epilogue, DigitArguments>);
  });
  jit::Source source =
      transform(plan.device.gpu, "cosmati::winograd_result_kernel<cosmati::ComposedTraits>", "");
  source.text += fmt::format(
      "namespace cosmati {{\n{}using ComposedTraits = WinogradResultTraits<{}, WinogradRun::{},\n{},\n"
      "DigitDestination<{}, {}>>;\nstatic_assert(sizeof(ComposedTraits::Params) == {});\n}}\n",
      function_text(plan.problem, form), recipe.tile, name_of_run(recipe.run), epilogue_text(form),
      name_of(form.d.type), form.d.width, bytes);
  source.label = form.identity ? "sums transformed" : plan.problem.epilogue.expression.text();
  return source;
}

class ComposedWinograd final : public plan::WinogradConvolution {
 public:
  explicit ComposedWinograd(Plan<Problem> const& plan)
      : WinogradConvolution(plan), ordinal_(plan.device.gpu.ordinal) {
    std::vector<jit::Source> const sources = winograd_sources(plan);
    Function* const functions[] = {&filter_, &image_, &result_};
    for (std::size_t i = 0; i < sources.size(); ++i) {
      jit::Cubin const cubin = jit::kernel_cache().get(sources[i]);
      *functions[i] = Module(ordinal_, cubin.image.data()).function(cubin.lowered_name);
    }
  }

 private:
  void transform_filter(WinogradFilterParameters const& parameters, Stream stream) const override {
    launch(filter_, parameters.to, 1, parameters, stream);
  }
  void transform_image(WinogradImageParameters const& parameters, Stream stream) const override {
    launch(image_, parameters.to, recipe().image_channels_last ? plan::winograd_channels(recipe()) : 1,
           parameters, stream);
  }
  void store_results(Problem::Arguments const& arguments, Index first, Index count, std::byte* workspace,
                     Stream stream) const override {
    plan::with_epilogue_arguments(problem(), [&]<class Epilogue>(Epilogue epilogue) {
      fill_epilogue(epilogue, form().form, arguments);
      WinogradResultParameters<Epilogue, DigitArguments> parameters;
      plan::fill_winograd_result(parameters, form(), recipe(), first, count, workspace);
      parameters.d =
          plan::digit_arguments(form().form.d, plan::pointers_of(problem(), form().form, arguments).d);
      parameters.epilogue = epilogue;
      bool const by_channels = recipe().run == WinogradRun::channels;
      launch(result_, parameters.from, by_channels ? plan::winograd_channels(recipe()) : 1, parameters,
             stream);
    });
  }

  template <class Parameters>
  void launch(Function const& function, WinogradMatrix const& matrix, int width, Parameters const& parameters,
              Stream stream) const {
    Current const current(ordinal_);
    function.launch({static_cast<unsigned>(plan::winograd_blocks(matrix, width)), 1, 1}, winograd_threads, 0,
                    parameters, stream);
  }

  int ordinal_;
  Function filter_, image_, result_;
};

}  // namespace

std::vector<jit::Source> winograd_sources(Plan<Problem> const& plan) {
  WinogradRecipe const& recipe = plan.recipe.winograd;
  plan::ConvolutionForm const form = plan::winograd_form(plan.problem).form;
  Gpu const& gpu = plan.device.gpu;
  std::string const to = elements(recipe.type);
  return {
      transform(gpu,
                fmt::format("cosmati::winograd_filter_kernel<cosmati::WinogradFilterTraits<{}, {}, {}>>",
                            recipe.tile, elements((form.image_is_a ? form.b : form.a).type), to),
                "filters transformed"),
      transform(gpu,
                fmt::format(
                    "cosmati::winograd_image_kernel<cosmati::WinogradImageTraits<{}, {}, {}, {}, {}, {}>>",
                    recipe.tile, elements(form.image().type), to, recipe.image_channels_last,
                    recipe.image_channels_last ? plan::winograd_channels(recipe) : 1, recipe.image_together),
                "image transformed"),
      result_source(plan, form)};
}

std::unique_ptr<Kernel<Problem>> prepare_winograd(Plan<Problem> const& plan) {
  return std::make_unique<ComposedWinograd>(plan);
}

}  // namespace cosmati::cuda
