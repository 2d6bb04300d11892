// The emulator's convolutions with im2col by TMA: their catalogue, tensor maps and launches.
#include "src/backend/emulator/catalogue/entries.h"

#include <algorithm>

#include "cosmati/conv/places_walk.h"
#include "cosmati/conv/tensor_windows.h"
#include "cosmati/epilogue/parse.h"
#include "cosmati/gemm/warp_specialized.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/conv/convolution_packing.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/tensor_windows.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/model.h"
#include "src/program/launch_tag.h"

namespace cosmati::emulator {
namespace {

using Problem = ConvolutionProblem;
template <class A, class B>
using WindowParameters =
    GemmParameters<A, B, ConvolutionHostEpilogue::Arguments, ConvolutionHostDestination::Arguments>;

template <class SourceA, class SourceB, class Sum>
void launch_windows(
    int blocks, WindowParameters<typename SourceA::Arguments, typename SourceB::Arguments> const& parameters,
    int host_threads) {
  constexpr GemmPolicy policy = emulated_policy(MainLoop::warp_specialized, Multiply::wgmma,
                                                static_cast<int>(sizeof(typename SourceA::Element)));
  using Traits = WarpSpecializedTraits<policy, SourceA, SourceB, Sum, ConvolutionHostEpilogue,
                                       ConvolutionHostDestination>;
  launch_kernel_clusters<&warp_specialized_kernel<Traits>>({blocks}, {Traits::cluster}, Traits::threads,
                                                           sizeof(typename Traits::SharedStorage), parameters,
                                                           host_threads);
}

// The parameters of a launch with one product per phase.
using WindowPlaces =
    PlacesParameters<WindowParameters<ImageArguments, FilterArguments>, most_places_of_launch>;

template <class SourceA, class SourceB, class Sum>
void launch_places(int blocks, WindowPlaces const& places, int host_threads) {
  constexpr GemmPolicy policy = emulated_policy(MainLoop::warp_specialized, Multiply::wgmma,
                                                static_cast<int>(sizeof(typename SourceA::Element)));
  using Traits = WarpSpecializedTraits<policy, SourceA, SourceB, Sum, ConvolutionHostEpilogue,
                                       ConvolutionHostDestination>;
  launch_kernel_clusters<&warp_specialized_kernel<Traits, WalkOfPlaces<Traits, most_places_of_launch>>>(
      {blocks}, {Traits::cluster}, Traits::threads, sizeof(typename Traits::SharedStorage), places,
      host_threads);
}

using Launch = void (*)(int blocks, WindowPlaces const& places, int host_threads);
Launch find(DataType type, Along filter_along) {
  if (type == DataType::s8) return &launch_places<ImageSource<s8>, FilterSource<s8, Along::depth>, s32>;
  return filter_along == Along::depth
             ? &launch_places<ImageSource<f16>, FilterSource<f16, Along::depth>, f32>
             : &launch_places<ImageSource<f16>, FilterSource<f16, Along::outer>, f32>;
}

// The stride along an extent of 1 is not used, but must still be a multiple of 16 bytes.
long long stride_bytes(Index const (&stride)[4], Index const (&extent)[4], int i, int size) {
  return extent[i] > 1 ? stride[i] * size : 16;
}

arch::TensorMap image_map(plan::ImageMap const& image, int size, void const* data, TensorBox const& box) {
  WindowedTensor tensor;
  tensor.address = const_cast<void*>(data);
  tensor.element_bytes = size;
  for (int i = 0; i < 4; ++i) {
    tensor.extent[i] = image.extent[i];
    tensor.stride[i] = stride_bytes(image.stride, image.extent, i, size);
  }
  std::copy_n(image.lower, 2, tensor.lower);
  std::copy_n(image.upper, 2, tensor.upper);
  std::copy_n(image.step, 2, tensor.step);
  tensor.channels = box.row;
  tensor.windows = box.rows;
  tensor.swizzle_bytes = box.row * size;
  return encode_tensor_map(tensor);
}

arch::TensorMap filter_map(plan::FilterMap const& filter, int size, void const* data, TensorBox const& box) {
  TiledTensor tensor;
  tensor.address = const_cast<std::byte*>(static_cast<std::byte const*>(data) + filter.base * size);
  tensor.rank = 4;
  tensor.element_bytes = size;
  for (int i = 0; i < 4; ++i) {
    tensor.extent[i] = filter.extent[i];
    tensor.stride[i] = stride_bytes(filter.stride, filter.extent, i, size);
    tensor.box[i] = i == 0 ? box.row : i == 3 ? box.slice_rows : 1;
  }
  tensor.swizzle_bytes = box.row * size;
  return encode_tensor_map(tensor);
}

// The map of dy for a filter gradient: its rows are pixels.
arch::TensorMap gradient_map(plan::CanonicalGemm const& product, void const* data, TensorBox const& box) {
  int const size = size_of(product.a.type);
  Index const extent[4] = {product.m, product.k, 1, 1}, stride[4] = {1, product.a.column_stride, 0, 0};
  TiledTensor tensor;
  tensor.address = const_cast<void*>(data);
  tensor.rank = 3;
  tensor.element_bytes = size;
  for (int i = 0; i < 3; ++i) {
    tensor.extent[i] = extent[i];
    tensor.stride[i] = stride_bytes(stride, extent, i, size);
  }
  tensor.box[0] = box.row, tensor.box[1] = box.slice_rows, tensor.box[2] = 1;
  tensor.swizzle_bytes = box.row * size;
  return encode_tensor_map(tensor);
}

class EmulatedWindowProduct final : public Kernel<Problem> {
 public:
  explicit EmulatedWindowProduct(Plan<Problem> const& plan)
      : problem_(plan.problem),
        recipe_(plan.recipe.product),
        packing_(plan.recipe.packing),
        windows_(plan::window_products(plan.problem, plan.device.gpu, packing_)),
        together_(plan::run_together(plan.recipe, windows_)),
        threads_(plan.device.threads) {}

