// Any bytes as a safetensors file, all of whose tensors are read.
#include <cstddef>
#include <cstdint>
#include <span>

#include "cosmati/ops/error.h"
#include "src/io/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace cosmati;
  std::span<std::byte const> const file(reinterpret_cast<std::byte const*>(data), size);
  try {
    io::SafetensorsFile const model = io::SafetensorsFile::parse(file, "fuzz.safetensors");
    for (auto const& tensor : model.tensors()) to_tensor(tensor.second, DataType::f32);
  } catch (Error const&) {
  }
  return 0;
}
