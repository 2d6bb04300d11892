// cuDNN's graph interface.
#include "cli/bench/peers/cudnn_graph.h"

#include <algorithm>
#include <span>

#include "cosmati/ops/error.h"
#include "src/backend/cuda/driver/resources.h"
#include "src/jit/run_all.h"

namespace cosmati::cli {
namespace {

using cudnn::Attribute;
using cudnn::ElementKind;
using cudnn::HeuristicMode;
using cudnn::NumericalNote;
using cudnn::ObjectKind;

constexpr std::int64_t id_of_x = 1, id_of_w = 2, id_of_y = 3;
constexpr std::size_t max_knobs = 64;  // cuDNN 9 has 44 kinds of knobs
constexpr std::size_t max_notes = 32;

// The attribute names of one direction.
struct OperationAttributes {
  ObjectKind kind;
  Attribute alpha, beta, convolution, x, w, y;
};

OperationAttributes attributes_of(ConvolutionDirection direction) {
  switch (direction) {
    case ConvolutionDirection::data:
      return {ObjectKind::convolution_backward_data,
              Attribute::data_alpha,
              Attribute::data_beta,
              Attribute::data_convolution,
              Attribute::data_x,
              Attribute::data_w,
              Attribute::data_y};
    case ConvolutionDirection::filter:
      return {ObjectKind::convolution_backward_filter,
              Attribute::filter_alpha,
              Attribute::filter_beta,
              Attribute::filter_convolution,
              Attribute::filter_x,
              Attribute::filter_w,
              Attribute::filter_y};
    default:
      return {ObjectKind::convolution_forward,
              Attribute::forward_alpha,
              Attribute::forward_beta,
              Attribute::forward_convolution,
              Attribute::forward_x,
              Attribute::forward_w,
              Attribute::forward_y};
  }
}

// Makes descriptors for the library to fill.
std::vector<CudnnObject> made_objects(ObjectKind kind, std::size_t count) {
  std::vector<CudnnObject> objects;
  for (std::size_t i = 0; i < count; ++i) objects.emplace_back(kind);
  return objects;
}

std::vector<CudnnObject> objects_of(CudnnObject const& owner, Attribute attribute, ObjectKind kind,
                                    std::size_t maximum) {
  std::vector<CudnnObject> objects = made_objects(kind, maximum);
  std::vector<void*> handles;
  for (CudnnObject const& one : objects) handles.push_back(one.handle());
  std::int64_t const count =
      owner.get(attribute, ElementKind::object, static_cast<std::int64_t>(maximum), handles.data());
  objects.erase(objects.begin() + static_cast<std::ptrdiff_t>(std::min<std::int64_t>(
                                      count, static_cast<std::int64_t>(objects.size()))),
                objects.end());
  return objects;
}

// Two configurations of the same name are the same plan.
std::string name_of_engine(CudnnObject const& configuration, CudnnObject const& engine) {
  std::string name = "engine " + std::to_string(engine.integer(Attribute::engine_index));
  for (CudnnObject const& knob :
       objects_of(configuration, Attribute::configuration_knobs, ObjectKind::knob_choice, max_knobs)) {
    std::int32_t kind = 0;
    (void)knob.get(Attribute::knob_kind, ElementKind::knob, 1, &kind);
    name += " k" + std::to_string(kind) + '=' + std::to_string(knob.integer(Attribute::knob_value));
  }
  return name;
}

}  // namespace

CudnnObject::CudnnObject(cudnn::ObjectKind kind) {
  cudnn::check("cudnnBackendCreateDescriptor", cudnn::library().cudnnBackendCreateDescriptor(kind, &handle_));
}

CudnnObject::~CudnnObject() {
  if (handle_ != nullptr) (void)cudnn::library().cudnnBackendDestroyDescriptor(handle_);
}

void CudnnObject::set(cudnn::Attribute attribute, cudnn::ElementKind kind, std::int64_t count,
                      void const* elements) const {
  cudnn::check("cudnnBackendSetAttribute",
               cudnn::library().cudnnBackendSetAttribute(handle_, attribute, kind, count, elements));
}

void CudnnObject::finalize() const {
  cudnn::check("cudnnBackendFinalize", cudnn::library().cudnnBackendFinalize(handle_));
}

std::int64_t CudnnObject::get(cudnn::Attribute attribute, cudnn::ElementKind kind, std::int64_t maximum,
                              void* elements) const {
  std::int64_t count = 0;
  cudnn::check("cudnnBackendGetAttribute", cudnn::library().cudnnBackendGetAttribute(
                                               handle_, attribute, kind, maximum, &count, elements));
  return count;
}

std::int64_t CudnnObject::integer(cudnn::Attribute attribute) const {
  std::int64_t value = 0;
  (void)get(attribute, ElementKind::int64, 1, &value);
  return value;
}

CudnnGraph::CudnnGraph(cudnn::Context* context, int ordinal, CudnnConvolution const& convolution,
                       std::int64_t alignment, CudnnObject const* device)
    : context_(context),
      ordinal_(ordinal),
      asked_(convolution),
      device_(device),
      x_(tensor(id_of_x, asked_.x, alignment)),
      w_(tensor(id_of_w, asked_.w, alignment)),
      y_(tensor(id_of_y, asked_.y, alignment)),
      convolution_(ObjectKind::convolution),
      operation_(attributes_of(asked_.direction).kind),
      graph_(ObjectKind::operation_graph) {
  describe_convolution();
  describe_operation();
  if (context_ != nullptr) graph_.set(Attribute::graph_handle, context_);
  graph_.set(Attribute::graph_operations, operation_);
  graph_.finalize();
}

CudnnObject CudnnGraph::tensor(std::int64_t id, Index const (&extents)[4], std::int64_t alignment) const {
  Layout const layout = cudnn_layout(asked_.format, extents);
  std::int64_t sizes[4], strides[4];
  for (int d = 0; d < 4; ++d) {
    sizes[d] = extents[d];
    strides[d] = layout.stride[d];
  }
  CudnnObject result(ObjectKind::tensor);
  result.set(Attribute::tensor_data_type, asked_.number);
  result.set(Attribute::tensor_dimensions, sizes);
  result.set(Attribute::tensor_strides, strides);
  result.set(Attribute::tensor_id, id);
  result.set(Attribute::tensor_byte_alignment, alignment);
  result.finalize();
  return result;
}

// The number of groups follows from the channels of x and w.
void CudnnGraph::describe_convolution() const {
  auto const set_pair = [&](Attribute attribute, Index const(&pair)[2]) {
    std::int64_t const numbers[2] = {pair[0], pair[1]};
    convolution_.set(attribute, numbers);
  };
  convolution_.set(Attribute::convolution_compute_type,
                   asked_.has_f64_sums() ? cudnn::Number::f64 : cudnn::Number::f32);
  convolution_.set(Attribute::convolution_mode, cudnn::Mode::cross_correlation);
  convolution_.set(Attribute::convolution_spatial_dimensions, std::int64_t{2});
  set_pair(Attribute::convolution_dilations, asked_.dilation);
  set_pair(Attribute::convolution_strides, asked_.stride);
  set_pair(Attribute::convolution_pre_paddings, asked_.pad_begin);
  set_pair(Attribute::convolution_post_paddings, asked_.pad_end);
  convolution_.finalize();
}

void CudnnGraph::describe_operation() const {
  OperationAttributes const names = attributes_of(asked_.direction);
  if (asked_.has_f64_sums()) {
    operation_.set(names.alpha, 1.0);
    operation_.set(names.beta, 0.0);
  } else {
    operation_.set(names.alpha, 1.0F);
    operation_.set(names.beta, 0.0F);
  }
  operation_.set(names.convolution, convolution_);
  operation_.set(names.x, x_);
  operation_.set(names.w, w_);
  operation_.set(names.y, y_);
  operation_.finalize();
}

// Tensor cores round f32 factors to TF32, and some engines narrow their inputs; neither is allowed unless the
// type permits it.
bool CudnnGraph::allows(CudnnObject const& engine) const {
  NumericalNote notes[max_notes] = {};
  std::int64_t const count =
      engine.get(Attribute::engine_numerical_notes, ElementKind::numerical_note, max_notes, notes);
  std::span<NumericalNote const> const known(notes, std::min(static_cast<std::size_t>(count), max_notes));
  auto const has = [&](NumericalNote note) {
    return std::find(known.begin(), known.end(), note) != known.end();
  };
  return !has(NumericalNote::down_convert_inputs) &&
         !(asked_.type == DataType::f32 && has(NumericalNote::tensor_core));
}

void CudnnGraph::Plans::leave_out(int& count, std::string const& engine, std::string const& why,
                                  std::size_t bytes) {
  ++count;
  left_out.push_back({engine, why, bytes});
}

void CudnnGraph::Plans::refuse(std::string const& engine, std::string const& why) {
  leave_out(refused, engine, why);
  last_failure = why;
}

std::string CudnnGraph::Plans::reason() const {
  std::string text;
  auto const add = [&text](int count, std::string const& what) {
    if (count > 0) text += (text.empty() ? "" : ", ") + std::to_string(count) + ' ' + what;
  };
  add(other_numerics, "plans round more than the type allows");
  add(too_large, "plans need too much workspace");
  add(refused, "plans are rejected");
  if (!last_failure.empty()) text += (text.empty() ? "" : ", ") + last_failure;
  return text.empty() ? "the heuristics propose no plan" : text;
}

CudnnGraph::Plans CudnnGraph::plans(std::size_t max_bytes, int max_plans) const {
  Plans result;
  std::set<std::string> seen;
  auto const maximum = static_cast<std::size_t>(max_plans);
  std::size_t const kept_for_fallback = maximum / 6;
  for (HeuristicMode const mode : {HeuristicMode::a, HeuristicMode::b, HeuristicMode::fallback}) try {
      add_plans(mode, max_bytes, mode == HeuristicMode::fallback ? maximum : maximum - kept_for_fallback,
                seen, result);
    } catch (Error const& error) {  // another mode may succeed
      if (error.code() != ErrorCode::system) throw;
      result.last_failure = error.what();
    }
  return result;
}

void CudnnGraph::add_plans(HeuristicMode mode, std::size_t max_bytes, std::size_t max_plans,
                           std::set<std::string>& seen, Plans& result) const {
  CudnnObject const heuristics(ObjectKind::engine_heuristics);
  heuristics.set(Attribute::heuristics_graph, graph_);
  heuristics.set(Attribute::heuristics_mode, mode);
  if (device_ != nullptr) heuristics.set(Attribute::heuristics_device, *device_);
  heuristics.finalize();
  std::int64_t const offered = heuristics.get(Attribute::heuristics_results, ElementKind::object, 0, nullptr);
  std::vector<CudnnObject> configurations =
      objects_of(heuristics, Attribute::heuristics_results, ObjectKind::engine_configuration,
                 static_cast<std::size_t>(offered));
  // Examines no more than are still wanted at a time: a later mode may offer what this one does not reach.
  for (auto next = configurations.begin(); next != configurations.end() && result.plans.size() < max_plans;) {
    std::vector<Candidate> candidates;
    for (; next != configurations.end() && result.plans.size() + candidates.size() < max_plans; ++next)
      if (auto candidate = candidate_of(*next, seen, result)) candidates.push_back(std::move(*candidate));
    // Some engines compile their kernels, which would take up to a second for all of them one after another.
    jit::run_all(candidates.size(), 0, [&](std::size_t i) { finalize(candidates[i]); });
    for (Candidate& one : candidates) {
      Plan& plan = one.plan;
      if (!one.failure.empty())
        result.refuse(plan.engine, one.failure);
      else if (plan.workspace_bytes > max_bytes)
        result.leave_out(
            result.too_large, plan.engine,
            "it needs more than the " + std::to_string(max_bytes) + " bytes of workspace available",
            plan.workspace_bytes);
      else
        result.plans.push_back(std::move(plan));
    }
  }
}

std::optional<CudnnGraph::Candidate> CudnnGraph::candidate_of(CudnnObject& configuration,
                                                              std::set<std::string>& seen,
                                                              Plans& result) const {
  std::string name;
  try {
    auto const engines = objects_of(configuration, Attribute::configuration_engine, ObjectKind::engine, 1);
    if (engines.empty()) return {};
    name = name_of_engine(configuration, engines.front());
    if (!seen.insert(name).second) return {};  // an earlier mode offered it
    if (allows(engines.front()))
      return Candidate{{std::move(configuration), CudnnObject(ObjectKind::execution_plan), name}};
    result.leave_out(result.other_numerics, name, "it rounds more than the type allows");
  } catch (Error const& error) {  // the next configuration may succeed
    if (error.code() != ErrorCode::system) throw;
    result.refuse(name, error.what());
  }
  return {};
}

void CudnnGraph::finalize(Candidate& candidate) const {
  Plan& plan = candidate.plan;
  try {
    std::optional<cuda::Current> current;  // of this thread
    if (context_ != nullptr) {
      current.emplace(ordinal_);
      plan.plan.set(Attribute::plan_handle, context_);
    }
    plan.plan.set(Attribute::plan_configuration, plan.configuration);
    if (device_ != nullptr) plan.plan.set(Attribute::plan_device, *device_);
    plan.plan.finalize();
    plan.workspace_bytes = static_cast<std::size_t>(plan.plan.integer(Attribute::plan_workspace_bytes));
  } catch (Error const& error) {  // another configuration may succeed
    if (error.code() != ErrorCode::system) throw;
    candidate.failure = error.what();
  }
}

CudnnObject CudnnGraph::variant_pack(CudnnArrays const& arrays, void* workspace) {
  CudnnObject pack(ObjectKind::variant_pack);
  std::int64_t const ids[3] = {id_of_x, id_of_w, id_of_y};
  void* const pointers[3] = {arrays.x, arrays.w, arrays.y};
  pack.set(Attribute::pack_ids, ids);
  pack.set(Attribute::pack_pointers, pointers);
  pack.set(Attribute::pack_workspace, workspace);
  pack.finalize();
  return pack;
}

void CudnnGraph::run(Plan const& plan, CudnnObject const& variant_pack) const {
  cudnn::check("cudnnBackendExecute",
               cudnn::library().cudnnBackendExecute(context_, plan.plan.handle(), variant_pack.handle()));
}

}  // namespace cosmati::cli
