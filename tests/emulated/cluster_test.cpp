// Clusters: blocks that run together, their barrier, their shared memory, and multicast copies.
#include "cosmati/arch/cluster.h"

#include <vector>

#include "cosmati/arch/tensor_copy.h"
#include "cosmati/arch/thread.h"
#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

enum class Mistake { none, no_cluster_barrier, leaves_early, no_publish, no_wait, outside };

struct alignas(64) Params {
  arch::TensorMap map;
  int* out;
  Mistake mistake = Mistake::none;
  int blocks_to = 0xf;
};

// Each block passes its numbers to the next block of its cluster.
template <class P>
COSMATI_KERNEL(32, 1)
hand_on(COSMATI_PARAMETER P params) {
  auto* const mine = testing::shared<int>();
  int const self = arch::thread(), rank = arch::block_of_cluster(), blocks = arch::blocks_of_cluster();
  int const block = (arch::block_z() * 4 + arch::block_y()) * 4 + arch::block_x();
  arch::cluster_arrive();
  arch::cluster_wait();
  int const to = params.mistake == Mistake::outside ? blocks : (rank + 1) % blocks;
  arch::in_block(mine, to)[self] = 100 * block + rank;
  if (params.mistake != Mistake::no_cluster_barrier) {
    arch::cluster_arrive();
    arch::cluster_wait();
  }
  params.out[block * 32 + self] = mine[self];
  if (params.mistake == Mistake::no_wait) arch::cluster_arrive();
  if (params.mistake == Mistake::no_wait) arch::cluster_arrive();
}

std::string report(std::vector<int>& out, Mistake mistake, emulator::Grid cluster, int host_threads = 0) {
  out.assign(4 * 4 * 2 * 32, -5);
  Params const params{{}, out.data(), mistake};
  return testing::report_of([&] {
    emulator::launch_kernel_clusters<hand_on<Params>>({4, 4, 2}, cluster, 32, 128, params, host_threads);
  });
}

void expect_handed_on(emulator::Grid const cluster, int host_threads) {
  std::vector<int> out;
  ASSERT_EQ(report(out, Mistake::none, cluster, host_threads), "");
  int const blocks = cluster.x * cluster.y * cluster.z;
  for (int block = 0; block < 32; ++block) {
    int const x = block % 4, y = block / 4 % 4, z = block / 16;
    int const rank = (z % cluster.z * cluster.y + y % cluster.y) * cluster.x + x % cluster.x;
    int const from = (rank + blocks - 1) % blocks;
    int const from_x = x / cluster.x * cluster.x + from % cluster.x;
    int const from_y = y / cluster.y * cluster.y + from / cluster.x % cluster.y;
    int const from_z = z / cluster.z * cluster.z + from / cluster.x / cluster.y;
    int const expected = 100 * ((from_z * 4 + from_y) * 4 + from_x) + from;
    for (int thread = 0; thread < 32; ++thread)
      ASSERT_EQ(out[static_cast<std::size_t>(block * 32 + thread)], expected) << "block " << block;
  }
}

TEST(Cluster, BlocksReachEachOthersSharedMemory) {
  expect_handed_on({2, 1, 1}, 1);
  expect_handed_on({1, 2, 1}, 2);
  expect_handed_on({4, 2, 1}, 0);
  expect_handed_on({2, 2, 2}, 3);
  expect_handed_on({4, 4, 1}, 2);
  expect_handed_on({1, 1, 1}, 2);
}

TEST(Cluster, MistakesAreReported) {
  std::vector<int> out;
  EXPECT_SAYS(report(out, Mistake::no_cluster_barrier, {2, 1, 1}, 1),
              "takes an address in block 0 of the cluster, which has left the kernel");
  EXPECT_SAYS(report(out, Mistake::outside, {2, 1, 1}),
              "takes an address in block 2 of the cluster, which has 2");
  EXPECT_SAYS(report(out, Mistake::no_wait, {2, 1, 1}),
              "cluster_arrive() a second time without cluster_wait()");
  auto const refusal = [](emulator::Grid cluster) {
    return testing::report_of(
        [&] {
          emulator::launch_kernel_clusters<hand_on<Params>>({4, 4, 2}, cluster, 32, 128, Params{});
        },
        ErrorCode::bad_request);
  };
  EXPECT_SAYS(refusal({3, 1, 1}),
              "a launch of 4 x 4 x 2 blocks, not a multiple of its clusters of 3 x 1 x 1");
  EXPECT_SAYS(refusal({4, 4, 2}),
              "a launch of clusters of 4 x 4 x 2 blocks; each extent must be at least 1, their product");
}

struct SendStorage {
  arch::Barrier received;
  double number[4][32];
};

// Each block sends a number from each of its threads to all blocks, which wait for all of them.
template <class P>
COSMATI_KERNEL(32, 1)
send_to_all(COSMATI_PARAMETER P params) {
  auto& storage = arch::shared_storage<SendStorage>();
  int const self = arch::thread(), rank = arch::block_of_cluster(), blocks = arch::blocks_of_cluster();
  if (self == 0) {
    arch::init(storage.received, 1);
    arch::arrive_expecting(storage.received, blocks * 32 * static_cast<int>(sizeof(double)));
    if (params.mistake != Mistake::no_publish) arch::publish_barriers();
  }
  arch::cluster_arrive_relaxed();
  arch::cluster_wait();
  if (params.mistake != Mistake::leaves_early || rank == 0)
    for (int to = 0; to < blocks; ++to)
      arch::send(storage.number[rank][self], 100.0 * arch::block_x() + self, storage.received, to);
  arch::acquire(storage.received, 0);
  for (int from = 0; from < blocks; ++from)
    params.out[(arch::block_x() * 4 + from) * 32 + self] = static_cast<int>(storage.number[from][self]);
}

