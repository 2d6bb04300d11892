// A driver without a GPU, to test code that calls the driver: device memory is host memory that only the
// driver may access, kernels are functions of the test, and work is done when it is enqueued, or when the
// graph that captured it is launched. It does not model the behavior of a GPU.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace fake {

struct Launch {
  std::string kernel;
  unsigned grid_x = 0, grid_y = 0, grid_z = 0, threads = 0, shared_bytes = 0;
  std::vector<std::byte> params;
  void* stream = nullptr;

  template <class Params>
  Params const& as() const {
    return *reinterpret_cast<Params const*>(params.data());
  }
};
using Kernel = void (*)(Launch const&);

// Registers the kernel that modules contain under this name from now on.
void set_kernel(std::string const& name, Kernel kernel);
std::vector<Launch> const& launches();
// Sets the duration of kernels: the time between two events is 2.5 ms plus that of the kernels between them.
void take_milliseconds(double milliseconds);
// For the other fakes: enqueues work on a stream; it is done at once, or recorded while the stream is
// captured. Returns false if the stream does not exist, or if it is captured and refuse_captures() is in
// effect.
bool enqueue(void* stream, std::function<void()> work);
void refuse_captures(bool refuse);  // makes library calls fail during capture, until reset()
// The next call of this driver function returns `result`.
void fail_next(std::string const& function, unsigned result);
// The number of handles and allocations not yet released.
int handles();
int allocations();
void* current_context();
void set_current_context(void* context);
void reset();  // clears launches, kernels and failures

}  // namespace fake
