// One problem verified.
#include "cli/verification.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <vector>

#include "cli/guarded.h"
#include "cli/placement.h"
#include "cli/staged.h"
#include "cli/table.h"

namespace cosmati::cli {
namespace {

using Tensors = std::vector<Tensor>;

constexpr unsigned char poisons[] = {0xff, 0x5a};

bool is_count(Slot const& slot) { return slot.name == "labels" || slot.name == "indices"; }

double unit_roundoff(DataType type) {
  switch (type) {
    case DataType::f64: return 0x1p-53;
    case DataType::f32: return 0x1p-24;
    case DataType::tf32:
    case DataType::f16: return 0x1p-11;
    case DataType::bf16: return 0x1p-8;
    case DataType::e4m3: return 0x1p-4;
    case DataType::e5m2: return 0x1p-3;
    default: return 0;
  }
}

double half_smallest_step(DataType type) {
  switch (type) {
    case DataType::f64: return 0x1p-1074;
    case DataType::f32:
    case DataType::tf32:
    case DataType::bf16: return 0x1p-134;
    case DataType::f16: return 0x1p-25;
    case DataType::e4m3: return 0x1p-10;
    case DataType::e5m2: return 0x1p-17;
    default: return 0.5;
  }
}

double rounded(double value, DataType type) {
  return visit_type(
      type, [=](auto tag) { return static_cast<double>(convert<typename decltype(tag)::type>(value)); });
}

// A copy of the task with all numbers in double; it runs on the reference.
class Truth {
 public:
  explicit Truth(std::unique_ptr<Task> task) : task_(std::move(task)) {
    task_->forget_accumulator();
    task_->visit([](char const* name, Role, TensorDescription& description) {
      if (!is_count({name, Role::input, {}})) description.type = DataType::f64;
    });
  }
  // `inputs` are found by slot name; the result holds the outputs in their order.
  Tensors run(std::vector<Slot> const& slots, Tensors const& inputs, bool absolute) {
    if (absolute) task_->make_scalars_absolute();
    Tensors tensors;
    std::vector<void*> pointers;
    auto const own = task_->slots();
    for (std::size_t i = 0; i < own.size(); ++i) {
      Slot const& slot = own[i];
      std::size_t at = own.size() == slots.size() ? i : 0;
      while (slots[at].name != slot.name || slots[at].role != slot.role) ++at;
      Tensor tensor =
          slot.role == Role::output ? Tensor(slot.description) : copy(inputs[at], slot.description);
      if (absolute && slot.role != Role::output && !is_count(slot))
        for (Index j = 0; j < tensor.size(); ++j) tensor.set(j, std::fabs(tensor.get(j)));
      tensors.push_back(std::move(tensor));
    }
    for (Tensor& tensor : tensors) pointers.push_back(tensor.data());
    auto const prepared = task_->prepare(this_device(Backend::reference), {});
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared->choice().workspace_bytes)));
    prepared->run(pointers, workspace.data());
    Tensors outputs;
    for (std::size_t i = 0; i < own.size(); ++i)
      if (own[i].role != Role::input) outputs.push_back(std::move(tensors[i]));
    return outputs;
  }

 private:
  std::unique_ptr<Task> task_;
};

double largest(Tensor const& tensor) {
  double result = 0;
  for (Index i = 0; i < tensor.size(); ++i) {
    double const value = std::fabs(tensor.get(i));
    if (std::isfinite(value)) result = std::max(result, value);
  }
  return result;
}

std::string position_text(Shape const& shape, Index linear) {
  Shape at = shape;
  for (int d = shape.rank - 1; d >= 0; --d) {
    at[d] = linear % shape[d];
    linear /= shape[d];
  }
  return to_string(at);
}

// What the elements of one output are compared with.
struct Expected {
  Tensor const* reference = nullptr;
  Tensor const* magnitude = nullptr;    // of each element; may be null
  Tensor const* accumulated = nullptr;  // magnitude before the epilogue; may be null
  Tensor const* added = nullptr;        // before the epilogue; may be null
  double floor = 0;                     // least magnitude of every element
  double relative = 0;                  // of the magnitude
};

