// cp.async: data arrives only when it is waited for, group by group; bulk copies: what they copy, and which
// ones the hardware would refuse.
#include <array>
#include <cmath>
#include <vector>

#include "cosmati/arch/bulk_copy.h"
#include "cosmati/arch/thread.h"
#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

struct Floats {
  float* source;
  float* out;
};

template <int steps>
COSMATI_KERNEL(32, 1)
copy_and_look(COSMATI_PARAMETER Floats params) {
  int const self = emulator::thread();
  float* const mine = testing::shared<float>() + 4 * self;
  mine[0] = 5.0F;
  emulator::copy_async(mine, params.source + 4 * self, 16, 16);
  params.out[4 * self + 0] = mine[0];
  emulator::commit_copies();
  params.out[4 * self + 1] = mine[0];
  emulator::wait_copies(1);  // allows this one group to be in flight
  params.out[4 * self + 2] = mine[0];
  emulator::wait_copies(0);
  params.out[4 * self + 3] = mine[0];
}

TEST(CopyAsync, LandsWhenItIsWaitedForAndNotBefore) {
  std::vector<float> source(128), out(128);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(i);
  emulator::launch_kernel<copy_and_look<1>>({1}, 32, 512, Floats{source.data(), out.data()});
  for (std::size_t thread = 0; thread < 32; ++thread) {
    EXPECT_TRUE(std::isnan(out[4 * thread]));
    EXPECT_TRUE(std::isnan(out[4 * thread + 1]));
    EXPECT_TRUE(std::isnan(out[4 * thread + 2]));
    EXPECT_EQ(out[4 * thread + 3], source[4 * thread]);
  }
}

// Groups complete in order; a wait does not complete a copy that belongs to no group.
template <int groups>
COSMATI_KERNEL(1, 1)
count_groups(COSMATI_PARAMETER Floats params) {
  float* const shared = testing::shared<float>();
  for (int group = 0; group < groups; ++group) {
    emulator::copy_async(shared + 2 * group, params.source + 2 * group, 8, 8);
    emulator::commit_copies();
  }
  emulator::copy_async(shared + 2 * groups, params.source + 2 * groups, 4, 4);
  for (int in_flight = groups; in_flight >= 0; --in_flight) {
    emulator::wait_copies(in_flight);
    int landed = 0;
    for (int i = 0; i < 2 * groups; ++i) landed += !std::isnan(shared[i]);
    params.out[groups - in_flight] = static_cast<float>(landed);
  }
  params.out[groups + 1] = shared[2 * groups];
  emulator::commit_copies();
  emulator::commit_copies();  // an empty group counts, too
  emulator::wait_copies(1);
  params.out[groups + 2] = shared[2 * groups];
}

TEST(CopyAsync, GroupsAreCountedAsCommitted) {
  std::vector<float> source(7, 3.0F), out(6);
  emulator::launch_kernel<count_groups<3>>({1}, 1, 64, Floats{source.data(), out.data()});
  EXPECT_EQ(std::vector<float>(out.begin(), out.begin() + 4), (std::vector<float>{0, 2, 4, 6}));
  EXPECT_TRUE(std::isnan(out[4]));
  EXPECT_EQ(out[5], 3.0F);
}

template <int bytes>
COSMATI_KERNEL(1, 1)
fill_with_zeros(COSMATI_PARAMETER Floats params) {
  float* const shared = testing::shared<float>();
  emulator::copy_async(shared, params.source, bytes, 4);
  emulator::copy_async(shared + 4, nullptr, bytes, 0);
  params.source[0] = 2.0F;  // read when the copy completes
  emulator::commit_copies();
  emulator::wait_copies(0);
  for (int i = 0; i < 8; ++i) params.out[i] = shared[i];
}

TEST(CopyAsync, WritesZerosAfterTheValidBytes) {
  std::vector<float> source(1, 1.0F),
      out(8, 9.0F);  // AddressSanitizer would detect a read beyond the valid elements
  emulator::launch_kernel<fill_with_zeros<16>>({1}, 1, 32, Floats{source.data(), out.data()});
  EXPECT_EQ(out, (std::vector<float>{2, 0, 0, 0, 0, 0, 0, 0}));
}

struct Request {
  int offset, source_offset, bytes, valid;
};

template <class T>
COSMATI_KERNEL(1, 1)
copy_as_asked(COSMATI_PARAMETER Request params) {
  alignas(16) static T source[64] = {};
  emulator::copy_async(emulator::shared_memory() + params.offset, source + params.source_offset, params.bytes,
                       params.valid);
}

std::string refusal(Request const& request) {
  return testing::report_of([&] { emulator::launch_kernel<copy_as_asked<char>>({1}, 1, 64, request); });
}

