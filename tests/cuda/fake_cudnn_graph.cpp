// The graph interface of the fake cuDNN. It accepts the library's attributes, with the library's types, in
// any order before an object is finalized, and none afterward; an object can be finalized once it has all
// required attributes, set to finalized objects that still exist. Like the library it returns the number of
// results if asked for none, except for knobs. Its engines: 11 with two settings of a knob, the second of
// which is the fastest; 12, on tensor cores; 13, which narrows its inputs; 14, whose plans fail to finalize;
// 15, which needs a tebibyte of workspace; 16, which fails when it runs; 0. Mode B repeats what mode A
// offers. Groups are not supported for NHWC.
#include <algorithm>
#include <cstring>
#include <map>
#include <set>

#include "tests/cuda/fake_cudnn.h"
#include "tests/cuda/fake_libcuda.h"

namespace dnn = cosmati::cli::cudnn;
using cosmati::Index;
using dnn::Attribute;
using dnn::ElementKind;
using dnn::HeuristicMode;
using dnn::NumericalNote;
using dnn::ObjectKind;
using dnn::Status;

namespace {

constexpr Status execution_failed{5000};
constexpr std::int64_t without_knob = -1;

struct Engine {
  std::int64_t index, knob;
};

struct Object {
  ObjectKind kind;
  bool is_final = false;
  std::map<Attribute, std::vector<std::byte>> values = {};
  Engine engine = {};             // set in objects that the heuristics filled
  Object const* graph = nullptr;  // the graph that the heuristics were asked about

