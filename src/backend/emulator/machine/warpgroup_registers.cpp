// PTX ISA, "setmaxnreg": a block keeps the number of registers that it was launched with; a warpgroup can
// acquire registers only after others have released theirs.
#include <fmt/format.h>

#include <algorithm>

#include "src/backend/emulator/machine/block.h"

namespace cosmati::emulator {
namespace {

constexpr int warpgroup_threads = 128, registers_of_processor = 65536, max_of_thread = 255;

// The largest number of registers per thread that the compiler can assign to a kernel with this block size.
int registers_at_start(Block const& block) {
  return std::min(max_of_thread, registers_of_processor / block.work().threads / 8 * 8);
}

Warpgroup& warpgroup_of(Thread const& thread) {
  return thread.block.async()->warpgroups[static_cast<std::size_t>(thread.index / warpgroup_threads)];
}

// The total registers of the block if each thread of this warpgroup has `registers`.
int registers_with(Thread const& thread, int registers) {
  int const at_start = registers_at_start(thread.block);
  int sum = at_start * (thread.block.work().threads % warpgroup_threads);
  for (Warpgroup const& other : thread.block.async()->warpgroups)
    sum += warpgroup_threads * (&other == &warpgroup_of(thread) ? registers
                                : other.registers != 0          ? other.registers
                                                                : at_start);
  return sum;
}

// Applies the change once all threads have reached it and the block has enough registers.
bool make(Thread const& thread, RegisterSetting& setting) {
  if (!setting.is_made && setting.arrived == warpgroup_threads &&
      registers_with(thread, setting.registers) <=
          registers_at_start(thread.block) * thread.block.work().threads) {
    setting.is_made = true;
    warpgroup_of(thread).registers = setting.registers;
  }
  return setting.is_made;
}

std::string tell_registers(Thread const& thread) {
  return fmt::format(
      "{} registers for each thread of its warpgroup; with them the block would have {} of its {}",
      thread.detail, registers_with(thread, thread.detail),
      registers_at_start(thread.block) * thread.block.work().threads);
}

}  // namespace

void set_registers(int registers, bool acquires) {
  Thread& thread = running_thread();
  Block& block = thread.block;
  if (!block.can_wait()) return;
  char const* const what = acquires ? "acquire_registers" : "release_registers";
  if ((thread.index / warpgroup_threads + 1) * warpgroup_threads > block.work().threads)
    return block.fail(thread, fmt::format("{}<{}>() in an incomplete warpgroup", what, registers));
  // The compiler's actual number of registers is unknown; it is at most registers_at_start().
  int const before = thread.async.registers != 0 ? thread.async.registers
                     : acquires                  ? 0
                                                 : registers_at_start(block);
  if (acquires ? registers < before : registers > before)
    return block.fail(thread, fmt::format("{}<{}>() by a thread that has {}", what, registers, before));
  block.start_async();
  std::vector<RegisterSetting>& settings = warpgroup_of(thread).settings;
  auto const index = static_cast<std::size_t>(thread.async.register_settings++);
  if (index == settings.size()) settings.push_back({registers});
  if (settings[index].registers != registers)
    return block.fail(thread, fmt::format("{}<{}>(), where others of its warpgroup set {}", what, registers,
                                          settings[index].registers));
  ++settings[index].arrived;
  thread.async.registers = registers;
  if (!acquires) {
    make(thread, settings[index]);
    return;
  }
  struct Context {
    Thread const& thread;
    RegisterSetting& setting;
  } context{thread, settings[index]};
  thread.tell = tell_registers;
  thread.detail = registers;
  block.poll(
      thread, "registers",
      [](void* pointer) {
        Context const& it = *static_cast<Context*>(pointer);
        return make(it.thread, it.setting);
      },
      &context);
  thread.tell = nullptr;
}

}  // namespace cosmati::emulator
