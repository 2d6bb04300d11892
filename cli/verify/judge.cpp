// Results against the reference: which values are right, and how far off the others may be.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "cli/output/table.h"
#include "cli/verify/verification.h"
#include "nets/random.h"
#include "reference/padding.h"
#include "src/ops/number_types.h"

namespace cosmati::cli {
namespace {

using Tensors = std::vector<Tensor>;

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

// The smallest normal number of the sums that become results of this type. Below it a rounding is off by as
// much as just above it: by the unit roundoff of this number.
double smallest_normal(DataType type) { return type == DataType::f64 ? 0x1p-1022 : 0x1p-126; }

double rounded(double value, DataType type) {
  return visit_type(
      type, [=](auto tag) { return static_cast<double>(convert<typename decltype(tag)::type>(value)); });
}

// What is done to the inputs before the reference sees them.
struct Change {
  bool absolute = false;  // their absolute values
  double relative = 0;    // each is made so much larger or smaller
  nets::Random* random = nullptr;
};

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
  Tensors run(std::vector<Slot> const& slots, Tensors const& inputs, Change const& change = {}) {
    if (change.absolute) task_->make_scalars_absolute();
    fill(slots, inputs, change);
    auto const prepared = task_->prepare(this_device(Backend::reference), {});
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared->choice().workspace_bytes)));
    prepared->run(pointers_, workspace.data());
    return take_outputs();
  }
  // The reference results of a convolution with epilogue acc whose padding is multiplied explicitly; empty
  // for other operations.
  Tensors run_with_padding(std::vector<Slot> const& slots, Tensors const& inputs) {
    ConvolutionProblem const* const problem = task_->convolution();
    if (problem == nullptr) return {};
    fill(slots, inputs, {});
    ConvolutionProblem::Arguments arguments;
    std::size_t next = 0;
    ConvolutionProblem::visit_tensors(*problem, [&](char const*, Role, TensorDescription const&,
                                                    auto member) { arguments.*member = pointers_[next++]; });
    reference::run_with_padding(*problem, arguments);
    return take_outputs();
  }

 private:
  void fill(std::vector<Slot> const& slots, Tensors const& inputs, Change const& change) {
    own_ = task_->slots();
    tensors_.clear();
    pointers_.clear();
    for (std::size_t i = 0; i < own_.size(); ++i) {
      Slot const& slot = own_[i];
      std::size_t at = own_.size() == slots.size() ? i : 0;
      while (slots[at].name != slot.name || slots[at].role != slot.role) ++at;
      Tensor tensor =
          slot.role == Role::output ? Tensor(slot.description) : copy(inputs[at], slot.description);
      if (slot.role != Role::output && !is_count(slot))
        for (Index j = 0; j < tensor.size(); ++j) tensor.set(j, changed(tensor.get(j), change));
      tensors_.push_back(std::move(tensor));
    }
    for (Tensor& tensor : tensors_) pointers_.push_back(tensor.data());
  }
  static double changed(double value, Change const& change) {
    if (change.absolute) return std::fabs(value);
    if (change.random == nullptr) return value;
    return value * (1 + ((change.random->bits() & 1) != 0 ? change.relative : -change.relative));
  }
  Tensors take_outputs() {
    Tensors outputs;
    for (std::size_t i = 0; i < own_.size(); ++i)
      if (own_[i].role != Role::input) outputs.push_back(std::move(tensors_[i]));
    return outputs;
  }

  std::unique_ptr<Task> task_;
  std::vector<Slot> own_;
  Tensors tensors_;
  std::vector<void*> pointers_;
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
  Tensor const* unsaturated = nullptr;  // magnitude where the epilogue does not level off; may be null
  Tensor const* added = nullptr;        // before the epilogue; may be null
  Tensor const* padded = nullptr;       // the sums with padding that is multiplied; may be null
  std::vector<bool> const* undecided =
      nullptr;          // where roundings choose between NaN and the infinities; may be null
  double floor = 0;     // least magnitude of every element
  double relative = 0;  // of the magnitude
  double one_sign = 0;  // of the element itself
  double overflow = 0;  // of the type of the sums
  double flushed = 0;   // what denormals that are taken as 0 may add up to

  // The magnitude of element i, where finite numbers bound it; else the floor.
  double magnitude_of(Index i, double truth, double slope) const {
    double result = std::max(std::isfinite(truth) ? std::fabs(truth) : 0, floor);
    auto const take = [&result](double value) {
      if (std::isfinite(value)) result = std::max(result, std::fabs(value));
    };
    if (magnitude != nullptr) take(magnitude->get(i));
    if (accumulated != nullptr) take(slope * accumulated->get(i));
    if (unsaturated != nullptr) take(unsaturated->get(i));
    return result;
  }
  // Sums of these terms may pass the largest number on their way: nothing is promised.
  bool overflows(Index i) const {
    double const sum = accumulated != nullptr ? accumulated->get(i)
                       : magnitude != nullptr ? magnitude->get(i)
                                              : 0;
    return std::isfinite(sum) && std::fabs(sum) >= overflow;
  }
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Values that are right beside the nearest one, by the rule for NaN and infinities (docs/nonfinite.md).
bool is_permitted(double got, double truth, Index i, DataType type, Expected const& expected) {
  if (expected.added != nullptr && !std::isfinite(expected.added->get(i)))
    return std::isfinite(truth) || !std::isfinite(got);  // transformed together with what is not finite
  if (expected.padded != nullptr && std::isnan(expected.padded->get(i)))
    return same(got, rounded(std::numeric_limits<double>::quiet_NaN(), type));
  if (expected.undecided != nullptr && (*expected.undecided)[static_cast<std::size_t>(i)])
    return !std::isfinite(got);
  return expected.overflows(i);
}

