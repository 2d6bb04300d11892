// cuDNN's legacy calls.
#include "cli/bench/peers/cudnn_legacy.h"

#include <set>
#include <utility>

namespace cosmati::cli {
namespace {

using cudnn::Math;
using cudnn::Number;
using cudnn::Status;

template <class Handle, class Create>
Handle* created(char const* call, Create create) {
  Handle* handle = nullptr;
  cudnn::check(call, create(&handle));
  return handle;
}

// The widest math mode allowed for a type: f32 stays f32; tf32 may round to TF32, but not to f16.
Math widest_math(DataType type) {
  if (type == DataType::f32 || type == DataType::f64) return Math::fma;
  return type == DataType::tf32 ? Math::standard : Math::tensor_op;
}

// The scalars 1 and 0 (alpha and beta) in the type of the sums.
struct Weights {
  explicit Weights(bool in_f64) : is_double(in_f64) {}
  void const* one() const { return is_double ? static_cast<void const*>(&one_f64) : &one_f32; }
  void const* zero() const { return is_double ? static_cast<void const*>(&zero_f64) : &zero_f32; }
  bool is_double;
  double one_f64 = 1, zero_f64 = 0;
  float one_f32 = 1, zero_f32 = 0;
};

int as_int(Index number) { return static_cast<int>(number); }

}  // namespace

CudnnLegacy::CudnnLegacy(cudnn::Context* context, CudnnConvolution const& convolution)
    : library_(cudnn::library()),
      context_(context),
      asked_(convolution),
      x_(tensor()),
      y_(tensor()),
      w_(created<cudnn::FilterDescriptor>("cudnnCreateFilterDescriptor",
                                          library_.cudnnCreateFilterDescriptor),
         library_.cudnnDestroyFilterDescriptor) {
  auto const set_tensor = [&](cudnn::TensorDescriptor* descriptor, Index const(&e)[4]) {
    cudnn::check("cudnnSetTensor4dDescriptor",
                 library_.cudnnSetTensor4dDescriptor(descriptor, asked_.format, asked_.number, as_int(e[0]),
                                                     as_int(e[1]), as_int(e[2]), as_int(e[3])));
  };
  set_tensor(x_.get(), asked_.x);
  set_tensor(y_.get(), asked_.y);
  auto const& e = asked_.w;
  cudnn::check("cudnnSetFilter4dDescriptor",
               library_.cudnnSetFilter4dDescriptor(w_.get(), asked_.number, asked_.format, as_int(e[0]),
                                                   as_int(e[1]), as_int(e[2]), as_int(e[3])));
}

CudnnLegacy::Owned<cudnn::TensorDescriptor> CudnnLegacy::tensor() {
  auto const& library = cudnn::library();
  return {
      created<cudnn::TensorDescriptor>("cudnnCreateTensorDescriptor", library.cudnnCreateTensorDescriptor),
      library.cudnnDestroyTensorDescriptor};
}

CudnnLegacy::Owned<cudnn::TensorDescriptor> CudnnLegacy::strided_tensor(Number number, Layout const& layout) {
  auto result = tensor();
  auto const& stride = layout.stride;
  cudnn::check("cudnnSetTensor4dDescriptorEx",
               cudnn::library().cudnnSetTensor4dDescriptorEx(
                   result.get(), number, as_int(layout.extent(0)), as_int(layout.extent(1)),
                   as_int(layout.extent(2)), as_int(layout.extent(3)), as_int(stride[0]), as_int(stride[1]),
                   as_int(stride[2]), as_int(stride[3])));
  return result;
}

// All 16-bit types are copied as f16, whose finite numbers keep their bits.
void CudnnLegacy::copy(cudnn::Context* context, Number number, Layout const& from, void const* source,
                       Layout const& to, void* target) {
  if (number == Number::bf16) number = Number::f16;
  auto const from_tensor = strided_tensor(number, from), to_tensor = strided_tensor(number, to);
  Weights const weights(number == Number::f64);
  cudnn::check("cudnnTransformTensor",
               cudnn::library().cudnnTransformTensor(context, weights.one(), from_tensor.get(), source,
                                                     weights.zero(), to_tensor.get(), target));
}

CudnnLegacy::Owned<cudnn::ConvolutionDescriptor> CudnnLegacy::with_math(Math math) const {
  Owned<cudnn::ConvolutionDescriptor> result(
      created<cudnn::ConvolutionDescriptor>("cudnnCreateConvolutionDescriptor",
                                            library_.cudnnCreateConvolutionDescriptor),
      library_.cudnnDestroyConvolutionDescriptor);
  cudnn::check(
      "cudnnSetConvolution2dDescriptor",
      library_.cudnnSetConvolution2dDescriptor(
          result.get(), as_int(asked_.pad_begin[0]), as_int(asked_.pad_begin[1]), as_int(asked_.stride[0]),
          as_int(asked_.stride[1]), as_int(asked_.dilation[0]), as_int(asked_.dilation[1]),
          cudnn::Mode::cross_correlation, asked_.has_f64_sums() ? Number::f64 : Number::f32));
  cudnn::check("cudnnSetConvolutionGroupCount",
               library_.cudnnSetConvolutionGroupCount(result.get(), as_int(asked_.groups)));
  cudnn::check("cudnnSetConvolutionMathType", library_.cudnnSetConvolutionMathType(result.get(), math));
  return result;
}

std::vector<CudnnLegacy::Algorithm> CudnnLegacy::find(CudnnArrays const& arrays, void* workspace,
                                                      std::size_t bytes, int maximum) const {
  constexpr int max_found = 32;
  cudnn::Performance found[max_found] = {};
  int count = 0;
  Math const widest = widest_math(asked_.type);
  auto const convolved = with_math(widest);
  auto const ask = [&](char const* call, auto function, auto... arguments) {
    cudnn::check(call, function(context_, arguments..., max_found, &count, found, workspace, bytes));
  };
  switch (asked_.direction) {
    case ConvolutionDirection::data:
      ask("cudnnFindConvolutionBackwardDataAlgorithmEx", library_.cudnnFindConvolutionBackwardDataAlgorithmEx,
          w_.get(), arrays.w, y_.get(), arrays.y, convolved.get(), x_.get(), arrays.x);
      break;
    case ConvolutionDirection::filter:
      ask("cudnnFindConvolutionBackwardFilterAlgorithmEx",
          library_.cudnnFindConvolutionBackwardFilterAlgorithmEx, x_.get(), arrays.x, y_.get(), arrays.y,
          convolved.get(), w_.get(), arrays.w);
      break;
    default:
      ask("cudnnFindConvolutionForwardAlgorithmEx", library_.cudnnFindConvolutionForwardAlgorithmEx, x_.get(),
          arrays.x, w_.get(), arrays.w, convolved.get(), y_.get(), arrays.y);
  }
  Status last = Status::not_supported;
  std::set<std::pair<unsigned, Math>> taken;
  std::vector<Algorithm> result;
  for (int i = 0; i < count && static_cast<int>(taken.size()) < maximum; ++i) {
    cudnn::Performance performance = found[i];
    last = performance.status;
    if (performance.status != Status::success) continue;
    if (widest == Math::fma) performance.math = Math::fma;
    if (taken.insert({performance.algorithm, performance.math}).second)
      result.push_back({performance, with_math(performance.math)});
  }
  if (taken.empty()) cudnn::check("an algorithm", last);
  return result;
}

void CudnnLegacy::run(Algorithm const& algorithm, CudnnArrays const& arrays, void* workspace,
                      std::size_t bytes) const {
  Weights const weights(asked_.has_f64_sums());
  auto* const convolved = algorithm.convolution.get();
  unsigned const number = algorithm.performance.algorithm;
  switch (asked_.direction) {
    case ConvolutionDirection::data:
      return cudnn::check("cudnnConvolutionBackwardData",
                          library_.cudnnConvolutionBackwardData(
                              context_, weights.one(), w_.get(), arrays.w, y_.get(), arrays.y, convolved,
                              number, workspace, bytes, weights.zero(), x_.get(), arrays.x));
    case ConvolutionDirection::filter:
      return cudnn::check("cudnnConvolutionBackwardFilter",
                          library_.cudnnConvolutionBackwardFilter(
                              context_, weights.one(), x_.get(), arrays.x, y_.get(), arrays.y, convolved,
                              number, workspace, bytes, weights.zero(), w_.get(), arrays.w));
    default:
      cudnn::check("cudnnConvolutionForward",
                   library_.cudnnConvolutionForward(context_, weights.one(), x_.get(), arrays.x, w_.get(),
                                                    arrays.w, convolved, number, workspace, bytes,
                                                    weights.zero(), y_.get(), arrays.y));
  }
}

std::string CudnnLegacy::name_of(Algorithm const& algorithm) const {
  static constexpr char const* forward[] = {
      "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
      "winograd",      "winograd_nonfused"};
  static constexpr char const* data[] = {"algo_0",     "algo_1",   "fft",
                                         "fft_tiling", "winograd", "winograd_nonfused"};
  static constexpr char const* filter[] = {
      "algo_0", "algo_1", "fft", "algo_3", "winograd", "winograd_nonfused", "fft_tiling"};
  unsigned const number = algorithm.performance.algorithm;
  auto const name = [number](auto const& names) -> std::string {
    return number < std::size(names) ? names[number] : std::to_string(number);
  };
  switch (asked_.direction) {
    case ConvolutionDirection::data: return name(data);
    case ConvolutionDirection::filter: return name(filter);
    default: return name(forward);
  }
}

}  // namespace cosmati::cli
