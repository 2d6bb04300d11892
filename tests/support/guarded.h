// Output memory that detects writes outside it, and the spacing of the numbers of each type.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cosmati/ops/tensor.h"

namespace cosmati::test {

// Half a unit in the last place, relative to the value, and the absolute error for subnormal numbers.
struct Rounding {
  double relative, absolute;
};
inline Rounding rounding_of(DataType type) {
  switch (type) {
    case DataType::f64: return {0x1p-53, 0x1p-1074};
    case DataType::f32: return {0x1p-24, 0x1p-126};
    case DataType::tf32: return {0x1p-11, 0x1p-126};
    case DataType::f16: return {0x1p-11, 0x1p-25};
    case DataType::bf16: return {0x1p-8, 0x1p-126};
    case DataType::e4m3: return {0x1p-4, 0x1p-10};
    case DataType::e5m2: return {0x1p-3, 0x1p-17};
    default: return {0, 0.5};
  }
}

// Memory of one tensor between guard bytes. Gaps between strided elements are guarded, too.
class Guarded {
 public:
  static constexpr unsigned char poison = 0xff;  // NaN in every floating-point type
  explicit Guarded(TensorDescription const& description)
      : description_(description),
        bytes_(static_cast<std::size_t>(description.bytes())),
        memory_(bytes_ + 2 * guard + 64, poison) {
    auto const address = reinterpret_cast<std::uintptr_t>(memory_.data()) + guard;
    start_ = guard + (64 - address % 64) % 64;
  }
  TensorDescription const& description() const { return description_; }
  void* data() { return memory_.data() + start_; }
  double get(Index linear) {
    return load(description_.type, data(), description_.layout.offset_of_linear(linear));
  }
  void set(Index linear, double value) {
    store(description_.type, data(), description_.layout.offset_of_linear(linear), value);
  }
  Index size() const { return description_.layout.size(); }
  std::vector<unsigned char> const& memory() const { return memory_; }
  // Returns true if no byte outside the elements has changed.
  bool intact() {
    std::vector<unsigned char> copy = memory_;
    auto const width = static_cast<std::size_t>(size_of(description_.type));
    for (Index i = 0; i < size(); ++i)
      std::memset(
          copy.data() + start_ + static_cast<std::size_t>(description_.layout.offset_of_linear(i)) * width,
          poison, width);
    return std::all_of(copy.begin(), copy.end(), [](unsigned char byte) { return byte == poison; });
  }

 private:
  static constexpr std::size_t guard = 256;
  TensorDescription description_;
  std::size_t bytes_;
  std::vector<unsigned char> memory_;
  std::size_t start_ = 0;
};

}  // namespace cosmati::test