std::string report_of_sends(std::vector<int>& out, Mistake mistake, int blocks) {
  out.assign(8 * 4 * 32, -5);
  Params const params{{}, out.data(), mistake};
  return testing::report_of([&] {
    emulator::launch_kernel_clusters<send_to_all<Params>>({8, 1, 1}, {blocks, 1, 1}, 32,
                                                          static_cast<int>(sizeof(SendStorage)), params, 2);
  });
}

TEST(Cluster, BlocksSendToEachOther) {
  std::vector<int> out;
  for (int const blocks : {1, 2, 4}) {
    ASSERT_EQ(report_of_sends(out, Mistake::none, blocks), "");
    for (int i = 0; i < static_cast<int>(out.size()); ++i) {
      int const thread = i % 32, from = i / 32 % 4, block = i / 128;
      int const expected = from < blocks ? 100 * (block / blocks * blocks + from) + thread : -5;
      ASSERT_EQ(out[static_cast<std::size_t>(i)], expected) << i;
    }
  }
  EXPECT_SAYS(
      report_of_sends(out, Mistake::no_publish, 2),
      "sends to a barrier at byte 0 of shared memory, which is another block's, and was not published");
  EXPECT_SAYS(report_of_sends(out, Mistake::leaves_early, 2), "is missing 256 bytes that no copy delivers");
}

struct MulticastStorage {
  alignas(128) int box[4][32];
  arch::Barrier full, empty;
};

// Each block of a cluster repeatedly copies its part of a tile to all blocks.
template <class P>
COSMATI_KERNEL(64, 1)
multicast(COSMATI_PARAMETER P params) {
  auto& storage = arch::shared_storage<MulticastStorage>();
  int const self = arch::thread(), rank = arch::block_of_cluster(), blocks = arch::blocks_of_cluster();
  if (self == 0) {
    arch::init(storage.full, 1);
    arch::init(storage.empty, blocks);
    if (params.mistake != Mistake::no_publish) arch::publish_barriers();
  }
  arch::cluster_arrive();
  arch::cluster_wait();
  for (int step = 0; step < 3; ++step) {
    if (self < 32) {
      if (self == 0) {
        arch::wait(storage.empty, step % 2 ^ 1);
        arch::arrive_expecting(storage.full, 128 * blocks);
        int const at[2] = {0, step * 4 + rank};
        arch::copy_tile_to_blocks(&storage.box[rank][0], params.map, storage.full, at,
                                  static_cast<unsigned short>(params.blocks_to));
      }
    } else {
      arch::wait(storage.full, step % 2);
      for (int i = 0; i < blocks; ++i)
        params.out[((arch::block_x() * 3 + step) * 4 + i) * 32 + self - 32] = storage.box[i][self - 32];
      arch::named_barrier(1, 32);
      if (self - 32 < blocks) arch::arrive_at(storage.empty, self - 32);
    }
  }
  if (params.mistake == Mistake::leaves_early && rank == 1) return;
  arch::cluster_arrive();
  arch::cluster_wait();
}

struct Multicast {
  std::vector<int> source = std::vector<int>(12 * 32 + 4), out = std::vector<int>(8 * 3 * 4 * 32, -5);
  Params params;
  Multicast() {
    auto* const begin = source.data() + (16 - reinterpret_cast<std::uintptr_t>(source.data()) % 16) % 16 / 4;
    for (int i = 0; i < 12 * 32; ++i) begin[i] = i;
    params.map = emulator::encode_tensor_map({.address = begin,
                                              .rank = 2,
                                              .element_bytes = 4,
                                              .extent = {32, 12},
                                              .stride = {0, 128},
                                              .box = {32, 1},
                                              .swizzle_bytes = 128});
    params.out = out.data();
  }
  std::string report() {
    return testing::report_of([&] {
      emulator::launch_kernel_clusters<multicast<Params>>({8}, {4}, 64, sizeof(MulticastStorage), params);
    });
  }
};

TEST(Cluster, CopiesToAllItsBlocks) {
  Multicast test;
  test.params.map.word[0] &= ~0xffULL;  // no swizzle, one row
  ASSERT_EQ(test.report(), "");
  for (int block = 0; block < 8; ++block)
    for (int i = 0; i < 384; ++i) ASSERT_EQ(test.out[static_cast<std::size_t>(block * 384 + i)], i);
}

TEST(Cluster, MulticastMistakesAreReported) {
  Multicast test;
  test.params.mistake = Mistake::leaves_early;
  std::string const early = test.report();  // a message of one cluster or the other
  EXPECT_SAYS(early, "arrives at a barrier at byte 520 of shared memory, whose block (");
  EXPECT_SAYS(early, ") has left the kernel");
  test.params.mistake = Mistake::no_publish;
  EXPECT_SAYS(test.report(), "not published");
  test.params.mistake = Mistake::none;
  test.params.blocks_to = 0x7;
  EXPECT_SAYS(test.report(), "block (3, 0, 0): deadlock: ");
  EXPECT_SAYS(
      test.report(),
      "for parity 0 of the barrier at byte 512, whose phase 0 is missing 512 bytes that no copy delivers");
  test.params.blocks_to = 0x1f;
  EXPECT_SAYS(test.report(), "copies a box to blocks 0x1f of a cluster of 4");
}

}  // namespace
}  // namespace cosmati
