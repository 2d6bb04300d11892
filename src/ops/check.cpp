// Building blocks for the validation of problems.
#include "src/ops/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace cosmati {

void refuse(char const* operation, std::string const& message) {
  throw Error(ErrorCode::bad_request, fmt::format("{}: {}", operation, message));
}

namespace {

std::string strides_of(Layout const& layout) {
  return fmt::format("{}", fmt::join(layout.stride, layout.stride + layout.rank(), ", "));
}

// Searches for a nonzero difference of two index tuples whose sum of difference * stride is 0: dimension by
// dimension from the largest stride, bounded by what the remaining dimensions can compensate.
class PlaceSearch {
 public:
  explicit PlaceSearch(Layout const& layout) : layout_(layout) {
    for (int d = 0; d < layout.rank(); ++d)
      if (layout.extent(d) > 1) order_.push_back(d);
    std::sort(order_.begin(), order_.end(),
              [&](int a, int b) { return layout.stride[a] > layout.stride[b]; });
    reach_.assign(order_.size() + 1, 0);  // the maximum offset of the dimensions starting at `at`
    for (std::size_t at = order_.size(); at-- > 0;)
      reach_[at] = reach_[at + 1] + (layout.extent(order_[at]) - 1) * layout.stride[order_[at]];
  }

  std::optional<SharedPlace> find() {
    if (search(0, 0, false)) return result();
    if (steps_ > max_steps) return SharedPlace();
    return std::nullopt;
  }

 private:
  static constexpr Index max_steps = 1'000'000;

  // `sum` is the partial sum of the dimensions before `at`; `differs` is true if one of them differs.
  bool search(std::size_t at, Index sum, bool differs) {
    if (at == order_.size()) return differs && sum == 0;
    int const d = order_[at];
    Index const stride = layout_.stride[d], maximum = layout_.extent(d) - 1;
    // The first nonzero difference may be assumed positive; for a stride of 0, differences cost nothing.
    Index low = differs ? -maximum : 0, high = maximum;
    if (stride > 0) {
      low = std::max(low, -((sum + reach_[at + 1]) / stride));
      high = std::min(high, (reach_[at + 1] - sum) / stride);
    }
    for (Index difference = low; difference <= high; ++difference) {
      if (++steps_ > max_steps) return false;
      differences_[d] = difference;
      Index const rest = sum + difference * stride;
      if (std::abs(rest) <= reach_[at + 1] && search(at + 1, rest, differs || difference != 0)) return true;
    }
    differences_[d] = 0;
    return false;
  }

  SharedPlace result() const {
    SharedPlace place{layout_.shape, layout_.shape};
    for (int d = 0; d < layout_.rank(); ++d) {
      place.first[d] = std::max<Index>(differences_[d], 0);
      place.second[d] = std::max<Index>(-differences_[d], 0);
    }
    return place;
  }

  Layout const& layout_;
  std::vector<int> order_;
  std::vector<Index> reach_;
  Index differences_[max_rank] = {};
  Index steps_ = 0;
};

}  // namespace

std::optional<SharedPlace> shared_place(Layout const& layout) {
  if (!layout.overlaps()) return std::nullopt;
  return PlaceSearch(layout).find();
}

void check_tensor(char const* operation, Named tensor, Role role) {
  auto const& [name, description] = tensor;
  if (!description.present()) refuse(operation, fmt::format("{} is missing", name));
  try {
    checked_bytes(description);
  } catch (Error const& error) {
    refuse(operation, fmt::format("{}: {}", name, error.what()));
  }
  int const alignment = description.alignment;
  if (alignment < 1 || (alignment & (alignment - 1)) != 0)
    refuse(operation,
           fmt::format("{} declares an alignment of {} bytes; expected a power of two", name, alignment));
  if (role == Role::input) return;
  auto const shared = shared_place(description.layout);
  if (!shared) return;
  std::string const elements =
      shared->first.rank == 0
          ? "two of its elements may share"
          : fmt::format("its elements {} and {} share", to_string(shared->first), to_string(shared->second));
  refuse(operation, fmt::format("{} is written, but with the strides ({}) of {} {} an address; row-major "
                                "strides would be ({})",
                                name, strides_of(description.layout), to_string(description.shape()),
                                elements, strides_of(row_major(description.shape()))));
}

