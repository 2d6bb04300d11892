// Error messages for invalid files.
#include "src/io/bad_file.h"

#include <fmt/format.h>

#include "cosmati/ops/tensor.h"

namespace cosmati::io {

void bad_file(std::string const& name, std::string const& reason) {
  throw Error(ErrorCode::bad_file, name + ": " + reason);
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  std::string result = "'";
  for (char const character : text.substr(0, longest)) {
    auto const byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte < 0x7f)
      result += character;
    else
      result += fmt::format("\\x{:02x}", byte);
  }
  return result + (text.size() > longest ? "...'" : "'");
}

Index checked_bytes(Shape const& shape, int element_bytes, std::string const& name) {
  Index product = element_bytes;
  Index limit = (Index{1} << 62) / element_bytes;  // an extent of 0 does not permit the others to overflow
  for (int d = 0; d < shape.rank; ++d) {
    Index const extent = shape.extent[d];
    if (extent < 0 || extent > limit)
      bad_file(name, fmt::format("the shape {} is not possible: {}", to_string(shape),
                                 extent < 0 ? "an extent is negative" : "it implies more than 2^62 bytes"));
    if (extent > 1) limit /= extent;
    product *= extent;
  }
  return product;
}

}  // namespace cosmati::io
