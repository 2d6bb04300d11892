// Compares results with the reference: which values are correct, and how large errors may be.
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

// The smallest normal number of the accumulator of results of this type. Below it, an absolute rounding error
// is as large as just above it: the unit roundoff of this number.
double smallest_normal(DataType type, DataType sum) {
  if (type == DataType::f64) return 0x1p-1022;
  return sum == DataType::f16 ? 0x1p-14 : 0x1p-126;
}

double rounded(double value, DataType type) {
  return visit_type(
      type, [=](auto tag) { return static_cast<double>(convert<typename decltype(tag)::type>(value)); });
}

// Changes of the inputs before the reference computes.
struct Change {
  bool absolute = false;  // use absolute values
  double relative = 0;    // relative change of each input
  nets::Random* random = nullptr;
};

// A copy of the task with all numbers in f64, run by the reference.
class Truth {
 public:
  explicit Truth(std::unique_ptr<Task> task) : task_(std::move(task)) {
    task_->forget_accumulator();
    task_->visit([](char const* name, Role, TensorDescription& description) {
      if (!keeps_type({name, Role::input, {}})) description.type = DataType::f64;
    });
  }
  // `inputs` are found by slot name; returns the outputs in their order.
  Tensors run(std::vector<Slot> const& slots, Tensors const& inputs, Change const& change = {}) {
    if (change.absolute) task_->make_scalars_absolute();
    fill(slots, inputs, change);
    auto const prepared = task_->prepare(this_device(Backend::reference), {});
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared->choice().workspace_bytes)));
    prepared->run(pointers_, workspace.data());
    return take_outputs();
  }
  // The reference results of a convolution with epilogue acc and explicitly multiplied padding; empty for
  // other operations.
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
      if (slot.role != Role::output && !keeps_type(slot))
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

// The data that the elements of one output are compared with; every pointer may be null.
struct Expected {
  Tensor const* reference = nullptr;
  Tensor const* magnitude = nullptr;    // magnitude of each element
  Tensor const* accumulated = nullptr;  // magnitude before the epilogue
  Tensor const* unsaturated = nullptr;  // magnitude without saturation in the epilogue
  Tensor const* added = nullptr;        // additional error before the epilogue
  Tensor const* padded = nullptr;       // sums with explicitly multiplied padding
  std::vector<bool> const* undecided =
      nullptr;          // marks elements for which rounding decides between NaN and the infinities
  double floor = 0;     // smallest magnitude of any element
  double smallest = 0;  // smallest normal number of the accumulator
  double relative = 0;  // error relative to the magnitude
  double one_sign = 0;  // error relative to the element itself
  double overflow = 0;  // largest number of the accumulator type
  double flushed = 0;   // total effect of subnormals treated as 0

  // The magnitude of element i if finite numbers bound it, else the floor.
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
  // Sums of these terms may overflow in between, so that any result is accepted.
  bool overflows(Index i) const {
    double const sum = accumulated != nullptr ? accumulated->get(i)
                       : magnitude != nullptr ? magnitude->get(i)
                                              : 0;
    return std::isfinite(sum) && std::fabs(sum) >= overflow;
  }
};

