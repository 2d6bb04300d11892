// Rings of stages filled by TMA, products of a warpgroup, named barriers and clusters, with and without
// races.
#include <vector>

#include "cosmati/arch/cluster.h"
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/warpgroup.h"
#include "cosmati/tile/matrix_descriptor.h"
#include "tests/race/race.h"

namespace cosmati {
namespace {

constexpr int stages = 2, steps = 6;

struct alignas(64) Params {
  arch::TensorMap map, to;
  int* out;
  bool is_right;
};

struct Storage {
  alignas(1024) int stage[stages][64][32];
  alignas(1024) int result[128];
  arch::Barrier full[stages], empty[stages];
};

// One thread issues copies of boxes, and a warp reads them and releases the stage: after reading, or before.
template <class P>
COSMATI_KERNEL(64, 1)
read_ring(COSMATI_PARAMETER P params) {
  auto& storage = arch::shared_storage<Storage>();
  int const self = arch::thread();
  if (self == 0) {
    for (int i = 0; i < stages; ++i) {
      arch::init(storage.full[i], 1);
      arch::init(storage.empty[i], 32);
    }
    arch::publish_barriers();
  }
  arch::block_barrier();
  int sum = 0;
  for (int step = 0; step < steps; ++step) {
    int const stage = step % stages, parity = step / stages % 2;
    if (self == 0) {
      int const at[2] = {0, 64 * step};
      arch::wait(storage.empty[stage], parity ^ 1);
      arch::arrive_expecting(storage.full[stage], sizeof storage.stage[0]);
      arch::copy_tile(&storage.stage[stage], params.map, storage.full[stage], at);  // ring: one side
    } else if (self >= 32) {
      arch::wait(storage.full[stage], parity);
      if (!params.is_right) arch::arrive(storage.empty[stage]);
      for (int row = 0; row < 64; ++row) sum += storage.stage[stage][row][self - 32];  // ring: other side
      if (params.is_right) arch::arrive(storage.empty[stage]);
    }
  }
  if (self >= 32) params.out[arch::block_x() * 64 + self] = sum;
}

// A warpgroup multiplies what was copied; one lane of each warp releases the stage after waiting for the
// products. Releasing before the wait would not be a race but an error that the emulator reports itself.
template <class P>
COSMATI_KERNEL(256, 1)
multiply_ring(COSMATI_PARAMETER P params) {
  auto& storage = arch::shared_storage<Storage>();
  int const self = arch::thread();
  if (self == 0) {
    for (int i = 0; i < stages; ++i) {
      arch::init(storage.full[i], 1);
      arch::init(storage.empty[i], 4);
    }
    arch::publish_barriers();
  }
  arch::block_barrier();
  int d[4];
  for (int step = 0; step < steps; ++step) {
    int const stage = step % stages, parity = step / stages % 2;
    if (self == 128) {
      int const at[2] = {0, 64 * step};
      arch::wait(storage.empty[stage], parity ^ 1);
      arch::arrive_expecting(storage.full[stage], sizeof storage.stage[0]);
      arch::copy_tile(&storage.stage[stage], params.map, storage.full[stage], at);
    } else if (self < 128) {
      arch::wait(storage.full[stage], parity);
      auto const a = matrix_descriptor(arch::shared_address(&storage.stage[stage]),
                                       strides_of_tile(64, false, Swizzle::bytes128), Swizzle::bytes128);
      arch::warpgroup_begin();
      arch::multiply_warpgroup<s8, s8, false, false, 8>(d, a, a, step > 0);
      arch::warpgroup_commit();
      arch::warpgroup_wait<0>();
      if (self % 32 == 0) arch::arrive(storage.empty[stage]);
    }
  }
  if (self < 128) params.out[arch::block_x() * 128 + self] = d[0];
}

// A warpgroup multiplies what was copied, then writes a tile that one thread stores: after a barrier of all
// writers, or of half of them.
template <class P>
COSMATI_KERNEL(128, 1)
multiply_and_store(COSMATI_PARAMETER P params) {
  auto& storage = arch::shared_storage<Storage>();
  int const self = arch::thread();
  if (self == 0) {
    arch::init(storage.full[0], 1);
    arch::publish_barriers();
    int const at[2] = {0, 0};
    arch::arrive_expecting(storage.full[0], sizeof storage.stage[0]);
    arch::copy_tile(&storage.stage[0], params.map, storage.full[0], at);
  }
  arch::block_barrier();
  arch::wait(storage.full[0], 0);
  auto const a = matrix_descriptor(arch::shared_address(&storage.stage[0]),
                                   strides_of_tile(64, false, Swizzle::bytes128), Swizzle::bytes128);
  int d[4];
  arch::warpgroup_begin();
  arch::multiply_warpgroup<s8, s8, false, false, 8>(d, a, a, false);
  arch::warpgroup_commit();
  arch::warpgroup_wait<0>();
  storage.result[self] = d[0];  // store: one side
  arch::publish_to_async();
  if (params.is_right)
    arch::named_barrier(1, 128);
  else if (self < 64)
    arch::named_barrier(1, 64);
  if (self != 0) return;
  int const at[2] = {0, arch::block_x()};
  arch::store_tile(params.to, storage.result, at);  // store: other side
  arch::commit_stores();
  arch::wait_stores_read<0>();
}

// Blocks of a cluster read each other's shared memory, after a barrier of the cluster or only one of their
// own block.
template <class P>
COSMATI_KERNEL(32, 1)
read_neighbor(COSMATI_PARAMETER P params) {
  auto& storage = arch::shared_storage<Storage>();
  int const self = arch::thread();
  arch::cluster_arrive();
  arch::cluster_wait();
  storage.result[self] = self;  // neighbor: one side
  if (params.is_right) {
    arch::cluster_arrive();
    arch::cluster_wait();
  } else {
    arch::block_barrier();
  }
  int const* const there = arch::in_block(storage.result, arch::block_of_cluster() ^ 1);
  params.out[arch::block_x() * 32 + self] = there[31 - self];  // neighbor: other side
  arch::cluster_arrive();
  arch::cluster_wait();
}

template <auto kernel>
void run(int threads, bool is_right, bool in_clusters = false) {
  alignas(16) static int source[64 * steps][32];
  alignas(16) static int target[4][128];
  std::vector<int> out(512);
  Params params{};
  params.map = emulator::encode_tensor_map({.address = source,
                                            .rank = 2,
                                            .element_bytes = 4,
                                            .extent = {32, 64 * steps},
                                            .stride = {0, 128},
                                            .box = {32, 64},
                                            .swizzle_bytes = 128});
  params.to = emulator::encode_tensor_map({.address = target,
                                           .rank = 2,
                                           .element_bytes = 4,
                                           .extent = {128, 4},
                                           .stride = {0, 512},
                                           .box = {128, 1}});
  params.out = out.data();
  params.is_right = is_right;
  emulator::launch_kernel_clusters<kernel>({4}, {in_clusters ? 2 : 1}, threads, sizeof(Storage), params, 2);
}

race::Registered const registered[] = {
    {"clean_ring", [] { run<read_ring<Params>>(64, true); }},
    {"planted_ring", [] { run<read_ring<Params>>(64, false); }},
    {"clean_products", [] { run<multiply_ring<Params>>(256, true); }},
    {"clean_store", [] { run<multiply_and_store<Params>>(128, true); }},
    {"planted_store", [] { run<multiply_and_store<Params>>(128, false); }},
    {"clean_neighbor", [] { run<read_neighbor<Params>>(32, true, true); }},
    {"planted_neighbor", [] { run<read_neighbor<Params>>(32, false, true); }},
};

}  // namespace
}  // namespace cosmati