void compare(Slot const& slot, Tensor const& output, Expected const& expected, double slope,
             Verdict& verdict) {
  DataType const type = slot.description.type;
  for (Index i = 0; i < output.size(); ++i) {
    double const got = output.get(i), truth = expected.reference->get(i);
    double const nearest = rounded(truth, type);
    if (same(got, nearest) || is_permitted(got, truth, i, type, expected)) continue;
    double const magnitude = expected.magnitude_of(i, truth, slope);
    double const rounding = unit_roundoff(type) * std::fabs(truth) + half_smallest_step(type);
    bool const saturated = !(std::fabs(nearest - truth) <= rounding);
    double const error = std::fabs(got - (saturated ? nearest : truth));
    bool const counted = is_count(slot) || verdict.exact;
    double const added = expected.added != nullptr ? slope * expected.added->get(i) : 0;
    double const off = expected.relative * std::max(magnitude, smallest_normal(type)) + added +
                       expected.flushed + expected.one_sign * std::fabs(truth);
    double const bound = counted || !std::isfinite(truth) ? 0 : off + rounding;
    if (error <= bound) {
      verdict.error = std::max(verdict.error, error);
      verdict.share_of_bound = std::max(verdict.share_of_bound, bound > 0 ? error / bound : 0);
      continue;
    }
    // The largest number of a type is as near as infinity to what lies between them.
    if (!counted && rounded(truth - off, type) <= got && got <= rounded(truth + off, type)) continue;
    if (verdict.correct)
      verdict.complaint = slot.name + ' ' + position_text(output.shape(), i) + " is " + in_short(got) +
                          ", not " + in_short(nearest) +
                          (bound == 0 ? "" : " (bound " + in_short(bound) + ')');
    verdict.correct = false;
    if (!(error <= verdict.error)) verdict.error = error;
    verdict.share_of_bound =
        bound > 0 ? std::max(verdict.share_of_bound, error / bound) : std::numeric_limits<double>::infinity();
  }
}

// The unit roundoff of the sums. In double the reference rounds as often and as coarsely as what is compared
// with it: results lie on both sides of what is exact, each as far off as a bound allows.
double unit_of_sums(Task& task) {
  bool in_double = true;
  for (Slot const& slot : task.slots())
    if (!is_count(slot) && slot.description.type != DataType::f64) in_double = false;
  return in_double ? 2 * 0x1p-53 : task.notes.sum == DataType::f16 ? 0x1p-11 : 0x1p-24;
}

double relative_bound(Task& task, Backend backend) {
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
  return (std::min(terms + 4, 6 * std::sqrt(terms) + 4) + functions) * unit_of_sums(task) + lost;
}

