// The functions of arch/emulator.h that emulated threads call; each acts on the thread that is running.
#include <cstdint>
#include <string>

#include "cosmati/ops/error.h"
#include "src/backend/emulator/machine/block.h"
#include "src/backend/emulator/machine/report.h"

namespace cosmati::emulator {

Thread& running_thread() {
  Thread* const thread = running;
  if (thread == nullptr)
    throw Error(ErrorCode::bad_request, "a device function of the emulator was called outside a kernel");
  return *thread;
}

namespace {

// `bytes` must be a power of two, as all access widths are.
bool is_aligned(void const* address, int bytes) {
  return (reinterpret_cast<std::uintptr_t>(address) & (static_cast<unsigned>(bytes) - 1U)) == 0;
}

}  // namespace

int thread() { return running_thread().index; }
int block_threads() { return running_thread().block.work().threads; }
Grid block() { return running_thread().block.position(); }
Grid grid() { return running_thread().block.work().grid; }
unsigned char* shared_memory() { return running_thread().block.shared_memory().data(); }

void block_barrier() {
  Thread& thread = running_thread();
  thread.block.wait_at_barrier(thread);
}

bool block_any(bool mine) {
  Thread& thread = running_thread();
  return thread.block.any(thread, mine);
}

void warp_collective(char const* name, unsigned mask, void* lane, void (*compute)(void* const*, void*),
                     void* context) {
  Thread& thread = running_thread();
  thread.block.meet(thread, name, mask, lane, compute, context);
}

void wait(char const* what, bool (*ready)(void*), void* context) {
  Thread& thread = running_thread();
  thread.block.poll(thread, what, ready, context);
}

void wait_for_launch(char const* what, bool (*ready)(void*), void* context) {
  Thread& thread = running_thread();
  thread.block.poll_launch(thread, what, ready, context);
}

void copy_async(void* shared, void const* global, int bytes, int valid) {
  Thread& thread = running_thread();
  SharedMemory const& memory = thread.block.shared_memory();
  if ((bytes != 4 && bytes != 8 && bytes != 16) || valid < 0 || valid > bytes)
    return thread.block.fail(thread, describe_bad_copy(bytes, valid));
  if (!memory.holds(shared, bytes)) return thread.block.fail(thread, describe_outside(memory, shared, bytes));
  for (void const* const address : {static_cast<void const*>(shared), valid > 0 ? global : shared})
    if (!is_aligned(address, bytes))
      return thread.block.fail(thread, describe_misaligned(memory, address, bytes));
  if (Async const* const async = thread.block.async(); async != nullptr) {
    std::ptrdiff_t const at = memory.offset(shared);
    if (int const reader = async->reader_of(at, bytes); reader >= 0)
      return thread.block.fail(thread, "copies (cp.async) over byte " + std::to_string(at) +
                                           " of shared memory, which products of warpgroup " +
                                           std::to_string(reader) +
                                           " read; no thread waited for them (warpgroup_wait())");
  }
  thread.copies.issue(static_cast<unsigned char*>(shared), static_cast<unsigned char const*>(global), bytes,
                      valid, __builtin_return_address(0));
}

void commit_copies() { running_thread().copies.commit(); }
void wait_copies(int in_flight) { running_thread().copies.land(in_flight, __builtin_return_address(0)); }

void check_access(void const* address, int bytes) {
  Thread& thread = running_thread();
  SharedMemory const& memory = thread.block.shared_memory();
  if (!is_aligned(address, bytes))
    return thread.block.fail(thread, describe_misaligned(memory, address, bytes));
  if (memory.reserves(address) && !memory.holds(address, bytes))
    thread.block.fail(thread, describe_outside(memory, address, bytes));
}

}  // namespace cosmati::emulator
