// The complete chain: TMA fills a ring of stages for a cluster, a warpgroup multiplies them and passes its
// sums to TMA; and what happens if one link is missing.
#include <vector>

#include "cosmati/arch/cluster.h"
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/arch/thread.h"
#include "cosmati/arch/warpgroup.h"
#include "cosmati/tile/matrix_descriptor.h"
#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

enum class Mistake {
  none,
  no_wait_for_full,
  no_wait_for_empty,
  wrong_phase,
  no_fence,
  no_wait_for_products,
  released_too_early,
  wrong_swizzle,
  too_few_bytes,
  no_wait_for_store,
};

constexpr int tile = 64, stages = 2, cluster = 2;

struct alignas(64) Params {
  arch::TensorMap a, b, d;
  int steps;
  Mistake mistake;
};

struct Storage {
  alignas(1024) f16 a[stages][tile][tile];
  alignas(1024) f16 b[stages][tile][tile];
  alignas(1024) float d[2][tile][32];  // boxes of 128 bytes
  arch::Barrier full[stages], empty[stages];
};

void produce(Storage& storage, Params const& params) {
  int const rank = arch::block_of_cluster();
  for (int step = 0; step < params.steps; ++step) {
    int const stage = step % stages, parity = step / stages % 2;
    if (params.mistake != Mistake::no_wait_for_empty) arch::wait(storage.empty[stage], parity ^ 1);
    int const bytes = static_cast<int>(sizeof storage.a[0] + sizeof storage.b[0]);
    arch::arrive_expecting(storage.full[stage], params.mistake == Mistake::too_few_bytes ? bytes / 2 : bytes);
    int const at_a[2] = {step * tile, arch::block_x() * tile};
    arch::copy_tile(&storage.a[stage], params.a, storage.full[stage], at_a);
    // Each block loads half of B for both blocks.
    int const at_b[2] = {step * tile, arch::block_y() * tile + rank * tile / cluster};
    arch::copy_tile_to_blocks(&storage.b[stage][rank * tile / cluster], params.b, storage.full[stage], at_b,
                              static_cast<unsigned short>(0x3));
  }
}

void consume(Storage& storage, Params const& params) {
  int const self = arch::thread();
  float d[arch::warpgroup_registers<tile, float>];
  for (int step = 0; step < params.steps; ++step) {
    int const stage = step % stages, parity = step / stages % 2;
    bool const wrong_phase = params.mistake == Mistake::wrong_phase && step > 0;
    if (params.mistake != Mistake::no_wait_for_full)
      arch::wait(storage.full[stage], wrong_phase ? parity ^ 1 : parity);
    Swizzle const swizzle = params.mistake == Mistake::wrong_swizzle ? Swizzle::bytes64 : Swizzle::bytes128;
    MatrixStrides const strides = strides_of_tile(tile, false, swizzle);
    arch::warpgroup_begin();
    for (int pack = 0; pack < 4; ++pack) {
      auto const at = static_cast<unsigned>(tile_offset(0, 32 * pack, tile, swizzle));
      arch::multiply_warpgroup<f16, f16, false, false, tile>(
          d, matrix_descriptor(arch::shared_address(&storage.a[stage]) + at, strides, swizzle),
          matrix_descriptor(arch::shared_address(&storage.b[stage]) + at, strides, swizzle),
          step > 0 || pack > 0);
    }
    arch::warpgroup_commit();
    if (params.mistake != Mistake::released_too_early && params.mistake != Mistake::no_wait_for_products)
      arch::warpgroup_wait<0>();
    if (self < cluster) arch::arrive_at(storage.empty[stage], self);
    arch::named_barrier(1, 128);
  }
  if (params.mistake != Mistake::no_wait_for_products) arch::warpgroup_wait<0>();
  arch::fence_registers(d);
  for (int i = 0; i < tile / 2; ++i) {
    int const row = self / 32 * 16 + self / 4 % 8 + i / 2 % 2 * 8, column = i / 4 * 8 + self % 4 * 2 + i % 2;
    *reinterpret_cast<float*>(reinterpret_cast<unsigned char*>(storage.d) +
                              tile_offset(row, column * 4, tile, Swizzle::bytes128)) = d[i];
  }
  if (params.mistake != Mistake::no_fence || self != 64) arch::publish_to_async();
  arch::named_barrier(1, 128);
  if (self != 0) return;
  for (int box = 0; box < 2; ++box) {
    int const at[2] = {arch::block_y() * tile + 32 * box, arch::block_x() * tile};
    arch::store_tile(params.d, &storage.d[box], at);
  }
  arch::commit_stores();
  if (params.mistake != Mistake::no_wait_for_store) arch::wait_stores_read<0>();
}

