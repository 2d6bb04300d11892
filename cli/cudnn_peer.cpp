// cuDNN as a peer.
#include "cli/cudnn_peer.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "cosmati/core/number.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {
namespace {

using cudnn::Format;
using cudnn::Math;
using cudnn::Number;
using cudnn::Status;

// One in each process and device, as the library's users keep it: making one takes a tenth of a second.
cudnn::Context* context_of(int ordinal) {
  static std::map<int, cudnn::Context*> contexts;
  cudnn::Context*& context = contexts[ordinal];
  if (context == nullptr) cudnn::check("cudnnCreate", cudnn::library().cudnnCreate(&context));
  return context;
}

template <class Handle, class Create>
Handle* created(char const* call, Create create) {
  Handle* handle = nullptr;
  cudnn::check(call, create(&handle));
  return handle;
}

Number number_of(DataType type) {
  switch (type) {
    case DataType::f64: return Number::f64;
    case DataType::f16: return Number::f16;
    case DataType::bf16: return Number::bf16;
    default: return Number::f32;
  }
}

std::string violation(ConvolutionProblem const& problem) {
  DataType const type = problem.x.type;
  bool known = false;
  for (DataType const one : {DataType::f64, DataType::f32, DataType::tf32, DataType::f16, DataType::bf16})
    known = known || type == one;
  if (!known) return std::string("cuDNN is timed for f64, f32, tf32, f16 and bf16, not for ") + name_of(type);
  for (TensorDescription const& tensor : {problem.x, problem.w, problem.y}) {
    if (number_of(tensor.type) != number_of(type))
      return std::string("cuDNN is timed for tensors of one type, not ") + name_of(type) + " and " +
             name_of(tensor.type);
    if (tensor.layout.span() > std::numeric_limits<int>::max())
      return "cuDNN's strides are 32-bit numbers; a tensor has " + std::to_string(tensor.layout.span()) +
             " elements";
    if (tensor.layout.size() == 0) return "cuDNN takes no tensor without elements";
  }
  return {};
}

char const* name_of(Format format) { return format == Format::nhwc ? "nhwc" : "nchw"; }

// The multiplies that the library may choose from: those of f32 are of f32, those of tf32 round to TF32, not
// to f16.
Math widest_math(DataType type) {
  if (type == DataType::f32 || type == DataType::f64) return Math::fma;
  return type == DataType::tf32 ? Math::standard : Math::tensor_op;
}

Layout packed(Format format, Index const (&e)[4]) {
  return image_layout(format == Format::nhwc ? TensorFormat::nhwc : TensorFormat::nchw, e[0], e[1], e[2],
                      e[3]);
}

// The same places; strides of dimensions of one element do not matter.
bool is_same_place(Layout const& x, Layout const& y) {
  for (int d = 0; d < x.rank(); ++d)
    if (x.extent(d) != y.extent(d) || (x.extent(d) > 1 && x.stride[d] != y.stride[d])) return false;
  return true;
}

std::string name_of_algorithm(ConvolutionDirection direction, unsigned algorithm) {
  static constexpr char const* forward[] = {
      "implicit_gemm", "implicit_precomp_gemm", "gemm", "direct", "fft", "fft_tiling",
      "winograd",      "winograd_nonfused"};
  static constexpr char const* data[] = {"algo_0",     "algo_1",   "fft",
                                         "fft_tiling", "winograd", "winograd_nonfused"};
  static constexpr char const* filter[] = {
      "algo_0", "algo_1", "fft", "algo_3", "winograd", "winograd_nonfused", "fft_tiling"};
  auto const name = [algorithm](auto const& names) -> std::string {
    return algorithm < std::size(names) ? names[algorithm] : std::to_string(algorithm);
  };
  switch (direction) {
    case ConvolutionDirection::data: return name(data);
    case ConvolutionDirection::filter: return name(filter);
    default: return name(forward);
  }
}

// Weights of a result and of what was there before, in the type of the sums.
struct Weights {
  explicit Weights(Number number) : is_double(number == Number::f64) {}
  void const* one() const { return is_double ? static_cast<void const*>(&one_f64) : &one_f32; }
  void const* zero() const { return is_double ? static_cast<void const*>(&zero_f64) : &zero_f32; }
  bool is_double;
  double one_f64 = 1, zero_f64 = 0;
  float one_f32 = 1, zero_f32 = 0;
};

int as_int(Index number) { return static_cast<int>(number); }

}  // namespace

