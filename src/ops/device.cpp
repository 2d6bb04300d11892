// Describes this machine for planning.
#include "cosmati/ops/device.h"

#include <sched.h>

#include "cosmati/epilogue/vector_level.h"
#include "cosmati/ops/error.h"
#include "src/backend/cpu/gemm/openblas.h"
#include "src/backend/cpu/runtime/module.h"
#include "src/backend/cpu/runtime/onednn_isa.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/backend/cuda/driver/devices.h"
#include "src/backend/cuda/driver/driver.h"
#include "src/backend/emulator/fftw.h"
#include "src/ops/host_caches.h"
#include "src/ops/names.h"

namespace cosmati {
namespace {

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
}

void set_processor(Device& device) {
  epilogue::VectorLevel const level = epilogue::best_vector_level();
  device.avx2 = level >= epilogue::VectorLevel::v3;
  device.avx512 = level >= epilogue::VectorLevel::v4;
#if defined(__x86_64__)
  // Only oneDNN uses these two, and users can limit it separately.
  cpu::OnednnLimit const limit = cpu::onednn_limit();
  device.avx512_bf16 = device.avx512 && limit.bf16 && __builtin_cpu_supports("avx512bf16");
  device.avx512_vnni = device.avx512 && limit.vnni && __builtin_cpu_supports("avx512vnni");
#endif
  device.cores = available_cores();
  HostCaches const& caches = host_caches();
  device.l1_bytes = caches.l1_bytes;
  device.l2_bytes = caches.l2_bytes;
  device.l3_bytes = caches.l3_bytes;
}

}  // namespace

char const* name_of(Backend backend) {
  switch (backend) {
    case Backend::cuda: return "cuda";
    case Backend::cpu: return "cpu";
    case Backend::emulator: return "emulator";
    case Backend::reference: break;
  }
  return "reference";
}

Backend parse_backend(std::string const& name) {
  std::vector<std::string> const names{"auto", "cuda", "cpu", "emulator", "reference"};
  for (Backend backend : {Backend::cuda, Backend::cpu, Backend::emulator, Backend::reference})
    if (name == name_of(backend)) return backend;
  throw Error(ErrorCode::bad_request, unknown_name("backend", name, names, "valid backends"));
}

Device this_device(Backend backend, int threads, int ordinal) {
  if (threads < 0)
    throw Error(ErrorCode::bad_request,
                std::to_string(threads) + " threads were requested; at least 1 is required");
  Device device;
  device.backend = backend;
  set_processor(device);
  device.threads = threads > 0 ? threads : device.cores;
  if (backend == Backend::cpu) device.threads = cpu::threads_to_be_had(device.threads);
  if (backend == Backend::cpu) {
    device.onednn = cpu::onednn_module() != nullptr;
    device.openblas = cpu::openblas_available();
  }
  if (backend == Backend::cuda) device.gpu = cuda::read_gpu(ordinal);
  if (backend == Backend::emulator) {
    device.gpu = describe_gpu("h200");
    device.fftw_failure = emulator::fftw_failure();
  }
  return device;
}

std::vector<Gpu> devices() {
  std::vector<Gpu> list{cuda::read_gpu(0)};
  int const count = cuda::device_count();
  for (int ordinal = 1; ordinal < count; ++ordinal) list.push_back(cuda::read_gpu(ordinal));
  return list;
}

bool has_cuda_device() { return cuda::driver_failure().empty() && cuda::device_count() > 0; }

}  // namespace cosmati
