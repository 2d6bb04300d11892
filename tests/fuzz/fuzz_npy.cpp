// Any bytes as a .npy file, converted to a type that some values do not fit.
#include <cstddef>
#include <cstdint>
#include <span>

#include "cosmati/ops/error.h"
#include "src/io/npy.h"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace cosmati;
  std::span<std::byte const> const file(reinterpret_cast<std::byte const*>(data), size);
  try {
    io::RawArray const array = io::parse_npy(file, "fuzz.npy");
    to_tensor(array, size % 2 == 0 ? DataType::f32 : DataType::s32);
  } catch (Error const&) {
  }
  return 0;
}
