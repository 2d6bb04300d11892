// Stacks for fibers, with a page below each that cannot be touched. They are kept for later launches, since
// to make one costs more than to run a short kernel on it.
#pragma once
#include <cstddef>

namespace cosmati::emulator {

class Stack {
 public:
  // Memory is taken page by page as it is used, so that a generous size (room for a sanitizer's red zones,
  // too) costs addresses only. Throws Error(out_of_memory).
  Stack();
  ~Stack();
  Stack(Stack const&) = delete;
  Stack& operator=(Stack const&) = delete;

  static constexpr std::size_t size = 256 * 1024;
  unsigned char* bottom() const { return bottom_; }
  unsigned char* top() const { return bottom_ + size; }

 private:
  unsigned char* bottom_;
};

}  // namespace cosmati::emulator
