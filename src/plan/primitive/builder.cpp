// Builds primitive passes: collapsed index spaces, runs, formulas.
#include "src/plan/primitive/builder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include <algorithm>
#include <bit>
#include <numeric>

#include "cosmati/core/cluster.h"
#include "cosmati/epilogue/parse.h"
#include "cosmati/primitive/lrn_size.h"
#include "src/ops/architecture.h"
#include "src/plan/buffers.h"
#include "src/plan/integers.h"

namespace cosmati::plan {

StridedTensor strided(std::string name, TensorDescription const& tensor, Binding binding) {
  StridedTensor result{std::move(name), tensor, binding, {}};
  std::copy_n(tensor.layout.stride, tensor.layout.rank(), result.stride);
  return result;
}

StridedTensor strided_along(std::string name, TensorDescription const& tensor, int axis, Binding binding) {
  StridedTensor result{std::move(name), tensor, binding, {}};
  result.stride[axis] = tensor.layout.stride[0];
  return result;
}

StridedTensor strided_in_workspace(std::string name, DataType type, Shape const& space,
                                   std::initializer_list<int> axes, std::size_t offset) {
  StridedTensor result{std::move(name), {}, workspace_at(offset), {}};
  result.description.type = type;
  Index step = 1;
  for (auto axis = std::rbegin(axes); axis != std::rend(axes); ++axis) {
    result.stride[*axis] = step;
    step *= space[*axis];
  }
  return result;
}

StridedTensor mask_of(Shape const& space) {
  StridedTensor result{"kept", {}, {}, {}};
  result.binding.mask = true;
  result.description.type = DataType::u8;
  result.description.alignment = 16;
  std::copy_n(row_major(space).stride, space.rank, result.stride);
  return result;
}

CollapsedSpace collapse(Shape const& shape, std::vector<bool> const& reduced,
                        std::vector<StridedTensor const*> const& tensors, std::size_t leader,
                        std::vector<int> const& apart) {
  CollapsedSpace space;
  for (bool const of_terms : {false, true}) {
    std::vector<int> axes;
    for (int d = 0; d < shape.rank; ++d)
      if (shape[d] != 1 && reduced[static_cast<std::size_t>(d)] == of_terms) axes.push_back(d);
    std::stable_sort(axes.begin(), axes.end(), [&](int a, int b) {
      // Axes along which the leader is constant come last, unless another tensor decides otherwise.
      Index const x = tensors[leader]->stride[a], y = tensors[leader]->stride[b];
      if (x != y && x != 0 && y != 0) return x < y;
      Index sum_x = 0, sum_y = 0;
      for (StridedTensor const* tensor : tensors) {
        sum_x += tensor->stride[a];
        sum_y += tensor->stride[b];
      }
      return sum_x < sum_y;
    });
    auto& list = of_terms ? space.terms : space.positions;
    int previous = -1;
    for (int const d : axes) {
      bool joins = !list.empty() && std::find(apart.begin(), apart.end(), d) == apart.end() &&
                   std::find(apart.begin(), apart.end(), previous) == apart.end();
      for (std::size_t i = 0; joins && i < tensors.size(); ++i)
        joins = tensors[i]->stride[d] == list.back().stride[i] * list.back().extent;
      if (joins) {
        list.back().extent *= shape[d];
        continue;
      }
      SpaceAxis axis{shape[d], {}};
      for (StridedTensor const* tensor : tensors) axis.stride.push_back(tensor->stride[d]);
      list.push_back(std::move(axis));
      previous = d;
    }
  }
  // A kernel needs at least one axis of each kind.
  SpaceAxis const one{1, std::vector<Index>(tensors.size(), 0)};
  if (space.positions.empty()) space.positions.push_back(one);
  if (space.terms.empty() && std::find(reduced.begin(), reduced.end(), true) != reduced.end())
    space.terms.push_back(one);
  return space;
}

std::vector<StridedTensor> Piece::of(std::vector<StridedTensor> tensors) const {
  for (StridedTensor& tensor : tensors)
    for (int d = 0; d < shape.rank; ++d) tensor.binding.first += first[d] * tensor.stride[d];
  return tensors;
}

std::vector<Piece> pieces_of(Shape const& shape, std::vector<bool> const& whole, double maximum) {
  std::vector<Piece> pieces{{shape, {}}};
  for (std::size_t i = 0; i < pieces.size();) {
    Shape const now = pieces[i].shape;
    double size = 1;
    int longest = -1;
    for (int d = 0; d < now.rank; ++d) {
      if (whole[static_cast<std::size_t>(d)]) continue;
      size *= static_cast<double>(now[d]);
      if (longest < 0 || now[d] > now[longest]) longest = d;
    }
    if (size <= maximum || now[longest] < 2) {
      ++i;
      continue;
    }
    constexpr Index unit = 64;  // keeps the alignment of runs
    Index const half = now[longest] / 2 >= unit ? now[longest] / 2 / unit * unit : now[longest] / 2;
    Piece upper = pieces[i];
    upper.shape[longest] -= half;
    upper.first[longest] += half;
    pieces[i].shape[longest] = half;
    pieces.insert(pieces.begin() + static_cast<std::ptrdiff_t>(i) + 1, upper);
  }
  return pieces;
}

DataType real_of(std::vector<StridedTensor> const& tensors) {
  for (StridedTensor const& tensor : tensors)
    if (tensor.description.type == DataType::f64 || tensor.description.type == DataType::s32)
      return DataType::f64;
  return DataType::f32;
}

int run_width(std::vector<StridedTensor const*> const& tensors, CollapsedSpace const& space, bool of_terms,
              PrimitiveTarget const& target, int max_bytes) {
  std::vector<SpaceAxis> const& run_axes = of_terms ? space.terms : space.positions;
  std::vector<SpaceAxis> const& other_axes = of_terms ? space.positions : space.terms;
  if (run_axes.empty()) return 1;
  int min_size = 8, largest_size = 1;
  for (StridedTensor const* tensor : tensors) {
    if (tensor->binding.mask) continue;
    min_size = std::min(min_size, size_of(tensor->description.type));
    largest_size = std::max(largest_size, size_of(tensor->description.type));
  }
  int width = 16 / min_size;
  while (width > 1 && width * largest_size > max_bytes) width /= 2;
  while (width > 1 && width / 2 >= run_axes.front().extent) width /= 2;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    Index const along = run_axes.front().stride[i];
    if (along == 0) continue;
    if (along != 1) return 1;
    if (tensors[i]->binding.mask) continue;
    int const size = size_of(tensors[i]->description.type);
    auto const fits = [&](int elements) {
      Index const piece = std::min(16, elements * size);
      if (std::max(tensors[i]->description.alignment, size) % piece != 0) return false;
      auto const whole = [&](std::vector<SpaceAxis> const& axes, std::size_t first) {
        for (std::size_t d = first; d < axes.size(); ++d)
          if (axes[d].stride[i] * size % piece != 0) return false;
        return true;
      };
      return whole(run_axes, 1) && whole(other_axes, 0);
    };
    while (width > 1 && !fits(width)) width /= 2;
  }
  if (target.emulated) width = width >= 4 ? 4 : 1;
  return width;
}