TEST(CopyAsync, RefusesWhatPtxDoes) {
  EXPECT_EQ(refusal({48, 16, 16, 16}), "");
  EXPECT_SAYS(refusal({8, 0, 16, 16}),
              "block (0, 0, 0), thread 0 (warp 0, lane 0): misaligned access: 16 bytes at byte 8 of "
              "the 64 bytes of shared memory, not a multiple of 16");
  EXPECT_SAYS(refusal({0, 4, 8, 8}), "misaligned access: 8 bytes at address 0x");
  EXPECT_SAYS(refusal({64, 0, 4, 4}), "access outside shared memory: 4 bytes at byte 64 of the 64 bytes");
  EXPECT_SAYS(refusal({0, 0, 2, 2}), "asynchronous copy of 2 valid bytes out of 2; valid values:");
  EXPECT_SAYS(refusal({0, 0, 4, 8}), "asynchronous copy of 8 valid bytes out of 4; valid values:");
}

// Bulk copies of contiguous bytes (cp.async.bulk).
struct alignas(16) Sixteen {
  unsigned char byte[16];
};

struct BulkCopy {
  unsigned char const* from;
  unsigned char* to;
  int place = 0, bytes = 96;  // in shared memory, which begins at a multiple of 128
  int stored = 96;
  bool publishes = true;
};

struct BulkStorage {
  alignas(128) unsigned char byte[256];
  arch::Barrier full;
};

// Copies to shared memory, adds 1 to each byte, and copies back.
template <class Params>
COSMATI_KERNEL(32, 1)
add_one(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<BulkStorage>();
  unsigned char* const at = reinterpret_cast<unsigned char*>(&storage) + params.place;
  if (arch::thread() == 0) {
    arch::init(storage.full, 1);
    arch::publish_barriers();
    arch::arrive_expecting(storage.full, params.bytes);
    arch::copy_bulk(at, params.from, params.bytes, storage.full);
  }
  arch::block_barrier();
  arch::wait(storage.full, 0);
  for (int i = arch::thread(); i < params.bytes; i += 32) at[i] = static_cast<unsigned char>(at[i] + 1);
  if (params.publishes) arch::publish_to_async();
  arch::block_barrier();
  if (arch::thread() != 0) return;
  arch::store_bulk(params.to, at, params.stored);
  arch::commit_stores();
  arch::wait_stores_read<0>();
}

struct BulkPlanted {
  std::vector<Sixteen> from{16}, to{16};
  BulkCopy copy{from[0].byte, to[0].byte};

  BulkPlanted() {
    for (std::size_t i = 0; i < 256; ++i) from[i / 16].byte[i % 16] = static_cast<unsigned char>(i);
  }
  std::string report() const {
    return testing::report_of(
        [&] { emulator::launch_kernel<add_one<BulkCopy>>({1}, 32, sizeof(BulkStorage), copy); });
  }
};

TEST(BulkCopy, CopiesToAnyMultipleOf16Bytes) {
  for (int const place : {0, 16, 112, 160})
    for (int const stored : {16, 80, 96}) {
      BulkPlanted planted;
      planted.copy.place = place;
      planted.copy.stored = stored;
      EXPECT_EQ(planted.report(), "");
      for (std::size_t i = 0; i < 256; ++i)
        ASSERT_EQ(planted.to[i / 16].byte[i % 16], static_cast<int>(i) < stored ? i + 1 : 0) << place;
    }
}

TEST(BulkCopy, RefusesWhatTheHardwareDoes) {
  BulkPlanted planted;
  planted.copy.bytes = 88;
  EXPECT_SAYS(planted.report(), "copies 88 bytes; expected a positive multiple of 16");
  planted.copy.bytes = 96;
  planted.copy.place = 8;
  EXPECT_SAYS(planted.report(), "copies bytes at byte 8 of shared memory, which is not a multiple of 16");
  planted.copy.place = 320;
  EXPECT_SAYS(planted.report(), "copies 96 bytes at byte 320 of the 384 bytes of shared memory");
  planted.copy.place = 0;
  planted.copy.from += 4;
  EXPECT_SAYS(planted.report(), "copies bytes whose global address is not a multiple of 16");
  planted.copy.from -= 4;
  planted.copy.to += 8;
  EXPECT_SAYS(planted.report(), "stores bytes whose global address is not a multiple of 16");
  planted.copy.to -= 8;
  planted.copy.stored = 0;
  EXPECT_SAYS(planted.report(), "stores 0 bytes; expected a positive multiple of 16");
}

TEST(BulkCopy, AStoreNeedsTheFenceOfEachWriter) {
  for (int const place : {0, 48}) {
    BulkPlanted planted;
    planted.copy.place = place;
    planted.copy.publishes = false;
    EXPECT_SAYS(planted.report(), "wrote without a subsequent publish_to_async()");
  }
}

}  // namespace
}  // namespace cosmati