CudnnPeer::CudnnPeer(ConvolutionProblem const& problem, GpuOperands const& operands, int ordinal)
    : library_(cudnn::library()),
      problem_(problem),
      operands_(operands),
      ordinal_(ordinal),
      number_(number_of(problem.x.type)),
      refusal_(violation(problem)) {
  if (!refusal_.empty()) return;
  context_ = context_of(ordinal);
  workspace_ = cuda::DeviceBuffer(ordinal, most_workspace_bytes);
  choose_padding();
  auto const& x = problem.x;
  bool const channels_last =
      is_same_place(x.layout, packed(Format::nhwc, {x.extent(0), x.extent(1), x.extent(2), x.extent(3)}));
  Format const first = channels_last ? Format::nhwc : Format::nchw;
  for (Format const format : {first, first == Format::nchw ? Format::nhwc : Format::nchw}) add(format);
  if (choices_.empty()) refusal_ = "cuDNN has no algorithm for this: " + failures_;
  drop_slow_ones();
}

// What is padded on one side alone becomes a part of the array, unless no window reaches it.
void CudnnPeer::choose_padding() {
  for (int d = 0; d < 2; ++d) {
    Index const begin = problem_.pad_begin[d], end = problem_.pad_end[d];
    pad_[d] = begin;
    if (convolution_extent(problem_.x.extent(2 + d), problem_.w.extent(2 + d), problem_.stride[d], begin,
                           begin, problem_.dilation[d]) == problem_.y.extent(2 + d))
      continue;
    pad_[d] = std::min(begin, end);
    before_[d] = begin - pad_[d];
    after_[d] = end - pad_[d];
  }
}

// Every set of operands in this layout, and the algorithms that the library finds for it.
void CudnnPeer::add(Format format) {
  bool const forward = problem_.direction == ConvolutionDirection::forward;
  bool const filter = problem_.direction == ConvolutionDirection::filter;
  Arrangement one{format, {}, {}, {}, tensor(), tensor(), filter_descriptor()};
  auto const array = [](std::size_t slot, TensorDescription const& ours) {
    return Array{slot, ours, {ours.extent(0), ours.extent(1), ours.extent(2), ours.extent(3)}};
  };
  one.x = array(forward || filter ? 0 : 2, problem_.x);
  one.w = array(filter ? 2 : 1, problem_.w);
  one.y = array(forward ? 2 : filter ? 1 : 0, problem_.y);
  for (int d = 0; d < 2; ++d) {
    one.x.extents[2 + d] += before_[d] + after_[d];
    one.x.offset[d] = before_[d];
  }
  auto const set_tensor = [&](cudnn::TensorDescriptor* descriptor, Array const& of) {
    auto const& e = of.extents;
    cudnn::check("cudnnSetTensor4dDescriptor",
                 library_.cudnnSetTensor4dDescriptor(descriptor, format, number_, as_int(e[0]), as_int(e[1]),
                                                     as_int(e[2]), as_int(e[3])));
  };
  set_tensor(one.x_tensor.get(), one.x);
  set_tensor(one.y_tensor.get(), one.y);
  auto const& e = one.w.extents;
  cudnn::check("cudnnSetFilter4dDescriptor",
               library_.cudnnSetFilter4dDescriptor(one.w_filter.get(), number_, format, as_int(e[0]),
                                                   as_int(e[1]), as_int(e[2]), as_int(e[3])));
  try {
    for (Array* const each : {&one.x, &one.w, &one.y}) place(*each, format);
    arrangements_.push_back(std::move(one));
    find(arrangements_.back());
  } catch (Error const& error) {  // the other layout may do
    if (error.code() != ErrorCode::system) throw;
    failures_ += std::string(failures_.empty() ? "" : "; ") + name_of(format) + ": " + error.what();
  }
}

void CudnnPeer::place(Array& array, Format format) {
  Layout const whole = packed(format, array.extents);
  if (is_same_place(array.ours.layout, whole)) return;
  bool const is_input = array.slot != 2;
  std::size_t const bytes = static_cast<std::size_t>(whole.size() * size_of(array.ours.type));
  for (std::size_t set = 0; set < operands_.sets(); ++set) {
    array.buffers.emplace_back(ordinal_, bytes);
    if (!is_input) continue;
    cuda::fill(ordinal_, array.buffers.back().data(), 0, bytes, nullptr);
    convert(array, format, set, false);
  }
  cuda::wait(ordinal_, nullptr);
}

