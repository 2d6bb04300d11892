// stmatrix: ldmatrix reads back what it stored, and each lane's elements go to the specified positions.
#include <vector>

#include "cosmati/arch/matrix.h"
#include "cosmati/arch/thread.h"
#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

struct Params {
  unsigned* out;             // (lane, register) as loaded back
  unsigned short* elements;  // (matrix, row, column)
  int first_row = 0;         // in bytes
};

template <bool transposed>
COSMATI_KERNEL(32, 1)
store_and_load(COSMATI_PARAMETER Params params) {
  int const lane = arch::thread();
  unsigned char* const row = emulator::shared_memory() + params.first_row + 16 * lane;
  unsigned r[4];
  for (unsigned i = 0; i < 4; ++i)
    r[i] = (1000U * i + 2U * static_cast<unsigned>(lane) + 1U) << 16 |
           (1000U * i + 2U * static_cast<unsigned>(lane));
  arch::store_matrices<transposed>(row, r);
  arch::block_barrier();
  for (int i = lane; i < 256; i += 32) params.elements[i] = testing::shared<unsigned short>()[i];
  unsigned again[4];
  arch::load_matrices<transposed>(again, row);
  for (int i = 0; i < 4; ++i) params.out[4 * lane + i] = again[i] == r[i];
}

// Lane 4 g + t holds elements (g, 2 t) and (g, 2 t + 1) of each matrix; if transposed, of its transpose.
template <bool transposed>
void expect_stored() {
  std::vector<unsigned> same(128);
  std::vector<unsigned short> elements(256);
  emulator::launch_kernel<store_and_load<transposed>>({1}, 32, 512, Params{same.data(), elements.data()});
  for (unsigned const is_same : same) EXPECT_EQ(is_same, 1U);
  for (int matrix = 0; matrix < 4; ++matrix)
    for (int row = 0; row < 8; ++row)
      for (int column = 0; column < 8; ++column)
        EXPECT_EQ(elements[static_cast<std::size_t>(matrix * 64 + row * 8 + column)],
                  1000 * matrix + (transposed ? column * 8 + row : row * 8 + column));
}

TEST(StoreMatrices, AreWhatLoadMatricesReads) {
  expect_stored<false>();
  expect_stored<true>();
}

TEST(StoreMatrices, RowsAreAlignedAndInside) {
  std::vector<unsigned> same(128);
  std::vector<unsigned short> elements(256);
  auto const report = [&](int first_row) {
    return testing::report_of([&] {
      emulator::launch_kernel<store_and_load<false>>({1}, 32, 512,
                                                     Params{same.data(), elements.data(), first_row});
    });
  };
  EXPECT_SAYS(report(8), "thread 0 (warp 0, lane 0): misaligned access: 16 bytes at byte 8");
  EXPECT_SAYS(report(16), "thread 31 (warp 0, lane 31): access outside shared memory: 16 bytes at byte 512");
}

}  // namespace
}  // namespace cosmati
