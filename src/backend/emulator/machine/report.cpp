// The text of reports. Threads that wait for the same thing are listed together, as ranges.
#include "src/backend/emulator/machine/report.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "cosmati/ops/error.h"

namespace cosmati::emulator {
namespace {

std::string describe_state(Thread const& thread, bool several) {
  switch (thread.state) {
    case State::at_barrier: return fmt::format("wait{} at {}", several ? "" : "s", thread.what);
    case State::at_collective:
      return fmt::format("wait{} at {} with mask 0x{:08x}", several ? "" : "s", thread.what, thread.mask);
    case State::polling:
      return fmt::format("wait{} for {}", several ? "" : "s",
                         thread.tell != nullptr ? thread.tell(thread) : thread.what);
    case State::finished: return fmt::format("{} left the kernel", several ? "have" : "has");
    case State::fresh: return fmt::format("{} not started", several ? "have" : "has");
    case State::ready: break;
  }
  return several ? "can continue" : "can continue";
}

std::string describe_ranges(std::vector<int> const& threads) {
  std::string text = threads.size() > 1 ? "threads " : "thread ";
  for (std::size_t first = 0; first < threads.size();) {
    std::size_t last = first;
    while (last + 1 < threads.size() && threads[last + 1] == threads[last] + 1) ++last;
    if (first > 0) text += ", ";
    text +=
        last > first ? fmt::format("{}-{}", threads[first], threads[last]) : std::to_string(threads[first]);
    first = last + 1;
  }
  return text;
}

// Returns for example "threads 0-31 wait at the block barrier; thread 37 has left the kernel".
std::string describe_threads(Block const& block) {
  struct Group {
    std::string state;  // in plural form
    std::vector<int> threads;
  };
  std::vector<Group> groups;
  for (auto const& thread : block.threads()) {
    std::string state = describe_state(*thread, true);
    auto group = groups.begin();
    while (group != groups.end() && group->state != state) ++group;
    if (group == groups.end()) group = groups.insert(group, {std::move(state), {}});
    group->threads.push_back(thread->index);
  }
  std::string text;
  for (Group const& group : groups) {
    bool const several = group.threads.size() > 1;
    Thread const& one = block.thread(group.threads.front());
    text += fmt::format("{}{} {}", text.empty() ? "" : "; ", describe_ranges(group.threads),
                        several ? group.state : describe_state(one, false));
  }
  return text;
}

// Describes a lane that a collective waits for and that is not just polling: "warp 1: shuffle with mask
// 0xffffffff is missing lane 5 (thread 37)".
std::string describe_missing_lane(Block const& block) {
  int const warps = (block.work().threads + warp_size - 1) / warp_size;
  for (int warp = 0; warp < warps; ++warp)
    for (Meeting const& meeting : block.meetings(warp))
      for (int lane = 0; lane < warp_size; ++lane) {
        if ((meeting.mask & ~meeting.arrived) >> lane == 0) break;
        if (((meeting.mask & ~meeting.arrived) >> lane & 1U) == 0) continue;
        Thread const& thread = block.thread(warp * warp_size + lane);
        if (thread.state == State::polling) continue;
        return fmt::format("warp {}: {} with mask 0x{:08x} is missing lane {} (thread {})", warp,
                           meeting.name, meeting.mask, lane, thread.index);
      }
  return {};
}

Failure explain_standstill(Block const& block) {
  char const* barrier = nullptr;
  bool left = false, polls = false;
  for (auto const& thread : block.threads()) {
    if (barrier == nullptr && thread->state == State::at_barrier) barrier = thread->what;
    left |= thread->state == State::finished;
    polls |= thread->state == State::polling;
  }
  std::string what = describe_missing_lane(block);
  bool only_waits = false;
  if (what.empty() && barrier != nullptr && (left || !polls)) {
    what = fmt::format("not all {} threads reach {}", block.work().threads, barrier);
  } else if (what.empty()) {
    what = "deadlock";
    only_waits = true;
  }
  return {block.index(), only_waits,
          fmt::format("{}: {}: {}", describe(block), what, describe_threads(block)), nullptr};
}

std::string describe_place(SharedMemory const& memory, void const* address) {
  if (!memory.reserves(address))
    return fmt::format("address 0x{:x}", reinterpret_cast<std::uintptr_t>(address));
  return fmt::format("byte {} of the {} bytes of shared memory", memory.offset(address), memory.size());
}

}  // namespace

Failure explain(Block const& block) {
  for (auto const& thread : block.threads()) {
    if (thread->violation)
      return {block.index(), false, fmt::format("{}: {}", describe(*thread), *thread->violation), nullptr};
    if (thread->exception) return {block.index(), false, describe(*thread) + ": ", thread->exception};
  }
  if (block.violation())
    return {block.index(), false, fmt::format("{}: {}", describe(block), *block.violation()), nullptr};
  return explain_standstill(block);
}

void raise(Failure const& failure) {
  if (!failure.cause) throw Error(ErrorCode::wrong_result, failure.message);
  try {
    std::rethrow_exception(failure.cause);
  } catch (Error const& error) {
    std::throw_with_nested(Error(error.code(), failure.message + error.what()));
  } catch (std::exception const& exception) {
    std::throw_with_nested(Error(ErrorCode::wrong_result, failure.message + exception.what()));
  } catch (...) {
    std::throw_with_nested(Error(ErrorCode::wrong_result, failure.message + "an exception of unknown type"));
  }
}

std::string describe(Block const& block) {
  Grid const at = block.position();
  return fmt::format("block ({}, {}, {})", at.x, at.y, at.z);
}

std::string describe(Thread const& thread) {
  return fmt::format("{}, thread {} (warp {}, lane {})", describe(thread.block), thread.index,
                     thread.index / warp_size, thread.index % warp_size);
}

std::string describe_damage(SharedMemory const& memory) {
  std::ptrdiff_t const at = memory.damage().value_or(0);
  return fmt::format("wrote outside shared memory: byte {} has changed; the launch has {} bytes", at,
                     memory.size());
}

std::string describe_bad_mask(char const* name, unsigned mask, int lane, int lanes_of_warp) {
  if ((mask >> lane & 1U) == 0)
    return fmt::format("{} with mask 0x{:08x}, which leaves out lane {} itself", name, mask, lane);
  return fmt::format("{} with mask 0x{:08x}, but the block ends with lane {} of this warp", name, mask,
                     lanes_of_warp - 1);
}

std::string describe_misaligned(SharedMemory const& memory, void const* address, int bytes) {
  return fmt::format("misaligned access: {} bytes at {}, not a multiple of {}", bytes,
                     describe_place(memory, address), bytes);
}

std::string describe_outside(SharedMemory const& memory, void const* address, int bytes) {
  return fmt::format("access outside shared memory: {} bytes at {}", bytes, describe_place(memory, address));
}

std::string describe_unpublished(Block const& block, OrdinaryWrites::Write const& write) {
  std::string writer = "a store";
  if (write.writer == OrdinaryWrites::copies)
    writer = "a copy (cp.async)";
  else if (write.writer != OrdinaryWrites::unknown) {
    int const threads = OrdinaryWrites::threads_of_block, rank = write.writer / threads;
    writer = fmt::format("thread {}{}", write.writer % threads,
                         rank == block.rank() ? "" : fmt::format(" of block {} of the cluster", rank));
  }
  return fmt::format("byte {} of shared memory, which {} wrote without a subsequent publish_to_async()",
                     write.offset, writer);
}

std::string describe_bad_copy(int bytes, int valid) {
  return fmt::format("asynchronous copy of {} valid bytes out of {}; valid values: 0 to all of 4, 8 or 16",
                     valid, bytes);
}

}  // namespace cosmati::emulator
