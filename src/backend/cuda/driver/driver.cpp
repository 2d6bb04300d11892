// Loads the driver's library and describes its results.
#include "src/backend/cuda/driver/driver.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "cosmati/ops/error.h"

namespace cosmati::cuda {
namespace {

struct Loaded {
  Driver driver;
  std::string failure;
};

std::string text_of(Driver const& driver, Result result) {
  auto const number = std::to_string(static_cast<unsigned>(result));
  if (result == Result::stub_library)
    return "this is the toolkit's stub to link with, not a driver (" + number + ")";
  char const *name = nullptr, *text = nullptr;
  if (!driver.cuGetErrorName.present() || !driver.cuGetErrorString.present() ||
      driver.cuGetErrorName.attempt(result, &name) != Result::success ||
      driver.cuGetErrorString.attempt(result, &text) != Result::success || name == nullptr || text == nullptr)
    return "error " + number;
  return std::string(text) + " (" + name + ", " + number + ")";
}

Loaded load_driver() {
  Loaded loaded;
  char const* const named = std::getenv("COSMATI_LIBCUDA");
  std::string const file = named != nullptr && *named != '\0' ? named : "libcuda.so.1";
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    char const* const reason = dlerror();
    loaded.failure =
        "no NVIDIA driver: " + (reason != nullptr ? std::string(reason) : file + " cannot be opened");
    return loaded;
  }
  Driver& driver = loaded.driver;
#define COSMATI_BIND(name, parameters) driver.name.bind(dlsym(handle, #name));
  COSMATI_CUDA_DRIVER(COSMATI_BIND)
#undef COSMATI_BIND
  // Drivers before CUDA 12.8 have only the first version, with the same signature.
  if (!driver.cuEventElapsedTime_v2.present())
    driver.cuEventElapsedTime_v2.bind(dlsym(handle, "cuEventElapsedTime"));
  if (!driver.cuInit.present()) {
    loaded.failure = file + " is not an NVIDIA driver: it has no function cuInit";
    return loaded;
  }
  Result const result = driver.cuInit.attempt(0);
  if (result != Result::success) loaded.failure = file + ": cuInit: " + text_of(driver, result);
  return loaded;
}

Loaded const& loaded() {
  static Loaded const one = load_driver();
  return one;
}

ErrorCode code_of(Result result) {
  switch (result) {
    case Result::out_of_memory: return ErrorCode::out_of_memory;
    case Result::stub_library:
    case Result::device_unavailable:
    case Result::no_device:
    case Result::invalid_device:
    case Result::no_binary_for_gpu:
    case Result::system_not_ready:
    case Result::system_driver_mismatch: return ErrorCode::unavailable;
    default: return ErrorCode::system;
  }
}

}  // namespace

void check(char const* call, Result result) {
  if (result == Result::success) return;
  throw Error(code_of(result), std::string(call) + ": " + text_of(loaded().driver, result));
}

void check_quietly(char const* call, Result result) noexcept {
  if (result == Result::success || result == Result::deinitialized) return;
  std::fprintf(stderr, "cosmati: %s failed with error %u\n", call, static_cast<unsigned>(result));
}

void throw_missing(char const* function) {
  std::string const version = loaded().failure.empty() ? " (of CUDA " + driver_version() + ")" : "";
  throw Error(ErrorCode::unavailable, "the NVIDIA driver" + version + " has no function " + function +
                                          "; a newer driver is required");
}

Driver const& driver() {
  if (!loaded().failure.empty()) throw Error(ErrorCode::unavailable, loaded().failure);
  return loaded().driver;
}

std::string const& driver_failure() { return loaded().failure; }

std::string driver_version() {
  int version = 0;
  if (Driver const& here = driver(); here.cuDriverGetVersion.present()) here.cuDriverGetVersion(&version);
  return version == 0 ? "unknown"
                      : std::to_string(version / 1000) + '.' + std::to_string(version % 1000 / 10);
}

}  // namespace cosmati::cuda
