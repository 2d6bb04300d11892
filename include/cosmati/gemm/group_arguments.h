// Parameters of grouped kernels (problems of different sizes in one launch), and of the kernel that binds
// pointers before them.
#pragma once
#include "cosmati/arch/tensor_map.h"
#include "cosmati/gemm/arguments.h"

namespace cosmati {

// `problems`: an array in device memory with the kernel's parameters, one per problem; every problem has at
// least one tile. first_tile[i]: number of tiles (of clusters, for persistent blocks) of the problems before
// i; first_tile[count]: the total.
struct GroupArguments {
  void const* problems = nullptr;
  int const* first_tile = nullptr;
  int count = 0;
};

// Pointers and scalars are passed as kernel parameters, which a launch copies: the caller's memory is not
// read afterwards, and a captured graph contains them. Slots: a, b, d, c, operands, stores and scalars.
inline constexpr int max_bound_slots = 4 + 2 * max_kernel_operands + max_kernel_stores;
inline constexpr int max_bound_values = 400;
inline constexpr int bind_threads = 64;  // threads per block of the binding kernel

// Record r of the launch: `to` + r * record_bytes receives a copy of `image` + r * record_bytes in which
// value [r * slots + s] is stored at offset[s]; the first `maps` values become the addresses of the tensor
// maps there.
struct BindParameters {
  void const* image = nullptr;  // both in device memory, as aligned as the records
  void* to = nullptr;
  int record_bytes = 0;  // a multiple of 8
  int slots = 0, maps = 0;
  unsigned short offset[max_bound_slots] = {};
  unsigned long long value[max_bound_values] = {};
};
static_assert(sizeof(BindParameters) <= 4096, "kernel parameters are limited to 4096 bytes");

}  // namespace cosmati
