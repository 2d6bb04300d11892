// The block task inside a user's kernel: sums in registers are visited, accumulated and reused, for every
// main loop and multiply, with full and partial tiles.
#include "cosmati/gemm/block_product.h"

#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {
namespace {

template <class Sum>
struct TwoProducts {
  Index m, n, k, second_k;
  MatrixArguments a, b, second_a, second_b;
  Sum* d;       // (m, n)
  Sum* parity;  // (m, n): 1 if the thread that holds the element has an odd number
};

// d = a * b + second_a * second_b for one tile, then 2 * (a * b) subtracted: the storage is used three times.
template <class Block>
COSMATI_KERNEL(Block::threads, 1)
add_products(COSMATI_PARAMETER TwoProducts<typename Block::Sum> params) {
  auto& storage = arch::shared_storage<typename Block::SharedStorage>();
  Index const first_m = Index{arch::block_x()} * Block::block_m;
  Index const first_n = Index{arch::block_y()} * Block::block_n;
  using A = typename Block::SourceA;
  using B = typename Block::SourceB;
  A const a(params.a, 0, first_m, params.m, params.k);
  B const b(params.b, 0, first_n, params.n, params.k);
  A const second_a(params.second_a, 0, first_m, params.m, params.second_k);
  B const second_b(params.second_b, 0, first_n, params.n, params.second_k);

  Block const block(storage);
  auto sums = block.multiply(a, b, params.k);
  block.add(sums, second_a, second_b, params.second_k);
  auto const again = block.multiply(a, b, params.k);

  auto const inside = [&](int m, int n) { return first_m + m < params.m && first_n + n < params.n; };
  block.for_each(sums, [&](int m, int n, typename Block::Sum sum) {
    if (inside(m, n)) params.d[(first_m + m) * params.n + first_n + n] = sum;
  });
  block.for_each(again, [&](int m, int n, typename Block::Sum sum) {
    if (!inside(m, n)) return;
    Index const at = (first_m + m) * params.n + first_n + n;
    params.d[at] = arch::number_cast<typename Block::Sum>(arch::number_cast<float>(params.d[at]) -
                                                          2 * arch::number_cast<float>(sum));
    params.parity[at] = arch::number_cast<typename Block::Sum>(static_cast<float>(arch::thread() % 2));
  });
}

template <GemmPolicy policy, class Element, class Sum, Along along_a, Along along_b, int width>
void expect_two_products(Size const& size, int second_k) {
  using Traits = ProductTraits<policy, StridedSource<Element, along_a, width>,
                               StridedSource<Element, along_b, width>, Sum>;
  using Block = BlockProduct<Traits>;
  Matrix<Element> a(size.m, size.k, 1, along_a, width, 1, 1), b(size.n, size.k, 1, along_b, width, 0, 2);
  Matrix<Element> second_a(size.m, second_k, 1, along_a, width, 0, 3);
  Matrix<Element> second_b(size.n, second_k, 1, along_b, width, 1, 4);
  std::size_t const count = static_cast<std::size_t>(size.m) * static_cast<std::size_t>(size.n);
  std::vector<Sum> d(count), parity(count);
  TwoProducts<Sum> const params{size.m,
                                size.n,
                                size.k,
                                second_k,
                                a.arguments(),
                                b.arguments(),
                                second_a.arguments(),
                                second_b.arguments(),
                                d.data(),
                                parity.data()};
  int const tiles_m = static_cast<int>(ceiling_divide(size.m, Block::block_m));
  int const tiles_n = static_cast<int>(ceiling_divide(size.n, Block::block_n));
  emulator::launch_kernel<&add_products<Block>>({tiles_m, tiles_n, 1}, Block::threads,
                                                sizeof(typename Block::SharedStorage), params);

  int wrong = 0, odd = 0;
  for (int m = 0; m < size.m; ++m)
    for (int n = 0; n < size.n; ++n) {
      double sum = 0;
      for (int k = 0; k < size.k; ++k) sum -= a.value(0, m, k) * b.value(0, n, k);
      for (int k = 0; k < second_k; ++k) sum += second_a.value(0, m, k) * second_b.value(0, n, k);
      auto const at = static_cast<std::size_t>(m * size.n + n);
      if (!(static_cast<double>(d[at]) == sum) && ++wrong <= 3)
        ADD_FAILURE() << text_of(size, {}) << ": d(" << m << ", " << n << ") is "
                      << static_cast<double>(d[at]) << ", not " << sum;
      odd += static_cast<double>(parity[at]) == 1;
    }
  EXPECT_EQ(wrong, 0) << text_of(size, {});
  if (size.m > 16 && size.n > 16) {
    EXPECT_GT(odd, 0);
    EXPECT_LT(odd, size.m * size.n);
  }
}

template <GemmPolicy policy, class Element, class Sum, Along along_a, Along along_b, int width>
void expect_sizes() {
  expect_two_products<policy, Element, Sum, along_a, along_b, width>({33, 70, 19}, 8);
  expect_two_products<policy, Element, Sum, along_a, along_b, width>({32, 32, 24}, 1);
  expect_two_products<policy, Element, Sum, along_a, along_b, width>({5, 3, 0},
                                                                     9);  // the first product has k = 0
}

TEST(BlockProduct, DoubleBuffered) {
  expect_sizes<small_policy(MainLoop::double_buffered), float, float, Along::k, Along::mn, 4>();
  expect_sizes<small_policy(MainLoop::double_buffered), float, float, Along::mn, Along::k, 1>();
}
TEST(BlockProduct, Multistage) {
  expect_sizes<small_policy(MainLoop::multistage), float, float, Along::k, Along::mn, 4>();
  expect_sizes<small_policy(MainLoop::multistage), float, float, Along::mn, Along::k, 1>();
}
TEST(BlockProduct, BytesAndHalves) {
  expect_sizes<small_policy(MainLoop::double_buffered, Multiply::dp4a), s8, s32, Along::k, Along::mn, 4>();
  expect_sizes<small_policy(MainLoop::double_buffered, Multiply::half2), f16, f16, Along::mn, Along::k, 8>();
}

// Every element of the tile is visited once, by one thread; these are the elements that the epilogue stores.
TEST(BlockProduct, ForEachVisitsTheTileOnce) {
  using Source = StridedSource<float, Along::k, 1>;
  using Traits = ProductTraits<small_policy(MainLoop::double_buffered), Source, Source, float>;
  constexpr int m = Traits::policy.block_m, n = Traits::policy.block_n;
  std::vector<int> visits(m * n);
  for (int thread = 0; thread < Traits::threads; ++thread) {
    ThreadPlace const place = Traits::place(thread);
    for (int i = 0; i < Traits::policy.thread_m; ++i)
      for (int j = 0; j < Traits::policy.thread_n; ++j)
        ++visits.at(static_cast<std::size_t>(Traits::partition_m.position(place.warp_m, place.lane_m, i) * n +
                                             Traits::partition_n.position(place.warp_n, place.lane_n, j)));
  }
  EXPECT_EQ(visits, std::vector<int>(visits.size(), 1));
}

}  // namespace
}  // namespace cosmati::emulated
