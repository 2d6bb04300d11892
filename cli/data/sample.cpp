// Verifies a sample of a result.
#include "cli/data/sample.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "cli/operations/subject.h"

namespace cosmati::cli {
namespace {

using Places = std::vector<Index>;

// Draws `count` of `extent` indices, in increasing order.
Places draw_places(Index extent, Index count, nets::Random& random) {
  if (count >= extent) {
    Places all;
    for (Index i = 0; i < extent; ++i) all.push_back(i);
    return all;
  }
  std::set<Index> drawn{0, extent - 1};
  while (static_cast<Index>(drawn.size()) < count) drawn.insert(draw_between(random, 0, extent - 1));
  return {drawn.begin(), drawn.end()};
}

// The values of each index to verify; an index that is summed over keeps all of them.
std::map<std::string, Places> choose_places(Task& task, Index elements, nets::Random& random) {
  std::map<std::string, Index> extents;
  for (Slot const& slot : task.slots()) {
    auto const& axes = task.notes.axes.at(slot.name);
    for (std::size_t d = 0; d < axes.size(); ++d)
      extents[axes[d]] = slot.description.extent(static_cast<int>(d));
  }
  Index const m = extents.at("m"), n = extents.at("n");
  auto const side = static_cast<Index>(std::ceil(std::sqrt(static_cast<double>(elements))));
  auto const other = [&](Index taken) {
    return taken == 0 ? Index{0} : std::max<Index>(2, (elements + taken - 1) / taken);
  };
  Index const columns = std::min(n, std::max(side, other(std::min(m, side))));
  Index const rows = std::min(m, other(columns));
  return {{"m", draw_places(m, rows, random)},
          {"n", draw_places(n, columns, random)},
          {"k", draw_places(extents.at("k"), extents.at("k"), random)},
          {"batch", draw_places(extents.at("batch"), 2, random)}};
}

Tensor gather(Tensor const& whole, std::vector<std::string> const& axes,
              std::map<std::string, Places> const& places) {
  Shape shape;
  for (std::string const& axis : axes) shape[shape.rank++] = static_cast<Index>(places.at(axis).size());
  Tensor part(whole.type(), shape);
  for (Index i = 0; i < part.size(); ++i) {
    Index offset = 0, rest = i;
    for (int d = shape.rank - 1; d >= 0; --d) {
      auto const place = static_cast<std::size_t>(rest % shape[d]);
      rest /= shape[d];
      offset += places.at(axes[static_cast<std::size_t>(d)])[place] * whole.layout().stride[d];
    }
    part.set(i, load(whole.type(), whole.data(), offset));
  }
  return part;
}

}  // namespace

Verdict verify_sample(Task& task, std::vector<Tensor> const& tensors, Index elements, nets::Random& random) {
  auto const places = choose_places(task, elements, random);
  auto const slots = task.slots();
  std::vector<Tensor> inputs;
  std::vector<std::vector<Tensor>> outputs(1);
  std::map<std::string, TensorDescription> descriptions;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    Tensor part = gather(tensors[i], task.notes.axes.at(slots[i].name), places);
    descriptions[slots[i].name] = part.description();
    if (slots[i].role == Role::output) {
      outputs[0].push_back(std::move(part));
      part = Tensor(slots[i].description.type, Shape(0));
    }
    inputs.push_back(std::move(part));
  }
  auto const sampled = task.clone();
  sampled->visit(
      [&](char const* name, Role, TensorDescription& description) { description = descriptions.at(name); });
  Verdict verdict;
  verdict.exact = task.notes.terms == 0;
  judge(*sampled, Backend::cuda, inputs, outputs, verdict);  // samples are used on GPUs only
  if (!verdict.correct) verdict.complaint = "of the sampled rows and columns, " + verdict.complaint;
  return verdict;
}

}  // namespace cosmati::cli