// Numbers of 16 bits all go as f16, whose finite numbers keep their bits.
void CudnnPeer::convert(Array const& array, Format format, std::size_t set, bool back) const {
  TensorDescription ours = array.ours;
  if (ours.type == DataType::bf16) ours.type = DataType::f16;
  TensorDescription theirs = ours;
  Layout const whole = packed(format, array.extents);
  for (int d = 0; d < 4; ++d) theirs.layout.stride[d] = whole.stride[d];
  Index const skipped = array.offset[0] * whole.stride[2] + array.offset[1] * whole.stride[3];
  void* const part = static_cast<std::byte*>(array.buffers[set].data()) + skipped * size_of(ours.type);
  void* const mine = operands_.pointers(set)[array.slot];
  auto const ours_tensor = strided_tensor(ours), theirs_tensor = strided_tensor(theirs);
  Weights const weights(number_);
  cudnn::check(
      "cudnnTransformTensor",
      library_.cudnnTransformTensor(context_, weights.one(), back ? theirs_tensor.get() : ours_tensor.get(),
                                    back ? part : mine, weights.zero(),
                                    back ? ours_tensor.get() : theirs_tensor.get(), back ? mine : part));
}

CudnnPeer::Owned<cudnn::TensorDescriptor> CudnnPeer::tensor() const {
  return {
      created<cudnn::TensorDescriptor>("cudnnCreateTensorDescriptor", library_.cudnnCreateTensorDescriptor),
      library_.cudnnDestroyTensorDescriptor};
}

CudnnPeer::Owned<cudnn::FilterDescriptor> CudnnPeer::filter_descriptor() const {
  return {
      created<cudnn::FilterDescriptor>("cudnnCreateFilterDescriptor", library_.cudnnCreateFilterDescriptor),
      library_.cudnnDestroyFilterDescriptor};
}

CudnnPeer::Owned<cudnn::TensorDescriptor> CudnnPeer::strided_tensor(
    TensorDescription const& description) const {
  auto result = tensor();
  auto const& stride = description.layout.stride;
  cudnn::check(
      "cudnnSetTensor4dDescriptorEx",
      library_.cudnnSetTensor4dDescriptorEx(
          result.get(), number_of(description.type), as_int(description.extent(0)),
          as_int(description.extent(1)), as_int(description.extent(2)), as_int(description.extent(3)),
          as_int(stride[0]), as_int(stride[1]), as_int(stride[2]), as_int(stride[3])));
  return result;
}

CudnnPeer::Owned<cudnn::ConvolutionDescriptor> CudnnPeer::convolution(Math math) const {
  Owned<cudnn::ConvolutionDescriptor> result(
      created<cudnn::ConvolutionDescriptor>("cudnnCreateConvolutionDescriptor",
                                            library_.cudnnCreateConvolutionDescriptor),
      library_.cudnnDestroyConvolutionDescriptor);
  auto const& p = problem_;
  cudnn::check("cudnnSetConvolution2dDescriptor",
               library_.cudnnSetConvolution2dDescriptor(
                   result.get(), as_int(pad_[0]), as_int(pad_[1]), as_int(p.stride[0]), as_int(p.stride[1]),
                   as_int(p.dilation[0]), as_int(p.dilation[1]), cudnn::Mode::cross_correlation,
                   number_ == Number::f64 ? Number::f64 : Number::f32));
  cudnn::check("cudnnSetConvolutionGroupCount",
               library_.cudnnSetConvolutionGroupCount(result.get(), as_int(p.groups)));
  cudnn::check("cudnnSetConvolutionMathType", library_.cudnnSetConvolutionMathType(result.get(), math));
  return result;
}

