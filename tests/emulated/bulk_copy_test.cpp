// Bulk copies of contiguous bytes: what they copy, and which ones the hardware would refuse.
#include "cosmati/arch/bulk_copy.h"

#include <vector>

#include "cosmati/arch/thread.h"
#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

struct alignas(16) Sixteen {
  unsigned char byte[16];
};

struct Copy {
  unsigned char const* from;
  unsigned char* to;
  int place = 0, bytes = 96;  // in shared memory, which begins at a multiple of 128
  int stored = 96;
  bool publishes = true;
};

struct Storage {
  alignas(128) unsigned char byte[256];
  arch::Barrier full;
};

// Copies to shared memory, adds 1 to each byte, and copies back.
template <class Params>
COSMATI_KERNEL(32, 1)
add_one(COSMATI_PARAMETER Params params) {
  auto& storage = arch::shared_storage<Storage>();
  unsigned char* const at = storage.byte + params.place;
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

struct Planted {
  std::vector<Sixteen> from{16}, to{16};
  Copy copy{from[0].byte, to[0].byte};

  Planted() {
    for (std::size_t i = 0; i < 256; ++i) from[i / 16].byte[i % 16] = static_cast<unsigned char>(i);
  }
  std::string report() const {
    return testing::report_of(
        [&] { emulator::launch_kernel<add_one<Copy>>({1}, 32, sizeof(Storage), copy); });
  }
};

TEST(BulkCopy, CopiesToAnyMultipleOf16Bytes) {
  for (int const place : {0, 16, 112, 160})
    for (int const stored : {16, 80, 96}) {
      Planted planted;
      planted.copy.place = place;
      planted.copy.stored = stored;
      EXPECT_EQ(planted.report(), "");
      for (std::size_t i = 0; i < 256; ++i)
        ASSERT_EQ(planted.to[i / 16].byte[i % 16], static_cast<int>(i) < stored ? i + 1 : 0) << place;
    }
}

TEST(BulkCopy, RefusesWhatTheHardwareDoes) {
  Planted planted;
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
    Planted planted;
    planted.copy.place = place;
    planted.copy.publishes = false;
    EXPECT_SAYS(planted.report(), "wrote without a subsequent publish_to_async()");
  }
}

}  // namespace
}  // namespace cosmati
