// Stacks for fibers, each with an inaccessible guard page below. They are reused by later launches, since
// creating one costs more than running a short kernel on it.
#pragma once
#include <cstddef>

namespace cosmati::emulator {

class Stack {
 public:
  // Memory is committed page by page as it is used, so a generous size (with room for a sanitizer's red
  // zones) costs only addresses. Throws Error(out_of_memory).
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
