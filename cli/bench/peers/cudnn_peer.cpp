// cuDNN as a peer.
#include "cli/bench/peers/cudnn_peer.h"

#include <algorithm>
#include <limits>
#include <map>

#include "cli/data/result_sample.h"
#include "cosmati/core/number.h"
#include "cosmati/ops/error.h"
#include "src/ops/number_types.h"

namespace cosmati::cli {
namespace {

using cudnn::Format;
using cudnn::Number;

// One context per process and device, as users of the library do, since creating one takes a tenth of a
// second.
cudnn::Context* context_of(int ordinal) {
  static std::map<int, cudnn::Context*> contexts;
  cudnn::Context*& context = contexts[ordinal];
  if (context == nullptr) cudnn::check("cudnnCreate", cudnn::library().cudnnCreate(&context));
  return context;
}

void set_stream(cudnn::Context* context, Stream stream) {
  cudnn::check("cudnnSetStream", cudnn::library().cudnnSetStream(context, cuda::handle_of(stream)));
}

Number number_of(DataType type) {
  switch (type) {
    case DataType::f64: return Number::f64;
    case DataType::f16: return Number::f16;
    case DataType::bf16: return Number::bf16;
    default: return Number::f32;
  }
}

// The type of the factors; the result of tf32 factors is f32.
DataType factor_type(ConvolutionProblem const& problem) {
  return problem.direction == ConvolutionDirection::data ? problem.y.type : problem.x.type;
}

std::string violation(ConvolutionProblem const& problem) {
  DataType const type = factor_type(problem);
  if (is_integer(type) || is_float8(type))
    return std::string("cuDNN is timed only for f64, f32, tf32, f16 and bf16, not for ") + name_of(type);
  for (TensorDescription const& tensor : {problem.x, problem.w, problem.y}) {
    if (number_of(tensor.type) != number_of(type))
      return std::string("cuDNN is timed only for tensors of one type, not ") + name_of(type) + " and " +
             name_of(tensor.type);
    if (tensor.layout.span() > std::numeric_limits<int>::max())
      return "cuDNN's strides are 32-bit numbers; a tensor has " + std::to_string(tensor.layout.span()) +
             " elements";
    if (tensor.layout.size() == 0) return "cuDNN does not support empty tensors";
  }
  return {};
}

char const* name_of(Format format) { return format == Format::nhwc ? "nhwc" : "nchw"; }

// Whether both layouts map elements to the same addresses; the stride of a dimension of extent 1 does not
// matter.
bool is_same_place(Layout const& x, Layout const& y) {
  for (int d = 0; d < x.rank(); ++d)
    if (x.extent(d) != y.extent(d) || (x.extent(d) > 1 && x.stride[d] != y.stride[d])) return false;
  return true;
}

void copy_extents(TensorDescription const& tensor, Index (&extents)[4]) {
  for (int d = 0; d < 4; ++d) extents[d] = tensor.extent(d);
}

bool is_channels_last(TensorDescription const& tensor) {
  Index extents[4];
  copy_extents(tensor, extents);
  return is_same_place(tensor.layout, cudnn_layout(Format::nhwc, extents));
}

std::size_t half_of_free_memory() {
  std::size_t free = 0, total = 0;
  cuda::driver().cuMemGetInfo_v2(&free, &total);
  return free / 2;
}

}  // namespace

CudnnPeer::CudnnPeer(ConvolutionProblem const& problem, GpuOperands const& operands, int ordinal,
                     bool same_layout)
    : problem_(problem), operands_(operands), ordinal_(ordinal), refusal_(violation(problem)) {
  (void)cudnn::library();
  if (!refusal_.empty()) return;
  context_ = context_of(ordinal);
  set_stream(context_, nullptr);
  Format const first = is_channels_last(problem.x) ? Format::nhwc : Format::nchw;
  std::vector<Format> formats = {first};
  if (!same_layout) formats.push_back(first == Format::nchw ? Format::nhwc : Format::nchw);
  Padding const even = even_padding();
  for (Format const format : formats) add(format, even);
  if (even.is_in_array())
    for (Format const format : formats) add(format, uneven_padding());
  find_choices();
  if (choices_.empty()) refusal_ = "cuDNN has no algorithm for this: " + failures_;
}

// Asymmetric padding becomes part of a padded array, unless no window extends into it.
CudnnPeer::Padding CudnnPeer::even_padding() const {
  Padding padding;
  for (int d = 0; d < 2; ++d) {
    Index const begin = problem_.pad_begin[d], end = problem_.pad_end[d];
    Index both = begin;
    if (convolution_extent(problem_.x.extent(2 + d), problem_.w.extent(2 + d), problem_.stride[d], begin,
                           begin, problem_.dilation[d]) != problem_.y.extent(2 + d)) {
      both = std::min(begin, end);
      padding.before[d] = begin - both;
      padding.after[d] = end - both;
    }
    padding.begin[d] = padding.end[d] = both;
  }
  return padding;
}

CudnnPeer::Padding CudnnPeer::uneven_padding() const {
  Padding padding;
  for (int d = 0; d < 2; ++d) {
    padding.begin[d] = problem_.pad_begin[d];
    padding.end[d] = problem_.pad_end[d];
  }
  return padding;
}

// If the library rejects one arrangement, another may succeed.
template <class Work>
bool CudnnPeer::attempt(Arrangement const& one, char const* interface, Work const& work) {
  try {
    work();
    return true;
  } catch (Error const& error) {
    if (error.code() != ErrorCode::system && error.code() != ErrorCode::out_of_memory) throw;
    failures_ += std::string(failures_.empty() ? "" : "; ") + interface + ' ' + name_of(one.asked.format) +
                 ": " + error.what();
    left_out_.push_back({{interface, "", layout_of(one)}, 0, 0, 0, error.what()});
    return false;
  }
}

void CudnnPeer::add(Format format, Padding const& padding) {
  bool const forward = problem_.direction == ConvolutionDirection::forward;
  bool const filter = problem_.direction == ConvolutionDirection::filter;
  Arrangement one;
  CudnnConvolution& asked = one.asked;
  asked.direction = problem_.direction;
  asked.type = factor_type(problem_);
  asked.number = number_of(asked.type);
  asked.format = format;
  asked.groups = problem_.groups;
  copy_extents(problem_.x, asked.x);
  copy_extents(problem_.w, asked.w);
  copy_extents(problem_.y, asked.y);
  one.is_padded_array = padding.is_in_array();
  one.x = {forward || filter ? std::size_t{0} : std::size_t{2}, problem_.x};
  one.w = {filter ? std::size_t{2} : std::size_t{1}, problem_.w};
  one.y = {forward ? std::size_t{2} : filter ? std::size_t{1} : std::size_t{0}, problem_.y};
  for (int d = 0; d < 2; ++d) {
    asked.stride[d] = problem_.stride[d];
    asked.dilation[d] = problem_.dilation[d];
    asked.pad_begin[d] = padding.begin[d];
    asked.pad_end[d] = padding.end[d];
    asked.x[2 + d] += padding.before[d] + padding.after[d];
    one.x.offset[d] = padding.before[d];
  }
  bool const is_placed = attempt(one, "arrays", [&] {
    place(one.x, format, asked.x);
    place(one.w, format, asked.w);
    place(one.y, format, asked.y);
    for (Array const* const array : {&one.x, &one.w, &one.y})
      for (std::size_t set = 0; set < array->buffers.size(); ++set)
        if (array->slot != 2) copy(one, *array, set, false);
    cuda::wait(ordinal_, nullptr);
  });
  if (!is_placed) return;
  attempt(one, "graph",
          [&] { one.graph = std::make_unique<CudnnGraph>(context_, ordinal_, asked, alignment_of(one)); });
  if (padding.is_even())
    attempt(one, "legacy", [&] { one.legacy = std::make_unique<CudnnLegacy>(context_, asked); });
  one.packs.resize(operands_.sets());
  arrangements_.push_back(std::move(one));
}

// Slot 2 is the result.
void CudnnPeer::place(Array& array, Format format, Index const (&extents)[4]) {
  Layout const whole = cudnn_layout(format, extents);
  if (is_same_place(array.ours.layout, whole)) return;
  std::size_t const bytes = static_cast<std::size_t>(whole.size() * size_of(array.ours.type));
  for (std::size_t set = 0; set < operands_.sets(); ++set) {
    array.buffers.emplace_back(ordinal_, bytes);
    if (array.slot != 2) cuda::fill(ordinal_, array.buffers.back().data(), 0, bytes, nullptr);
  }
}

void CudnnPeer::copy(Arrangement const& one, Array const& array, std::size_t set, bool back) const {
  bool const is_x = &array == &one.x, is_w = &array == &one.w;
  Layout const whole = cudnn_layout(one.asked.format, is_x ? one.asked.x : is_w ? one.asked.w : one.asked.y);
  Layout const& ours = array.ours.layout;
  Layout theirs = ours;
  for (int d = 0; d < 4; ++d) theirs.stride[d] = whole.stride[d];
  Index const skipped = array.offset[0] * whole.stride[2] + array.offset[1] * whole.stride[3];
  void* const part = static_cast<std::byte*>(array.buffers[set].data()) + skipped * size_of(array.ours.type);
  void* const mine = operands_.pointers(set)[array.slot];
  set_stream(context_, nullptr);
  Number const number = one.asked.number;
  if (back)
    CudnnLegacy::copy(context_, number, theirs, part, ours, mine);
  else
    CudnnLegacy::copy(context_, number, ours, mine, theirs, part);
}

CudnnArrays CudnnPeer::arrays_of(Arrangement const& one, std::size_t set) const {
  auto const address = [&](Array const& array) {
    return array.buffers.empty() ? operands_.pointers(set)[array.slot] : array.buffers[set].data();
  };
  return {address(one.x), address(one.w), address(one.y)};
}

// The largest power of two, up to 64, that divides all addresses.
std::int64_t CudnnPeer::alignment_of(Arrangement const& one) const {
  std::uintptr_t bits = 64;
  for (std::size_t set = 0; set < operands_.sets(); ++set) {
    CudnnArrays const arrays = arrays_of(one, set);
    for (void* const address : {arrays.x, arrays.w, arrays.y})
      bits |= reinterpret_cast<std::uintptr_t>(address);
  }
  return static_cast<std::int64_t>(bits & (~bits + 1));
}

std::vector<CudnnGraph::Plan> CudnnPeer::plans_of(Arrangement const& one, std::size_t max_bytes) {
  std::vector<CudnnGraph::Plan> plans;
  if (one.graph == nullptr) return plans;
  attempt(one, "graph", [&] {
    CudnnGraph::Plans found = one.graph->plans(max_bytes, max_plans);
    plans = std::move(found.plans);
    for (CudnnGraph::Plans::LeftOut const& other : found.left_out)
      left_out_.push_back(
          {{"graph", other.engine, layout_of(one)}, other.workspace_bytes, 0, 0, other.reason});
    if (plans.empty()) throw Error(ErrorCode::system, found.reason());
  });
  return plans;
}

// The fastest legacy algorithm and those not much slower.
std::vector<CudnnPeer::Choice> CudnnPeer::legacy_choices() {
  std::vector<Choice> choices;
  for (std::size_t i = 0; i < arrangements_.size(); ++i) {
    Arrangement const& one = arrangements_[i];
    if (one.legacy == nullptr) continue;
    attempt(one, "legacy", [&] {
      for (CudnnLegacy::Algorithm& algorithm :
           one.legacy->find(arrays_of(one, 0), workspace_.data(), legacy_bytes_, max_algorithms))
        choices.push_back({i, {}, std::move(algorithm)});
    });
  }
  float minimum = std::numeric_limits<float>::infinity();
  for (Choice const& choice : choices) minimum = std::min(minimum, choice.legacy->performance.milliseconds);
  std::erase_if(choices, [&](Choice const& choice) {
    return choice.legacy->performance.milliseconds > static_cast<float>(worth_timing) * minimum;
  });
  return choices;
}

// Likely candidates come first, since a benchmark stops trying others after some seconds: the first choice of
// the heuristics for each arrangement, the legacy algorithms, the second choice for each arrangement, and so
// on.
void CudnnPeer::find_choices() {
  std::size_t const max_bytes = std::min(max_plan_bytes, half_of_free_memory());
  std::vector<std::vector<CudnnGraph::Plan>> plans;
  legacy_bytes_ = std::min(max_legacy_bytes, max_bytes);
  std::size_t bytes = legacy_bytes_, rounds = 1;
  for (Arrangement const& one : arrangements_) {
    plans.push_back(plans_of(one, max_bytes));
    rounds = std::max(rounds, plans.back().size());
    for (CudnnGraph::Plan const& plan : plans.back()) bytes = std::max(bytes, plan.workspace_bytes);
  }
  workspace_ = cuda::DeviceBuffer(ordinal_, bytes);
  for (std::size_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < plans.size(); ++i)
      if (round < plans[i].size()) choices_.push_back({i, std::move(plans[i][round]), {}});
    if (round == 0)
      for (Choice& choice : legacy_choices()) choices_.push_back(std::move(choice));
  }
}

