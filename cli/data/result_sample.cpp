// Compares a sample of a peer's result with ours.
#include "cli/data/result_sample.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "cli/operations/subject.h"

namespace cosmati::cli {
namespace {

constexpr Index max_places = 512;

}  // namespace

ResultSample::ResultSample(Task& task, GpuOperands const& operands, int ordinal, nets::Random& random)
    : operands_(operands), ordinal_(ordinal) {
  auto const slots = task.slots();
  auto const output =
      std::find_if(slots.begin(), slots.end(), [](Slot const& slot) { return slot.role == Role::output; });
  slot_ = static_cast<std::size_t>(output - slots.begin());
  result_ = *output;
  Index const size = result_.description.layout.size();
  std::set<Index> drawn;
  if (size > 0) drawn = {0, size - 1};
  for (Index i = 0; size > 0 && i < max_places; ++i) drawn.insert(draw_between(random, 0, size - 1));
  places_.assign(drawn.begin(), drawn.end());
  kept_ = values();
}

std::vector<double> ResultSample::values() const {
  DataType const type = result_.description.type;
  auto const bytes = static_cast<std::size_t>(size_of(type));
  std::vector<std::byte> elements(places_.size() * bytes);
  auto const* const data = static_cast<std::byte const*>(operands_.pointers(0)[slot_]);
  for (std::size_t i = 0; i < places_.size(); ++i) {
    auto const offset = static_cast<std::size_t>(result_.description.layout.offset_of_linear(places_[i]));
    cuda::copy_to_host(ordinal_, elements.data() + i * bytes, data + offset * bytes, bytes, nullptr);
  }
  cuda::wait(ordinal_, nullptr);
  std::vector<double> numbers;
  for (std::size_t i = 0; i < places_.size(); ++i)
    numbers.push_back(load(type, elements.data(), static_cast<Index>(i)));
  return numbers;
}

Verdict ResultSample::compare(double tolerance) const {
  return compare_with_ours(result_.name, places_, kept_, values(), tolerance);
}

double peer_tolerance(DataType factors) {
  switch (factors) {
    case DataType::f64: return 1e-9;
    case DataType::f32: return 3e-4;
    case DataType::tf32: return 1e-2;
    case DataType::f16: return 3e-2;
    default: return 1e-1;
  }
}

Verdict compare_with_ours(std::string const& name, std::vector<Index> const& places,
                          std::vector<double> const& ours, std::vector<double> const& theirs,
                          double tolerance) {
  Verdict verdict;
  verdict.elements = static_cast<Index>(places.size());
  double squares = 0;
  for (double const one : ours) squares += one * one;
  double const bound = tolerance * (ours.empty() ? 0 : std::sqrt(squares / static_cast<double>(ours.size())));
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    double const error = std::fabs(theirs[i] - ours[i]);
    if (error <= bound) {
      verdict.error = std::max(verdict.error, error);
      continue;
    }
    if (verdict.correct)
      verdict.complaint = name + ", element " + std::to_string(places[i]) + ": " + std::to_string(theirs[i]) +
                          ", ours " + std::to_string(ours[i]) + " (tolerance " + std::to_string(bound) + ")";
    verdict.correct = false;
  }
  verdict.share_of_bound = bound > 0 ? verdict.error / bound : 0;
  return verdict;
}

}  // namespace cosmati::cli
