// Unused fiber stacks form a free list shared by all host threads; each list node is stored at the top of its
// stack. No object with static storage is constructed or destroyed, so a launch may run at any time,
// including before main() and at exit.
#include "src/backend/emulator/machine/stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <mutex>

#include "cosmati/ops/error.h"
#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {
namespace {

struct Unused {
  unsigned char* bottom;
  Unused* next;
  int count;  // length of the list starting here
};

constexpr int max_kept = 4096;
constinit std::mutex mutex;
constinit Unused* first_unused = nullptr;

std::size_t page() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

unsigned char* map() {
  void* const memory = mmap(nullptr, page() + Stack::size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  if (memory != MAP_FAILED) {
    if (mprotect(memory, page(), PROT_NONE) == 0) return static_cast<unsigned char*>(memory) + page();
    munmap(memory, page() + Stack::size);
  }
  throw Error(
      ErrorCode::out_of_memory,
      "the emulator cannot allocate the stack of another thread: the system grants no more memory maps "
      "(vm.max_map_count); fewer blocks that wait for each other need fewer stacks");
}

unsigned char* take() {
  std::scoped_lock const lock(mutex);
  if (first_unused == nullptr) return nullptr;
  unsigned char* const bottom = first_unused->bottom;
  first_unused = first_unused->next;
  return bottom;
}

bool keep(Stack const& stack) {
  std::scoped_lock const lock(mutex);
  int const kept = first_unused != nullptr ? first_unused->count : 0;
  if (kept == max_kept) return false;
  auto* const unused = reinterpret_cast<Unused*>(stack.top() - sizeof(Unused));
  *unused = {stack.bottom(), first_unused, kept + 1};
  first_unused = unused;
  return true;
}

}  // namespace

Stack::Stack() : bottom_(take()) {
  if (bottom_ == nullptr) bottom_ = map();
}

Stack::~Stack() {
  // Frames at the top that the fiber abandoned have never cleared their red zones.
  constexpr std::size_t left_behind = 4096;
  if (sanitizers::cosmati_asan_unpoison != nullptr)
    sanitizers::cosmati_asan_unpoison(top() - left_behind, left_behind);
  if (!keep(*this)) munmap(bottom_ - page(), page() + size);
}

}  // namespace cosmati::emulator
