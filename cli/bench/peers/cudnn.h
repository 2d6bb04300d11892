// cuDNN's convolutions by its graph interface and by its legacy calls, loaded on first use. Its types and
// functions are declared here because a build needs no CUDA toolkit.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>

#include "cli/bench/peers/cudnn_backend.h"

struct CUstream_st;

namespace cosmati::cli::cudnn {

struct Context;
struct TensorDescriptor;
struct FilterDescriptor;
struct ConvolutionDescriptor;

enum class Status : unsigned { success = 0, not_supported = 3000 };  // cudnnStatus_t
enum class Number : unsigned { f32 = 0, f64 = 1, f16 = 2, bf16 = 9 };
enum class Format : unsigned { nchw = 0, nhwc = 1 };
enum class Mode : unsigned { cross_correlation = 1 };
// Permitted math modes. `standard` permits TF32 for f32; `fma` excludes tensor cores.
enum class Math : unsigned { standard = 0, tensor_op = 1, tensor_op_with_conversion = 2, fma = 3 };
constexpr unsigned deterministic = 1;  // cudnnDeterminism_t

// cudnnConvolutionFwdAlgoPerf_t and its counterparts for gradients: an algorithm and its measured
// performance.
struct Performance {
  unsigned algorithm;
  Status status;
  float milliseconds;
  std::size_t workspace_bytes;
  unsigned determinism;
  Math math;
  int reserved[3];
};

// Every function in use, by its exported name.
#define COSMATI_CUDNN(FUNCTION)                                                                              \
  FUNCTION(cudnnCreate, Status, (Context * *context))                                                        \
  FUNCTION(cudnnSetStream, Status, (Context * context, CUstream_st * stream))                                \
  FUNCTION(cudnnBackendCreateDescriptor, Status, (ObjectKind kind, void** object))                           \
  FUNCTION(cudnnBackendDestroyDescriptor, Status, (void* object))                                            \
  FUNCTION(cudnnBackendFinalize, Status, (void* object))                                                     \
  FUNCTION(cudnnBackendSetAttribute, Status,                                                                 \
           (void* object, Attribute attribute, ElementKind kind, std::int64_t count, void const* elements))  \
  FUNCTION(cudnnBackendGetAttribute, Status,                                                                 \
           (void* object, Attribute attribute, ElementKind kind, std::int64_t maximum, std::int64_t* count,  \
            void* elements))                                                                                 \
  FUNCTION(cudnnBackendExecute, Status, (Context * context, void* plan, void* variant_pack))                 \
  FUNCTION(cudnnGetVersion, std::size_t, ())                                                                 \
  FUNCTION(cudnnGetErrorString, char const*, (Status status))                                                \
  FUNCTION(cudnnCreateTensorDescriptor, Status, (TensorDescriptor * *tensor))                                \
  FUNCTION(cudnnDestroyTensorDescriptor, Status, (TensorDescriptor * tensor))                                \
  FUNCTION(cudnnSetTensor4dDescriptor, Status,                                                               \
           (TensorDescriptor * tensor, Format format, Number type, int n, int c, int h, int w))              \
  FUNCTION(cudnnSetTensor4dDescriptorEx, Status,                                                             \
           (TensorDescriptor * tensor, Number type, int n, int c, int h, int w, int n_stride, int c_stride,  \
            int h_stride, int w_stride))                                                                     \
  FUNCTION(cudnnTransformTensor, Status,                                                                     \
           (Context * context, void const* alpha, TensorDescriptor* from, void const* source,                \
            void const* beta, TensorDescriptor* to, void* target))                                           \
  FUNCTION(cudnnCreateFilterDescriptor, Status, (FilterDescriptor * *filter))                                \
  FUNCTION(cudnnDestroyFilterDescriptor, Status, (FilterDescriptor * filter))                                \
  FUNCTION(cudnnSetFilter4dDescriptor, Status,                                                               \
           (FilterDescriptor * filter, Number type, Format format, int k, int c, int h, int w))              \
  FUNCTION(cudnnCreateConvolutionDescriptor, Status, (ConvolutionDescriptor * *convolution))                 \
  FUNCTION(cudnnDestroyConvolutionDescriptor, Status, (ConvolutionDescriptor * convolution))                 \
  FUNCTION(cudnnSetConvolution2dDescriptor, Status,                                                          \
           (ConvolutionDescriptor * convolution, int pad_h, int pad_w, int stride_h, int stride_w,           \
            int dilation_h, int dilation_w, Mode mode, Number sums))                                         \
  FUNCTION(cudnnSetConvolutionGroupCount, Status, (ConvolutionDescriptor * convolution, int groups))         \
  FUNCTION(cudnnSetConvolutionMathType, Status, (ConvolutionDescriptor * convolution, Math math))            \
  FUNCTION(cudnnFindConvolutionForwardAlgorithmEx, Status,                                                   \
           (Context * context, TensorDescriptor * x_tensor, void const* x, FilterDescriptor* w_filter,       \
            void const* w, ConvolutionDescriptor* convolution, TensorDescriptor* y_tensor, void* y,          \
            int wanted, int* found, Performance* results, void* workspace, std::size_t workspace_bytes))     \
  FUNCTION(cudnnFindConvolutionBackwardDataAlgorithmEx, Status,                                              \
           (Context * context, FilterDescriptor * w_filter, void const* w, TensorDescriptor* dy_tensor,      \
            void const* dy, ConvolutionDescriptor* convolution, TensorDescriptor* dx_tensor, void* dx,       \
            int wanted, int* found, Performance* results, void* workspace, std::size_t workspace_bytes))     \
  FUNCTION(cudnnFindConvolutionBackwardFilterAlgorithmEx, Status,                                            \
           (Context * context, TensorDescriptor * x_tensor, void const* x, TensorDescriptor* dy_tensor,      \
            void const* dy, ConvolutionDescriptor* convolution, FilterDescriptor* dw_filter, void* dw,       \
            int wanted, int* found, Performance* results, void* workspace, std::size_t workspace_bytes))     \
  FUNCTION(                                                                                                  \
      cudnnConvolutionForward, Status,                                                                       \
      (Context * context, void const* alpha, TensorDescriptor* x_tensor, void const* x,                      \
       FilterDescriptor* w_filter, void const* w, ConvolutionDescriptor* convolution, unsigned algorithm,    \
       void* workspace, std::size_t workspace_bytes, void const* beta, TensorDescriptor* y_tensor, void* y)) \
  FUNCTION(cudnnConvolutionBackwardData, Status,                                                             \
           (Context * context, void const* alpha, FilterDescriptor* w_filter, void const* w,                 \
            TensorDescriptor* dy_tensor, void const* dy, ConvolutionDescriptor* convolution,                 \
            unsigned algorithm, void* workspace, std::size_t workspace_bytes, void const* beta,              \
            TensorDescriptor* dx_tensor, void* dx))                                                          \
  FUNCTION(cudnnConvolutionBackwardFilter, Status,                                                           \
           (Context * context, void const* alpha, TensorDescriptor* x_tensor, void const* x,                 \
            TensorDescriptor* dy_tensor, void const* dy, ConvolutionDescriptor* convolution,                 \
            unsigned algorithm, void* workspace, std::size_t workspace_bytes, void const* beta,              \
            FilterDescriptor* dw_filter, void* dw))

struct Library {
#define COSMATI_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  COSMATI_CUDNN(COSMATI_MEMBER)
#undef COSMATI_MEMBER
};

// Loads the file named by COSMATI_CUDNN, otherwise libcudnn.so.9 from the library folders. Throws
// Error(unavailable) with the reason.
Library const& library();
std::string version();  // "cuDNN 9.19.0"

// Throws Error("cuDNN: CALL: WHY") unless the call succeeded.
void check(char const* call, Status status);

}  // namespace cosmati::cli::cudnn
