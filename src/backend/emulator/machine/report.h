// Reports of failed launches: the block, the thread, and what each thread waits for.
#pragma once
#include <cstdint>
#include <exception>
#include <string>

#include "src/backend/emulator/machine/block.h"

namespace cosmati::emulator {

// The reason why a launch ends early.
struct Failure {
  std::int64_t block = 0;
  bool only_waits = false;  // its threads wait for others, whose failure may be the cause
  std::string message;
  std::exception_ptr cause;  // the exception that left the kernel
};

// Returns the report of a block that has failed or is deadlocked.
Failure explain(Block const& block);

// Throws the exception of launch(): an Error with the kernel's own exception nested.
[[noreturn]] void raise(Failure const& failure);

std::string describe(Block const& block);    // "block (1, 0, 0)"
std::string describe(Thread const& thread);  // "block (1, 0, 0), thread 37 (warp 1, lane 5)"
std::string describe_damage(SharedMemory const& memory);
std::string describe_bad_mask(char const* name, unsigned mask, int lane, int lanes_of_warp);
std::string describe_misaligned(SharedMemory const& memory, void const* address, int bytes);
std::string describe_outside(SharedMemory const& memory, void const* address, int bytes);
std::string describe_unpublished(Block const& block, OrdinaryWrites::Write const& write);
std::string describe_bad_copy(int bytes, int valid);

}  // namespace cosmati::emulator
