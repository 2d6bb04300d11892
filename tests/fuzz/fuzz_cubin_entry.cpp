// Any bytes as an entry of the kernel cache, unchanged and with a corrected checksum: an accepted entry is
// written again byte for byte.
#include <zlib.h>

#include <cstdint>
#include <cstdlib>
#include <string>

#include "src/jit/entry.h"

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace cosmati::jit;
  parse_entry({reinterpret_cast<std::byte const*>(data), size});
  std::string file(reinterpret_cast<char const*>(data), size);
  if (size < sizeof(std::uint32_t)) return 0;
  file.resize(size - sizeof(std::uint32_t));
  auto const checksum =
      static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<Bytef const*>(file.data()), file.size()));
  file.append(reinterpret_cast<char const*>(&checksum), sizeof checksum);
  if (auto const entry = parse_entry({reinterpret_cast<std::byte const*>(file.data()), file.size()}))
    if (format_entry(entry->key, entry->cubin) != file) std::abort();
  return 0;
}
