// Threads that do the same at the same time, each for a device of its own.
#pragma once
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace cosmati::parallel {

class Crew {
 public:
  // on_failure: called when a member throws, on its thread, before run() rethrows; the others may be waiting
  // for it.
  Crew(int members, std::function<void()> on_failure);
  ~Crew();
  Crew(Crew const&) = delete;
  Crew& operator=(Crew const&) = delete;

  int members() const { return static_cast<int>(threads_.size()); }
  // body(member) on each thread; returns when all have. Rethrows what was thrown first.
  void run(std::function<void(int)> const& body);

 private:
  void work(int member);
  void dismiss();  // the threads end

  std::function<void()> on_failure_;
  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  std::function<void(int)> const* body_ = nullptr;
  std::exception_ptr failure_;
  unsigned long long turn_ = 0;
  int working_ = 0;
  bool over_ = false;
  std::vector<std::thread> threads_;  // last: they use the rest
};

}  // namespace cosmati::parallel
