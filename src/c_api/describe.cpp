// Converts tensors, enumerated options and epilogues of the C interface.
#include "src/c_api/describe.h"

#include <fmt/format.h>

#include <cstring>

#include "cosmati/epilogue/parse.h"
#include "src/c_api/given.h"

namespace cosmati::c_api {
namespace {

static_assert(
    static_cast<int>(DataType::f64) == COSMATI_F64 && static_cast<int>(DataType::f32) == COSMATI_F32 &&
    static_cast<int>(DataType::tf32) == COSMATI_TF32 && static_cast<int>(DataType::f16) == COSMATI_F16 &&
    static_cast<int>(DataType::bf16) == COSMATI_BF16 && static_cast<int>(DataType::e4m3) == COSMATI_E4M3 &&
    static_cast<int>(DataType::e5m2) == COSMATI_E5M2 && static_cast<int>(DataType::s8) == COSMATI_S8 &&
    static_cast<int>(DataType::u8) == COSMATI_U8 && static_cast<int>(DataType::s32) == COSMATI_S32);
static_assert(max_rank == COSMATI_MAX_RANK);

// The tensors passed with an epilogue; the epilogue must use each of them by name.
class NamedTensors {
 public:
  NamedTensors(char const* operation, cosmati_named_tensor const* tensors, std::size_t count)
      : operation_(operation), tensors_(tensors), count_(count) {
    if (count > 0 && tensors == nullptr)
      refuse(fmt::format("{}: epilogue_tensor_count is {}, but epilogue_tensors is null", operation, count));
    if (count > max_arguments)
      refuse(fmt::format("{}: epilogue_tensor_count is {}; at most {} allowed", operation, count,
                         max_arguments));
    for (std::size_t i = 0; i < count; ++i)
      if (tensors[i].name == nullptr)
        refuse(fmt::format("{}: the name of epilogue_tensors[{}] is null", operation, i));
  }

  TensorDescription at(std::string const& name, std::string const& use) {
    for (std::size_t i = 0; i < count_; ++i)
      if (name == tensors_[i].name) {
        used_ |= std::uint64_t{1} << i;
        return tensor_of(operation_, tensors_[i].name, tensors_[i].tensor);
      }
    refuse(fmt::format("{}: the epilogue has {}, but epilogue_tensors has no '{}'; it has {}", operation_,
                       use, name, names()));
  }

  void check_used(std::string const& text) const {
    for (std::size_t i = 0; i < count_; ++i)
      if ((used_ >> i & 1) == 0)
        refuse(fmt::format("{}: epilogue_tensors has '{}'{}, which the epilogue '{}' does not name",
                           operation_, tensors_[i].name, is_twice(i) ? " twice" : "", text));
  }

 private:
  bool is_twice(std::size_t i) const {
    for (std::size_t j = 0; j < i; ++j)
      if (std::strcmp(tensors_[j].name, tensors_[i].name) == 0) return true;
    return false;
  }
  std::string names() const {
    std::string text;
    for (std::size_t i = 0; i < count_; ++i) text += (i == 0 ? "" : ", ") + std::string(tensors_[i].name);
    return text.empty() ? "nothing" : text;
  }

  char const* operation_;
  cosmati_named_tensor const* tensors_;
  std::size_t count_;
  std::uint64_t used_ = 0;
};

}  // namespace

TensorDescription tensor_of(char const* operation, char const* name, cosmati_tensor const& tensor) {
  if (tensor.rank < 0 || tensor.rank > max_rank)
    refuse(fmt::format("{}: {} is of rank {}; valid values: 0 (none) to {}", operation, name, tensor.rank,
                       max_rank));
  TensorDescription result;
  if (tensor.rank == 0) return result;
  if (tensor.type < 0 || tensor.type >= data_type_count)
    refuse(fmt::format("{}: {} is of type {}; valid values: COSMATI_F64 (0) to COSMATI_S32 ({})", operation,
                       name, tensor.type, data_type_count - 1));
  constexpr std::int64_t maximum = 1 << 20;
  std::int64_t const alignment =
      tensor.alignment == 0 ? TensorDescription::default_alignment : tensor.alignment;
  if (alignment < 1 || alignment > maximum || (alignment & (alignment - 1)) != 0)
    refuse(
        fmt::format("{}: {} declares an alignment of {} bytes; expected a power of two up to {}, or 0 for {}",
                    operation, name, tensor.alignment, maximum, +TensorDescription::default_alignment));
  result.type = static_cast<DataType>(tensor.type);
  result.alignment = static_cast<int>(alignment);
  result.layout.shape.rank = tensor.rank;
  for (int d = 0; d < tensor.rank; ++d) {
    result.layout.shape[d] = tensor.extent[d];
    result.layout.stride[d] = tensor.stride[d];
  }
  return result;
}

void check_none(char const* operation, char const* name, cosmati_tensor const& tensor, char const* owner) {
  if (tensor.rank == 0) return;
  refuse(fmt::format("{}: {} is of rank {}, but only {} uses it; here its rank must be 0 (none)", operation,
                     name, tensor.rank, owner));
}

int choice_of(char const* operation, char const* name, int value, int count) {
  if (value < 0 || value >= count)
    refuse(fmt::format("{}: {} is {}; valid values: 0 to {}", operation, name, value, count - 1));
  return value;
}

Epilogue epilogue_of(char const* operation, char const* text, cosmati_named_tensor const* tensors,
                     std::size_t count, std::span<std::string_view const> indices) {
  Epilogue epilogue;
  if (text != nullptr) epilogue.expression = epilogue::parse(text, indices);
  auto const& expression = epilogue.expression;
  if (expression.scalars().size() > max_arguments)
    refuse(fmt::format("{}: the epilogue has {} scalars; at most {} allowed", operation,
                       expression.scalars().size(), max_arguments));
  NamedTensors named(operation, tensors, count);
  for (auto const& operand : expression.operands())
    epilogue.operands.push_back(named.at(operand.name, operand.name + "[...]"));
  for (auto const& store : expression.stores())
    epilogue.stores.push_back(named.at(store.name, "store(" + store.name + ", ...)"));
  named.check_used(expression.text());
  return epilogue;
}

void check_size(char const* operation, std::size_t size, std::size_t expected) {
  if (size != expected)
    refuse(fmt::format(
        "{0}: size is {1}, this library's struct has {2} bytes; initialize it with cosmati_default_...() "
        "from the header of this library",
        operation, size, expected));
}

}  // namespace cosmati::c_api