void divide(SpaceAxis& axis, Index many) {
  axis.extent = (axis.extent + many - 1) / many;
  for (Index& stride : axis.stride) stride *= many;
}

void fill_space(PrimitivePass& pass, CollapsedSpace const& space, std::vector<StridedTensor> const& inputs,
                std::vector<StridedTensor> const& outputs, int width, bool of_terms) {
  PrimitiveParameters& p = pass.parameters;
  p.policy.width = width;
  p.policy.runs_of_terms = of_terms;
  p.policy.kept = static_cast<int>(space.positions.size());
  p.policy.terms = static_cast<int>(space.terms.size());
  std::size_t const tensors = inputs.size() + outputs.size();
  Index positions = 1, terms = 1;
  int d = 0;
  for (bool const is_term : {false, true}) {
    bool first = true;
    for (SpaceAxis const& axis : is_term ? space.terms : space.positions) {
      bool const runs = first && is_term == of_terms;
      first = false;
      Index const extent = runs ? (axis.extent + width - 1) / width : axis.extent;
      (is_term ? terms : positions) *= extent;
      if (runs) p.run_extent = axis.extent;
      p.axis[d] = Divisor(std::clamp<Index>(extent, 1, max_int));
      for (std::size_t i = 0; i < tensors; ++i) {
        bool const is_input = i < inputs.size();
        PrimitiveTensor& tensor = p.tensor[is_input ? i : primitive_inputs + i - inputs.size()];
        tensor.stride[d] = axis.stride[i] * (runs ? width : 1);
        if (runs) tensor.run_stride = axis.stride[i] == 0 ? 0 : 1;
      }
      ++d;
    }
  }
  p.positions = static_cast<unsigned>(positions);
  p.terms = p.terms_of_split = static_cast<unsigned>(terms);
  auto const add = [&](std::vector<StridedTensor> const& from, std::vector<PassTensor>& to, int first) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      PrimitiveTensor& tensor = p.tensor[static_cast<std::size_t>(first) + i];
      tensor.type = from[i].description.type;
      if (from[i].binding.mask) tensor.run_stride = -1;  // marks a mask for the emulator
      bool const by_fours =
          from[i].binding.mask && width % 4 == 0 && p.run_extent % 4 == 0 && from[i].binding.first % 4 == 0 &&
          std::all_of(tensor.stride, tensor.stride + d, [](Index stride) { return stride % 4 == 0; });
      to.push_back({from[i].binding, tensor.type, width > 1 && tensor.run_stride == 0, by_fours});
    }
  };
  add(inputs, pass.inputs, 0);
  add(outputs, pass.outputs, primitive_inputs);
}

namespace {

constexpr std::string_view indices[] = {"e"};

epilogue::Expression expression_of(Formula const& formula) {
  if (formula.parsed != nullptr) return *formula.parsed;
  return epilogue::bind_scalars(epilogue::parse(formula.text, indices), formula.constants);
}

int position_of(std::vector<std::string> const& names, std::string const& name) {
  return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
}

}  // namespace

