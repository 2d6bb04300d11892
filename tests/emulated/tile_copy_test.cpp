// TMA: boxes of arrays of every rank, element size and swizzle, across the edges; and the effect of a missing
// wait, fence or group.
#include "cosmati/arch/tensor_copy.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "cosmati/arch/thread.h"
#include "cosmati/tile/matrix_descriptor.h"
#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

struct alignas(64) Copy {
  arch::TensorMap from, to;
  unsigned char* seen;  // shared memory after the copy
  int from_at[5] = {}, to_at[5] = {};
  int bytes = 0;
  bool waits = true, publishes = true, reads = true, commits = true, writes = false, one_publishes = false;
  bool made_public = true, written_before = false;
  int expected = 0;
};

struct CopyStorage {
  alignas(1024) unsigned char box[16384];
  arch::Barrier full;
};

// Copies a box to shared memory and from there to another array.
template <int rank>
COSMATI_KERNEL(32, 1)
copy_box(COSMATI_PARAMETER Copy params) {
  auto& storage = arch::shared_storage<CopyStorage>();
  int from_at[rank], to_at[rank];
  for (int i = 0; i < rank; ++i) {
    from_at[i] = params.from_at[i];
    to_at[i] = params.to_at[i];
  }
  if (arch::thread() == 0) {
    arch::init(storage.full, 1);
    if (params.made_public) arch::publish_barriers();
    if (params.written_before) storage.box[100] = 7;
  }
  arch::block_barrier();
  if (arch::thread() == 0) {
    arch::arrive_expecting(storage.full, params.expected != 0 ? params.expected : params.bytes);
    arch::copy_tile(storage.box, params.from, storage.full, from_at);
  }
  arch::block_barrier();
  if (params.waits) arch::wait(storage.full, 0);
  for (int i = arch::thread(); i < params.bytes; i += 32) params.seen[i] = storage.box[i];
  arch::block_barrier();
  if (!params.waits) arch::wait(storage.full, 0);
  if (params.writes) {
    storage.box[arch::thread()] = static_cast<unsigned char>(100 + arch::thread());
    if (params.publishes && !params.one_publishes) arch::publish_to_async();
    arch::block_barrier();
    if (params.one_publishes && arch::thread() == 0) arch::publish_to_async();
  }
  if (arch::thread() == 0) {
    arch::store_tile(params.to, storage.box, to_at);
    if (params.commits) arch::commit_stores();
    if (params.reads) arch::wait_stores_read<0>();
  }
}

struct Array {
  std::vector<unsigned char> bytes;
  emulator::TiledTensor tensor;
};

// An array whose bytes encode their positions; rows are at least 16 bytes apart.
Array array_of(int rank, int element_bytes, std::vector<int> const& extent, std::vector<int> const& box,
               int swizzle) {
  Array array;
  array.tensor.rank = rank;
  array.tensor.element_bytes = element_bytes;
  array.tensor.swizzle_bytes = swizzle;
  long long stride = 0;
  for (int i = 0; i < rank; ++i) {
    auto const at = static_cast<std::size_t>(i);
    array.tensor.extent[i] = extent[at];
    array.tensor.box[i] = box[at];
    array.tensor.stride[i] = stride;
    stride = i == 0 ? (extent[at] * element_bytes + 31) / 16 * 16 : stride * extent[at];
  }
  array.bytes.resize(static_cast<std::size_t>(stride) + 16);
  std::uint32_t state = 1;
  for (unsigned char& byte : array.bytes)
    byte = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
  auto* const begin = array.bytes.data();
  array.tensor.address = begin + (16 - reinterpret_cast<std::uintptr_t>(begin) % 16) % 16;
  return array;
}

// Element `at` of the array; null if it does not exist. A store writes units of `unit` bytes.
unsigned char* element_of(Array const& array, int const* at, int unit = 1) {
  auto* address = static_cast<unsigned char*>(array.tensor.address);
  for (int i = 0; i < array.tensor.rank; ++i) {
    long long extent = array.tensor.extent[i];
    if (i == 0) {
      long long const bytes = extent * array.tensor.element_bytes;
      extent = (bytes + unit - 1) / unit * unit / array.tensor.element_bytes;
    }
    if (at[i] < 0 || at[i] >= extent) return nullptr;
    address += i == 0 ? at[0] * array.tensor.element_bytes : at[i] * array.tensor.stride[i];
  }
  return address;
}

