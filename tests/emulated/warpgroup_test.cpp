// wgmma: every type, major order, swizzle and number of columns against a plain product, exactly; and planted
// errors.
#include "cosmati/arch/warpgroup.h"

#include <cstring>
#include <vector>

#include "cosmati/arch/tensor_copy.h"
#include "cosmati/arch/thread.h"
#include "cosmati/tile/matrix_descriptor.h"
#include "tests/emulated/testing.h"

namespace cosmati {
namespace {

enum class Mistake {
  none,
  no_wait,
  no_begin,
  no_commit,
  no_fence,
  early_write,
  wrong_swizzle,
  late_operand,
  lonely_thread,
  other_descriptor,
  outside,
  touched_sums,
  touched_a,
  early_load,
  begun_once,
};

struct Product {
  unsigned char const* a;  // in the layout of shared memory
  unsigned char const* b;
  double* d;  // 64 x n
  Mistake mistake = Mistake::none;
};

template <int n_, class ElementA_, class ElementB_, class Sum_, bool a_along_outer_ = false,
          bool b_along_outer_ = false, Swizzle swizzle_a_ = Swizzle::bytes128,
          Swizzle swizzle_b_ = Swizzle::bytes128, bool a_in_registers_ = false>
struct Shape {
  using ElementA = ElementA_;
  using ElementB = ElementB_;
  using Sum = Sum_;
  static constexpr int n = n_, size = sizeof(ElementA), depth = 128 / size;
  static constexpr bool a_along_outer = a_along_outer_, b_along_outer = b_along_outer_;
  static constexpr bool a_in_registers = a_in_registers_;
  static constexpr Swizzle swizzle_a = swizzle_a_, swizzle_b = swizzle_b_;

