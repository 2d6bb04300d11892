// Devices and device memory of the C interface.
#include "src/c_api/handle.h"

#include <charconv>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "cosmati/ops/memory.h"
#include "src/c_api/options.h"
#include "src/c_api/status.h"
#include "src/io/tuning_file.h"

using namespace cosmati;
using c_api::guarded;
using c_api::require;

struct cosmati_memory {
  DeviceMemory memory;
};

namespace {

struct Place {
  Backend backend;
  int ordinal = 0;
};

// Parses "cpu", "cuda", "cuda:1", "auto", ...
Place parse_place(std::string const& text) {
  if (text == "auto") return {has_cuda_device() ? Backend::cuda : Backend::cpu};
  constexpr std::string_view prefix = "cuda:";
  if (!text.starts_with(prefix)) return {parse_backend(text)};
  Place place{Backend::cuda};
  char const* const end = text.data() + text.size();
  auto const [stop, error] = std::from_chars(text.data() + prefix.size(), end, place.ordinal);
  if (error != std::errc() || stop != end || place.ordinal < 0)
    c_api::refuse("unknown backend '" + text + "'; a GPU is cuda:N with N = 0, 1, ...");
  return place;
}

}  // namespace

cosmati_status cosmati_create(char const* backend, char const* options, cosmati_handle_t* handle) {
  return guarded([&] {
    require(backend, "cosmati_create", "backend");
    require(handle, "cosmati_create", "handle");
    c_api::Options const given(options, {"threads", "tuning"});
    constexpr std::size_t max_threads = 4096;
    int const threads = static_cast<int>(given.whole("threads", 0, max_threads));
    Place const place = parse_place(backend);
    auto made = std::make_unique<cosmati_handle>();
    if (std::string const* const path = given.find("tuning"))
      made->tuning = std::make_shared<TuningTable const>(io::read_tuning(*path));
    made->device = this_device(place.backend, threads, place.ordinal);
    *handle = made.release();
  });
}

void cosmati_destroy(cosmati_handle_t handle) { delete handle; }

char const* cosmati_backend(cosmati_handle_t handle) {
  return handle == nullptr ? nullptr : name_of(handle->device.backend);
}

cosmati_status cosmati_wait(cosmati_handle_t handle, cosmati_stream stream) {
  return guarded([&] {
    require(handle, "cosmati_wait", "handle");
    wait(handle->device, stream);
  });
}

cosmati_status cosmati_allocate(cosmati_handle_t handle, size_t bytes, cosmati_memory_t* memory) {
  return guarded([&] {
    require(handle, "cosmati_allocate", "handle");
    require(memory, "cosmati_allocate", "memory");
    *memory = new cosmati_memory{DeviceMemory(handle->device, bytes)};
  });
}

void cosmati_free(cosmati_memory_t memory) { delete memory; }

void* cosmati_address(cosmati_memory_t memory) { return memory == nullptr ? nullptr : memory->memory.data(); }

cosmati_status cosmati_upload(cosmati_memory_t memory, size_t offset, void const* source, size_t bytes) {
  return guarded([&] {
    require(memory, "cosmati_upload", "memory");
    if (bytes > 0) require(source, "cosmati_upload", "source");
    memory->memory.upload(source, bytes, offset);
  });
}

cosmati_status cosmati_download(cosmati_memory_t memory, size_t offset, void* target, size_t bytes) {
  return guarded([&] {
    require(memory, "cosmati_download", "memory");
    if (bytes > 0) require(target, "cosmati_download", "target");
    memory->memory.download(target, bytes, offset);
  });
}