  void enqueue(Problem::Arguments const& given, std::byte* workspace, Stream) const override {
    Problem::Arguments const arguments = pack(problem_, packing_, given, workspace, threads_);
    reference::ElementEpilogue const expression(problem_.epilogue, epilogue::convolution_indices,
                                                arguments.operands, arguments.scalars, arguments.stores);
    plan::Places const all = plan::places_of(windows_, recipe_);
    WindowPlaces places;
    for (plan::Place const& place : all.list) {
      plan::WindowProduct const& part = windows_.parts[place.form];
      if (!windows_.image_is_a) {
        launch_gradient(part, expression, arguments, workspace);
        continue;
      }
      if (!together_) places.count = 0;
      auto& parameters = places.place[places.count];
      fill(parameters, part, expression, arguments, workspace);
      if (together_) parameters.schedule = plan::schedule_of(parameters.schedule, place);
      places.first_block[places.count++] = together_ ? place.first_block : 0;
      if (together_ && places.count < static_cast<int>(all.list.size())) continue;
      Index const clusters =
          together_ ? all.blocks : plan::tiles_of(recipe_.policy, part.product) * recipe_.splits;
      places.blocks = static_cast<int>(clusters);
      find(part.product.a.type, windows_.along_of_b)(blocks(clusters), places, threads_);
    }
    unpack(problem_, packing_, given, workspace, threads_);
  }

 private:
  static int blocks(Index clusters) { return static_cast<int>(std::min(clusters, Index{emulated_places})); }

  // If K is 0, nothing is loaded and no map is needed.
  void fill(WindowParameters<ImageArguments, FilterArguments>& parameters, plan::WindowProduct const& part,
            reference::ElementEpilogue const& expression, Problem::Arguments const& arguments,
            std::byte* workspace) const {
    plan::ConvolutionPointers const pointers = plan::pointers_of(problem_, part.form, arguments);
    GemmPolicy const& p = recipe_.policy;
    int const size = size_of(part.product.a.type);
    parameters.a = part.image_arguments;
    parameters.b = part.filter_arguments;
    fill_rest(parameters, part, expression, pointers, workspace);
    if (part.product.k == 0) return;
    parameters.a.map = image_map(part.image, size, pointers.a,
                                 tensor_box(windows_.along_of_a, size, p.block_k, p.block_m, p.cluster_n));
    parameters.b.map = filter_map(part.filter, size, pointers.b,
                                  tensor_box(windows_.along_of_b, size, p.block_k, p.block_n, p.cluster_m));
  }

  template <class Parameters>
  void fill_rest(Parameters& parameters, plan::WindowProduct const& part,
                 reference::ElementEpilogue const& expression, plan::ConvolutionPointers const& pointers,
                 std::byte* workspace) const {
    parameters.m = part.product.m;
    parameters.n = part.product.n;
    parameters.k = part.product.k;
    parameters.d = {plan::digit_arguments(part.form.d, pointers.d), part.form.d.type};
    parameters.epilogue = {&expression, &part.form};
    parameters.schedule = plan::schedule_of(recipe_, workspace);
    parameters.schedule.tag = fresh_launch_tag();
  }

  // The filter gradient: dy is a matrix, x provides the windows.
  void launch_gradient(plan::WindowProduct const& part, reference::ElementEpilogue const& expression,
                       Problem::Arguments const& arguments, std::byte* workspace) const {
    plan::ConvolutionPointers const pointers = plan::pointers_of(problem_, part.form, arguments);
    plan::CanonicalGemm const& product = part.product;
    GemmPolicy const& p = recipe_.policy;
    int const size = size_of(product.a.type);
    WindowParameters<TensorArguments, ImageArguments> parameters;
    parameters.b = part.image_arguments;
    fill_rest(parameters, part, expression, pointers, workspace);
    if (product.k > 0) {
      parameters.a.map = gradient_map(
          product, pointers.a, tensor_box(windows_.along_of_a, size, p.block_k, p.block_m, p.cluster_n));
      parameters.b.map = image_map(part.image, size, pointers.b,
                                   tensor_box(windows_.along_of_b, size, p.block_k, p.block_n, p.cluster_m));
    }
    launch_windows<TensorSource<f16, Along::outer>, ImageSource<f16, Along::outer>, f32>(
        blocks(plan::tiles_of(p, product) * recipe_.splits), parameters, threads_);
  }

  Problem problem_;
  GemmRecipe recipe_;
  PackRecipe packing_;
  plan::WindowProducts windows_;
  bool together_;
  int threads_;
};

}  // namespace

std::unique_ptr<Kernel<Problem>> prepare_window_product(Plan<Problem> const& plan) {
  return std::make_unique<EmulatedWindowProduct>(plan);
}

}  // namespace cosmati::emulator
