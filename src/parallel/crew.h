// Threads that run the same function concurrently, each for its own device.
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
  // Calls body(member) on each thread; returns when all have returned. Rethrows the first exception.
  void run(std::function<void(int)> const& body);

 private:
  void work(int member);
  void dismiss();  // ends the threads

  std::function<void()> on_failure_;
  std::mutex mutex_;
  std::condition_variable begun_, ended_;
  std::function<void(int)> const* body_ = nullptr;
  std::exception_ptr failure_;
  unsigned long long turn_ = 0;
  int working_ = 0;
  bool over_ = false;
  std::vector<std::thread> threads_;  // last, since they use the other members
};

}  // namespace cosmati::parallel