std::string CudnnPeer::layout_of(Arrangement const& one) {
  return std::string(name_of(one.asked.format)) + (one.is_padded_array ? " padded" : "");
}

std::size_t CudnnPeer::workspace_bytes(int algorithm) const {
  Choice const& choice = choices_[static_cast<std::size_t>(algorithm)];
  return choice.plan ? choice.plan->workspace_bytes : choice.legacy->performance.workspace_bytes;
}

PeerAlgorithm CudnnPeer::algorithm(int algorithm) const {
  Choice const& choice = choices_[static_cast<std::size_t>(algorithm)];
  Arrangement const& one = arrangements_[choice.arrangement];
  if (choice.plan) return {"graph", choice.plan->engine, layout_of(one)};
  return {"legacy", one.legacy->name_of(*choice.legacy), layout_of(one)};
}

void CudnnPeer::run(int algorithm, std::size_t set, Stream stream) const {
  Choice const& choice = choices_[static_cast<std::size_t>(algorithm)];
  Arrangement const& one = arrangements_[choice.arrangement];
  set_stream(context_, stream);
  if (choice.legacy)
    return one.legacy->run(*choice.legacy, arrays_of(one, set), workspace_.data(), legacy_bytes_);
  if (!one.packs[set]) one.packs[set] = CudnnGraph::variant_pack(arrays_of(one, set), workspace_.data());
  one.graph->run(*choice.plan, *one.packs[set]);
}

void CudnnPeer::copy_result(int algorithm, std::size_t set) const {
  Arrangement const& one = arrangements_[choices_[static_cast<std::size_t>(algorithm)].arrangement];
  for (Array const* const array : {&one.x, &one.w, &one.y})
    if (array->slot == 2 && !array->buffers.empty()) copy(one, *array, set, true);
}

std::optional<double> CudnnPeer::tolerance() const { return peer_tolerance(factor_type(problem_)); }

}  // namespace cosmati::cli
