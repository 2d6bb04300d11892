// The transforms of Winograd convolution by tile size and direction, for all data types.
#include "src/backend/emulator/catalogue/entries.h"

#include "cosmati/conv/winograd.h"
#include "cosmati/epilogue/parse.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/winograd/winograd.h"

namespace cosmati::emulator {
namespace {

using Problem = ConvolutionProblem;
using HostResult =
    WinogradResultParameters<ConvolutionHostEpilogue::Arguments, ConvolutionHostDestination::Arguments>;

struct HostElements {
  template <int width>
  static void load(void const* data, DataType type, Index at, int valid, float (&to)[width]) {
    if (valid == width) check_run<width>(data, type, at);
    for (int i = 0; i < width; ++i)
      to[i] = i < valid ? static_cast<float>(cosmati::load(type, data, at + i)) : 0;
  }
  template <int width>
  static void store(void* data, DataType type, Index at, float const (&from)[width]) {
    check_run<width>(data, type, at);
    for (int i = 0; i < width; ++i) cosmati::store(type, data, at + i, static_cast<double>(from[i]));
  }

 private:
  template <int width>
  static void check_run(void const* data, DataType type, Index at) {
    check_access(static_cast<std::byte const*>(data) + at * size_of(type), width * size_of(type));
  }
};

Grid blocks(WinogradMatrix const& matrix, int width) {
  return {static_cast<int>(plan::winograd_blocks(matrix, width)), 1, 1};
}

template <int tile>
void launch_filter(WinogradFilterParameters const& parameters, int host_threads) {
  using Traits = WinogradFilterTraits<tile, HostElements, HostElements>;
  launch_kernel<&winograd_filter_kernel<Traits>>(blocks(parameters.to, 1), winograd_threads, 0, parameters,
                                                 host_threads);
}

template <int tile, bool channels_last, bool together>
void launch_image(WinogradImageParameters const& parameters, int host_threads) {
  constexpr int channels = channels_last ? 8 / tile : 1;
  using Traits = WinogradImageTraits<tile, HostElements, HostElements, channels_last, channels, together>;
  launch_kernel<&winograd_image_kernel<Traits>>(blocks(parameters.to, channels), winograd_threads, 0,
                                                parameters, host_threads);
}

template <int tile, WinogradRun run>
void launch_result(HostResult const& parameters, int host_threads) {
  using Traits = WinogradResultTraits<tile, run, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  launch_kernel<&winograd_result_kernel<Traits>>(blocks(parameters.from, Traits::channels), winograd_threads,
                                                 0, parameters, host_threads);
}

struct Launches {
  void (*filter)(WinogradFilterParameters const&, int);
  void (*image)(WinogradImageParameters const&, int);
  void (*result)(HostResult const&, int);
};
template <int tile>
Launches launches_of(WinogradRecipe const& recipe) {
  return {&launch_filter<tile>,
          !recipe.image_channels_last ? &launch_image<tile, false, true>
          : recipe.image_together     ? &launch_image<tile, true, true>
                                      : &launch_image<tile, true, false>,
          recipe.run == WinogradRun::channels  ? &launch_result<tile, WinogradRun::channels>
          : recipe.run == WinogradRun::columns ? &launch_result<tile, WinogradRun::columns>
                                               : &launch_result<tile, WinogradRun::pixel>};
}

class EmulatedWinograd final : public plan::WinogradConvolution {
 public:
  explicit EmulatedWinograd(Plan<Problem> const& plan)
      : WinogradConvolution(plan),
        threads_(plan.device.threads),
        launches_(recipe().tile == 2 ? launches_of<2>(recipe()) : launches_of<4>(recipe())) {}

 private:
  void transform_filter(WinogradFilterParameters const& parameters, Stream) const override {
    launches_.filter(parameters, threads_);
  }
  void transform_image(WinogradImageParameters const& parameters, Stream) const override {
    launches_.image(parameters, threads_);
  }
  void store_results(Problem::Arguments const& arguments, Index first, Index count, std::byte* workspace,
                     Stream) const override {
    reference::ElementEpilogue const expression(problem().epilogue, epilogue::convolution_indices,
                                                arguments.operands, arguments.scalars, arguments.stores);
    HostResult parameters;
    plan::fill_winograd_result(parameters, form(), recipe(), first, count, workspace);
    plan::ConvolutionForm const& own = form().form;
    parameters.d = {plan::digit_arguments(own.d, plan::pointers_of(problem(), own, arguments).d), own.d.type};
    parameters.epilogue = {&expression, &own};
    launches_.result(parameters, threads_);
  }

  int threads_;
  Launches launches_;
};

}  // namespace

std::unique_ptr<Kernel<Problem>> prepare_winograd(Plan<Problem> const& plan) {
  return std::make_unique<EmulatedWinograd>(plan);
}

}  // namespace cosmati::emulator
