// The functions of cuDNN that bench calls, on the memory of the fake driver: convolutions by plain loops. The
// legacy calls offer three identical algorithms, the third of which is reported as slow. Like the library,
// they pad both sides equally and reject results of other extents; they do not support groups for NHWC. Their
// workspace size encodes the allowed math mode. The graph interface is in fake_cudnn_graph.cpp.
#include "tests/cuda/fake_cudnn.h"

#include <utility>

#include "tests/cuda/fake_libcuda.h"

namespace dnn = cosmati::cli::cudnn;
using cosmati::Index;
using dnn::Context;
using dnn::ConvolutionDescriptor;
using dnn::FilterDescriptor;
using dnn::Format;
using dnn::Math;
using dnn::Mode;
using dnn::Number;
using dnn::Performance;
using dnn::Status;
using dnn::TensorDescriptor;

namespace cosmati::cli::cudnn {

Status refusal(Operand const& x, Operand const& w, Operand const& y,
               ConvolutionDescriptor const& convolution) {
  for (int d = 0; d < 2; ++d)
    if (cosmati::convolution_extent(x.extent(2 + d), w.extent(2 + d), convolution.stride[d],
                                    convolution.pad[d], convolution.pad_end[d],
                                    convolution.dilation[d]) != y.extent(2 + d))
      return bad_parameter;
  if (x.extent(1) != w.extent(1) * convolution.groups || y.extent(1) != w.extent(0)) return bad_parameter;
  return convolution.groups > 1 && x.tensor.format == Format::nhwc ? Status::not_supported : Status::success;
}

Status convolve(Operand const& x, Operand const& w, Operand const& y,
                ConvolutionDescriptor const& convolution, Operand const& result) {
  if (Status const why = refusal(x, w, y, convolution); why != Status::success) return why;
  std::vector<double> sums(static_cast<std::size_t>(result.tensor.layout.size()), 0.0);
  auto const place = [&result](Index i, Index j, Index k, Index l) {
    return static_cast<std::size_t>(((i * result.extent(1) + j) * result.extent(2) + k) * result.extent(3) +
                                    l);
  };
  Index const group_c = w.extent(1), group_k = w.extent(0) / convolution.groups;
  for (Index n = 0; n < y.extent(0); ++n)
    for (Index k = 0; k < y.extent(1); ++k)
      for (Index p = 0; p < y.extent(2); ++p)
        for (Index q = 0; q < y.extent(3); ++q)
          for (Index c = 0; c < group_c; ++c)
            for (Index r = 0; r < w.extent(2); ++r)
              for (Index s = 0; s < w.extent(3); ++s) {
                Index const from = k / group_k * group_c + c;
                Index const h = p * convolution.stride[0] + r * convolution.dilation[0] - convolution.pad[0];
                Index const v = q * convolution.stride[1] + s * convolution.dilation[1] - convolution.pad[1];
                if (h < 0 || v < 0 || h >= x.extent(2) || v >= x.extent(3)) continue;
                if (&result == &y) sums[place(n, k, p, q)] += x.at(n, from, h, v) * w.at(k, c, r, s);
                if (&result == &x) sums[place(n, from, h, v)] += y.at(n, k, p, q) * w.at(k, c, r, s);
                if (&result == &w) sums[place(k, c, r, s)] += y.at(n, k, p, q) * x.at(n, from, h, v);
              }
  for (std::size_t i = 0; i < sums.size(); ++i) result.set(static_cast<Index>(i), sums[i]);
  return Status::success;
}

}  // namespace cosmati::cli::cudnn

