// The emulator's kernels before and after the Fourier transforms, for all data types.
#include "src/backend/emulator/catalogue/entries.h"

#include "cosmati/conv/fft.h"
#include "cosmati/epilogue/parse.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/fftw.h"
#include "src/plan/conv/fft/fft.h"
#include "src/plan/conv/launch.h"

namespace cosmati::emulator {
namespace {

using Problem = ConvolutionProblem;
using HostResult =
    FftResultParameters<ConvolutionHostEpilogue::Arguments, ConvolutionHostDestination::Arguments>;

struct HostElements {
  template <class Real>
  static Real load(void const* data, DataType type, Index at) {
    check_access(static_cast<std::byte const*>(data) + at * size_of(type), size_of(type));
    return static_cast<Real>(cosmati::load(type, data, at));
  }
};

template <auto kernel, class Traits, class Parameters>
void launch_chunk(Parameters const& parameters, int host_threads) {
  launch_kernel<kernel>({static_cast<int>(plan::fft_blocks(parameters.chunk)), 1, 1}, fft_threads,
                        sizeof(typename Traits::SharedStorage), parameters, host_threads);
}

template <class Real>
void launch_planes(FftPlanesParameters const& parameters, int host_threads) {
  using Across = FftPlanesTraits<HostElements, Real, true>;
  using Along = FftPlanesTraits<HostElements, Real, false>;
  if (plan::fft_reads_across(parameters))
    launch_chunk<&fft_planes_kernel<Across>, Across>(parameters, host_threads);
  else
    launch_chunk<&fft_planes_kernel<Along>, Along>(parameters, host_threads);
}

template <class Real, class Factor>
void launch_factor(FftDoubled doubled, bool twice, FftMatrixParameters const& parameters, int host_threads) {
  using Once = FftFactorTraits<Real, Factor, false, FftDoubled::image>;
  using Image = FftFactorTraits<Real, Factor, true, FftDoubled::image>;
  using Filter = FftFactorTraits<Real, Factor, true, FftDoubled::filter>;
  if (!twice)
    launch_chunk<&fft_factor_kernel<Once>, Once>(parameters, host_threads);
  else if (doubled == FftDoubled::image)
    launch_chunk<&fft_factor_kernel<Image>, Image>(parameters, host_threads);
  else
    launch_chunk<&fft_factor_kernel<Filter>, Filter>(parameters, host_threads);
}

template <class Real>
void launch_sums(FftDoubled doubled, FftMatrixParameters const& parameters, int host_threads) {
  using Image = FftSumsTraits<Real, FftDoubled::image>;
  using Filter = FftSumsTraits<Real, FftDoubled::filter>;
  if (doubled == FftDoubled::image)
    launch_chunk<&fft_sums_kernel<Image>, Image>(parameters, host_threads);
  else
    launch_chunk<&fft_sums_kernel<Filter>, Filter>(parameters, host_threads);
}

template <class Real>
void launch_product(FftProductParameters const& parameters, int host_threads) {
  launch_kernel<&fft_product_kernel<FftProductTraits<Real>>>(
      {static_cast<int>(plan::fft_blocks(parameters.chunk)), 1, 1}, fft_threads, 0, parameters, host_threads);
}

template <class Real, bool across>
void launch_result(bool image_is_a, HostResult const& parameters, int host_threads) {
  using First = FftResultTraits<Real, across, true, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  using Second = FftResultTraits<Real, across, false, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  if (image_is_a)
    launch_chunk<&fft_result_kernel<First>, First>(parameters, host_threads);
  else
    launch_chunk<&fft_result_kernel<Second>, Second>(parameters, host_threads);
}

class EmulatedFft final : public plan::FftConvolution {
 public:
  explicit EmulatedFft(Plan<Problem> const& plan)
      : FftConvolution(plan),
        threads_(plan.device.threads),
        image_(recipe().rows, recipe().columns, recipe().image_chunk, recipe().real, false),
        filter_(recipe().rows, recipe().columns, recipe().filter_chunk, recipe().real, false),
        sums_(recipe().rows, recipe().columns, recipe().sums_chunk, recipe().real, true) {}

 private:
  bool of_f64() const { return recipe().real == DataType::f64; }

  void write_planes(plan::FftPart, FftPlanesParameters const& parameters, Stream) const override {
    of_f64() ? launch_planes<f64>(parameters, threads_) : launch_planes<f32>(parameters, threads_);
  }
  void write_factor(plan::FftPart part, FftMatrixParameters const& parameters, Stream) const override {
    FftDoubled const doubled = recipe().doubled;
    bool const twice = (part == plan::FftPart::image) == (doubled == FftDoubled::image);
    if (of_f64())
      launch_factor<f64, f64>(doubled, twice, parameters, threads_);
    else if (recipe().factor == DataType::tf32)
      launch_factor<f32, tf32>(doubled, twice, parameters, threads_);
    else
      launch_factor<f32, f32>(doubled, twice, parameters, threads_);
  }
  void multiply_planes(FftProductParameters const& parameters, Stream) const override {
    of_f64() ? launch_product<f64>(parameters, threads_) : launch_product<f32>(parameters, threads_);
  }
  void read_sums(FftMatrixParameters const& parameters, Stream) const override {
    of_f64() ? launch_sums<f64>(recipe().doubled, parameters, threads_)
             : launch_sums<f32>(recipe().doubled, parameters, threads_);
  }
  void store_results(plan::FftForm const& form, plan::FftCrop const& crop,
                     Problem::Arguments const& arguments, Stream) const override {
    reference::ElementEpilogue const expression(problem().epilogue, epilogue::convolution_indices,
                                                arguments.operands, arguments.scalars, arguments.stores);
    HostResult parameters;
    plan::fill_fft_result(parameters, form, crop);
    plan::ConvolutionForm const& own = form.form;
    parameters.d = {plan::digit_arguments(own.d, plan::pointers_of(problem(), own, arguments).d), own.d.type};
    parameters.epilogue = {&expression, &own};
    bool const across = plan::fft_writes_across(form);
    auto const run = of_f64() ? (across ? &launch_result<f64, true> : &launch_result<f64, false>)
                     : across ? &launch_result<f32, true>
                              : &launch_result<f32, false>;
    run(own.image_is_a, parameters, threads_);
  }
  void transform(plan::FftPart part, void* planes, void*, Stream) const override {
    (part == plan::FftPart::image ? image_ : part == plan::FftPart::filter ? filter_ : sums_).run(planes);
  }

  int threads_;
  FftwPlan image_, filter_, sums_;
};

}  // namespace

std::unique_ptr<Kernel<Problem>> prepare_fft(Plan<Problem> const& plan) {
  return std::make_unique<EmulatedFft>(plan);
}

}  // namespace cosmati::emulator
