// PTX ISA, "Data Movement and Conversion Instructions: cp.async": only a wait makes a copy's writes visible.
#include "src/backend/emulator/machine/copies.h"

#include <limits>

#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {
namespace {

// Volatile stores cannot be combined into a memcpy, in which ThreadSanitizer would report a race instead of
// in the kernel.
void put(unsigned char* to, int value) {
  *static_cast<unsigned char volatile*>(to) = static_cast<unsigned char>(value);
}

}  // namespace

void Copies::issue(unsigned char* to, unsigned char const* from, int bytes, int valid, void const* caller) {
  sanitizers::writes(to, bytes, caller);
  for (int i = 0; i < bytes; ++i) put(to + i, 0xff);
  copies_.push_back({to, from, bytes, valid, committed_, caller});
}

void Copies::land(int in_flight, void const* caller) { land_groups_before(committed_ - in_flight, caller); }
void Copies::land_all() { land_groups_before(std::numeric_limits<std::int64_t>::max(), nullptr); }

void Copies::land_groups_before(std::int64_t group, void const* caller) {
  while (landed_ < copies_.size() && copies_[landed_].group < group) land_next(caller);
  forget_landed();
}

void Copies::land_first(std::int64_t count, void const* caller) {
  while (forgotten_ + static_cast<std::int64_t>(landed_) < count) land_next(caller);
  forget_landed();
}

void Copies::land_next(void const* caller) {
  Copy const& copy = copies_[landed_++];
  sanitizers::reads(copy.from, copy.valid, copy.caller);
  sanitizers::writes(copy.to, copy.bytes, caller != nullptr ? caller : copy.caller);
  for (int i = 0; i < copy.bytes; ++i) put(copy.to + i, i < copy.valid ? copy.from[i] : 0);
}

void Copies::forget_landed() {
  if (landed_ != copies_.size()) return;
  forgotten_ += static_cast<std::int64_t>(landed_);
  copies_.clear();
  landed_ = 0;
}

}  // namespace cosmati::emulator
