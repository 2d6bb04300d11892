// What the validation of every problem is made of.
#include "src/ops/check.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>
#include <vector>

namespace cosmati {

void refuse(char const* operation, std::string const& message) {
  throw Error(ErrorCode::bad_request, fmt::format("{}: {}", operation, message));
}

namespace {

std::string strides_of(Layout const& layout) {
  return fmt::format("{}", fmt::join(layout.stride, layout.stride + layout.rank(), ", "));
}

}  // namespace

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
           fmt::format("{} is promised an alignment of {} bytes; legal is a power of two", name, alignment));
  if (role == Role::input || !description.layout.overlaps()) return;
  refuse(operation,
         fmt::format("{} is written, but with the strides ({}) of {} two of its elements can lie in "
                     "one place; row-major strides would be ({})",
                     name, strides_of(description.layout), to_string(description.shape()),
                     strides_of(row_major(description.shape()))));
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
      refuse(operation, fmt::format("the epilogue's {}[{}] uses the index '{}'; there is {}", operand.name,
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
    refuse(operation, fmt::format("the epilogue names {} {}; at most {} are legal", named, what, limit));
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
    refuse(operation, fmt::format("the epilogue '{}' uses c, but there is no c", expression.text()));
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
