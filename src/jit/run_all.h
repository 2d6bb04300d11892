// Independent slow tasks on a few threads.
#pragma once
#include <cstddef>
#include <functional>

namespace cosmati::jit {

// Calls task(i) for each i in [0, count), in order of i on whichever thread is free; threads = 0: one per
// core. When all have returned, rethrows the exception of the first (by i) that threw.
void run_all(std::size_t count, int threads, std::function<void(std::size_t)> const& task);

}  // namespace cosmati::jit
