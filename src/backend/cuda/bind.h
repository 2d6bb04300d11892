// Kernels that bind pointers before a product: compiled or found in the cache.
#pragma once
#include <vector>

#include "src/backend/cuda/driver/module.h"
#include "src/jit/compile.h"

namespace cosmati::cuda {

enum class Binding : unsigned char { pointers, pointers_and_maps, maps };

jit::Source bind_source(Binding binding, Gpu const& gpu);
Function bind_function(Binding binding, Gpu const& gpu);

}  // namespace cosmati::cuda