template <int rank>
void expect_copied(int element_bytes, std::vector<int> const& box, int swizzle,
                   std::vector<int> const& from_at, std::vector<int> const& to_at) {
  std::vector<int> extent;
  for (int i = 0; i < rank; ++i) extent.push_back(box[static_cast<std::size_t>(i)] + 3);
  Array const from = array_of(rank, element_bytes, extent, box, swizzle);
  Array to = array_of(rank, element_bytes, extent, box, swizzle);
  std::fill(to.bytes.begin(), to.bytes.end(), static_cast<unsigned char>(0xab));
  std::vector<unsigned char> seen(16384);
  Copy copy{};
  copy.from = emulator::encode_tensor_map(from.tensor);
  copy.to = emulator::encode_tensor_map(to.tensor);
  copy.seen = seen.data();
  copy.bytes = element_bytes;
  for (int i = 0; i < rank; ++i) {
    auto const at = static_cast<std::size_t>(i);
    copy.bytes *= box[at];
    copy.from_at[i] = from_at[at];
    copy.to_at[i] = to_at[at];
  }
  emulator::launch_kernel<copy_box<rank>>({1}, 32, sizeof(CopyStorage), copy);

  Swizzle const mode = swizzle == 0    ? Swizzle::none
                       : swizzle == 32 ? Swizzle::bytes32
                       : swizzle == 64 ? Swizzle::bytes64
                                       : Swizzle::bytes128;
  std::vector<unsigned char> const zeros(8), untouched(8, 0xab);
  std::size_t written = 0;
  for (int i = 0; i < copy.bytes / element_bytes; ++i) {
    int source[5], target[5];
    for (int d = 0, left = i; d < rank; left /= box[static_cast<std::size_t>(d)], ++d) {
      source[d] = copy.from_at[d] + left % box[static_cast<std::size_t>(d)];
      target[d] = copy.to_at[d] + left % box[static_cast<std::size_t>(d)];
    }
    unsigned char const* const element = element_of(from, source);
    auto const place = swizzled(static_cast<unsigned long long>(i * element_bytes), mode);
    auto const size = static_cast<std::size_t>(element_bytes);
    ASSERT_EQ(std::memcmp(&seen[place], element != nullptr ? element : zeros.data(), size), 0)
        << "element " << i;
    if (unsigned char const* const copied = element_of(to, target, 16)) {
      ASSERT_EQ(std::memcmp(copied, element != nullptr ? element : zeros.data(), size), 0) << "element " << i;
      written += size;
    }
  }
  std::size_t changed = 0;
  for (unsigned char const byte : to.bytes) changed += byte != 0xab;
  EXPECT_LE(changed, written);  // and nothing outside the box
  EXPECT_GE(changed, written / 2);
}

TEST(TileCopy, EveryRankAndElement) {
  expect_copied<1>(4, {64}, 0, {0}, {4});
  expect_copied<2>(2, {24, 16}, 0, {8, 2}, {0, 0});
  expect_copied<3>(1, {32, 5, 4}, 0, {0, 1, 2}, {16, 0, 1});
  expect_copied<4>(8, {4, 3, 4, 2}, 0, {0, 0, 0, 1}, {0, 3, 3, 0});
  expect_copied<5>(2, {8, 3, 2, 2, 4}, 0, {0, 1, 2, 3, 0}, {0, 1, 0, 1, 2});
}

TEST(TileCopy, EverySwizzle) {
  expect_copied<2>(2, {16, 24}, 32, {0, 0}, {8, 1});
  expect_copied<2>(2, {32, 24}, 64, {0, 0}, {16, 1});
  expect_copied<2>(2, {64, 24}, 128, {0, 0}, {8, 1});
  expect_copied<2>(1, {128, 40}, 128, {16, 1}, {0, 0});
  expect_copied<3>(4, {32, 9, 3}, 128, {0, 0, 0}, {0, 1, 1});
}

TEST(TileCopy, WhatLiesOutsideIsZeroAndNotWrittenButForUnits) {
  expect_copied<2>(2, {64, 24}, 128, {-8, 20}, {56, -7});
  expect_copied<2>(2, {64, 24}, 128, {8, -3}, {-16, 5});
  expect_copied<3>(4, {8, 4, 4}, 0, {-4, 5, -2}, {4, -2, 6});
}

