// Independent, slow tasks on a few threads of their own.
#pragma once
#include <cstddef>
#include <functional>

namespace cosmati::jit {

// Calls task(i) for each i in [0, count), in order of i on whichever thread is free; threads = 0: as many as
// there are cores. When all have returned, throws what the first (by i) of those that threw has thrown.
void run_all(std::size_t count, int threads, std::function<void(std::size_t)> const& task);

}  // namespace cosmati::jit