  template <class Element>
  Element const* all(Attribute attribute) const {
    return reinterpret_cast<Element const*>(values.at(attribute).data());
  }
  template <class Element>
  Element one(Attribute attribute) const {
    return *all<Element>(attribute);
  }
};

std::set<Object const*>& objects() {
  static std::set<Object const*> one;
  return one;
}

bool is_final(Object const* object) { return objects().contains(object) && object->is_final; }

struct Rule {
  ElementKind kind;
  std::int64_t count;
};
using Rules = std::map<Attribute, Rule>;

constexpr Attribute operation_attributes[3][6] = {
    {Attribute::forward_x, Attribute::forward_w, Attribute::forward_y, Attribute::forward_convolution,
     Attribute::forward_alpha, Attribute::forward_beta},
    {Attribute::data_x, Attribute::data_w, Attribute::data_y, Attribute::data_convolution,
     Attribute::data_alpha, Attribute::data_beta},
    {Attribute::filter_x, Attribute::filter_w, Attribute::filter_y, Attribute::filter_convolution,
     Attribute::filter_alpha, Attribute::filter_beta}};

int direction_of(ObjectKind kind) {
  return kind == ObjectKind::convolution_forward ? 0 : kind == ObjectKind::convolution_backward_data ? 1 : 2;
}

Rules rules_of(ObjectKind kind) {
  Rule const number{ElementKind::int64, 1}, pair{ElementKind::int64, 2}, four{ElementKind::int64, 4},
      object{ElementKind::object, 1}, type{ElementKind::data_type, 1};
  switch (kind) {
    case ObjectKind::tensor:
      return {{Attribute::tensor_data_type, type},
              {Attribute::tensor_dimensions, four},
              {Attribute::tensor_strides, four},
              {Attribute::tensor_id, number},
              {Attribute::tensor_byte_alignment, number}};
    case ObjectKind::convolution:
      return {{Attribute::convolution_compute_type, type},
              {Attribute::convolution_mode, {ElementKind::convolution_mode, 1}},
              {Attribute::convolution_spatial_dimensions, number},
              {Attribute::convolution_dilations, pair},
              {Attribute::convolution_strides, pair},
              {Attribute::convolution_pre_paddings, pair},
              {Attribute::convolution_post_paddings, pair}};
    case ObjectKind::convolution_forward:
    case ObjectKind::convolution_backward_data:
    case ObjectKind::convolution_backward_filter: {
      auto const& names = operation_attributes[direction_of(kind)];
      Rule const weight{ElementKind::f32, 1};
      return {{names[0], object}, {names[1], object}, {names[2], object},
              {names[3], object}, {names[4], weight}, {names[5], weight}};
    }
    case ObjectKind::operation_graph:
      return {{Attribute::graph_handle, {ElementKind::handle, 1}}, {Attribute::graph_operations, object}};
    case ObjectKind::engine_heuristics:
      return {{Attribute::heuristics_graph, object},
              {Attribute::heuristics_mode, {ElementKind::heuristic_mode, 1}}};
    case ObjectKind::execution_plan:
      return {{Attribute::plan_handle, {ElementKind::handle, 1}}, {Attribute::plan_configuration, object}};
    case ObjectKind::variant_pack:
      return {{Attribute::pack_ids, {ElementKind::int64, 3}},
              {Attribute::pack_pointers, {ElementKind::pointer, 3}},
              {Attribute::pack_workspace, {ElementKind::pointer, 1}}};
    default: return {};
  }
}

std::size_t size_of(ElementKind kind) {
  switch (kind) {
    case ElementKind::int64:
    case ElementKind::f64:
    case ElementKind::pointer:
    case ElementKind::object:
    case ElementKind::handle: return 8;
    default: return 4;
  }
}

// A convolution in the form that the fake's loops take.
struct Described {
  dnn::TensorDescriptor tensors[3];
  dnn::ConvolutionDescriptor convolution;
  int result;
};

dnn::TensorDescriptor described_tensor(Object const& tensor) {
  auto const* const extents = tensor.all<std::int64_t>(Attribute::tensor_dimensions);
  auto const* const strides = tensor.all<std::int64_t>(Attribute::tensor_strides);
  cosmati::Layout layout = cosmati::row_major({extents[0], extents[1], extents[2], extents[3]});
  for (int d = 0; d < 4; ++d) layout.stride[d] = strides[d];
  bool const last = strides[1] == 1 && extents[1] > 1;
  return {tensor.one<dnn::Number>(Attribute::tensor_data_type), last ? dnn::Format::nhwc : dnn::Format::nchw,
          layout};
}

Described described(Object const& operation) {
  int const direction = direction_of(operation.kind);
  auto const& names = operation_attributes[direction];
  Described result{};
  for (int i = 0; i < 3; ++i) result.tensors[i] = described_tensor(*operation.one<Object const*>(names[i]));
  Object const& convolution = *operation.one<Object const*>(names[3]);
  auto const pair = [&](Attribute attribute, int(&numbers)[2]) {
    for (int d = 0; d < 2; ++d) numbers[d] = static_cast<int>(convolution.all<std::int64_t>(attribute)[d]);
  };
  pair(Attribute::convolution_pre_paddings, result.convolution.pad);
  pair(Attribute::convolution_post_paddings, result.convolution.pad_end);
  pair(Attribute::convolution_strides, result.convolution.stride);
  pair(Attribute::convolution_dilations, result.convolution.dilation);
  result.convolution.groups =
      static_cast<int>(result.tensors[0].layout.extent(1) / result.tensors[1].layout.extent(1));
  constexpr int results[] = {2, 0, 1};
  result.result = results[direction];
  return result;
}

Status refusal_of(Described const& one) {
  dnn::Operand const x{one.tensors[0], nullptr}, w{one.tensors[1], nullptr}, y{one.tensors[2], nullptr};
  return dnn::refusal(x, w, y, one.convolution);
}

Object const& operation_of(Object const& heuristics) {
  return *heuristics.one<Object const*>(Attribute::heuristics_graph)
              ->one<Object const*>(Attribute::graph_operations);
}

std::vector<Engine> engines_of(Object const& heuristics) {
  switch (heuristics.one<HeuristicMode>(Attribute::heuristics_mode)) {
    case HeuristicMode::a: return {{11, 1}, {13, without_knob}, {12, without_knob}, {11, 4}};
    case HeuristicMode::b: return {{11, 4}, {14, without_knob}, {16, without_knob}};
    default: return {{15, without_knob}, {0, without_knob}, {14, without_knob}};
  }
}

Status finalized(Object const& object) {
  switch (object.kind) {
    case ObjectKind::convolution_forward:
    case ObjectKind::convolution_backward_data:
    case ObjectKind::convolution_backward_filter: {
      Status const why = refusal_of(described(object));
      return why == Status::not_supported ? Status::success : why;  // the heuristics report lack of support
    }
    case ObjectKind::engine_heuristics: return refusal_of(described(operation_of(object)));
    case ObjectKind::execution_plan:
      return object.one<Object const*>(Attribute::plan_configuration)->engine.index == 14
                 ? Status::not_supported
                 : Status::success;
    default: return Status::success;
  }
}

// Objects filled by the heuristics are finalized.
void fill(Object& target, Engine engine, Object const* graph) {
  target.engine = engine;
  target.graph = graph;
  target.is_final = true;
}

template <class Element>
Status give(Element value, std::int64_t maximum, std::int64_t* count, void* elements) {
  *count = 1;
  if (maximum > 0) std::memcpy(elements, &value, sizeof value);
  return Status::success;
}

}  // namespace