// A copy with planted errors.
struct Planted {
  Array from = array_of(2, 2, {64, 8}, {64, 8}, 128), to = array_of(2, 2, {64, 8}, {64, 8}, 128);
  std::vector<unsigned char> seen = std::vector<unsigned char>(16384);
  Copy copy{};
  Planted() {
    copy.from = emulator::encode_tensor_map(from.tensor);
    copy.to = emulator::encode_tensor_map(to.tensor);
    copy.seen = seen.data();
    copy.bytes = 1024;
  }
  std::string report() {
    return testing::report_of(
        [&] { emulator::launch_kernel<copy_box<2>>({1}, 32, sizeof(CopyStorage), copy); });
  }
};

TEST(TileCopy, IsPoisonBeforeTheWait) {
  Planted planted;
  planted.copy.waits = false;
  EXPECT_EQ(planted.report(), "");
  for (std::size_t i = 0; i < 1024; ++i) ASSERT_EQ(planted.seen[i], 0xff);
}

// A second box overwrites the first one: what is seen before and after the wait for it.
template <class Params>
COSMATI_KERNEL(1, 1)
copy_twice(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<CopyStorage>();
  arch::init(storage.full, 1);
  arch::publish_barriers();
  for (int round = 0; round < 2; ++round) {
    int const at[2] = {0, round};
    arch::arrive_expecting(storage.full, params.bytes);
    arch::copy_tile(storage.box, params.from, storage.full, at);
    params.seen[2 * round] = storage.box[0];
    arch::wait(storage.full, round);
    params.seen[2 * round + 1] = storage.box[0];
  }
}

TEST(TileCopy, PoisonsWhatWasThereBefore) {
  Planted planted;
  emulator::launch_kernel<copy_twice<Copy>>({1}, 1, sizeof(CopyStorage), planted.copy);
  auto const* const source = static_cast<unsigned char const*>(planted.from.tensor.address);
  EXPECT_EQ(planted.seen[0], 0xff);
  EXPECT_EQ(planted.seen[1], source[0]);
  EXPECT_EQ(planted.seen[2], 0xff);
  EXPECT_EQ(planted.seen[3], source[planted.from.tensor.stride[1]]);
}

TEST(TileCopy, AWrongNumberOfBytesIsADeadlock) {
  Planted planted;
  planted.copy.expected = 1040;
  EXPECT_SAYS(planted.report(),
              "threads 0-31 wait for parity 0 of the barrier at byte 16384, whose phase 0 is missing 16 "
              "bytes that no copy delivers");
  planted.copy.expected = 1000;
  EXPECT_SAYS(planted.report(), "is missing an arrive_expecting() for 24 bytes that copies deliver");
}

TEST(TileCopy, ABoxBeginsAtAMultipleOf16Bytes) {
  Planted loads, stores;
  loads.copy.from_at[0] = 4;
  EXPECT_SAYS(loads.report(),
              "copies a box whose first element is 4, of 2 bytes; expected multiples of 16 bytes");
  stores.copy.to_at[0] = -12;
  EXPECT_SAYS(stores.report(),
              "stores a box whose first element is -12, of 2 bytes; expected multiples of 16 bytes");
}

// As on an H200; an array in memory yields zeros there.
TEST(TileCopy, ABoxOutsideOfAMapThatBeginsWhereThereIsNoMemory) {
  Planted planted;
  planted.from.tensor.address = reinterpret_cast<void*>(16);
  planted.copy.from = emulator::encode_tensor_map(planted.from.tensor);
  planted.copy.from_at[1] = 1000;
  EXPECT_SAYS(planted.report(),
              "copies a box outside of the extents of a tensor map whose address is not memory");
}

TEST(TileCopy, NeedsAPublishedBarrier) {
  Planted planted;
  planted.copy.made_public = false;
  EXPECT_SAYS(planted.report(),
              "thread 0 (warp 0, lane 0): copies a box for the barrier at byte 16384 of shared memory, "
              "which was not published (publish_barriers()) after init()");
}

TEST(TileCopy, AStoreNeedsTheFenceOfEachWriter) {
  Planted planted;
  planted.copy.writes = true;
  EXPECT_EQ(planted.report(), "");
  planted.copy.publishes = false;
  EXPECT_SAYS(planted.report(),
              "thread 0 (warp 0, lane 0): stores a box that holds byte 0 of shared memory, which a "
              "store wrote without a subsequent publish_to_async()");
}