void compare(Slot const& slot, Tensor const& output, Expected const& expected, double slope,
             Verdict& verdict) {
  DataType const type = slot.description.type;
  for (Index i = 0; i < output.size(); ++i) {
    double const got = output.get(i), truth = expected.reference->get(i);
    double const nearest = rounded(truth, type);
    if (got == nearest) continue;
    double magnitude = std::max(std::fabs(truth), expected.floor);
    if (expected.magnitude != nullptr) magnitude = std::max(magnitude, std::fabs(expected.magnitude->get(i)));
    if (expected.accumulated != nullptr)
      magnitude = std::max(magnitude, slope * expected.accumulated->get(i));
    double const rounding = unit_roundoff(type) * std::fabs(truth) + half_smallest_step(type);
    bool const saturated = !(std::fabs(nearest - truth) <= rounding);
    double const error = std::fabs(got - (saturated ? nearest : truth));
    bool const counted = is_count(slot) || verdict.exact;
    double const added = expected.added != nullptr ? slope * expected.added->get(i) : 0;
    double const bound = counted ? 0 : expected.relative * magnitude + rounding + added;
    if (error <= bound) {
      verdict.error = std::max(verdict.error, error);
      verdict.share_of_bound = std::max(verdict.share_of_bound, bound > 0 ? error / bound : 0);
      continue;
    }
    if (verdict.correct)
      verdict.complaint = slot.name + ' ' + position_text(output.shape(), i) + " is " + in_short(got) +
                          ", not " + in_short(nearest) + (counted ? "" : " (bound " + in_short(bound) + ')');
    verdict.correct = false;
    if (!(error <= verdict.error)) verdict.error = error;
    verdict.share_of_bound =
        bound > 0 ? std::max(verdict.share_of_bound, error / bound) : std::numeric_limits<double>::infinity();
  }
}

double relative_bound(Task& task, Backend backend) {
  bool in_double = true;
  for (Slot const& slot : task.slots())
    if (!is_count(slot) && slot.description.type != DataType::f64) in_double = false;
  auto const terms = static_cast<double>(task.notes.terms);
  double const functions = (task.notes.transcendental ? 64 : 0) + task.notes.exponents;
  // A GPU's tensor cores cut the terms of 33-term sums of 8-bit floats at 2^-13 of the largest: of 128
  // products half a unit a term is lost, with the term's sign. That is 2^-11 where sums are up to 0.4 of what
  // they add.
  bool eight_bits = false;
  for (Slot const& slot : task.slots())
    if (DataType const type = slot.description.type;
        slot.role == Role::input && (type == DataType::e4m3 || type == DataType::e5m2))
      eight_bits = backend == Backend::cuda;
  double const lost = eight_bits ? 0x1p-11 / std::sqrt(std::max(1.0, terms / 128)) : 0;
  double const unit = in_double ? 0x1p-53 : task.notes.sum == DataType::f16 ? 0x1p-11 : 0x1p-24;
  return (std::min(terms + 4, 6 * std::sqrt(terms) + 4) + functions) * unit + lost;
}

struct Runs {
  std::vector<Tensors> outputs;  // of one run for each poison
};

