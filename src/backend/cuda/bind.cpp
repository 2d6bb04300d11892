// Composes the source of the kernels in gemm/bind.h.
#include "src/backend/cuda/bind.h"

#include <fmt/format.h>

#include "cosmati/gemm/group_arguments.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/jit/cache.h"

namespace cosmati::cuda {

jit::Source bind_source(Binding binding, Gpu const& gpu) {
  jit::Source source;
  source.text = "#include \"cosmati/gemm/bind.h\"\n";
  source.name_expression =
      binding == Binding::maps
          ? fmt::format("cosmati::bind_maps_kernel<{}>", bind_threads)
          : fmt::format("cosmati::bind_kernel<{}>", binding == Binding::pointers_and_maps);
  source.architecture = architecture_of(gpu);
  source.label = "binding pointers";
  return source;
}

Function bind_function(Binding binding, Gpu const& gpu) {
  jit::Cubin const cubin = jit::kernel_cache().get(bind_source(binding, gpu));
  return Module(gpu.ordinal, cubin.image.data()).function(cubin.lowered_name);
}

}  // namespace cosmati::cuda
