// The part of cuDNN's graph (backend) interface that convolutions need: the values of its descriptor kinds
// and attributes. The functions are in cli/bench/peers/cudnn.h.
#pragma once

namespace cosmati::cli::cudnn {

enum class ObjectKind : unsigned {  // cudnnBackendDescriptorType_t
  convolution = 1,
  engine = 2,
  engine_configuration = 3,
  engine_heuristics = 4,
  execution_plan = 5,
  knob_choice = 7,
  convolution_forward = 10,
  convolution_backward_filter = 11,
  convolution_backward_data = 12,
  operation_graph = 15,
  variant_pack = 16,
  tensor = 17,
  device_properties = 38,
};

enum class ElementKind : unsigned {  // cudnnBackendAttributeType_t
  handle = 0,
  data_type = 1,
  int64 = 3,
  f32 = 4,
  f64 = 5,
  pointer = 6,
  convolution_mode = 7,
  heuristic_mode = 8,
  knob = 9,
  numerical_note = 11,
  object = 15,
  character = 24,
};

enum class Attribute : unsigned {  // cudnnBackendAttributeName_t
  convolution_compute_type = 100,
  convolution_mode = 101,
  convolution_dilations = 102,
  convolution_strides = 103,
  convolution_post_paddings = 104,
  convolution_pre_paddings = 105,
  convolution_spatial_dimensions = 106,
  heuristics_mode = 200,
  heuristics_graph = 201,
  heuristics_results = 202,
  heuristics_device = 204,
  configuration_engine = 300,
  configuration_knobs = 302,
  plan_handle = 400,
  plan_configuration = 401,
  plan_workspace_bytes = 402,
  plan_device = 407,
  knob_kind = 600,
  knob_value = 601,
  forward_alpha = 700,
  forward_beta = 701,
  forward_convolution = 702,
  forward_w = 703,
  forward_x = 704,
  forward_y = 705,
  data_alpha = 706,
  data_beta = 707,
  data_convolution = 708,
  data_w = 709,
  data_x = 710,
  data_y = 711,
  filter_alpha = 712,
  filter_beta = 713,
  filter_convolution = 714,
  filter_w = 715,
  filter_x = 716,
  filter_y = 717,
  graph_handle = 800,
  graph_operations = 801,
  tensor_byte_alignment = 900,
  tensor_data_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_id = 906,
  pack_ids = 1000,
  pack_pointers = 1001,
  pack_workspace = 1003,
  engine_index = 1301,
  engine_numerical_notes = 1303,
  device_json = 2702,
};

enum class HeuristicMode : unsigned { b = 1, fallback = 2, a = 3 };  // cudnnBackendHeurMode_t
enum class NumericalNote : unsigned {
  tensor_core = 0,
  down_convert_inputs = 1
};  // other notes are permitted

}  // namespace cosmati::cli::cudnn
