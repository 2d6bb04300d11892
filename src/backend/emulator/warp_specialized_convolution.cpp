// The catalogue of such kernels, their tensor maps and their launch.
#include "src/backend/emulator/warp_specialized_convolution.h"

#include <algorithm>

#include "cosmati/conv/tensor_windows.h"
#include "cosmati/epilogue/parse.h"
#include "cosmati/gemm/warp_specialized.h"
#include "src/backend/emulator/convolution_catalogue.h"
#include "src/backend/emulator/emulated_policy.h"
#include "src/backend/launch_tag.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/tensor_windows.h"
#include "src/plan/gemm/model.h"

namespace cosmati::emulator {
namespace {

using Problem = ConvolutionProblem;
using WindowParameters = GemmParameters<ImageArguments, FilterArguments, ConvolutionHostEpilogue::Arguments,
                                        ConvolutionHostDestination::Arguments>;
using Launch = void (*)(int blocks, WindowParameters const& parameters, int host_threads);

template <class Element, class Sum, Along filter_along>
void launch_windows(int blocks, WindowParameters const& parameters, int host_threads) {
  constexpr GemmPolicy policy =
      emulated_policy(MainLoop::warp_specialized, Multiply::wgmma, static_cast<int>(sizeof(Element)));
  using Traits = WarpSpecializedTraits<policy, ImageSource<Element>, FilterSource<Element, filter_along>, Sum,
                                       ConvolutionHostEpilogue, ConvolutionHostDestination>;
  launch_kernel_clusters<&warp_specialized_kernel<Traits>>({blocks}, {Traits::cluster}, Traits::threads,
                                                           sizeof(typename Traits::SharedStorage), parameters,
                                                           host_threads);
}

Launch find(DataType type, Along filter_along) {
  if (type == DataType::s8) return &launch_windows<s8, s32, Along::depth>;
  return filter_along == Along::depth ? &launch_windows<f16, f32, Along::depth>
                                      : &launch_windows<f16, f32, Along::outer>;
}

// Nobody steps along an extent of 1, but a stride has to be a multiple of 16 bytes there, too.
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

class EmulatedWindowProduct final : public Kernel<Problem> {
 public:
  explicit EmulatedWindowProduct(Plan<Problem> const& plan)
      : problem_(plan.problem),
        recipe_(plan.recipe.product),
        windows_(plan::window_products(plan.problem, plan.device.gpu)),
        threads_(plan.device.threads) {}

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream) const override {
    reference::ElementEpilogue const expression(problem_.epilogue, epilogue::convolution_indices,
                                                arguments.operands, arguments.scalars, arguments.stores);
    for (plan::WindowProduct const& part : windows_.parts) launch(part, expression, arguments, workspace);
  }

 private:
  void launch(plan::WindowProduct const& part, reference::ElementEpilogue const& expression,
              Problem::Arguments const& arguments, std::byte* workspace) const {
    plan::ConvolutionPointers const pointers = plan::pointers_of(problem_, part.form, arguments);
    plan::CanonicalGemm const& product = part.product;
    GemmPolicy const& p = recipe_.policy;
    int const size = size_of(product.a.type);
    WindowParameters parameters;
    parameters.m = product.m;
    parameters.n = product.n;
    parameters.k = product.k;
    parameters.a = part.image_arguments;
    parameters.b = part.filter_arguments;
    if (product.k > 0) {  // else nothing is loaded
      parameters.a.map = image_map(part.image, size, pointers.a,
                                   tensor_box(Along::depth, size, p.block_k, p.block_m, p.cluster_n));
      parameters.b.map =
          filter_map(part.filter, size, pointers.b,
                     tensor_box(windows_.filter_along, size, p.block_k, p.block_n, p.cluster_m));
    }
    parameters.d = {plan::digit_arguments(part.form.d, pointers.d), part.form.d.type};
    parameters.epilogue = {&expression, &part.form};
    parameters.schedule = plan::schedule_of(recipe_, workspace);
    parameters.schedule.tag = fresh_launch_tag();
    Index const tiles = plan::tiles_of(p, product) * recipe_.splits;
    find(product.a.type, windows_.filter_along)(static_cast<int>(std::min(tiles, Index{emulated_places})),
                                                parameters, threads_);
  }

  Problem problem_;
  GemmRecipe recipe_;
  plan::WindowProducts windows_;
  int threads_;
};

}  // namespace

bool has_window_product(DataType a, DataType b) {
  return a == b && (a == DataType::f16 || a == DataType::s8);
}

std::unique_ptr<Kernel<Problem>> prepare_window_product(Plan<Problem> const& plan) {
  return std::make_unique<EmulatedWindowProduct>(plan);
}

}  // namespace cosmati::emulator