int max_cluster_blocks_of(PrimitiveTarget const& target) {
  if (target.emulated) return 2;
  return features_of(target.gpu).clusters ? max_cluster_blocks : 1;
}

std::vector<std::string> names_in(Formula const& formula) {
  std::vector<std::string> names;
  epilogue::Expression const expression = expression_of(formula);
  for (auto const& operand : expression.operands()) names.push_back(operand.name);
  if (expression.uses_accumulator()) names.push_back(formula.accumulator);
  return names;
}

PrimitiveFunction function_of(Formula const& formula, std::vector<std::string> const& inputs,
                              std::vector<std::string> const& outputs, PrimitiveParameters& parameters) {
  PrimitiveFunction function;
  function.expression = expression_of(formula);
  function.inputs = static_cast<int>(inputs.size());
  function.outputs = static_cast<int>(outputs.size());
  for (auto const& operand : function.expression.operands())
    function.operands.push_back(position_of(inputs, operand.name));
  if (function.expression.uses_accumulator()) function.accumulator = position_of(inputs, formula.accumulator);
  int next = static_cast<int>(formula.scalars.size());
  for (auto const& scalar : function.expression.scalars()) {
    int const given = position_of(formula.scalars, scalar.name);
    if (given < static_cast<int>(formula.scalars.size())) {
      function.scalars.push_back(given);
    } else {  // constants that are not finite are passed as scalars
      parameters.scalar[next] = formula.constants.at(scalar.name);
      function.scalars.push_back(next++);
    }
  }
  for (auto const& store : function.expression.stores())
    function.stores.push_back(position_of(outputs, store.name));
  function.result = position_of(outputs, formula.result);
  return function;
}

std::size_t reserve(PrimitiveProgram& program, Index elements, DataType type) {
  std::size_t const at = program.workspace_bytes;
  program.workspace_bytes = at + padded_bytes(static_cast<std::size_t>(elements * size_of(type)));
  return at;
}

unsigned power_of_two_from(unsigned number) { return std::bit_ceil(std::min(number, 1U << 31)); }

std::string describe(CollapsedSpace const& space) {
  auto const extents = [](std::vector<SpaceAxis> const& axes) {
    std::vector<Index> list;
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) list.push_back(axis->extent);
    return fmt::format("{}", fmt::join(list, " x "));
  };
  if (space.terms.empty()) return extents(space.positions);
  return extents(space.positions) + " of " + extents(space.terms) + " terms";
}

void finish(PrimitivePass& pass, CollapsedSpace const& space) {
  PrimitivePolicy const& policy = pass.parameters.policy;
  auto const bytes = [&](std::vector<PassTensor> const& tensors, std::size_t first, bool also_terms) {
    double sum = 0;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      if (tensors[i].binding.mask) continue;
      double elements = 1;
      for (bool const of_terms : {false, true}) {
        if (of_terms && !also_terms) continue;
        for (SpaceAxis const& axis : of_terms ? space.terms : space.positions)
          if (axis.stride[first + i] != 0) elements *= static_cast<double>(axis.extent);
      }
      sum += elements * size_of(tensors[i].type);
    }
    return sum;
  };
  pass.bytes = bytes(pass.inputs, 0, true) +
               bytes(pass.outputs, pass.inputs.size(), pass.family == PrimitiveFamily::rows);
  pass.text = fmt::format("{} {}, runs of {}{}", name_of(pass.family), describe(space), policy.width,
                          policy.runs_of_terms ? " along the terms" : "");
  if (policy.along > 1 && pass.family != PrimitiveFamily::transpose)
    pass.text += fmt::format(", {} threads a result", policy.along);
  if (policy.cluster > 1) pass.text += fmt::format(", clusters of {} blocks", policy.cluster);
  if (policy.cached > 0)
    pass.text += fmt::format(", {} runs kept{}", policy.cached, policy.packed ? " packed" : "");
  if (pass.family == PrimitiveFamily::lrn && policy.window.rows > 0)
    pass.text += fmt::format(", {} channels of {} positions in shared memory", lrn_channels(policy),
                             policy.window.rows);
  else if (pass.family == PrimitiveFamily::transpose && policy.window.columns > 0)
    pass.text += fmt::format(", {} channels of {} positions in shared memory", policy.window.columns,
                             pass.parameters.run_extent);
  else if (policy.window.rows > 0)
    pass.text +=
        fmt::format(" of {}, {} x {} taps at once", policy.window.runs_of_columns ? "columns" : "planes",
                    policy.window.rows, policy.window.columns);
  else if (policy.window.columns > 0)
    pass.text += fmt::format(", {} channels per thread", policy.unroll * policy.groups);
  pass.text += fmt::format(", {} blocks", pass.blocks);
  if (pass.splits > 1) pass.text += fmt::format(" x {} parts", pass.splits);
}

}  // namespace cosmati::plan