void check_rank(char const* operation, Named tensor, int lowest, int highest) {
  auto const& [name, description] = tensor;
  int const rank = description.layout.rank();
  if (rank >= lowest && rank <= highest) return;
  std::string const legal =
      lowest == highest ? fmt::format("{}", lowest) : fmt::format("{} to {}", lowest, highest);
  refuse(operation,
         fmt::format("{} is {}, of rank {}; its rank must be {}", name, to_string(description), rank, legal));
}

void check_same_shape(char const* operation, Named tensor, Named model) {
  if (tensor.tensor.shape() == model.tensor.shape()) return;
  refuse(operation, fmt::format("{} is {}, {} is {}; their shapes must be equal", tensor.name,
                                to_string(tensor.tensor), model.name, to_string(model.tensor)));
}

void check_shape(char const* operation, Named tensor, Shape const& expected) {
  if (tensor.tensor.shape() == expected) return;
  refuse(operation, fmt::format("{} is {}; its shape must be {}", tensor.name, to_string(tensor.tensor),
                                to_string(expected)));
}

void check_type(char const* operation, Named tensor, std::initializer_list<DataType> legal) {
  std::vector<char const*> names;
  for (DataType type : legal) {
    if (tensor.tensor.type == type) return;
    names.push_back(name_of(type));
  }
  refuse(operation, fmt::format("{} is {}; its type must be {}", tensor.name, to_string(tensor.tensor),
                                fmt::join(names, " or ")));
}

void check_finite(char const* operation, char const* name, double value) {
  if (!std::isfinite(value)) refuse(operation, fmt::format("{} is {}; it must be finite", name, value));
}

void check_at_least(char const* operation, char const* name, Index value, Index lowest) {
  if (value >= lowest && value < (Index{1} << 31)) return;
  refuse(operation, fmt::format("{} is {}; it must be at least {} and below 2^31", name, value, lowest));
}

namespace {

// The shape that an operand `name[index, ...]` must have.
Shape operand_shape(char const* operation, epilogue::Operand const& operand,
                    std::span<std::string_view const> indices, Shape const& result) {
  Shape shape;
  for (std::string const& letter : operand.indices) {
    int axis = 0;
    while (axis < result.rank && letter != indices[static_cast<std::size_t>(axis)]) ++axis;
    if (axis == result.rank)
      refuse(operation,
             fmt::format("the epilogue's {}[{}] uses the index '{}'; valid indices: {}", operand.name,
                         fmt::join(operand.indices, ", "), letter, fmt::join(indices, ", ")));
    if (shape.rank == max_rank)
      refuse(operation, fmt::format("the epilogue's {} has more than {} indices", operand.name, max_rank));
    shape[shape.rank++] = result[axis];
  }
  return shape;
}

void check_count(char const* operation, char const* what, std::size_t named, std::size_t given, int limit) {
  if (named != given)
    refuse(operation, fmt::format("the epilogue names {} {}, but {} are described", named, what, given));
  if (named > static_cast<std::size_t>(limit))
    refuse(operation, fmt::format("the epilogue names {} {}; at most {} allowed", named, what, limit));
}

}  // namespace

void check_epilogue(char const* operation, Epilogue const& epilogue,
                    std::span<std::string_view const> indices, Named result, bool has_source) {
  auto const& expression = epilogue.expression;
  auto const& operands = expression.operands();
  auto const& stores = expression.stores();
  check_count(operation, "operands", operands.size(), epilogue.operands.size(), max_epilogue_operands);
  check_count(operation, "stores", stores.size(), epilogue.stores.size(), max_epilogue_stores);
  if (expression.uses_source() && !has_source)
    refuse(operation, fmt::format("the epilogue '{}' uses c, but the problem has no c", expression.text()));
  for (std::size_t i = 0; i < operands.size(); ++i) {
    Named const operand{operands[i].name.c_str(), epilogue.operands[i]};
    check_tensor(operation, operand, Role::input);
    check_shape(operation, operand, operand_shape(operation, operands[i], indices, result.tensor.shape()));
  }
  for (std::size_t i = 0; i < stores.size(); ++i) {
    Named const store{stores[i].name.c_str(), epilogue.stores[i]};
    check_tensor(operation, store, Role::output);
    check_same_shape(operation, store, result);
  }
}

}  // namespace cosmati