extern "C" {

// The number of objects not yet destroyed.
int fake_cudnn_objects() { return static_cast<int>(objects().size()); }

Status cudnnBackendCreateDescriptor(ObjectKind kind, void** object) {
  auto* const made = new Object{kind};
  objects().insert(made);
  *object = made;
  return Status::success;
}

Status cudnnBackendDestroyDescriptor(void* handle) {
  auto* const object = static_cast<Object*>(handle);
  if (objects().erase(object) == 0) return dnn::bad_parameter;
  delete object;
  return Status::success;
}

Status cudnnBackendSetAttribute(void* handle, Attribute attribute, ElementKind kind, std::int64_t count,
                                void const* elements) {
  auto* const object = static_cast<Object*>(handle);
  Rules const rules = rules_of(object->kind);
  auto const rule = rules.find(attribute);
  if (object->is_final || rule == rules.end()) return dnn::bad_parameter;
  if (rule->second.kind != kind || rule->second.count != count) return dnn::bad_parameter;
  auto const* const bytes = static_cast<std::byte const*>(elements);
  object->values[attribute] = {bytes, bytes + static_cast<std::size_t>(count) * size_of(kind)};
  return Status::success;
}

Status cudnnBackendFinalize(void* handle) {
  auto* const object = static_cast<Object*>(handle);
  if (object->is_final) return dnn::bad_parameter;
  for (auto const& [attribute, rule] : rules_of(object->kind)) {
    if (!object->values.contains(attribute)) return dnn::bad_parameter;
    if (rule.kind == ElementKind::object && !is_final(object->one<Object const*>(attribute)))
      return dnn::bad_parameter;
  }
  Status const status = finalized(*object);
  object->is_final = status == Status::success;
  return status;
}

Status cudnnBackendGetAttribute(void* handle, Attribute attribute, ElementKind, std::int64_t maximum,
                                std::int64_t* count, void* elements) {
  auto const& object = *static_cast<Object*>(handle);
  if (!object.is_final) return dnn::bad_parameter;
  auto* const targets = static_cast<Object**>(elements);
  Engine const engine = object.engine;
  switch (attribute) {
    case Attribute::heuristics_results: {
      std::vector<Engine> const engines = engines_of(object);
      *count = static_cast<std::int64_t>(engines.size());
      for (std::int64_t i = 0; i < std::min(maximum, *count); ++i)
        fill(*targets[i], engines[static_cast<std::size_t>(i)],
             object.one<Object const*>(Attribute::heuristics_graph));
      return Status::success;
    }
    case Attribute::configuration_engine:
      *count = 1;
      fill(*targets[0], engine, nullptr);
      return Status::success;
    case Attribute::configuration_knobs:
      *count = std::min<std::int64_t>(maximum, engine.knob == without_knob ? 0 : 1);
      if (*count > 0) fill(*targets[0], engine, nullptr);
      return Status::success;
    case Attribute::knob_kind: return give(std::int32_t{2}, maximum, count, elements);
    case Attribute::knob_value: return give(engine.knob, maximum, count, elements);
    case Attribute::engine_index: return give(engine.index, maximum, count, elements);
    case Attribute::engine_numerical_notes:
      if (engine.index == 12) return give(NumericalNote::tensor_core, maximum, count, elements);
      if (engine.index == 13) return give(NumericalNote::down_convert_inputs, maximum, count, elements);
      *count = 0;
      return Status::success;
    case Attribute::plan_workspace_bytes: {
      std::int64_t const index = object.one<Object const*>(Attribute::plan_configuration)->engine.index;
      return give(index == 15 ? std::int64_t{1} << 40 : 100 * index, maximum, count, elements);
    }
    default: return dnn::bad_parameter;
  }
}

// The result is ready when the stream is; an engine takes a millisecond longer than the fastest.
Status cudnnBackendExecute(dnn::Context* context, void* plan_handle, void* pack_handle) {
  auto const* const plan = static_cast<Object*>(plan_handle);
  auto const* const pack = static_cast<Object*>(pack_handle);
  if (!is_final(plan) || !is_final(pack)) return dnn::bad_parameter;
  auto const* const configuration = plan->one<Object const*>(Attribute::plan_configuration);
  if (!is_final(configuration)) return dnn::bad_parameter;
  auto const [index, knob] = configuration->engine;
  if (index == 16) return execution_failed;
  Object const* const graph = configuration->graph;
  if (plan->one<dnn::Context*>(Attribute::plan_handle) != context || !is_final(graph))
    return dnn::bad_parameter;
  auto const* const operation = graph->one<Object const*>(Attribute::graph_operations);
  if (!is_final(operation)) return dnn::bad_parameter;
  auto const* const ids = pack->all<std::int64_t>(Attribute::pack_ids);
  auto const* const pointers = pack->all<void*>(Attribute::pack_pointers);
  std::array<void*, 3> data{};
  for (int i = 0; i < 3; ++i) {
    auto const* const tensor =
        operation->one<Object const*>(operation_attributes[direction_of(operation->kind)][i]);
    if (!is_final(tensor)) return dnn::bad_parameter;
    for (int j = 0; j < 3; ++j)
      if (ids[j] == tensor->one<std::int64_t>(Attribute::tensor_id))
        data[static_cast<std::size_t>(i)] = pointers[j];
  }
  auto const work = [one = described(*operation), data, is_fastest = knob == 4] {
    dnn::Operand const all[] = {
        {one.tensors[0], data[0]}, {one.tensors[1], data[1]}, {one.tensors[2], data[2]}};
    (void)dnn::convolve(all[0], all[1], all[2], one.convolution, all[one.result]);
    fake::take_milliseconds(is_fastest ? 0 : 1);
  };
  return fake::enqueue(context->stream, work) ? Status::success : execution_failed;
}

}  // extern "C"
