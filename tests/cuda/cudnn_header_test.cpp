// Checks the declarations of cli/bench/peers/cudnn.h against cuDNN's headers; compiled if they are installed.
#include <gtest/gtest.h>

#include <cstddef>

#include "cli/bench/peers/cudnn.h"
#include "tests/cuda/plain_of.h"
#if __has_include(<cudnn.h>)
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include <cudnn.h>
#endif

#if defined(CUDNN_MAJOR)
namespace {

using namespace cosmati::cli::cudnn;
using cosmati::cli::equal;
using cosmati::cli::PlainOf;

#define COSMATI_SAME_FUNCTION(name, result, parameters) \
  static_assert(std::is_same_v<PlainOf<result parameters>::type, PlainOf<decltype(::name)>::type>, #name);
COSMATI_CUDNN(COSMATI_SAME_FUNCTION)

static_assert(equal(Status::success, CUDNN_STATUS_SUCCESS));
static_assert(equal(Status::not_supported, CUDNN_STATUS_NOT_SUPPORTED));
static_assert(equal(Number::f32, CUDNN_DATA_FLOAT));
static_assert(equal(Number::f64, CUDNN_DATA_DOUBLE));
static_assert(equal(Number::f16, CUDNN_DATA_HALF));
static_assert(equal(Number::bf16, CUDNN_DATA_BFLOAT16));
static_assert(equal(Format::nchw, CUDNN_TENSOR_NCHW));
static_assert(equal(Format::nhwc, CUDNN_TENSOR_NHWC));
static_assert(equal(Mode::cross_correlation, CUDNN_CROSS_CORRELATION));
static_assert(equal(Math::standard, CUDNN_DEFAULT_MATH));
static_assert(equal(Math::tensor_op, CUDNN_TENSOR_OP_MATH));
static_assert(equal(Math::fma, CUDNN_FMA_MATH));

static_assert(equal(ObjectKind::convolution, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR));
static_assert(equal(ObjectKind::engine, CUDNN_BACKEND_ENGINE_DESCRIPTOR));
static_assert(equal(ObjectKind::engine_configuration, CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
static_assert(equal(ObjectKind::engine_heuristics, CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR));
static_assert(equal(ObjectKind::execution_plan, CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR));
static_assert(equal(ObjectKind::knob_choice, CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR));
static_assert(equal(ObjectKind::convolution_forward, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR));
static_assert(equal(ObjectKind::convolution_backward_filter,
                    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR));
static_assert(equal(ObjectKind::convolution_backward_data,
                    CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR));
static_assert(equal(ObjectKind::operation_graph, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR));
static_assert(equal(ObjectKind::variant_pack, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR));
static_assert(equal(ObjectKind::tensor, CUDNN_BACKEND_TENSOR_DESCRIPTOR));
static_assert(equal(ElementKind::handle, CUDNN_TYPE_HANDLE));
static_assert(equal(ElementKind::data_type, CUDNN_TYPE_DATA_TYPE));
static_assert(equal(ElementKind::int64, CUDNN_TYPE_INT64));
static_assert(equal(ElementKind::f32, CUDNN_TYPE_FLOAT));
static_assert(equal(ElementKind::f64, CUDNN_TYPE_DOUBLE));
static_assert(equal(ElementKind::pointer, CUDNN_TYPE_VOID_PTR));
static_assert(equal(ElementKind::convolution_mode, CUDNN_TYPE_CONVOLUTION_MODE));
static_assert(equal(ElementKind::heuristic_mode, CUDNN_TYPE_HEUR_MODE));
static_assert(equal(ElementKind::knob, CUDNN_TYPE_KNOB_TYPE));
static_assert(equal(ElementKind::numerical_note, CUDNN_TYPE_NUMERICAL_NOTE));
static_assert(equal(ElementKind::object, CUDNN_TYPE_BACKEND_DESCRIPTOR));
static_assert(equal(ElementKind::character, CUDNN_TYPE_CHAR));
static_assert(equal(Attribute::convolution_compute_type, CUDNN_ATTR_CONVOLUTION_COMP_TYPE));
static_assert(equal(Attribute::convolution_mode, CUDNN_ATTR_CONVOLUTION_CONV_MODE));
static_assert(equal(Attribute::convolution_dilations, CUDNN_ATTR_CONVOLUTION_DILATIONS));
static_assert(equal(Attribute::convolution_strides, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES));
static_assert(equal(Attribute::convolution_post_paddings, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS));
static_assert(equal(Attribute::convolution_pre_paddings, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS));
static_assert(equal(Attribute::convolution_spatial_dimensions, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS));
static_assert(equal(Attribute::heuristics_mode, CUDNN_ATTR_ENGINEHEUR_MODE));
static_assert(equal(Attribute::heuristics_graph, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH));
static_assert(equal(Attribute::heuristics_results, CUDNN_ATTR_ENGINEHEUR_RESULTS));
static_assert(equal(Attribute::configuration_engine, CUDNN_ATTR_ENGINECFG_ENGINE));
static_assert(equal(Attribute::configuration_knobs, CUDNN_ATTR_ENGINECFG_KNOB_CHOICES));
static_assert(equal(Attribute::plan_handle, CUDNN_ATTR_EXECUTION_PLAN_HANDLE));
static_assert(equal(Attribute::plan_configuration, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG));
static_assert(equal(Attribute::plan_workspace_bytes, CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE));
static_assert(equal(Attribute::knob_kind, CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE));
static_assert(equal(Attribute::knob_value, CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE));
static_assert(equal(Attribute::forward_alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA));
static_assert(equal(Attribute::forward_beta, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA));
static_assert(equal(Attribute::forward_convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC));
static_assert(equal(Attribute::forward_w, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
static_assert(equal(Attribute::forward_x, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X));
static_assert(equal(Attribute::forward_y, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
static_assert(equal(Attribute::data_alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA));
static_assert(equal(Attribute::data_beta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA));
static_assert(equal(Attribute::data_convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC));
static_assert(equal(Attribute::data_w, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W));
static_assert(equal(Attribute::data_x, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX));
static_assert(equal(Attribute::data_y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY));
static_assert(equal(Attribute::filter_alpha, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA));
static_assert(equal(Attribute::filter_beta, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA));
static_assert(equal(Attribute::filter_convolution, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC));
static_assert(equal(Attribute::filter_w, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW));
static_assert(equal(Attribute::filter_x, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X));
static_assert(equal(Attribute::filter_y, CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY));
static_assert(equal(Attribute::graph_handle, CUDNN_ATTR_OPERATIONGRAPH_HANDLE));
static_assert(equal(Attribute::graph_operations, CUDNN_ATTR_OPERATIONGRAPH_OPS));
static_assert(equal(Attribute::tensor_byte_alignment, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT));
static_assert(equal(Attribute::tensor_data_type, CUDNN_ATTR_TENSOR_DATA_TYPE));
static_assert(equal(Attribute::tensor_dimensions, CUDNN_ATTR_TENSOR_DIMENSIONS));
static_assert(equal(Attribute::tensor_strides, CUDNN_ATTR_TENSOR_STRIDES));
static_assert(equal(Attribute::tensor_id, CUDNN_ATTR_TENSOR_UNIQUE_ID));
static_assert(equal(Attribute::pack_ids, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS));
static_assert(equal(Attribute::pack_pointers, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS));
static_assert(equal(Attribute::pack_workspace, CUDNN_ATTR_VARIANT_PACK_WORKSPACE));
static_assert(equal(Attribute::engine_index, CUDNN_ATTR_ENGINE_GLOBAL_INDEX));
static_assert(equal(Attribute::engine_numerical_notes, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE));
static_assert(equal(HeuristicMode::a, CUDNN_HEUR_MODE_A));
static_assert(equal(HeuristicMode::b, CUDNN_HEUR_MODE_B));
static_assert(equal(HeuristicMode::fallback, CUDNN_HEUR_MODE_FALLBACK));
static_assert(equal(NumericalNote::tensor_core, CUDNN_NUMERICAL_NOTE_TENSOR_CORE));
static_assert(equal(NumericalNote::down_convert_inputs, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS));
#if CUDNN_VERSION >= 91400  // newer than the other declarations
static_assert(equal(ObjectKind::device_properties, CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR));
static_assert(equal(Attribute::heuristics_device, CUDNN_ATTR_ENGINEHEUR_DEVICEPROP));
static_assert(equal(Attribute::plan_device, CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP));
static_assert(equal(Attribute::device_json, CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION));
#endif

template <class Theirs>
constexpr bool is_performance() {
  return sizeof(Performance) == sizeof(Theirs) &&
         offsetof(Performance, algorithm) == offsetof(Theirs, algo) &&
         offsetof(Performance, status) == offsetof(Theirs, status) &&
         offsetof(Performance, milliseconds) == offsetof(Theirs, time) &&
         offsetof(Performance, workspace_bytes) == offsetof(Theirs, memory) &&
         offsetof(Performance, math) == offsetof(Theirs, mathType);
}
static_assert(is_performance<cudnnConvolutionFwdAlgoPerf_t>());
static_assert(is_performance<cudnnConvolutionBwdDataAlgoPerf_t>());
static_assert(is_performance<cudnnConvolutionBwdFilterAlgoPerf_t>());

TEST(CudnnHeader, AgreesWithTheLibrary) { SUCCEED() << "cudnn.h of cuDNN " << CUDNN_VERSION; }

}  // namespace
#else
TEST(CudnnHeader, AgreesWithTheLibrary) { GTEST_SKIP() << "there is no cudnn.h here"; }
#endif
