// A thread block: its emulated threads, what each waits for, and their scheduling.
#pragma once
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cosmati/arch/emulator.h"
#include "src/backend/emulator/machine/async.h"
#include "src/backend/emulator/machine/copies.h"
#include "src/backend/emulator/machine/fiber.h"
#include "src/backend/emulator/machine/shared_memory.h"

namespace cosmati::emulator {

constexpr int warp_size = 32;

// The arguments of launch().
struct Work {
  Grid grid;
  int threads;
  unsigned shared_bytes;
  void (*body)(void const* params);
  void const* params;
  Grid cluster = {};  // the grid is a multiple of it

  Grid clusters_along() const { return {grid.x / cluster.x, grid.y / cluster.y, grid.z / cluster.z}; }
  std::int64_t clusters() const {
    Grid const along = clusters_along();
    return std::int64_t{along.x} * along.y * along.z;
  }
};

enum class State : unsigned char {
  fresh,          // has not entered the kernel yet
  ready,          // can continue
  polling,        // in wait(), until its predicate is true
  at_barrier,     // of the block, until all its threads have arrived
  at_collective,  // until all lanes of its mask have arrived
  finished,       // has left the kernel
};

class Block;
class Cluster;

struct Thread {
  Thread(Block& its_block, int its_index, void (*body)(void* thread))
      : block(its_block), index(its_index), fiber(body, this) {}

  Block& block;
  int const index;
  State state = State::finished;
  bool idle = false;                // its last turn made no progress
  char arrival = 0, departure = 0;  // synchronization objects for ThreadSanitizer
  char const* what = "";            // the barrier, collective or wait that it has reached
  unsigned mask = 0;                // of the collective
  // Returns the text of what it waits for, from the following numbers, if `what` is not sufficient.
  std::string (*tell)(Thread const&) = nullptr;
  int waits_for = 0, detail = 0;
  void* lane = nullptr;                  // its argument of the collective
  std::exception_ptr exception;          // an exception that left the kernel
  std::optional<std::string> violation;  // a violated rule of the machine
  Copies copies;
  AsyncThread async;
  Fiber fiber;

  int writer() const;  // its number among the threads of the cluster (ordinary_writes.h)
};

// The lanes of a warp that have arrived at a collective.
struct Meeting {
  char const* name;
  unsigned mask, arrived;
};

// A barrier of the block. Rounds alternate between two sets of fields, since threads of one round may still
// read them while others arrive for the next.
struct Barrier {
  char const* name;
  int arrived = 0, round = 0;    // round: 0 or 1
  bool any[2] = {false, false};  // whether a thread passed true
  char sync[2] = {0, 0};         // synchronization objects for ThreadSanitizer
};

// Code inside emulated threads that acts on behalf of several of them calls no allocator, lock or copying
// function of the C library: ThreadSanitizer would attribute those calls to the kernel.
class Block {
 public:
  Block(Work const& work, Cluster& cluster, int rank);

  // Makes this the block at `index` of the grid (x fastest); its previous block must be finished.
  void start(std::int64_t index);
  // Resumes each thread that can continue, once. Returns false if none made progress.
  bool take_turns();
  bool is_finished() const { return alive_ == 0; }
  // A thread or the block has violated a rule or thrown, or no thread can continue.
  bool has_failed() const { return failed_; }
  // Unwinds all threads; destructors in the kernel run.
  void unwind();

  Work const& work() const { return work_; }
  Cluster& cluster() const { return cluster_; }
  int rank() const { return rank_; }  // in the cluster
  std::int64_t index() const { return index_; }
  Grid position() const;
  SharedMemory const& shared_memory() const { return shared_memory_; }
  std::vector<std::unique_ptr<Thread>> const& threads() const { return threads_; }
  Thread& thread(int index) const { return *threads_[static_cast<std::size_t>(index)]; }
  std::vector<Meeting> const& meetings(int warp) const { return meetings_[static_cast<std::size_t>(warp)]; }
  std::optional<std::string> const& violation() const { return violation_; }
  Async* async() const { return uses_async_ ? async_.get() : nullptr; }

  // The following functions are called by the running thread. The collectives, as in arch/emulator.h:
  void wait_at_barrier(Thread& thread) { wait_at(barrier_, thread, false); }
  bool any(Thread& thread, bool mine) { return wait_at(barrier_any_, thread, mine); }
  void meet(Thread& thread, char const* name, unsigned mask, void* lane,
            void (*compute)(void* const* lanes, void* context), void* context);
  void poll(Thread& thread, char const* what, bool (*ready)(void* context), void* context);
  void poll_launch(Thread& thread, char const* what, bool (*ready)(void* context), void* context);
  // Returns true if no thread can continue, so that operations in flight may take effect; until then the
  // caller waits.
  bool has_come_to_rest();
  // Creates the state of asynchronous instructions.
  Async& start_async();
  // Whether waiting is possible; a destructor must not wait while the thread is being unwound.
  bool can_wait() const;
  // Makes the thread fail with this violation; does nothing if it is already being unwound.
  void fail(Thread& thread, std::string const& violation);

 private:
  static void run_thread(void* thread);
  void run_kernel(Thread& thread);
  bool wait_at(Barrier& barrier, Thread& thread, bool mine);
  void resume(Thread& thread);
  void suspend(Thread& thread);
  void finish();

  Work const& work_;
  Cluster& cluster_;
  int const rank_;
  std::int64_t index_ = 0;
  int alive_ = 0;
  bool failed_ = false, unwinding_ = false;
  bool at_rest_ = false, waits_for_rest_ = false;
  int exceptions_ = 0;  // in flight on this host thread, other than those of emulated threads
  std::optional<std::string> violation_;
  char begin_ = 0, end_ = 0;  // synchronization objects for ThreadSanitizer
  Barrier barrier_{"the block barrier"}, barrier_any_{"block_any"};
  SharedMemory shared_memory_;
  std::unique_ptr<Async> async_;
  bool uses_async_ = false;
  std::vector<std::vector<Meeting>> meetings_;  // open collectives of each warp
  std::vector<std::unique_ptr<Thread>> threads_;
};

// The emulated thread that runs on this host thread; null outside kernels. Emulated threads never migrate.
//
// Its thread-local storage model is the default one: initial-exec would be faster by nanoseconds, but
// consumes the few hundred bytes that the loader reserves for libraries opened at run time (dlopen).
[[gnu::visibility("hidden")]] extern constinit thread_local Thread* running;
// Returns it; throws Error(bad_request) outside kernels.
Thread& running_thread();

}  // namespace cosmati::emulator