// The largest number of the type of a task's sums.
double overflow_of(Task& task) {
  if (task.notes.sum == DataType::f16) return 65504;
  for (Slot const& slot : task.slots())
    if (slot.role == Role::input && slot.description.type == DataType::f64)
      return std::numeric_limits<double>::max();
  return std::numeric_limits<float>::max();
}

// Processors multiply bf16 with denormals as 0, of factors and of sums.
double flushed_by(Task& task, double largest_input) {
  bool const flushes = task.notes.linear && std::ranges::any_of(task.slots(), [](Slot const& slot) {
                         return slot.role == Role::input && slot.description.type == DataType::bf16;
                       });
  return flushes ? 0x1p-126 * task.notes.slope * (1 + static_cast<double>(task.notes.terms) * largest_input)
                 : 0;
}

// What a variance may be off beyond the random walk of its roundings, as a share of itself. It is a sum of n
// terms of one sign, and an addition to a partial sum s rounds by up to u * s. Where terms are equal, or
// small beside s and lost, all roundings have one sign, and they add up to n * u of the sum at most, which
// one sum in order comes near to (oneDNN's, of images with channels last: 521 u of 3,168 terms of mixed
// magnitudes, where six standard deviations of a random walk are 338 u).
double roundings_of_one_sign(std::vector<Slot> const& slots, Tensors const& inputs, HardData hard,
                             double terms, double unit) {
  bool whole = true;  // small integers, whose squares are few different numbers
  for (std::size_t i = 0; i < slots.size(); ++i)
    for (Index j = 0; whole && slots[i].name == "x" && j < inputs[i].size(); ++j)
      whole = inputs[i].get(j) == std::floor(inputs[i].get(j));
  return whole || hard != HardData::none ? terms * unit : 0;
}

// How large the numbers are that an element of an output of an operation is made of that is no sum of
// products: it itself, the inputs' elements of the same place, 1 for probabilities, and over `relative` the
// largest difference of eight results for inputs that differ by `relative`, times 3. Where a result that is
// not finite becomes another such one for them, roundings decide which it is: an infinite scale times x -
// mean, where the mean of a batch is x but for its rounding.
class Sensitivity {
 public:
  Sensitivity(Task& task, std::vector<Slot> const& slots, Tensors const& inputs, Tensors const& reference,
              double relative)
      : slots_(slots), inputs_(inputs) {
    nets::Random random(1, 1);
    for (Tensor const& output : reference) {
      differences_.emplace_back(DataType::f64, output.shape());
      differences_.back().fill(0);
      undecided_.emplace_back(output.size());
    }
    for (int draw = 0; draw < 8; ++draw) {
      Tensors const other = Truth(task.clone()).run(slots, inputs, {false, relative, &random});
      for (std::size_t at = 0; at < other.size(); ++at)
        for (Index i = 0; i < other[at].size(); ++i) {
          double const truth = reference[at].get(i), beside = other[at].get(i);
          if (!std::isfinite(truth) && !std::isfinite(beside) && !same(truth, beside))
            undecided_[at][static_cast<std::size_t>(i)] = true;
          double const difference = 3 * std::fabs(beside - truth) / relative;
          if (difference > differences_[at].get(i)) differences_[at].set(i, difference);
        }
    }
  }
  Tensor of(std::size_t at) const {
    Tensor result = copy(differences_[at], describe(DataType::f64, differences_[at].shape()));
    for (Index i = 0; i < result.size(); ++i) result.set(i, std::max(1.0, result.get(i)));
    for (std::size_t k = 0; k < slots_.size(); ++k)
      if (slots_[k].role != Role::output && !is_count(slots_[k]) && inputs_[k].shape() == result.shape())
        for (Index i = 0; i < result.size(); ++i) {
          double const value = std::fabs(inputs_[k].get(i));
          if (std::isfinite(value) && value > result.get(i)) result.set(i, value);
        }
    return result;
  }
  std::vector<std::vector<bool>> const& undecided() const { return undecided_; }

 private:
  std::vector<Slot> const& slots_;
  Tensors const& inputs_;
  Tensors differences_;
  std::vector<std::vector<bool>> undecided_;
};

}  // namespace

