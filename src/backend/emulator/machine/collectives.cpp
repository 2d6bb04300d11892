// Warp collectives: rendezvous of the lanes in a mask. Lanes with disjoint masks or in different collectives
// meet separately.
#include <bit>
#include <cstring>

#include "src/backend/emulator/machine/block.h"
#include "src/backend/emulator/machine/report.h"
#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {
namespace {

Meeting& find_or_open(std::vector<Meeting>& meetings, char const* name, unsigned mask) {
  for (Meeting& meeting : meetings)
    if (meeting.mask == mask && (meeting.name == name || std::strcmp(meeting.name, name) == 0))
      return meeting;
  return meetings.emplace_back(Meeting{name, mask, 0});
}

// Returns the first lane of `mask` and removes it.
int take_lane(unsigned& mask) {
  int const lane = std::countr_zero(mask);
  mask &= mask - 1;
  return lane;
}

}  // namespace

void Block::meet(Thread& thread, char const* name, unsigned mask, void* lane,
                 void (*compute)(void* const*, void*), void* context) {
  if (!can_wait()) return;
  int const first = thread.index / warp_size * warp_size, self = thread.index - first;
  int const lanes_of_warp = work_.threads - first;
  if ((mask >> self & 1U) == 0 || (lanes_of_warp < warp_size && mask >> lanes_of_warp != 0))
    return fail(thread, describe_bad_mask(name, mask, self, lanes_of_warp));

  std::vector<Meeting>& meetings = meetings_[static_cast<std::size_t>(first / warp_size)];
  Meeting& meeting = find_or_open(meetings, name, mask);
  meeting.arrived |= 1U << self;
  thread.lane = lane;
  sanitizers::release(&thread.arrival);
  if (meeting.arrived != mask) {
    thread.state = State::at_collective;
    thread.what = name;
    thread.mask = mask;
    suspend(thread);
    sanitizers::acquire(&thread.departure);
    return;
  }
  meeting = meetings.back();
  meetings.pop_back();
  void* lanes[warp_size] = {};
  for (unsigned left = mask; left != 0;) {
    int const l = take_lane(left);
    Thread& other = this->thread(first + l);
    lanes[l] = other.lane;
    sanitizers::acquire(&other.arrival);
  }
  if (compute != nullptr) compute(lanes, context);
  for (unsigned left = mask; left != 0;) {
    Thread& other = this->thread(first + take_lane(left));
    sanitizers::release(&other.departure);
    other.state = State::ready;
  }
}

}  // namespace cosmati::emulator
