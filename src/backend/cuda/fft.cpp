// Sources of the kernels before and after the transforms of fft, and their launches.
#include "src/backend/cuda/fft.h"

#include <fmt/format.h>

#include "cosmati/conv/fft_doubled.h"
#include "src/backend/cuda/driver/cufft.h"
#include "src/backend/cuda/driver/module.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"
#include "src/plan/conv/fft/fft.h"
#include "src/plan/conv/kernel_parts.h"
#include "src/plan/conv/launch.h"

namespace cosmati::cuda {
namespace {

using Problem = ConvolutionProblem;

jit::Source kernel_source(Gpu const& gpu, std::string name_expression, char const* label) {
  jit::Source source;
  source.text = "#include \"cosmati/conv/fft.h\"\n";
  source.name_expression = std::move(name_expression);
  source.architecture = architecture_of(gpu);
  source.label = label;
  return source;
}

jit::Source planes_source(Gpu const& gpu, FftRecipe const& recipe, FftPlanesParameters const& parameters,
                          char const* label) {
  return kernel_source(
      gpu,
      fmt::format("cosmati::fft_planes_kernel<cosmati::FftPlanesTraits<cosmati::FftElements<"
                  "cosmati::{}>, cosmati::{}, {}>>",
                  name_of(parameters.type), name_of(recipe.real), plan::fft_reads_across(parameters)),
      label);
}

char const* name_of_doubled(FftDoubled doubled) {
  return doubled == FftDoubled::image ? "cosmati::FftDoubled::image" : "cosmati::FftDoubled::filter";
}

jit::Source factor_source(Gpu const& gpu, FftRecipe const& recipe, FftDoubled which, char const* label) {
  return kernel_source(
      gpu,
      fmt::format("cosmati::fft_factor_kernel<cosmati::FftFactorTraits<cosmati::{}, cosmati::{}, {}, {}>>",
                  name_of(recipe.real), name_of(recipe.factor), recipe.doubled == which,
                  name_of_doubled(recipe.doubled)),
      label);
}

jit::Source result_source(Plan<Problem> const& plan, plan::FftForm const& own) {
  plan::ConvolutionForm const& form = own.form;
  std::size_t const bytes = plan::with_epilogue_arguments(plan.problem, []<class Epilogue>(Epilogue const&) {
    return sizeof(FftResultParameters<Epilogue, DigitArguments>);
  });
  jit::Source source =
      kernel_source(plan.device.gpu, "cosmati::fft_result_kernel<cosmati::ComposedTraits>", "");
  source.text += fmt::format(
      "namespace cosmati {{\n{}using ComposedTraits = FftResultTraits<{}, {}, {},\n{},\n"
      "DigitDestination<{}, {}>>;\nstatic_assert(sizeof(ComposedTraits::Params) == {});\n}}\n",
      function_text(plan.problem, form), name_of(plan.recipe.fft.real), plan::fft_writes_across(own),
      form.image_is_a, epilogue_text(form), name_of(form.d.type), form.d.width, bytes);
  source.label = form.identity ? "planes to results" : plan.problem.epilogue.expression.text();
  return source;
}

class ComposedFft final : public plan::FftConvolution {
 public:
  explicit ComposedFft(Plan<Problem> const& plan)
      : FftConvolution(plan),
        ordinal_(plan.device.gpu.ordinal),
        image_(transform_of(recipe().image_chunk, false)),
        filter_(transform_of(recipe().filter_chunk, false)),
        sums_(transform_of(recipe().sums_chunk, true)) {
    std::vector<jit::Source> const sources = fft_sources(plan);
    std::vector<Function*> functions{&result_, &image_planes_, &filter_planes_};
    if (plan::fft_pointwise(forms().front()))
      functions.push_back(&multiply_);
    else
      functions.insert(functions.end(), {&image_factor_, &filter_factor_, &read_});
    for (std::size_t i = 0; i < sources.size(); ++i) {
      jit::Cubin const cubin = jit::kernel_cache().get(sources[i]);
      *functions[i] = Module(ordinal_, cubin.image.data()).function(cubin.lowered_name);
    }
  }

