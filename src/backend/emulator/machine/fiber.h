// A function on a stack of its own, which can stop in the middle and go on later. The sanitizers are told of
// each change of stacks.
#pragma once
#include <boost/context/fiber.hpp>
#include <string>
#include <vector>

#include "src/backend/emulator/machine/stack.h"

namespace cosmati::emulator {

class Fiber {
 public:
  // body(argument) starts with the first resume(); no exception may leave it.
  Fiber(void (*body)(void* argument), void* argument) : body_(body), argument_(argument) {}
  // The fiber must not have started, have returned, or stand in a suspend() that may return false.
  ~Fiber();
  Fiber(Fiber const&) = delete;
  Fiber& operator=(Fiber const&) = delete;

  // Runs the fiber until it suspends itself or returns. Called from outside, always on one host thread.
  void resume();
  // Goes back to resume()'s caller until the next resume(). False where the fiber shall return.
  bool suspend();
  // As ThreadSanitizer calls it from here on: another thread to it. Not called from inside.
  void name(std::string const& name);

 private:
  boost::context::fiber run(boost::context::fiber&& outside);
  void arrive(void* fake_stack);

  void (*body_)(void*);
  void* argument_;
  Stack stack_;
  bool started_ = false, closing_ = false;
  boost::context::fiber inside_, outside_;  // who is not running
  void const* host_bottom_ = nullptr;       // the host thread's stack
  std::size_t host_size_ = 0;
  void* tsan_inside_ = nullptr;
  void* tsan_outside_ = nullptr;
  std::vector<void*> tsan_retired_;  // destroyed late: numbers of destroyed ones come again
};

}  // namespace cosmati::emulator