template <class P>
COSMATI_KERNEL(256, 1)
multiply_in_pipeline(COSMATI_PARAMETER P params) {
  auto& storage = arch::shared_storage<Storage>();
  if (arch::thread() == 0) {
    for (int stage = 0; stage < stages; ++stage) {
      arch::init(storage.full[stage], 1);
      arch::init(storage.empty[stage], cluster);
    }
    arch::publish_barriers();
  }
  arch::cluster_arrive();
  arch::cluster_wait();
  if (arch::thread() >= 128) {
    arch::release_registers<40>();
    if (arch::thread() == 128) produce(storage, params);
  } else {
    arch::acquire_registers<232>();
    consume(storage, params);
  }
  arch::cluster_arrive();
  arch::cluster_wait();
}

struct Problem {
  static constexpr int m = 100, n = 72, k = 270;
  template <class Element>
  struct Matrix {
    int rows, columns, pitch;
    std::vector<Element> elements;
    Element* data;
    Matrix(int its_rows, int its_columns)
        : rows(its_rows),
          columns(its_columns),
          pitch((its_columns + 7) / 8 * 8),
          elements(static_cast<std::size_t>(its_rows * pitch + 16)) {
      data = elements.data() +
             (16 - reinterpret_cast<std::uintptr_t>(elements.data()) % 16) % 16 / sizeof(Element);
    }
    Element& at(int row, int column) { return data[row * pitch + column]; }
    arch::TensorMap map(int box_columns, int box_rows) {
      int const size = static_cast<int>(sizeof(Element));
      return emulator::encode_tensor_map({.address = data,
                                          .rank = 2,
                                          .element_bytes = size,
                                          .extent = {columns, rows},
                                          .stride = {0, pitch * size},
                                          .box = {box_columns, box_rows},
                                          .swizzle_bytes = 128});
    }
  };
  Matrix<f16> a{m, k}, b{n, k};
  Matrix<float> d{m, n};

  Problem() {
    unsigned state = 7;
    auto const fill = [&](Matrix<f16>& matrix) {
      for (int row = 0; row < matrix.rows; ++row)
        for (int column = 0; column < matrix.columns; ++column)
          matrix.at(row, column) = f16(static_cast<int>((state = state * 1664525 + 1013904223) >> 29) - 3);
    };
    fill(a);
    fill(b);
  }
  std::string report(Mistake mistake) {
    for (float& element : d.elements) element = -7777.0F;
    Params const params{a.map(tile, tile), b.map(tile, tile / cluster), d.map(32, tile),
                        (k + tile - 1) / tile, mistake};
    return testing::report_of([&] {
      emulator::launch_kernel_clusters<multiply_in_pipeline<Params>>({2, 2}, {cluster}, 256, sizeof(Storage),
                                                                     params);
    });
  }
  int wrong() {
    int count = 0;
    for (int row = 0; row < m; ++row)
      for (int column = 0; column < n; ++column) {
        float sum = 0;
        for (int i = 0; i < k; ++i)
          sum += static_cast<float>(a.at(row, i)) * static_cast<float>(b.at(column, i));
        count += !(d.at(row, column) == sum);
      }
    return count;
  }
};

TEST(Pipeline, MultipliesMatrices) {
  Problem problem;
  ASSERT_EQ(problem.report(Mistake::none), "");
  EXPECT_EQ(problem.wrong(), 0);
}

TEST(Pipeline, CatchesMissingLinks) {
  auto const expect_caught = [](Mistake mistake, std::string const& said) {
    EXPECT_SAYS(Problem().report(mistake), said) << ", mistake " << static_cast<int>(mistake);
  };
  expect_caught(Mistake::no_wait_for_full,
                "A holds byte 0 of shared memory, to which nothing has been written or copied");
  expect_caught(Mistake::no_wait_for_empty, "though all 1 arrivals of its phase 0 have been made");
  expect_caught(Mistake::wrong_phase,
                "A holds byte 8192 of shared memory, to which a box is being copied; no thread waited for it "
                "at the barrier at byte 49160");
  std::string const overwritten = "copies a box over byte 0 of shared memory, which products of warpgroup 0";
  expect_caught(Mistake::released_too_early, overwritten);
  expect_caught(Mistake::no_wait_for_products, overwritten);
  expect_caught(Mistake::no_fence, "which thread 64 wrote without a subsequent publish_to_async()");
  expect_caught(Mistake::wrong_swizzle,
                "A at byte 0 of shared memory is read with a swizzle of 64 bytes, but was copied with a "
                "swizzle of 128");
  expect_caught(Mistake::too_few_bytes, "deadlock: ");
  expect_caught(Mistake::no_wait_for_store, "did not wait (wait_stores_read())");
}

}  // namespace
}  // namespace cosmati
