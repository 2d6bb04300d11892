// A function with its own stack that can be suspended and resumed. The sanitizers are notified of each change
// of stacks.
#pragma once
#include <boost/context/fiber.hpp>
#include <string>
#include <vector>

#include "src/backend/emulator/machine/stack.h"

namespace cosmati::emulator {

class Fiber {
 public:
  // body(argument) starts with the first resume(); it must not throw.
  Fiber(void (*body)(void* argument), void* argument) : body_(body), argument_(argument) {}
  // The fiber must not have started, must have returned, or must be in a suspend() that may return false.
  ~Fiber();
  Fiber(Fiber const&) = delete;
  Fiber& operator=(Fiber const&) = delete;

  // Runs the fiber until it suspends itself or returns. Called from outside, always on the same host thread.
  void resume();
  // Returns to resume()'s caller until the next resume(). False if the fiber must return.
  bool suspend();
  // The name in ThreadSanitizer's reports from now on. Not called from inside.
  void name(std::string const& name);

 private:
  boost::context::fiber run(boost::context::fiber&& outside);
  void arrive(void* fake_stack);

  void (*body_)(void*);
  void* argument_;
  Stack stack_;
  bool started_ = false, closing_ = false;
  boost::context::fiber inside_, outside_;  // the one that is not running
  void const* host_bottom_ = nullptr;       // the host thread's stack
  std::size_t host_size_ = 0;
  void* tsan_inside_ = nullptr;
  void* tsan_outside_ = nullptr;
  // Destroyed late, since ThreadSanitizer reuses the numbers of destroyed fibers.
  std::vector<void*> tsan_retired_;
};

}  // namespace cosmati::emulator
