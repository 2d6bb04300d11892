// Runs one function at a time on all threads.
#include "src/parallel/crew.h"

#include <utility>

#include "src/parallel/wait.h"

namespace cosmati::parallel {

Crew::Crew(int members, std::function<void()> on_failure) : on_failure_(std::move(on_failure)) {
  try {
    for (int member = 0; member < members; ++member) threads_.emplace_back([this, member] { work(member); });
  } catch (...) {  // the system refuses to create a thread
    dismiss();
    throw;
  }
}

Crew::~Crew() { dismiss(); }

void Crew::dismiss() {
  {
    std::lock_guard const lock(mutex_);
    over_ = true;
  }
  begun_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Crew::run(std::function<void(int)> const& body) {
  std::unique_lock lock(mutex_);
  body_ = &body;
  failure_ = nullptr;
  working_ = members();
  ++turn_;
  begun_.notify_all();
  parallel::wait(ended_, lock, [&] { return working_ == 0; });
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

void Crew::work(int member) {
  unsigned long long done = 0;
  for (std::unique_lock lock(mutex_);;) {
    parallel::wait(begun_, lock, [&] { return over_ || turn_ != done; });
    if (turn_ == done) return;
    done = turn_;
    auto const& body = *body_;
    lock.unlock();
    std::exception_ptr failure;
    try {
      body(member);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    if (failure && !failure_) {
      failure_ = failure;
      if (on_failure_) {
        lock.unlock();
        on_failure_();
        lock.lock();
      }
    }
    if (--working_ == 0) ended_.notify_all();
  }
}

}  // namespace cosmati::parallel