// tanh(acc) * scale of a sum that cancels: the sum is off by a share of A, the sum of its terms' absolute
// values; tanh, whose slope is up to 1, hands that on, and the factor multiplies it: the result is off by the
// same share of A * |scale|. The expression for absolute values is tanh(A) * |scale|, which is far below that
// where A is large, since tanh levels off. So do sigmoid (slope 1/4), erf (up to 1.13, taken for 1, which
// makes the bound so much stricter), clamp, and the smaller of two values (the slope of the one that it is).
// With A in the place of tanh(A), and the larger in the place of the smaller, the expression for absolute
// values bounds what the operations behind them make of the error.
std::optional<epilogue::Expression> unsaturated(epilogue::Expression const& expression) {
  using epilogue::Op;
  epilogue::Expression::Contents contents{
      expression.text(),   expression.nodes(),  expression.scalars(),      expression.operands(),
      expression.stores(), expression.result(), expression.source_column()};
  bool changed = false;
  for (epilogue::Node& node : contents.nodes) {
    bool const levels_off =
        node.op == Op::tanh || node.op == Op::sigmoid || node.op == Op::erf || node.op == Op::clamp;
    if (!levels_off && node.op != Op::min) continue;
    node.op = levels_off ? Op::abs : Op::max;
    if (levels_off) node.operand = {node.operand[0], -1, -1};
    changed = true;
  }
  if (!changed) return std::nullopt;
  return epilogue::Expression(std::make_shared<epilogue::Expression::Contents const>(std::move(contents)));
}

bool is_count(Slot const& slot) { return slot.name == "labels" || slot.name == "indices"; }

void judge(Task& task, Backend backend, Tensors const& inputs, std::vector<Tensors> const& runs,
           Verdict& verdict, Tensors const& added, HardData hard) {
  auto const slots = task.slots();
  Tensors const reference = Truth(task.clone()).run(slots, inputs);
  double const relative = relative_bound(task, backend);
  Tensors magnitude, accumulated, unsaturated, padded;
  std::vector<std::vector<bool>> undecided;
  // The differences of distances that an RBF loss is made of are small beside them: no element tells by
  // itself.
  bool const by_element =
      !task.notes.linear && hard != HardData::none &&
      std::ranges::none_of(slots, [](Slot const& slot) { return slot.name == "centres"; });
  auto alone = task.accumulator_alone();
  if (task.notes.linear) {
    magnitude = Truth(task.clone()).run(slots, inputs, {true});
    if (alone) accumulated = Truth(alone->clone()).run(slots, inputs, {true});
    if (auto other = task.without_saturation())
      unsaturated = Truth(std::move(other)).run(slots, inputs, {true});
  }
  if (by_element) {
    Sensitivity const sensitivity(task, slots, inputs, reference, relative);
    for (std::size_t at = 0; at < reference.size(); ++at) magnitude.push_back(sensitivity.of(at));
    undecided = sensitivity.undecided();
  }
  if (hard == HardData::nonfinite)
    padded = Truth(alone ? std::move(alone) : task.clone()).run_with_padding(slots, inputs);
  double largest_input = 0;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!is_count(slots[i])) largest_input = std::max(largest_input, largest(inputs[i]));
  std::size_t at = 0, products = 0;
  for (Slot const& slot : slots) {
    if (slot.role == Role::input) continue;
    if (!slot.name.starts_with("store ")) ++products;  // what is stored beside a product stands behind it
    Expected expected;
    expected.reference = &reference[at];
    if (!magnitude.empty()) expected.magnitude = &magnitude[at];
    if (!accumulated.empty()) expected.accumulated = &accumulated[products - 1];
    if (!unsaturated.empty()) expected.unsaturated = &unsaturated[at];
    if (!undecided.empty()) expected.undecided = &undecided[at];
    if (!padded.empty()) expected.padded = &padded[products - 1];
    if (!added.empty()) expected.added = &added[products - 1];
    if (magnitude.empty()) expected.floor = std::max(largest(reference[at]), largest_input);
    expected.relative = relative;
    if (slot.name == "saved_variance")
      expected.one_sign = roundings_of_one_sign(slots, inputs, hard, static_cast<double>(task.notes.terms),
                                                unit_of_sums(task));
    expected.overflow = overflow_of(task);
    expected.flushed = flushed_by(task, largest_input);
    for (Tensors const& outputs : runs) compare(slot, outputs[at], expected, task.notes.slope, verdict);
    verdict.elements += slot.description.layout.size();
    ++at;
  }
}

}  // namespace cosmati::cli
