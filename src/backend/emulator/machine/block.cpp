// Scheduling and termination of emulated threads: every wait in a kernel goes through suspend().
#include "src/backend/emulator/machine/block.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>

#include "src/backend/emulator/machine/cluster.h"
#include "src/backend/emulator/machine/report.h"
#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {
namespace {

// Thrown to make a thread leave the kernel.
struct Unwind {};

}  // namespace

constinit thread_local Thread* running = nullptr;

int Thread::writer() const { return block.rank() * OrdinaryWrites::threads_of_block + index; }

Block::Block(Work const& work, Cluster& cluster, int rank)
    : work_(work),
      cluster_(cluster),
      rank_(rank),
      shared_memory_(work.shared_bytes),
      meetings_(static_cast<std::size_t>((work.threads + warp_size - 1) / warp_size)) {
  threads_.reserve(static_cast<std::size_t>(work.threads));
  for (std::vector<Meeting>& of_warp : meetings_) of_warp.reserve(warp_size);
  for (int thread = 0; thread < work.threads; ++thread)
    threads_.push_back(std::make_unique<Thread>(*this, thread, run_thread));
}

Grid Block::position() const {
  std::int64_t const row = index_ / work_.grid.x;
  return {static_cast<int>(index_ % work_.grid.x), static_cast<int>(row % work_.grid.y),
          static_cast<int>(row / work_.grid.y)};
}

void Block::start(std::int64_t index) {
  index_ = index;
  alive_ = work_.threads;
  exceptions_ = std::uncaught_exceptions();
  shared_memory_.poison();
  uses_async_ = at_rest_ = waits_for_rest_ = false;
  for (auto const& thread : threads_) {
    thread->state = State::fresh;
    thread->tell = nullptr;
    thread->async.reset();
    if (sanitizers::tells_races()) thread->fiber.name(describe(*thread));
  }
  sanitizers::release(&begin_);
}

bool Block::take_turns() {
  bool progress = false, somebody_polls = false;
  for (auto const& pointer : threads_) {
    Thread& thread = *pointer;
    if (thread.state == State::at_barrier || thread.state == State::at_collective ||
        thread.state == State::finished)
      continue;
    resume(thread);
    somebody_polls |= thread.state == State::polling;
    if (thread.idle) continue;
    progress = true;
    cluster_.attribute_writes(thread);
    if (!shared_memory_.is_whole_nearby() && !thread.violation)
      thread.violation = describe_damage(shared_memory_);
    failed_ = thread.violation || thread.exception;
    if (failed_) {
      sanitizers::acquire(&end_);
      return true;
    }
    if (thread.state != State::finished) continue;
    cluster_.leave(thread);
    if (--alive_ == 0) finish();
  }
  if (!progress && !somebody_polls && alive_ > 0) failed_ = true;
  at_rest_ = !progress;
  return std::exchange(waits_for_rest_, false) || progress;
}

bool Block::has_come_to_rest() {
  waits_for_rest_ = !at_rest_;
  return std::exchange(at_rest_, false);
}

void Block::finish() {
  sanitizers::acquire(&end_);
  for (auto const& thread : threads_) thread->copies.land_all();
  if (shared_memory_.damage()) violation_ = describe_damage(shared_memory_);
  if (!violation_ && async() != nullptr) violation_ = async_->left_over();
  failed_ = violation_.has_value();
}

void Block::unwind() {
  unwinding_ = true;
  for (auto const& thread : threads_) {
    if (thread->state == State::fresh) thread->state = State::finished;
    while (thread->state != State::finished) resume(*thread);
  }
  sanitizers::acquire(&end_);
  alive_ = 0;
}

Async& Block::start_async() {
  if (!uses_async_) {
    if (async_ == nullptr)
      async_ = std::make_unique<Async>(*this);
    else
      async_->reset();
    uses_async_ = true;
    async_->writes.attribute(OrdinaryWrites::unknown);
  }
  return *async_;
}

void Block::run_thread(void* pointer) {
  Thread& thread = *static_cast<Thread*>(pointer);
  do {
    thread.block.run_kernel(thread);
    thread.state = State::finished;
  } while (thread.fiber.suspend());
}

void Block::run_kernel(Thread& thread) {
  sanitizers::acquire(&begin_);
  thread.state = State::ready;
  try {
    work_.body(work_.params);
  } catch (Unwind const&) {
    // The thrower has already recorded the reason.
  } catch (...) {
    thread.exception = std::current_exception();
  }
  sanitizers::release(&end_);
}

void Block::resume(Thread& thread) {
  thread.idle = false;
  running = &thread;
  thread.fiber.resume();
  running = nullptr;
}

void Block::suspend(Thread& thread) {
  thread.fiber.suspend();
  if (unwinding_) throw Unwind{};
}

// A destructor must not wait while the stack unwinds: the other threads may never arrive, and it could not
// throw.
bool Block::can_wait() const {
  if (std::uncaught_exceptions() != exceptions_) return false;
  if (unwinding_) throw Unwind{};
  return true;
}

void Block::fail(Thread& thread, std::string const& violation) {
  if (!can_wait()) return;
  thread.violation = violation;
  throw Unwind{};
}

bool Block::wait_at(Barrier& barrier, Thread& thread, bool mine) {
  if (!can_wait()) return mine;
  int const round = barrier.round;
  sanitizers::release(&barrier.sync[round]);
  barrier.any[round] |= mine;
  if (++barrier.arrived < work_.threads) {
    thread.state = State::at_barrier;
    thread.what = barrier.name;
    suspend(thread);
  } else {
    barrier.arrived = 0;
    barrier.round = 1 - round;
    barrier.any[1 - round] = false;
    for (auto const& other : threads_) other->state = State::ready;
  }
  sanitizers::acquire(&barrier.sync[round]);
  return barrier.any[round];
}

void Block::poll(Thread& thread, char const* what, bool (*ready)(void*), void* context) {
  if (!can_wait() || ready(context)) return;
  thread.state = State::polling;
  thread.what = what;
  for (suspend(thread); !ready(context); suspend(thread)) thread.idle = true;
  thread.state = State::ready;
}

void Block::poll_launch(Thread& thread, char const* what, bool (*ready)(void*), void* context) {
  using std::chrono::steady_clock;
  if (!can_wait() || ready(context)) return;
  thread.state = State::polling;
  thread.what = what;
  auto const last = steady_clock::now() + std::chrono::minutes(1);
  for (suspend(thread); !ready(context); suspend(thread)) {
    if (steady_clock::now() > last) return fail(thread, std::string("waited for a minute for ") + what);
    std::this_thread::yield();
  }
  thread.state = State::ready;
}

}  // namespace cosmati::emulator