bool same(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// Values accepted besides the nearest one, by the rules for NaN and infinities (docs/nonfinite.md).
bool is_permitted(double got, double truth, Index i, DataType type, Expected const& expected) {
  if (expected.added != nullptr && !std::isfinite(expected.added->get(i)))
    return std::isfinite(truth) || !std::isfinite(got);  // may be transformed together with non-finite values
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
    bool const counted = keeps_type(slot) || verdict.exact;
    double const added = expected.added != nullptr ? slope * expected.added->get(i) : 0;
    double const off = expected.relative * std::max(magnitude, expected.smallest) + added + expected.flushed +
                       expected.one_sign * std::fabs(truth);
    double const bound = counted || !std::isfinite(truth) ? 0 : off + rounding;
    if (error <= bound) {
      verdict.error = std::max(verdict.error, error);
      verdict.share_of_bound = std::max(verdict.share_of_bound, bound > 0 ? error / bound : 0);
      continue;
    }
    // Near the largest number of a type, results within the bound may round to that number or to infinity.
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

// The unit roundoff of the sums. With f64 data the reference rounds as often and as coarsely as the kernel,
// so both errors are bounded and the unit is doubled.
double unit_of_sums(Task& task) {
  bool in_double = true;
  for (Slot const& slot : task.slots())
    if (!keeps_type(slot) && slot.description.type != DataType::f64) in_double = false;
  return in_double ? 2 * 0x1p-53 : task.notes.sum == DataType::f16 ? 0x1p-11 : 0x1p-24;
}

bool on_gpu(Backend backend) { return backend == Backend::cuda || backend == Backend::emulator; }

double relative_bound(Task& task, Backend backend, HardData hard) {
  auto const terms = static_cast<double>(task.notes.terms);
  double const functions = (task.notes.transcendental ? 64 : 0) + task.notes.exponents;
  // A GPU's tensor cores truncate the terms of sums of 8-bit floats at 2^-13 of the largest term, 33 terms at
  // a time: for 128 products the loss is half a unit per term, with the sign of the term. That is 2^-11 for
  // sums up to 0.4 of the sum of absolute values. In hard data one term may exceed all others: then up to 32
  // terms lose up to 2^-13 of the whole sum each, and five standard deviations of that are 2^-9.
  bool eight_bits = false;
  for (Slot const& slot : task.slots())
    if (DataType const type = slot.description.type;
        slot.role == Role::input && (type == DataType::e4m3 || type == DataType::e5m2))
      eight_bits = backend == Backend::cuda;
  // The largest error of the products of pieces, by which a GPU may compute products of f32.
  double const of_products = on_gpu(backend) ? largest_product_error(task.notes.compute) : 0;
  double const of_one_sum = hard != HardData::none ? 0x1p-9 : 0x1p-11 / std::sqrt(std::max(1.0, terms / 128));
  // Without promotion, each term loses up to 2^-13 of the sum so far, with the sign of the term. Terms of
  // random signs add up to about sqrt(terms) of them, so the losses do, too.
  bool const fast = task.notes.compute == ComputeMode::fast_accumulation;
  double const of_sum = hard != HardData::none ? terms * 0x1p-14 : std::sqrt(terms) * 0x1p-14;
  double const lost = !eight_bits ? 0 : fast ? std::max(of_one_sum, 0x1p-8) + of_sum : of_one_sum;
  // Tensor cores truncate every sum of 8 products of tf32 pieces, by half a unit on average.
  double const truncated = of_products > 0 && task.notes.compute == ComputeMode::tf32x3 ? terms / 16 : 0;
  return (std::max(std::min(terms + 4, 6 * std::sqrt(terms) + 4), truncated) + functions) *
             unit_of_sums(task) +
         lost + of_products;
}

// The largest number of the accumulator type of a task.
double overflow_of(Task& task) {
  // Products of pieces rounded up add to more than the product.
  if (splits_factors(task.notes.compute)) return std::numeric_limits<float>::max() * (1 - 0x1p-6);
  if (task.notes.sum == DataType::f16) return 65504;
  for (Slot const& slot : task.slots())
    if (slot.role == Role::input && slot.description.type == DataType::f64)
      return std::numeric_limits<double>::max();
  return std::numeric_limits<float>::max();
}

// Processors treat subnormal factors and sums of bf16 products as 0. Pieces of f32 factors below 2^-110
// lose what is below 2^-133.
double flushed_by(Task& task, double largest_input) {
  bool const flushes =
      task.notes.linear &&
      (splits_factors(task.notes.compute) || std::ranges::any_of(task.slots(), [](Slot const& slot) {
         return slot.role == Role::input && slot.description.type == DataType::bf16;
       }));
  return flushes ? 0x1p-126 * task.notes.slope * (1 + static_cast<double>(task.notes.terms) * largest_input)
                 : 0;
}

// The permitted relative error of a variance beyond the random walk of its rounding errors. A variance is a
// sum of n terms of one sign, and adding to a partial sum s rounds by up to u * s. If terms are equal, or
// small beside s and lost, all rounding errors have the same sign and add up to at most n * u of the sum,
// which one sequential sum comes close to (oneDNN's, for images with channels last: 521 u for 3,168 terms of
// mixed magnitudes, where six standard deviations of a random walk are 338 u).
double roundings_of_one_sign(std::vector<Slot> const& slots, Tensors const& inputs, HardData hard,
                             double terms, double unit) {
  bool whole = true;  // small integers, whose squares take few different values
  for (std::size_t i = 0; i < slots.size(); ++i)
    for (Index j = 0; whole && slots[i].name == "x" && j < inputs[i].size(); ++j)
      whole = inputs[i].get(j) == std::floor(inputs[i].get(j));
  return whole || hard != HardData::none ? terms * unit : 0;
}

// Magnitudes for the elements of an output that is not a sum of products: the largest of 1 (the size of
// probabilities), the inputs' elements at the same position, and three times the largest of eight differences
// of results for inputs changed by `relative`, divided by `relative`. An element is undecided if such a
// change turns a non-finite result into a different non-finite one, since rounding then decides which it is:
// for example an infinite scale times x - mean, where x equals the mean of a batch except for rounding.
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
      if (slots_[k].role != Role::output && !keeps_type(slots_[k]) && inputs_[k].shape() == result.shape())
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

// For tanh(acc) * scale where the sum acc cancels: the error of acc is relative to A, the sum of the absolute
// values of its terms; tanh, whose slope is at most 1, passes it on, and the factor multiplies it, so the
// error of the result is relative to A * |scale|. The expression for absolute values gives tanh(A) * |scale|,
// which is far smaller for large A because tanh saturates. The same holds for sigmoid (slope 1/4), erf (up to
// 1.13, taken as 1, which makes the bound that much stricter), clamp, and the smaller of two values (the
// slope of the selected one). With A instead of tanh(A), and max instead of min, the expression for absolute
// values bounds how the operations after them propagate the error.
//
// A sum below the smallest normal number of its type has an absolute error as large as just above it, which a
// factor such as a large scale multiplies: in the absolute values it is at least that number. The one of f32
// is so small that no factor makes it count.
std::optional<epilogue::Expression> unsaturated(epilogue::Expression const& expression, DataType sum) {
  using epilogue::Op;
  epilogue::Expression::Contents contents{
      expression.text(),   expression.nodes(),  expression.scalars(),      expression.operands(),
      expression.stores(), expression.result(), expression.source_column()};
  bool changed = false;
  if (sum == DataType::f16) {
    // The first two nodes; all others refer to the larger of both instead of to acc.
    constexpr int added = 2;
    for (epilogue::Node& node : contents.nodes) {
      for (int& operand : node.operand)
        if (operand >= 0) operand += added;
      if (node.op == Op::accumulator) node = {Op::max, {0, 1, -1}};
    }
    contents.nodes.insert(
        contents.nodes.begin(),
        {{Op::accumulator}, {Op::constant, {-1, -1, -1}, smallest_normal(DataType::f16, sum)}});
    contents.result += added;
    for (epilogue::Store& store : contents.stores) store.node += added;
    changed = true;
  }
  for (epilogue::Node& node : contents.nodes) {
    bool const levels_off = node.op == Op::tanh || node.op == Op::sigmoid || node.op == Op::erf ||
                            node.op == Op::normal_cdf || node.op == Op::clamp;
    if (!levels_off && node.op != Op::min) continue;
    node.op = levels_off ? Op::abs : Op::max;
    if (levels_off) node.operand = {node.operand[0], -1, -1};
    changed = true;
  }
  if (!changed) return std::nullopt;
  return epilogue::Expression(std::make_shared<epilogue::Expression::Contents const>(std::move(contents)));
}

bool keeps_type(Slot const& slot) {
  for (char const* name : {"labels", "indices", "numbers", "scaling"})
    if (slot.name == name) return true;
  return false;
}

void judge(Task& task, Backend backend, Tensors const& inputs, std::vector<Tensors> const& runs,
           Verdict& verdict, Tensors const& added, HardData hard) {
  auto const slots = task.slots();
  Tensors const reference = Truth(task.clone()).run(slots, inputs);
  double const relative = relative_bound(task, backend, hard);
  Tensors magnitude, accumulated, unsaturated, padded;
  std::vector<std::vector<bool>> undecided;
  // The differences of distances in an RBF loss are small relative to the distances, so single elements say
  // nothing about the error.
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
  // An infinite operand of an epilogue, for example tanh(acc) * scale[m] with an infinite scale, gets the
  // sign of the sum, and rounding decides the sign of a sum that cancels.
  if (task.notes.linear && alone && hard == HardData::nonfinite)
    undecided = Sensitivity(task, slots, inputs, reference, relative).undecided();
  if (by_element) {
    Sensitivity const sensitivity(task, slots, inputs, reference, relative);
    for (std::size_t at = 0; at < reference.size() && task.notes.bounds == nullptr; ++at)
      magnitude.push_back(sensitivity.of(at));
    undecided = sensitivity.undecided();
  }
  if (hard == HardData::nonfinite)
    padded = Truth(alone ? std::move(alone) : task.clone()).run_with_padding(slots, inputs);
  double largest_input = 0;
  for (std::size_t i = 0; i < slots.size(); ++i)
    if (!keeps_type(slots[i])) largest_input = std::max(largest_input, largest(inputs[i]));
  std::size_t at = 0, products = 0;
  for (Slot const& slot : slots) {
    if (slot.role == Role::input) continue;
    if (!slot.name.starts_with("store ")) ++products;  // stores follow their product
    Expected expected;
    expected.reference = &reference[at];
    if (!magnitude.empty()) expected.magnitude = &magnitude[at];
    if (!accumulated.empty()) expected.accumulated = &accumulated[products - 1];
    if (!unsaturated.empty()) expected.unsaturated = &unsaturated[at];
    if (!undecided.empty()) expected.undecided = &undecided[at];
    if (!padded.empty()) expected.padded = &padded[products - 1];
    if (!added.empty()) expected.added = &added[products - 1];
    if (magnitude.empty() && task.notes.bounds == nullptr)
      expected.floor = std::max(largest(reference[at]), largest_input);
    expected.relative = task.notes.bounds != nullptr ? 0 : relative;
    if (slot.name == "saved_variance")
      expected.one_sign = roundings_of_one_sign(slots, inputs, hard, static_cast<double>(task.notes.terms),
                                                unit_of_sums(task));
    expected.smallest =
        std::max(1.0, task.notes.slope) * smallest_normal(slot.description.type, task.notes.sum);
    expected.overflow = overflow_of(task);
    expected.flushed = flushed_by(task, largest_input);
    for (Tensors const& outputs : runs) compare(slot, outputs[at], expected, task.notes.slope, verdict);
    verdict.elements += slot.description.layout.size();
    ++at;
  }
}

}  // namespace cosmati::cli