// The library runs each of its algorithms and sorts them.
void CudnnPeer::find(Arrangement const& one) {
  constexpr int most_found = 32;
  cudnn::Performance found[most_found] = {};
  int count = 0;
  Math const widest = widest_math(problem_.x.type);
  auto const convolved = convolution(widest);
  void* const x = address(one.x, 0);
  void* const w = address(one.w, 0);
  void* const y = address(one.y, 0);
  auto* const x_tensor = one.x_tensor.get();
  auto* const w_filter = one.w_filter.get();
  auto* const y_tensor = one.y_tensor.get();
  auto const ask = [&](char const* call, auto function, auto... arguments) {
    cudnn::check(call, function(context_, arguments..., most_found, &count, found, workspace_.data(),
                                most_workspace_bytes));
  };
  switch (problem_.direction) {
    case ConvolutionDirection::data:
      ask("cudnnFindConvolutionBackwardDataAlgorithmEx", library_.cudnnFindConvolutionBackwardDataAlgorithmEx,
          w_filter, w, y_tensor, y, convolved.get(), x_tensor, x);
      break;
    case ConvolutionDirection::filter:
      ask("cudnnFindConvolutionBackwardFilterAlgorithmEx",
          library_.cudnnFindConvolutionBackwardFilterAlgorithmEx, x_tensor, x, y_tensor, y, convolved.get(),
          w_filter, w);
      break;
    default:
      ask("cudnnFindConvolutionForwardAlgorithmEx", library_.cudnnFindConvolutionForwardAlgorithmEx, x_tensor,
          x, w_filter, w, convolved.get(), y_tensor, y);
  }
  Status last = Status::not_supported;
  std::set<std::pair<unsigned, Math>> taken;
  for (int i = 0; i < count && static_cast<int>(taken.size()) < most_algorithms; ++i) {
    cudnn::Performance performance = found[i];
    last = performance.status;
    if (performance.status != Status::success) continue;
    if (widest == Math::fma) performance.math = Math::fma;
    if (taken.insert({performance.algorithm, performance.math}).second)
      choices_.push_back({arrangements_.size() - 1, performance, convolution(performance.math)});
  }
  if (taken.empty()) cudnn::check("an algorithm", last);
}

// Of those behind the first, which the library would name itself.
void CudnnPeer::drop_slow_ones() {
  float least = std::numeric_limits<float>::infinity();
  for (Choice const& one : choices_) least = std::min(least, one.performance.milliseconds);
  auto const is_slow = [&](Choice const& one) {
    return one.performance.milliseconds > static_cast<float>(worth_timing) * least;
  };
  if (!choices_.empty())
    choices_.erase(std::remove_if(choices_.begin() + 1, choices_.end(), is_slow), choices_.end());
}

std::string CudnnPeer::algorithm_name(int algorithm) const {
  Choice const& one = choices_[static_cast<std::size_t>(algorithm)];
  return name_of_algorithm(problem_.direction, one.performance.algorithm) + ' ' +
         name_of(arrangements_[one.arrangement].format);
}

void* CudnnPeer::address(Array const& array, std::size_t set) const {
  return array.buffers.empty() ? operands_.pointers(set)[array.slot] : array.buffers[set].data();
}

void CudnnPeer::run(int algorithm, std::size_t set) const {
  Choice const& choice = choices_[static_cast<std::size_t>(algorithm)];
  Arrangement const& one = arrangements_[choice.arrangement];
  Weights const weights(number_);
  void* const x = address(one.x, set);
  void* const w = address(one.w, set);
  void* const y = address(one.y, set);
  auto* const convolved = choice.convolution.get();
  unsigned const number = choice.performance.algorithm;
  switch (problem_.direction) {
    case ConvolutionDirection::data:
      return cudnn::check(
          "cudnnConvolutionBackwardData",
          library_.cudnnConvolutionBackwardData(context_, weights.one(), one.w_filter.get(), w,
                                                one.y_tensor.get(), y, convolved, number, workspace_.data(),
                                                most_workspace_bytes, weights.zero(), one.x_tensor.get(), x));
    case ConvolutionDirection::filter:
      return cudnn::check("cudnnConvolutionBackwardFilter",
                          library_.cudnnConvolutionBackwardFilter(context_, weights.one(), one.x_tensor.get(),
                                                                  x, one.y_tensor.get(), y, convolved, number,
                                                                  workspace_.data(), most_workspace_bytes,
                                                                  weights.zero(), one.w_filter.get(), w));
    default:
      cudnn::check(
          "cudnnConvolutionForward",
          library_.cudnnConvolutionForward(context_, weights.one(), one.x_tensor.get(), x, one.w_filter.get(),
                                           w, convolved, number, workspace_.data(), most_workspace_bytes,
                                           weights.zero(), one.y_tensor.get(), y));
  }
}

void CudnnPeer::bring_back(int algorithm, std::size_t set) const {
  Arrangement const& one = arrangements_[choices_[static_cast<std::size_t>(algorithm)].arrangement];
  for (Array const* const array : {&one.x, &one.w, &one.y})
    if (array->slot == 2 && !array->buffers.empty()) convert(*array, one.format, set, true);
}

// Rounding errors of either side, those of Winograd's transforms in narrow types among them; an f32 that was
// cut to TF32 is farther away.
std::optional<double> CudnnPeer::tolerance() const {
  switch (problem_.x.type) {
    case DataType::f64: return 1e-9;
    case DataType::f32: return 3e-4;
    case DataType::tf32: return 1e-2;
    case DataType::f16: return 3e-2;
    default: return 1e-1;
  }
}

}  // namespace cosmati::cli
