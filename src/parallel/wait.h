// Waits for a condition variable as its member wait() does, by the functions of POSIX: the member is the only
// symbol of GCC 12's libstdc++ that the library would need (GLIBCXX_3.4.30), and a wheel without it can be
// installed on systems with that of GCC 11.
#pragma once
#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace cosmati::parallel {

inline void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock) {
  pthread_cond_wait(changed.native_handle(), lock.mutex()->native_handle());
}

template <class Holds>
void wait(std::condition_variable& changed, std::unique_lock<std::mutex>& lock, Holds const& holds) {
  while (!holds()) wait(changed, lock);
}

}  // namespace cosmati::parallel