namespace {

template <class Object>
Status create(Object** object) {
  *object = new Object{};
  return Status::success;
}
template <class Object>
Status destroy(Object* object) {
  delete object;
  return Status::success;
}

using dnn::Operand;
using dnn::type_of;

Operand operand(TensorDescriptor const& tensor, void const* data) {
  return {tensor, const_cast<void*>(data)};
}

// The legacy calls take 2 ms longer than the best plan.
Status enqueued(Context* context, Operand const& x, Operand const& w, Operand const& y,
                ConvolutionDescriptor const& convolution, Operand const& result) {
  if (Status const why = refusal(x, w, y, convolution); why != Status::success) return why;
  auto const work = [=, tensors = std::array{x.tensor, w.tensor, y.tensor},
                     of = &result == &x   ? 0U
                          : &result == &w ? 1U
                                          : 2U,
                     data = std::array{x.data, w.data, y.data}] {
    Operand const all[] = {{tensors[0], data[0]}, {tensors[1], data[1]}, {tensors[2], data[2]}};
    (void)dnn::convolve(all[0], all[1], all[2], convolution, all[of]);
    fake::take_milliseconds(2);
  };
  return fake::enqueue(context->stream, work) ? Status::success : Status::not_supported;
}

Status find(Operand const& x, Operand const& w, Operand const& y, ConvolutionDescriptor const& convolution,
            Operand const& result, int* found, Performance* results) {
  *found = 0;
  Status const why = refusal(x, w, y, convolution);
  if (why == dnn::bad_parameter) return why;
  for (Index i = 0; i < result.tensor.layout.size(); ++i)
    result.set(i, 7);  // overwrites results, like the library's own runs
  bool const last = x.tensor.format == Format::nhwc;
  for (auto const& [algorithm, milliseconds] : {std::pair{1U, last ? 1.0F : 1.2F}, {5U, 1.3F}, {0U, 9.0F}})
    results[(*found)++] = {
        algorithm,        why, milliseconds, 1000 + static_cast<std::size_t>(convolution.math), 1,
        convolution.math, {}};
  return Status::success;
}

}  // namespace