  struct Storage {
    alignas(1024) unsigned char a[64 * 128];
    alignas(1024) unsigned char b[256 * 128];
  };
  static constexpr int a_bytes = 64 * 128, b_bytes = n * 128;
  // The byte offset of element (outer, k) of an operand.
  static constexpr int place(int outer, int k, int extent, bool along_outer, Swizzle swizzle) {
    return along_outer ? tile_offset(k, outer * size, depth, swizzle)
                       : tile_offset(outer, k * size, extent, swizzle);
  }
  // The offset from the start of a tile to the 32 bytes of depth of step `step`.
  static constexpr int start(int step, int extent, bool along_outer, Swizzle swizzle) {
    return along_outer ? step * (32 / size) / 8 * (swizzle == Swizzle::none ? 128 : pattern_bytes(swizzle))
                       : tile_offset(0, step * 32, extent, swizzle);
  }
};

template <class S>
COSMATI_KERNEL(128, 1)
multiply(COSMATI_PARAMETER Product params) {
  auto& storage = arch::shared_storage<typename S::Storage>();
  int const self = arch::thread();
  for (int i = self; i < S::a_bytes; i += 128) storage.a[i] = params.a[i];
  for (int i = self; i < S::b_bytes; i += 128) storage.b[i] = params.b[i];
  if (params.mistake != Mistake::no_fence || self != 77) arch::publish_to_async();
  arch::block_barrier();

  constexpr Swizzle swizzle_a = S::swizzle_a;
  Swizzle const swizzle_b = params.mistake == Mistake::wrong_swizzle ? Swizzle::bytes64 : S::swizzle_b;
  unsigned const at_a = arch::shared_address(storage.a), at_b = arch::shared_address(storage.b);
  int const lines_a = S::a_along_outer ? S::depth : 64, lines_b = S::b_along_outer ? S::depth : S::n;
  typename S::Sum d[arch::warpgroup_registers<S::n, typename S::Sum>];
  [[maybe_unused]] unsigned of_a[4][4];  // (step, register), not accessed while products are in flight
  if (params.mistake != Mistake::no_begin) arch::warpgroup_begin();
  for (int step = 0; step < 4; ++step) {
    auto const a =
        matrix_descriptor(at_a + static_cast<unsigned>(S::start(step, 64, S::a_along_outer, swizzle_a)),
                          strides_of_tile(lines_a, S::a_along_outer, swizzle_a), swizzle_a);
    auto b =
        matrix_descriptor(at_b + static_cast<unsigned>(S::start(step, S::n, S::b_along_outer, swizzle_b)),
                          strides_of_tile(lines_b, S::b_along_outer, swizzle_b), swizzle_b);
    if (params.mistake == Mistake::other_descriptor && self == 5) b += 2;
    if (params.mistake == Mistake::outside) b += 4096;
    if (params.mistake == Mistake::lonely_thread && self == 99) continue;
    if constexpr (S::a_in_registers) {
      bool const begins_once = params.mistake == Mistake::begun_once;
      if (begins_once) arch::warpgroup_commit();
      if (begins_once) arch::warpgroup_wait<1>();
      unsigned(&registers)[4] = of_a[params.mistake == Mistake::early_load ? 0
                                     : begins_once                         ? step % 2
                                                                           : step];
      for (int r = 0; r < 4; ++r) {
        int const row = self / 32 * 16 + self / 4 % 8 + r % 2 * 8,
                  byte = step * 32 + r / 2 * 16 + self % 4 * 4;
        std::memcpy(&registers[r], &storage.a[S::place(row, byte / S::size, 64, false, swizzle_a)], 4);
      }
      arch::multiply_warpgroup<typename S::ElementA, typename S::ElementB, false, S::b_along_outer, S::n>(
          d, registers, b, step > 0);
      if (params.mistake == Mistake::touched_a && step == 2 && self == 40) registers[3] ^= 1u;
    } else {
      arch::multiply_warpgroup<typename S::ElementA, typename S::ElementB, S::a_along_outer, S::b_along_outer,
                               S::n>(d, a, b, step > 0);
    }
  }
  if (params.mistake != Mistake::no_commit) arch::warpgroup_commit();
  if (params.mistake == Mistake::early_write) storage.a[self] = storage.a[self + 128] = 0;
  if (params.mistake == Mistake::touched_sums) d[1] = typename S::Sum{};
  arch::block_barrier();
  if (params.mistake != Mistake::no_wait) arch::warpgroup_wait<0>();
  arch::fence_registers(d);
  for (int i = 0; i < S::n / 2; ++i) {
    int const row = self / 32 * 16 + self / 4 % 8 + i / 2 % 2 * 8, column = i / 4 * 8 + self % 4 * 2 + i % 2;
    double& to = params.d[row * S::n + column];
    if constexpr (is_same<typename S::Sum, arch::HalfPair>) {
      auto const pair = d[i / 4 * 2 + i / 2 % 2];
      to = static_cast<double>(i % 2 != 0 ? arch::high_half(pair) : arch::low_half(pair));
    } else {
      to = static_cast<double>(d[i]);
    }
  }
}

template <class S>
struct Case {
  std::vector<unsigned char> a = std::vector<unsigned char>(64 * 128),
                             b = std::vector<unsigned char>(256 * 128);
  std::vector<double> expected = std::vector<double>(64 * S::n), d = std::vector<double>(64 * S::n, -77.0);