// Runs once for each poison; complains about guard bands and about runs that differ.
Runs run_guarded(PreparedTask const& prepared, std::vector<Slot> const& slots, Tensors& inputs,
                 Index misalignment, Verdict& verdict) {
  Runs runs;
  std::deque<GuardedTensor> moved;  // inputs
  for (std::size_t i = 0; misalignment > 0 && i < slots.size(); ++i)
    if (slots[i].role == Role::input) {
      moved.emplace_back(slots[i].description, poisons[0], offset_of(slots[i].description, misalignment));
      moved.back().copy_from(inputs[i]);
    }
  for (unsigned char const poison : poisons) {
    std::vector<GuardedTensor> outputs;
    std::vector<void*> pointers;
    for (Slot const& slot : slots)
      if (slot.role != Role::input)
        outputs.emplace_back(slot.description, poison, offset_of(slot.description, misalignment));
    std::size_t next = 0, next_moved = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      bool const written = slots[i].role != Role::input;
      if (slots[i].role == Role::in_out) outputs[next].copy_from(inputs[i]);
      pointers.push_back(written            ? outputs[next++].data()
                         : misalignment > 0 ? moved[next_moved++].data()
                                            : inputs[i].data());
    }
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.choice().workspace_bytes)));
    std::memset(workspace.data(), poison, workspace.bytes());
    prepared.run(pointers, workspace.data());
    runs.outputs.emplace_back();
    next = 0;
    for (Slot const& slot : slots) {
      if (slot.role == Role::input) continue;
      runs.outputs.back().push_back(outputs[next].contents());
      // The gaps of what was copied in are the caller's, not poison.
      std::string const trespass = slot.role == Role::output ? outputs[next].trespass() : "";
      if (!trespass.empty() && verdict.correct) {
        verdict.correct = false;
        verdict.complaint = slot.name + ": " + trespass;
      }
      ++next;
    }
  }
  return runs;
}

}  // namespace

void judge(Task& task, Backend backend, Tensors const& inputs, std::vector<Tensors> const& runs,
           Verdict& verdict, Tensors const& added) {
  auto const slots = task.slots();
  double largest_input = 0;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!is_count(slots[i])) largest_input = std::max(largest_input, largest(inputs[i]));
  Tensors const reference = Truth(task.clone()).run(slots, inputs, false);
  Tensors magnitude, accumulated;
  if (task.notes.linear) {
    magnitude = Truth(task.clone()).run(slots, inputs, true);
    if (auto alone = task.accumulator_alone()) accumulated = Truth(std::move(alone)).run(slots, inputs, true);
  }
  std::size_t at = 0, products = 0;
  for (Slot const& slot : slots) {
    if (slot.role == Role::input) continue;
    if (!slot.name.starts_with("store ")) ++products;  // what is stored beside a product stands behind it
    Expected expected;
    expected.reference = &reference[at];
    if (task.notes.linear) expected.magnitude = &magnitude[at];
    if (!accumulated.empty()) expected.accumulated = &accumulated[products - 1];
    if (!added.empty()) expected.added = &added[products - 1];
    if (!task.notes.linear) expected.floor = std::max(largest(reference[at]), largest_input);
    expected.relative = relative_bound(task, backend);
    for (Tensors const& outputs : runs) compare(slot, outputs[at], expected, task.notes.slope, verdict);
    verdict.elements += slot.description.layout.size();
    ++at;
  }
}

Verdict verify_task(Task& task, Device const& device, PlanOptions const& options, Data const& data,
                    nets::Random& random) {
  promise_alignment(task, data.misalignment);
  auto const slots = task.slots();
  Tensors inputs;
  for (Slot const& slot : slots) {
    inputs.emplace_back(slot.role == Role::output ? describe(slot.description.type, Shape(0))
                                                  : slot.description);
    std::memset(inputs.back().data(), 0xff, inputs.back().bytes());  // NaN in the gaps
    fill_random(inputs.back(), slot.name, {data.small_integers, task.notes.classes}, random);
  }
  auto const prepared = for_host_arrays(task.prepare(device, options), device, slots,
                                        static_cast<std::size_t>(GuardedTensor::guard));
  Verdict verdict;
  verdict.kernel = prepared->choice().kernel;
  std::vector<void*> pointers;
  for (Tensor& input : inputs) pointers.push_back(input.data());
  Tensors const added = task.added_errors(device, options, pointers);
  verdict.exact = task.notes.terms == 0 || (data.small_integers && task.notes.exact && added.empty());
  Runs const runs = run_guarded(*prepared, slots, inputs, data.misalignment, verdict);

  judge(task, device.backend, inputs, runs.outputs, verdict, added);
  return verdict;
}

}  // namespace cosmati::cli
