// Detects ordinary writes to shared memory. Does not call the C library to compare or copy memory; see
// block.h.
#include "src/backend/emulator/machine/ordinary_writes.h"

#include <algorithm>

namespace cosmati::emulator {
namespace {

bool are_equal(unsigned char const* a, unsigned char const* b, std::size_t bytes) {
  std::uint64_t difference = 0;
  for (std::size_t i = 0; i < bytes; i += 8) {
    std::uint64_t x, y;
    __builtin_memcpy(&x, a + i, 8);
    __builtin_memcpy(&y, b + i, 8);
    difference |= x ^ y;
  }
  return difference == 0;
}

}  // namespace

OrdinaryWrites::OrdinaryWrites(SharedMemory const& memory)
    : memory_(memory),
      copy_((memory.size() + line - 1) / line * line),
      writer_(copy_.size()),
      lines_(copy_.size() / line),
      is_pending_(lines_.size()) {
  reset();
}

void OrdinaryWrites::reset() {
  // The end of memory is followed by guard bytes, which do not change.
  for (std::size_t i = 0; i < copy_.size(); ++i)
    copy_[i] = i < memory_.size() ? static_cast<unsigned char>(0xff) : memory_.data()[i];
  std::fill(writer_.begin(), writer_.end(), std::uint16_t{0});
  std::fill(lines_.begin(), lines_.end(), untouched);
  anybody_published_ = false;
  std::fill(is_pending_.begin(), is_pending_.end(), static_cast<unsigned char>(0));
}

bool OrdinaryWrites::differs(std::size_t index) const {
  return !are_equal(memory_.data() + index * line, copy_.data() + index * line, line);
}
void OrdinaryWrites::copy(std::size_t index) {
  __builtin_memcpy(copy_.data() + index * line, memory_.data() + index * line, line);
}

void OrdinaryWrites::attribute(int writer) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (is_of_box(i) || !differs(i)) continue;
    lines_[i] = ordinary;
    is_pending_[i] = 1;
    for (std::size_t j = i * line; j < (i + 1) * line; ++j)
      if (memory_.data()[j] != copy_[j]) writer_[j] = static_cast<std::uint16_t>(writer + 1);
    copy(i);
  }
}

void OrdinaryWrites::publish(int writer) {
  attribute(writer);
  anybody_published_ = true;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    if (is_of_box(i) && differs(i)) {
      lines_[i] = ordinary;
      copy(i);
    }
    if (is_pending_[i] == 0) continue;
    std::uint16_t left = 0;
    for (std::size_t j = i * line; j < (i + 1) * line; ++j) {
      std::uint16_t& of_byte = writer_[j];
      if (of_byte == writer + 1 || of_byte == copies + 1 || of_byte == unknown + 1) of_byte = 0;
      left |= of_byte;
    }
    is_pending_[i] = left != 0;
  }
}

void OrdinaryWrites::take(std::ptrdiff_t offset, int bytes, Swizzle swizzle, bool is_coming) {
  auto const begin = static_cast<std::size_t>(offset), end = begin + static_cast<std::size_t>(bytes);
  for (std::size_t i = begin / line; i * line < end; ++i) {
    std::size_t const first = std::max(begin, i * line), last = std::min(end, (i + 1) * line);
    if (first == i * line && (last == (i + 1) * line || end >= memory_.size())) {
      copy(i);
      for (std::size_t j = i * line; is_pending_[i] != 0 && j < (i + 1) * line; ++j) writer_[j] = 0;
      is_pending_[i] = 0;
      lines_[i] = static_cast<unsigned char>(static_cast<int>(swizzle) | (is_coming ? on_its_way : 0));
      continue;
    }
    for (std::size_t j = first; j < last; ++j) {
      copy_[j] = memory_.data()[j];
      writer_[j] = 0;
    }
    lines_[i] = ordinary;
  }
}

void OrdinaryWrites::permit(std::ptrdiff_t offset, int bytes) {
  auto const begin = static_cast<std::size_t>(offset), end = begin + static_cast<std::size_t>(bytes);
  for (std::size_t i = begin / line; i * line < end; ++i)
    if (lines_[i] == untouched) lines_[i] = ordinary;
}

std::optional<OrdinaryWrites::Write> OrdinaryWrites::unpublished(std::ptrdiff_t offset, int bytes) const {
  auto const begin = static_cast<std::size_t>(offset), end = begin + static_cast<std::size_t>(bytes);
  for (std::size_t i = begin / line; i * line < end; ++i) {
    std::size_t const first = std::max(begin, i * line), last = std::min(end, (i + 1) * line);
    if (is_pending_[i] == 0 && are_equal(memory_.data() + first, copy_.data() + first, last - first))
      continue;
    for (std::size_t j = first; j < last; ++j) {
      if (writer_[j] != 0) return Write{static_cast<std::ptrdiff_t>(j), writer_[j] - 1};
      if (memory_.data()[j] != copy_[j]) return Write{static_cast<std::ptrdiff_t>(j), unknown};
    }
  }
  return {};
}

std::optional<Swizzle> OrdinaryWrites::swizzle_at(std::ptrdiff_t offset) const {
  auto const index = static_cast<std::size_t>(offset) / line;
  if (!is_of_box(index)) return {};
  return static_cast<Swizzle>(lines_[index] & ~on_its_way);
}

bool OrdinaryWrites::is_on_its_way(std::ptrdiff_t offset) const {
  auto const index = static_cast<std::size_t>(offset) / line;
  return is_of_box(index) && (lines_[index] & on_its_way) != 0;
}

bool OrdinaryWrites::is_untouched(std::ptrdiff_t offset) const {
  return !anybody_published_ && lines_[static_cast<std::size_t>(offset) / line] == untouched;
}

}  // namespace cosmati::emulator
