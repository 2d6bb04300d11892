// Checks what the members of a team must agree on.
#include "nets/team.h"

#include <string>

#include "cosmati/ops/error.h"

namespace cosmati::nets {

std::uint64_t fingerprint(std::span<std::uint32_t const> words, std::uint64_t so_far) {
  for (std::uint32_t const word : words)
    so_far = (so_far ^ word) * 0x100000001b3ULL;  // FNV-1a over words instead of bytes
  return so_far;
}

std::uint64_t fingerprint(DeviceMemory const& memory, std::uint64_t so_far) {
  std::vector<std::uint32_t> words(memory.bytes() / sizeof(std::uint32_t));
  memory.download(words.data(), words.size() * sizeof(std::uint32_t));
  return fingerprint(std::span<std::uint32_t const>(words), so_far);
}

void check_same(std::vector<std::uint64_t> const& found, int first, parallel::ProcessGroup* group) {
  std::uint64_t expected = found.at(0);
  if (group != nullptr) group->broadcast(&expected, sizeof(expected));
  for (std::size_t i = 0; i < found.size(); ++i)
    if (found[i] != expected)
      throw Error(ErrorCode::system, "the parameters of device " +
                                         std::to_string(first + static_cast<int>(i)) +
                                         " are not those of device 0; they have drifted apart");
}

bool any_process(bool mine, parallel::ProcessGroup* group) {
  double sum = mine ? 1 : 0;
  if (group != nullptr) group->sum(&sum, 1);
  return sum > 0;
}

}  // namespace cosmati::nets