  Case() {
    std::vector<double> values_a(64 * S::depth), values_b(S::n * S::depth);
    fill<typename S::ElementA>(values_a, a, 64, S::a_along_outer, S::swizzle_a, 3);
    fill<typename S::ElementB>(values_b, b, S::n, S::b_along_outer, S::swizzle_b, 8);
    for (int m = 0; m < 64; ++m)
      for (int n = 0; n < S::n; ++n) {
        double sum = 0;
        for (int k = 0; k < S::depth; ++k)
          sum += values_a[static_cast<std::size_t>(m * S::depth + k)] *
                 values_b[static_cast<std::size_t>(n * S::depth + k)];
        expected[static_cast<std::size_t>(m * S::n + n)] = sum;
      }
  }
  // Small integers, whose products and sums every type represents.
  template <class Element>
  void fill(std::vector<double>& values, std::vector<unsigned char>& bytes, int extent, bool along_outer,
            Swizzle swizzle, unsigned state) {
    for (int outer = 0; outer < extent; ++outer)
      for (int k = 0; k < S::depth; ++k) {
        state = state * 1664525 + 1013904223;
        double const value = static_cast<int>(state >> 28) % 4 - (is_same<Element, u8> ? 0 : 1);
        values[static_cast<std::size_t>(outer * S::depth + k)] = value;
        Element const element = convert<Element>(value);
        std::memcpy(&bytes[static_cast<std::size_t>(S::place(outer, k, extent, along_outer, swizzle))],
                    &element, sizeof element);
      }
  }
  std::string report(Mistake mistake = Mistake::none) {
    Product const product{a.data(), b.data(), d.data(), mistake};
    return testing::report_of(
        [&] { emulator::launch_kernel<multiply<S>>({1}, 128, sizeof(typename S::Storage), product); });
  }
};

template <class S>
void expect_product() {
  Case<S> test;
  ASSERT_EQ(test.report(), "");
  for (std::size_t i = 0; i < test.d.size(); ++i)
    ASSERT_EQ(test.d[i], test.expected[i]) << "row " << i / S::n << " column " << i % S::n;
}

TEST(Warpgroup, EveryNumberOfColumns) {
  expect_product<Shape<8, f16, f16, float>>();
  expect_product<Shape<16, f16, f16, float>>();
  expect_product<Shape<32, f16, f16, float>>();
  expect_product<Shape<64, f16, f16, float>>();
  expect_product<Shape<96, f16, f16, float>>();
  expect_product<Shape<128, f16, f16, float>>();
  expect_product<Shape<160, f16, f16, float>>();
  expect_product<Shape<192, f16, f16, float>>();
  expect_product<Shape<224, f16, f16, float>>();
  expect_product<Shape<256, f16, f16, float>>();
}

TEST(Warpgroup, EveryType) {
  expect_product<Shape<32, bf16, bf16, float>>();
  expect_product<Shape<32, f16, f16, arch::HalfPair>>();
  expect_product<Shape<32, tf32, tf32, float>>();
  expect_product<Shape<32, e4m3, e4m3, float>>();
  expect_product<Shape<32, e4m3, e5m2, float>>();
  expect_product<Shape<32, e5m2, e4m3, float>>();
  expect_product<Shape<32, e5m2, e5m2, float>>();
  expect_product<Shape<32, s8, s8, int>>();
  expect_product<Shape<32, s8, u8, int>>();
  expect_product<Shape<32, u8, s8, int>>();
  expect_product<Shape<32, u8, u8, int>>();
}

TEST(Warpgroup, EveryMajorAndSwizzle) {
  expect_product<Shape<64, f16, f16, float, true, false>>();
  expect_product<Shape<64, f16, f16, float, false, true>>();
  expect_product<Shape<128, bf16, bf16, float, true, true>>();
  expect_product<Shape<64, f16, f16, float, false, false, Swizzle::bytes64, Swizzle::bytes32>>();
  expect_product<Shape<64, f16, f16, float, false, false, Swizzle::bytes32, Swizzle::none>>();
  expect_product<Shape<64, f16, f16, float, false, false, Swizzle::none, Swizzle::bytes64>>();
  expect_product<Shape<96, f16, f16, float, true, true, Swizzle::bytes64, Swizzle::bytes32>>();
  expect_product<Shape<32, f16, f16, float, true, true, Swizzle::bytes32, Swizzle::none>>();
  expect_product<Shape<64, f16, f16, float, true, true, Swizzle::none, Swizzle::bytes64>>();
  expect_product<Shape<64, s8, s8, int, false, false, Swizzle::none, Swizzle::bytes32>>();
}

TEST(Warpgroup, OperandInRegisters) {
  constexpr Swizzle swizzle = Swizzle::bytes128;
  expect_product<Shape<64, f16, f16, float, false, true, swizzle, swizzle, true>>();
  expect_product<Shape<64, tf32, tf32, float, false, false, swizzle, swizzle, true>>();
  expect_product<Shape<64, e4m3, e5m2, float, false, false, swizzle, swizzle, true>>();
  expect_product<Shape<64, s8, s8, int, false, false, swizzle, swizzle, true>>();
}

using Plain = Shape<64, f16, f16, float>;
using ByRegisters = Shape<64, tf32, tf32, float, false, false, Swizzle::bytes128, Swizzle::bytes128, true>;

TEST(Warpgroup, RegistersOfAAreNotTouchedInFlight) {
  Case<ByRegisters> test;
  EXPECT_EQ(test.report(), "");
  EXPECT_SAYS(test.report(Mistake::touched_a), "register 3 of A was written while its product was in flight");
  EXPECT_SAYS(test.report(Mistake::early_load),
              "wgmma whose registers of A were written while a product of them was in flight");
  EXPECT_SAYS(test.report(Mistake::begun_once),
              "wgmma without warpgroup_begin() since its registers of A were written");
}

TEST(Warpgroup, SumsArePoisonUntilTheyAreWaitedFor) {
  Case<Plain> test;
  EXPECT_SAYS(test.report(Mistake::no_wait),
              "ends with 4 products of warpgroup 0 in flight; no thread waited for them");
  for (double const sum : test.d) ASSERT_FALSE(sum == sum);
  Case<Plain> uncommitted;
  EXPECT_SAYS(uncommitted.report(Mistake::no_commit), "ends with 4 products");
  for (double const sum : uncommitted.d) ASSERT_FALSE(sum == sum);
}

TEST(Warpgroup, OperandsAreReadWhenTheyAreWaitedFor) {
  Case<Plain> test;
  EXPECT_EQ(test.report(Mistake::early_write), "");
  bool wrong = false;
  for (std::size_t i = 0; i < test.d.size(); ++i) wrong |= test.d[i] != test.expected[i];
  EXPECT_TRUE(wrong);
}

TEST(Warpgroup, AWrongSwizzleIsAWrongNumber) {
  Case<Plain> test;
  EXPECT_EQ(test.report(Mistake::wrong_swizzle), "");
  bool wrong = false;
  for (std::size_t i = 0; i < test.d.size(); ++i) wrong |= !(test.d[i] == test.expected[i]);
  EXPECT_TRUE(wrong);
}

TEST(Warpgroup, MistakesAreReported) {
  Case<Plain> test;
  EXPECT_SAYS(test.report(Mistake::no_begin), "wgmma without warpgroup_begin()");
  EXPECT_SAYS(test.report(Mistake::no_fence),
              "of shared memory, which thread 77 wrote without a subsequent publish_to_async()");
  EXPECT_SAYS(test.report(Mistake::touched_sums), "sum 1 was written while its product was in flight");
  EXPECT_SAYS(test.report(Mistake::outside),
              "wgmma: the descriptor of B points to byte 73728 of the 40960 bytes of shared memory");
  EXPECT_SAYS(test.report(Mistake::other_descriptor), "thread 5 (warp 0, lane 5): wgmma of descriptors");
  EXPECT_SAYS(test.report(Mistake::lonely_thread),
              "wait for wgmma, at which 127 of 128 threads have arrived");
}

// Start addresses and strides of descriptors that no tile copied by TMA has.
struct Descriptor {
  unsigned long long a;
  bool again = false;
};
template <class Params>
COSMATI_KERNEL(128, 1)
multiply_one(COSMATI_PARAMETER Params params) {
  float d[4];
  arch::publish_to_async();  // shared memory is intentionally uninitialized
  arch::warpgroup_begin();
  arch::multiply_warpgroup<f16, f16, false, false, 8>(d, params.a, params.a, false);
  arch::warpgroup_commit();
  arch::warpgroup_wait<0>();
  if (!params.again) return;
  arch::multiply_warpgroup<f16, f16, false, false, 8>(d, params.a, params.a, true);
  arch::warpgroup_commit();
  arch::warpgroup_wait<0>();
}

TEST(Warpgroup, DescriptorsAreChecked) {
  auto const report = [](unsigned address, MatrixStrides strides, Swizzle swizzle, bool again = false) {
    Descriptor const descriptor{matrix_descriptor(address, strides, swizzle), again};
    return testing::report_of(
        [&] { emulator::launch_kernel<multiply_one<Descriptor>>({1}, 128, 16384, descriptor); });
  };
  EXPECT_EQ(report(0, {0, 1024}, Swizzle::bytes128), "");
  EXPECT_EQ(report(256, {0, 1280}, Swizzle::bytes128),
            "");  // any line, and groups of 8 any number of lines apart
  EXPECT_SAYS(report(112, {0, 1024}, Swizzle::bytes128),
              "starts at byte 112 of a line of 128; fewer than 32 bytes of depth follow");
  EXPECT_SAYS(report(0, {0, 576}, Swizzle::bytes128),
              "has a stride of 576 bytes, not a multiple of a line's 128");
  EXPECT_EQ(report(0, {0, 512}, Swizzle::bytes64), "");
  EXPECT_SAYS(report(0, {0, 1024}, Swizzle::bytes128, true),
              "wgmma without warpgroup_begin() since the kernel began");
}

// Tiles copied by TMA with another swizzle than the descriptor's.
struct alignas(64) Brought {
  arch::TensorMap map;
};
template <class Params>
COSMATI_KERNEL(128, 1)
multiply_brought(COSMATI_PARAMETER Params params) {
  auto& barrier = *reinterpret_cast<arch::Barrier*>(emulator::shared_memory() + 8192);
  if (arch::thread() == 0) {
    arch::init(barrier, 1);
    arch::publish_barriers();
    int const at[2] = {0, 0};
    arch::arrive_expecting(barrier, 8192);
    arch::copy_tile(emulator::shared_memory(), params.map, barrier, at);
  }
  arch::block_barrier();
  arch::wait(barrier, 0);
  float d[4];
  auto const a = matrix_descriptor(0, strides_of_tile(64, false, Swizzle::bytes128), Swizzle::bytes128);
  arch::warpgroup_begin();
  arch::multiply_warpgroup<f16, f16, false, false, 8>(d, a, a, false);
  arch::warpgroup_commit();
  arch::warpgroup_wait<0>();
}

TEST(Warpgroup, TheSwizzleOfTheCopyIsCompared) {
  alignas(16) static unsigned char bytes[64 * 128];
  auto const report = [](int swizzle) {
    emulator::TiledTensor tensor{.address = bytes,
                                 .rank = 2,
                                 .element_bytes = 2,
                                 .extent = {64, 64},
                                 .stride = {0, 128},
                                 .box = {64, 64},
                                 .swizzle_bytes = swizzle};
    if (swizzle == 64) {
      tensor.box[0] = 32;
      tensor.box[1] = 128;
      tensor.extent[1] = 128;
      tensor.stride[1] = 64;
      tensor.extent[0] = 32;
    }
    Brought const brought{emulator::encode_tensor_map(tensor)};
    return testing::report_of(
        [&] { emulator::launch_kernel<multiply_brought<Brought>>({1}, 128, 16384, brought); });
  };
  EXPECT_EQ(report(128), "");
  EXPECT_SAYS(
      report(64),
      "A at byte 0 of shared memory is read with a swizzle of 128 bytes, but was copied with a swizzle "
      "of 64 bytes");
}

struct Registers {
  int mistake = 0;
};
template <class Params>
COSMATI_KERNEL(384, 1)
set_registers(COSMATI_PARAMETER Params params) {
  bool const is_odd = arch::thread() == 7;
  if (arch::thread() >= 128) {
    if (params.mistake < 3) arch::acquire_registers<240>();
  } else if (params.mistake == 1 || (params.mistake == 4 && !is_odd)) {
    arch::release_registers<40>();
  } else if (params.mistake == 0 || params.mistake == 4 || !is_odd) {
    arch::release_registers<24>();
  }
}

TEST(Warpgroup, RegistersAreThoseOfTheBlock) {
  auto const report = [](int mistake) {
    return testing::report_of(
        [&] { emulator::launch_kernel<set_registers<Registers>>({1}, 384, 0, Registers{mistake}); });
  };
  EXPECT_EQ(report(0), "");
  EXPECT_SAYS(
      report(1),
      "threads 256-383 wait for 240 registers for each thread of its warpgroup; with them the block would have "
      "66560 of its 64512");
  EXPECT_SAYS(
      report(2),
      "threads 128-383 wait for 240 registers for each thread of its warpgroup; with them the block would have "
      "73728 of its 64512");
  EXPECT_SAYS(report(3), "thread 7 has set its registers 0 times, others of its warpgroup 1 times");
  EXPECT_SAYS(report(4), "release_registers<24>(), where others of its warpgroup set 40");
}

// Operands whose lines are values of k, beginning at any line: groups of 8 are `pair` lines apart, and
// columns from 64 on are read `span` lines later, so that they overlap in memory. conv/wgrad_taps.h reads x
// in this way.
struct Lines {
  int first = 0, pair_bytes = 0, span = 0;
  float* d = nullptr;
  static int number(int line, int place) { return (line * 64 + place) * 7 % 11 - 5; }
};
template <class Params>
COSMATI_KERNEL(128, 1)
multiply_lines(COSMATI_PARAMETER Params params) {
  constexpr int lines = 48, registers = 64;
  unsigned char* const memory = emulator::shared_memory();
  for (int i = arch::thread(); i < lines * 64; i += 128)
    *reinterpret_cast<f16*>(memory + tile_offset(i / 64, i % 64 * 2, lines, Swizzle::bytes128)) =
        f16(static_cast<double>(Lines::number(i / 64, i % 64)));
  arch::publish_to_async();
  arch::block_barrier();
  auto const of = [](int first, MatrixStrides strides) {
    return matrix_descriptor(static_cast<unsigned>(first * 128), strides, Swizzle::bytes128);
  };
  float d[registers];
  arch::warpgroup_begin();
  arch::multiply_warpgroup<f16, f16, true, true, 128>(
      d, of(0, {0, 1024}), of(params.first, {params.span * 128, params.pair_bytes}), false);
  arch::warpgroup_commit();
  arch::warpgroup_wait<0>();
  for (int i = 0; i < registers; ++i) params.d[arch::thread() * registers + i] = d[i];
}

TEST(Warpgroup, LinesOfDepthsFromAnyLineOn) {
  std::vector<float> d(128 * 64);
  auto const run = [&](int first, int pair_bytes, int span) {
    emulator::launch_kernel<multiply_lines<Lines>>({1}, 128, 48 * 128,
                                                   Lines{first, pair_bytes, span, d.data()});
  };
  for (int const first : {0, 3, 9})
    for (int const pair : {8, 13})
      for (int const span : {1, 12}) {
        run(first, pair * 128, span);
        for (int i = 0; i < 128 * 64; ++i) {
          int const row = i / 2048 * 16 + i / 256 % 8 + i / 2 % 2 * 8,
                    column = i % 64 / 4 * 8 + i / 64 % 4 * 2 + i % 2;
          int sum = 0;
          for (int k = 0; k < 16; ++k)
            sum += Lines::number(k, row) *
                   Lines::number(first + k / 8 * pair + k % 8 + column / 64 * span, column % 64);
          ASSERT_EQ(d[static_cast<std::size_t>(i)], sum) << first << ", " << pair << ", " << span;
        }
      }
  EXPECT_SAYS(testing::report_of([&] { run(0, 64, 1); }),
              "the descriptor of B has a stride of 64 bytes, not a multiple of a line's 128");
}

}  // namespace
}  // namespace cosmati