 private:
  CufftPlan transform_of(int count, bool inverse) const {
    return CufftPlan(ordinal_, recipe().rows, recipe().columns, count, recipe().real, inverse,
                     recipe().work_bytes);
  }

  void write_planes(plan::FftPart part, FftPlanesParameters const& parameters, Stream stream) const override {
    launch(part == plan::FftPart::image ? image_planes_ : filter_planes_, 1, parameters, stream);
  }
  void write_factor(plan::FftPart part, FftMatrixParameters const& parameters, Stream stream) const override {
    launch(part == plan::FftPart::image ? image_factor_ : filter_factor_, 2, parameters, stream);
  }
  void multiply_planes(FftProductParameters const& parameters, Stream stream) const override {
    launch(multiply_, 0, parameters, stream);
  }
  void read_sums(FftMatrixParameters const& parameters, Stream stream) const override {
    launch(read_, 2, parameters, stream);
  }
  void store_results(plan::FftForm const& form, plan::FftCrop const& crop,
                     Problem::Arguments const& arguments, Stream stream) const override {
    plan::with_epilogue_arguments(problem(), [&]<class Epilogue>(Epilogue epilogue) {
      plan::fill_epilogue(epilogue, form.form, arguments);
      FftResultParameters<Epilogue, DigitArguments> parameters;
      plan::fill_fft_result(parameters, form, crop);
      parameters.d = plan::digit_arguments(form.form.d, plan::pointers_of(problem(), form.form, arguments).d);
      parameters.epilogue = epilogue;
      launch(result_, 1, parameters, stream);
    });
  }
  void transform(plan::FftPart part, void* planes, void* work, Stream stream) const override {
    (part == plan::FftPart::image    ? image_
     : part == plan::FftPart::filter ? filter_
                                     : sums_)
        .run(planes, work, stream);
  }

  template <class Parameters>
  void launch(Function const& function, int numbers, Parameters const& parameters, Stream stream) const {
    Current const current(ordinal_);
    function.launch({static_cast<unsigned>(plan::fft_blocks(parameters.chunk)), 1, 1}, fft_threads,
                    static_cast<unsigned>(fft_shared_bytes(size_of(recipe().real), numbers)), parameters,
                    stream);
  }

  int ordinal_;
  CufftPlan image_, filter_, sums_;
  Function image_planes_, filter_planes_, image_factor_, filter_factor_, multiply_, read_, result_;
};

}  // namespace

std::vector<jit::Source> fft_sources(Plan<Problem> const& plan) {
  FftRecipe const& recipe = plan.recipe.fft;
  plan::FftForm const form = plan::fft_forms(plan.problem).front();
  Gpu const& gpu = plan.device.gpu;
  std::vector<jit::Source> sources{
      result_source(plan, form),
      planes_source(gpu, recipe,
                    plan::fft_image_planes(form, recipe, nullptr, 0, recipe.slice, 0, 0, nullptr),
                    "image to planes"),
      planes_source(gpu, recipe, plan::fft_filter_planes(form, recipe, nullptr, 0, 0, nullptr),
                    form.gradient ? "gradient to planes" : "filters to planes")};
  if (plan::fft_pointwise(form)) {
    sources.push_back(
        kernel_source(gpu,
                      fmt::format("cosmati::fft_product_kernel<cosmati::FftProductTraits<cosmati::{}>>",
                                  name_of(recipe.real)),
                      "planes multiplied"));
    return sources;
  }
  sources.push_back(factor_source(gpu, recipe, FftDoubled::image, "image to a factor"));
  sources.push_back(factor_source(gpu, recipe, FftDoubled::filter,
                                  form.gradient ? "gradient to a factor" : "filters to a factor"));
  sources.push_back(
      kernel_source(gpu,
                    fmt::format("cosmati::fft_sums_kernel<cosmati::FftSumsTraits<cosmati::{}, {}>>",
                                name_of(recipe.real), name_of_doubled(recipe.doubled)),
                    "sums to planes"));
  return sources;
}

std::unique_ptr<Kernel<Problem>> prepare_fft(Plan<Problem> const& plan) {
  return std::make_unique<ComposedFft>(plan);
}

}  // namespace cosmati::cuda
