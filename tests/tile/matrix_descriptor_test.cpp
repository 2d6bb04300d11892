// The positions to which TMA writes the bytes of a tile, and those from which wgmma reads them.
#include "cosmati/tile/matrix_descriptor.h"

#include <gtest/gtest.h>

#include <set>
#include <vector>

namespace cosmati {
namespace {

constexpr Swizzle swizzles[] = {Swizzle::none, Swizzle::bytes32, Swizzle::bytes64, Swizzle::bytes128};

static_assert(span_of(Swizzle::none) == 16 && span_of(Swizzle::bytes32) == 32 &&
              span_of(Swizzle::bytes128) == 128);
static_assert(pattern_bytes(Swizzle::bytes64) == 512);
// Line 5 of a pattern of 128-byte lines: chunk c is stored at c ^ 5.
static_assert(swizzled(5 * 128 + 2 * 16 + 3, Swizzle::bytes128) == 5 * 128 + 7 * 16 + 3);
// Two lines of 64 bytes share 128: lines 6 and 7 are XORed with 3.
static_assert(swizzled(6 * 64 + 16, Swizzle::bytes64) == 6 * 64 + 2 * 16);
static_assert(swizzled(7 * 64 + 48, Swizzle::bytes64) == 7 * 64);
// Four lines of 32 bytes share 128: lines 4 to 7 exchange their two chunks.
static_assert(swizzled(3 * 32 + 16, Swizzle::bytes32) == 3 * 32 + 16);
static_assert(swizzled(4 * 32 + 16, Swizzle::bytes32) == 4 * 32);
static_assert(swizzled(1234, Swizzle::none) == 1234);

// The fields of the PTX ISA's "matrix descriptor".
constexpr unsigned long long descriptor = matrix_descriptor(0x12340, {0x500, 0x400}, Swizzle::bytes128);
static_assert((descriptor & 0x3fff) == 0x1234);
static_assert((descriptor >> 16 & 0x3fff) == 0x50);
static_assert((descriptor >> 32 & 0x3fff) == 0x40);
static_assert(descriptor >> 62 == 1);
static_assert(matrix_descriptor(0, {}, Swizzle::bytes64) >> 62 == 2);
static_assert(matrix_descriptor(0, {}, Swizzle::bytes32) >> 62 == 3);
static_assert(matrix_descriptor(0, {}, Swizzle::none) >> 62 == 0);
static_assert(decoded(descriptor).address == 0x12340 && decoded(descriptor).strides.leading == 0x500 &&
              decoded(descriptor).strides.stride == 0x400 &&
              decoded(descriptor).swizzle == Swizzle::bytes128);
static_assert(decoded(descriptor + 2).address == 0x12360);

TEST(MatrixDescriptor, ATileHoldsEachByteOnce) {
  for (Swizzle const swizzle : swizzles) {
    int const lines = 24, bytes = 256;
    std::set<int> places;
    for (int line = 0; line < lines; ++line)
      for (int byte = 0; byte < bytes; ++byte) places.insert(tile_offset(line, byte, lines, swizzle));
    EXPECT_EQ(places.size(), static_cast<std::size_t>(lines * bytes));
    EXPECT_EQ(*places.begin(), 0);
    EXPECT_EQ(*places.rbegin(), lines * bytes - 1);
  }
}

// The strides of a descriptor lead to the elements of a tile.
TEST(MatrixDescriptor, StridesLeadToTheBytesOfATile) {
  for (Swizzle const swizzle : swizzles)
    for (bool const along_outer : {false, true}) {
      int const lines = 32, bytes = 256;
      MatrixStrides const strides = strides_of_tile(lines, along_outer, swizzle);
      for (int line = 0; line < lines; ++line)
        for (int byte = 0; byte < bytes; byte += 16) {
          int const offset = offset_by_strides(line, byte, strides, along_outer, swizzle);
          EXPECT_EQ(static_cast<int>(swizzled(static_cast<unsigned>(offset), swizzle)),
                    tile_offset(line, byte, lines, swizzle));
        }
    }
}

// The same chunk of eight lines: 128 bytes in 32 different banks.
TEST(MatrixDescriptor, EightLinesFallIntoDifferentBanks) {
  for (Swizzle const swizzle : swizzles)
    for (int chunk = 0; chunk < span_of(swizzle) / 16; ++chunk) {
      std::set<int> banks;
      for (int line = 0; line < 8; ++line) banks.insert(tile_offset(line, 16 * chunk, 8, swizzle) / 16 % 8);
      EXPECT_EQ(banks.size(), 8U) << "span " << span_of(swizzle);
    }
}

}  // namespace
}  // namespace cosmati
