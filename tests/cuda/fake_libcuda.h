// A driver without a GPU, for tests of what calls the driver: device memory is host memory that only the
// driver may be asked about, kernels are functions of the test, and work is done when it is enqueued, or when
// the graph is launched that it was captured in. It says nothing of how a GPU behaves.
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

// The names that modules have from now on.
void set_kernel(std::string const& name, Kernel kernel);
std::vector<Launch> const& launches();
// Sets the duration of kernels: the time between two events is 2.5 ms plus that of the kernels between them.
void take_milliseconds(double milliseconds);
// For the other fakes: work for a stream, done at once or recorded while the stream is captured. False: there
// is no such stream, or it is captured and libraries refuse that.
bool enqueue(void* stream, std::function<void()> work);
void refuse_captures(bool refuse);  // of what libraries enqueue, until reset()
// The next call of this function of the driver returns `result`.
void fail_next(std::string const& function, unsigned result);
// Handles and allocations that nobody has given back.
int handles();
int allocations();
void* current_context();
void set_current_context(void* context);
void reset();  // forgets launches, kernels, failures

}  // namespace fake
