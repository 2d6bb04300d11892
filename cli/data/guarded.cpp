// Guard bands and poisoned memory.
#include "cli/data/guarded.h"

#include <cstring>

namespace cosmati::cli {

GuardedTensor::GuardedTensor(TensorDescription const& description, unsigned char poison, Index offset)
    : description_(description),
      poison_(poison),
      offset_(offset),
      memory_(DataType::u8, Shape(description.bytes() + 2 * guard + offset)) {
  std::memset(memory_.data(), poison, memory_.bytes());
}

void GuardedTensor::copy_from(Tensor const& tensor) { std::memcpy(data(), tensor.data(), tensor.bytes()); }

Tensor GuardedTensor::contents() const {
  Tensor tensor(description_);
  std::memcpy(tensor.data(), data(), tensor.bytes());
  return tensor;
}

std::string GuardedTensor::trespass() {
  auto const bytes = static_cast<std::size_t>(size_of(description_.type));
  auto* const first = static_cast<unsigned char*>(data());
  Index const size = description_.layout.size();
  for (Index i = 0; i < size; ++i)
    std::memset(first + static_cast<std::size_t>(description_.layout.offset_of_linear(i)) * bytes, poison_,
                bytes);
  auto const* const memory = memory_.as<unsigned char>();
  for (Index at = 0; at < static_cast<Index>(memory_.bytes()); ++at)
    if (memory[at] != poison_) {
      Index const from_data = at - guard - offset_;
      if (from_data < 0) return "byte " + std::to_string(-from_data) + " before it was written";
      if (from_data >= description_.bytes())
        return "byte " + std::to_string(from_data - description_.bytes()) + " past its end was written";
      return "byte " + std::to_string(from_data) + ", between its elements, was written";
    }
  return {};
}

}  // namespace cosmati::cli