TEST(TileCopy, WhatWasWrittenBeforeNeedsAFenceToo) {
  Planted planted;
  planted.copy.written_before = true;
  EXPECT_SAYS(planted.report(), "copies a box over byte 100 of shared memory, which thread 0 wrote without");
}

TEST(TileCopy, AStoreIsWaitedFor) {
  Planted planted;
  planted.copy.reads = false;
  EXPECT_SAYS(
      planted.report(),
      "ends while a box stored by thread 0 is still being read from byte 0 of shared memory; the thread "
      "did not wait (wait_stores_read())");
  planted.copy.commits = false;
  planted.copy.reads = true;
  EXPECT_SAYS(planted.report(), "the thread did not close the group (commit_stores())");
}

struct alignas(64) Staged {
  arch::TensorMap to;
  int mistake =
      0;  // 1: a single thread's fence for all threads; 2: memory is overwritten before it has been read
};

// Like an epilogue: threads write to shared memory, and one thread stores it.
template <class Params>
COSMATI_KERNEL(128, 1)
store_staged(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<CopyStorage>();
  auto* const mine = reinterpret_cast<int*>(storage.box) + arch::thread();
  if (arch::thread() == 0) arch::init(storage.full, 1);
  arch::block_barrier();
  for (int tile = 0; tile < 3; ++tile) {
    if (arch::thread() == 0 && params.mistake != 2) arch::wait_stores_read<0>();
    arch::block_barrier();
    *mine = 1000 * tile + arch::thread();
    if (params.mistake != 1) arch::publish_to_async();
    arch::block_barrier();
    if (arch::thread() == 0) {
      if (params.mistake == 1) arch::publish_to_async();
      int const at[2] = {0, tile};
      arch::store_tile(params.to, storage.box, at);
      arch::commit_stores();
    }
  }
  if (arch::thread() == 0) arch::wait_stores_read<0>();
}

std::string store(std::vector<int>& out, int mistake) {
  emulator::TiledTensor tensor;
  tensor.rank = 2;
  tensor.element_bytes = 4;
  tensor.address = out.data();
  tensor.extent[0] = tensor.box[0] = 128;
  tensor.extent[1] = 3;
  tensor.stride[1] = 512;
  tensor.box[1] = 1;
  Staged const staged{emulator::encode_tensor_map(tensor), mistake};
  return testing::report_of(
      [&] { emulator::launch_kernel<store_staged<Staged>>({1}, 128, sizeof(CopyStorage), staged); });
}

TEST(TileCopy, StoresReadSharedMemoryWhenTheyAreWaitedFor) {
  std::vector<int> out(3 * 128 + 4);
  EXPECT_EQ(store(out, 0), "");
  for (int i = 0; i < 384; ++i) ASSERT_EQ(out[static_cast<std::size_t>(i)], i / 128 * 1000 + i % 128);
  EXPECT_EQ(store(out, 2), "");
  EXPECT_EQ(out[5], 2005);  // the first tile holds what was written last
}

TEST(TileCopy, OneThreadsFenceIsNotForAll) {
  std::vector<int> out(3 * 128 + 4);
  EXPECT_SAYS(store(out, 1),
              "stores a box that holds byte 4 of shared memory, which thread 1 wrote without a subsequent "
              "publish_to_async()");
}

TEST(TileCopy, TensorMapsThatTheHardwareRefuses) {
  auto const refusal = [](auto change) {
    Array array = array_of(2, 2, {64, 8}, {64, 8}, 128);
    change(array.tensor);
    return testing::report_of([&] { emulator::encode_tensor_map(array.tensor); }, ErrorCode::bad_request);
  };
  EXPECT_EQ(refusal([](auto&) {}), "");
  EXPECT_EQ(refusal([](auto& tensor) { tensor.rank = 6; }), "a tensor map of rank 6; valid values: 1 to 5");
  EXPECT_SAYS(refusal([](auto& tensor) { tensor.stride[1] = 130; }),
              "a stride of 130 bytes of dimension 1; valid values");
  EXPECT_SAYS(refusal([](auto& tensor) { tensor.box[1] = 257; }),
              "a box of 257 elements of dimension 1; valid values");
  EXPECT_SAYS(refusal([](auto& tensor) { tensor.box[0] = 32; }),
              "a swizzle of 128 bytes and box rows of 64 bytes");
  EXPECT_SAYS(refusal([](auto& tensor) { tensor.address = static_cast<char*>(tensor.address) + 8; }),
              "not a multiple of 16 bytes");
}

}  // namespace
}  // namespace cosmati