extern "C" {

// One for the process; it is never destroyed.
Status cudnnCreate(Context** context) {
  static Context the_only;
  *context = &the_only;
  return Status::success;
}
Status cudnnSetStream(Context* context, CUstream_st* stream) {
  context->stream = stream;
  return Status::success;
}
std::size_t cudnnGetVersion() { return 91902; }
char const* cudnnGetErrorString(Status status) {
  return status == Status::not_supported ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_OF_THE_FAKE";
}
Status cudnnCreateTensorDescriptor(TensorDescriptor** tensor) { return create(tensor); }
Status cudnnDestroyTensorDescriptor(TensorDescriptor* tensor) { return destroy(tensor); }
Status cudnnSetTensor4dDescriptor(TensorDescriptor* tensor, Format format, Number type, int n, int c, int h,
                                  int w) {
  auto const order = format == Format::nhwc ? cosmati::TensorFormat::nhwc : cosmati::TensorFormat::nchw;
  *tensor = {type, format, cosmati::image_layout(order, n, c, h, w)};
  return Status::success;
}
Status cudnnSetTensor4dDescriptorEx(TensorDescriptor* tensor, Number type, int n, int c, int h, int w,
                                    int n_stride, int c_stride, int h_stride, int w_stride) {
  *tensor = {type, Format::nchw, cosmati::row_major({n, c, h, w})};
  int const strides[] = {n_stride, c_stride, h_stride, w_stride};
  for (int d = 0; d < 4; ++d) tensor->layout.stride[d] = strides[d];
  return Status::success;
}
Status cudnnTransformTensor(Context*, void const*, TensorDescriptor* from, void const* source, void const*,
                            TensorDescriptor* to, void* target) {
  for (Index i = 0; i < from->layout.size(); ++i)
    operand(*to, target).set(i, cosmati::load(type_of(from->type), source, from->layout.offset_of_linear(i)));
  return Status::success;
}
Status cudnnCreateFilterDescriptor(FilterDescriptor** filter) { return create(filter); }
Status cudnnDestroyFilterDescriptor(FilterDescriptor* filter) { return destroy(filter); }
Status cudnnSetFilter4dDescriptor(FilterDescriptor* filter, Number type, Format format, int k, int c, int h,
                                  int w) {
  return cudnnSetTensor4dDescriptor(filter, format, type, k, c, h, w);
}
Status cudnnCreateConvolutionDescriptor(ConvolutionDescriptor** convolution) { return create(convolution); }
Status cudnnDestroyConvolutionDescriptor(ConvolutionDescriptor* convolution) { return destroy(convolution); }
Status cudnnSetConvolution2dDescriptor(ConvolutionDescriptor* convolution, int pad_h, int pad_w, int stride_h,
                                       int stride_w, int dilation_h, int dilation_w, Mode, Number) {
  *convolution = {{pad_h, pad_w}, {stride_h, stride_w}, {dilation_h, dilation_w}, {pad_h, pad_w}};
  return Status::success;
}
Status cudnnSetConvolutionGroupCount(ConvolutionDescriptor* convolution, int groups) {
  convolution->groups = groups;
  return Status::success;
}
Status cudnnSetConvolutionMathType(ConvolutionDescriptor* convolution, Math math) {
  convolution->math = math;
  return Status::success;
}

Status cudnnFindConvolutionForwardAlgorithmEx(Context*, TensorDescriptor* x_tensor, void const* x,
                                              FilterDescriptor* w_filter, void const* w,
                                              ConvolutionDescriptor* convolution, TensorDescriptor* y_tensor,
                                              void* y, int, int* found, Performance* results, void*,
                                              std::size_t) {
  Operand const result = operand(*y_tensor, y);
  return find(operand(*x_tensor, x), operand(*w_filter, w), result, *convolution, result, found, results);
}
Status cudnnFindConvolutionBackwardDataAlgorithmEx(Context*, FilterDescriptor* w_filter, void const* w,
                                                   TensorDescriptor* dy_tensor, void const* dy,
                                                   ConvolutionDescriptor* convolution,
                                                   TensorDescriptor* dx_tensor, void* dx, int, int* found,
                                                   Performance* results, void*, std::size_t) {
  Operand const result = operand(*dx_tensor, dx);
  return find(result, operand(*w_filter, w), operand(*dy_tensor, dy), *convolution, result, found, results);
}
Status cudnnFindConvolutionBackwardFilterAlgorithmEx(Context*, TensorDescriptor* x_tensor, void const* x,
                                                     TensorDescriptor* dy_tensor, void const* dy,
                                                     ConvolutionDescriptor* convolution,
                                                     FilterDescriptor* dw_filter, void* dw, int, int* found,
                                                     Performance* results, void*, std::size_t) {
  Operand const result = operand(*dw_filter, dw);
  return find(operand(*x_tensor, x), result, operand(*dy_tensor, dy), *convolution, result, found, results);
}

Status cudnnConvolutionForward(Context* context, void const*, TensorDescriptor* x_tensor, void const* x,
                               FilterDescriptor* w_filter, void const* w, ConvolutionDescriptor* convolution,
                               unsigned, void*, std::size_t, void const*, TensorDescriptor* y_tensor,
                               void* y) {
  Operand const result = operand(*y_tensor, y);
  return enqueued(context, operand(*x_tensor, x), operand(*w_filter, w), result, *convolution, result);
}
Status cudnnConvolutionBackwardData(Context* context, void const*, FilterDescriptor* w_filter, void const* w,
                                    TensorDescriptor* dy_tensor, void const* dy,
                                    ConvolutionDescriptor* convolution, unsigned, void*, std::size_t,
                                    void const*, TensorDescriptor* dx_tensor, void* dx) {
  Operand const result = operand(*dx_tensor, dx);
  return enqueued(context, result, operand(*w_filter, w), operand(*dy_tensor, dy), *convolution, result);
}
Status cudnnConvolutionBackwardFilter(Context* context, void const*, TensorDescriptor* x_tensor,
                                      void const* x, TensorDescriptor* dy_tensor, void const* dy,
                                      ConvolutionDescriptor* convolution, unsigned, void*, std::size_t,
                                      void const*, FilterDescriptor* dw_filter, void* dw) {
  Operand const result = operand(*dw_filter, dw);
  return enqueued(context, operand(*x_tensor, x), result, operand(*dy_tensor, dy), *convolution, result);
}

}  // extern "C"
