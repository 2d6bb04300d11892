// Modules and kernel launches through the driver API.
#include "src/backend/cuda/driver/module.h"

#include <cstdint>
#include <mutex>

#include "cosmati/ops/error.h"

namespace cosmati::cuda {

namespace {

Result load(CUmod_st*& module, int ordinal, void const* image) {
  Current const current(ordinal);
  return driver().cuModuleLoadData.attempt(&module, image);
}

CUmod_st* loaded(int ordinal, void const* image) {
  CUmod_st* module = nullptr;
  check("cuModuleLoadData", load(module, ordinal, image));
  return module;
}

}  // namespace

Module::Module(int ordinal, CUmod_st* module)
    : ordinal_(ordinal), module_(module, [ordinal](void* loaded) {
        try {
          Current const also_here(ordinal);
          driver().cuModuleUnload.quietly(static_cast<CUmod_st*>(loaded));
        } catch (Error const&) {
          // The driver has been shut down, which unloaded the module.
        }
      }) {}

Module::Module(int ordinal, void const* image) : Module(ordinal, loaded(ordinal, image)) {}

std::optional<Module> Module::if_supported(int ordinal, void const* image) {
  CUmod_st* module = nullptr;
  Result const result = load(module, ordinal, image);
  switch (result) {
    case Result::invalid_image:
    case Result::no_binary_for_gpu:
    case Result::invalid_ptx:
    case Result::unsupported_ptx_version: return std::nullopt;
    default: check("cuModuleLoadData", result);
  }
  return Module(ordinal, module);
}

Function Module::function(std::string const& name) const {
  Current const current(ordinal_);
  Function function;
  function.module_ = module_;
  function.ordinal_ = ordinal_;
  function.name_ = name;
  auto* const module = static_cast<CUmod_st*>(module_.get());
  Result const result = driver().cuModuleGetFunction.attempt(&function.handle_, module, name.c_str());
  if (result == Result::not_found)
    throw Error(ErrorCode::system, "the loaded module has no kernel '" + name + "'");
  check("cuModuleGetFunction", result);
  // Loads the kernel now. Drivers before CUDA 12.4 lack cuFuncLoad; there the first attribute query has the
  // same effect.
  if (driver().cuFuncLoad.present())
    driver().cuFuncLoad(function.handle_);
  else
    (void)function.registers();
  return function;
}

int Function::attribute(FunctionAttribute which) const {
  Current const current(ordinal_);
  int value = 0;
  driver().cuFuncGetAttribute(&value, which, handle_);
  return value;
}

void Function::allow_shared_bytes(int bytes) {
  Current const current(ordinal_);
  int maximum = 0;
  driver().cuDeviceGetAttribute(&maximum, DeviceAttribute::shared_bytes_per_block, ordinal_);
  int const left = maximum - static_shared_bytes();
  if (bytes < 0 || bytes > left)
    throw Error(ErrorCode::bad_request, "kernel " + name_ + " needs " + std::to_string(bytes) +
                                            " bytes of dynamic shared memory; device " +
                                            std::to_string(ordinal_) + " has " + std::to_string(left) +
                                            " left per block");
  // Operations with the same kernel share it (kernels.cpp); another one may need more.
  static std::mutex one_at_a_time;
  std::lock_guard const lock(one_at_a_time);
  if (attribute(FunctionAttribute::dynamic_shared_bytes) < bytes)
    driver().cuFuncSetAttribute(handle_, FunctionAttribute::dynamic_shared_bytes, bytes);
}

int Function::blocks_per_multiprocessor(int threads, int shared_bytes) const {
  Current const current(ordinal_);
  int blocks = 0;
  driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, handle_, threads,
                                                       static_cast<std::size_t>(shared_bytes));
  return blocks;
}

int Function::clusters_at_once(int blocks, int threads, int shared_bytes) const {
  Current const current(ordinal_);
  LaunchAttribute cluster;
  cluster.id = launch_attribute_cluster;
  cluster.value[0] = blocks;
  cluster.value[1] = cluster.value[2] = 1;
  auto const number = [](int value) { return static_cast<unsigned>(value); };
  LaunchConfiguration const configuration{
      number(blocks), 1, 1, number(threads), 1, 1, number(shared_bytes), nullptr, &cluster, 1};
  int clusters = 0;
  driver().cuOccupancyMaxActiveClusters(&clusters, handle_, &configuration);
  return clusters;
}

void Function::launch(Blocks grid, unsigned threads, unsigned shared_bytes, void const* params,
                      std::size_t size, std::size_t alignment, Stream stream, Start start) const {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  Current const current(ordinal_);
  auto const key = [](std::intptr_t number) { return reinterpret_cast<void*>(number); };
  void* extra[] = {key(launch_buffer), const_cast<void*>(params), key(launch_buffer_size), &size,
                   key(launch_end)};
  // In a launch buffer, a parameter aligned to more than 16 bytes, such as a tensor map, would be preceded by
  // padding of a size known only to the module: such a parameter is passed by address.
  constexpr std::size_t max_alignment_in_buffer = 16;
  void* parameter[] = {const_cast<void*>(params)};
  Result result;
  if (start == Start::in_order) {
    bool const in_buffer = alignment <= max_alignment_in_buffer;
    result = driver().cuLaunchKernel.attempt(handle_, grid.x, grid.y, grid.z, threads, 1, 1, shared_bytes,
                                             handle_of(stream), in_buffer ? nullptr : parameter,
                                             in_buffer ? extra : nullptr);
  } else if (driver().cuLaunchKernelEx.present()) {
    LaunchAttribute attribute;
    attribute.id = start == Start::early ? launch_attribute_early_start : launch_attribute_together;
    attribute.value[0] = 1;
    LaunchConfiguration const configuration{
        grid.x, grid.y, grid.z, threads, 1, 1, shared_bytes, handle_of(stream), &attribute, 1};
    result = driver().cuLaunchKernelEx.attempt(&configuration, handle_, parameter, nullptr);
  } else {
    result = driver().cuLaunchKernel.attempt(handle_, grid.x, grid.y, grid.z, threads, 1, 1, shared_bytes,
                                             handle_of(stream), parameter, nullptr);
  }
  if (result == Result::success) return;
  try {
    check("cuLaunchKernel", result);
  } catch (Error const& error) {
    throw Error(error.code(), "kernel " + name_ + ", grid " + std::to_string(grid.x) + " x " +
                                  std::to_string(grid.y) + " x " + std::to_string(grid.z) + ", " +
                                  std::to_string(threads) + " threads, " + std::to_string(shared_bytes) +
                                  " bytes of shared memory: " + error.what());
  }
}

}  // namespace cosmati::cuda
