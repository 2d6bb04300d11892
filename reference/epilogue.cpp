// The epilogue of a matrix product or convolution, applied to one element of the result.
#include "reference/epilogue.h"

#include <string>

#include "cosmati/epilogue/evaluate.h"

namespace cosmati::reference {
namespace {

template <class Pointer>
void require(char const* what, std::string const& name, std::span<Pointer const> given, std::size_t i) {
  if (i >= given.size() || given[i] == nullptr)
    throw Error(ErrorCode::bad_request, std::string("argument ") + what + "[" + std::to_string(i) +
                                            "] is missing: the epilogue needs it for '" + name + "'");
}

}  // namespace

ElementEpilogue::ElementEpilogue(Epilogue const& epilogue, std::span<std::string_view const> indices,
                                 std::span<void const* const> operands, std::span<double const> scalars,
                                 std::span<void* const> stores)
    : epilogue_(epilogue),
      rank_(static_cast<int>(indices.size())),
      operands_(operands),
      scalars_(scalars),
      stores_(stores) {
  auto const& expression = epilogue.expression;
  for (std::size_t i = 0; i < expression.operands().size(); ++i) {
    require("operands", expression.operands()[i].name, operands, i);
    auto const& letters = expression.operands()[i].indices;
    for (std::size_t d = 0; d < letters.size(); ++d)
      for (std::size_t axis = 0; axis < indices.size(); ++axis)
        if (letters[d] == indices[axis]) step_[i][axis] += epilogue.operands[i].layout.stride[d];
  }
  for (std::size_t i = 0; i < expression.stores().size(); ++i)
    require("stores", expression.stores()[i].name, stores, i);
  if (scalars.size() < expression.scalars().size())
    throw Error(ErrorCode::bad_request, "argument scalars holds " + std::to_string(scalars.size()) +
                                            " values; the epilogue names " +
                                            std::to_string(expression.scalars().size()) + " scalars");
}

double ElementEpilogue::operator()(double accumulator, double source, Position const& at) const {
  std::size_t const operand_count = epilogue_.expression.operands().size();
  std::size_t const store_count = epilogue_.expression.stores().size();
  double operands[max_epilogue_operands];
  double stores[max_epilogue_stores];
  for (std::size_t i = 0; i < operand_count; ++i) {
    Index offset = 0;
    for (int axis = 0; axis < rank_; ++axis) offset += at[axis] * step_[i][axis];
    operands[i] = load(epilogue_.operands[i].type, operands_[i], offset);
  }
  double const result =
      epilogue::evaluate(epilogue_.expression,
                         {accumulator, source, scalars_, {operands, operand_count}, {stores, store_count}});
  for (std::size_t i = 0; i < store_count; ++i) Output(epilogue_.stores[i], stores_[i])(at) = stores[i];
  return result;
}

}  // namespace cosmati::reference
