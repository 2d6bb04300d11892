// A matrix product by an emulated kernel, compared with sums in double.
#pragma once
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cosmati/arch/emulator.h"
#include "cosmati/gemm/kernel.h"

namespace cosmati::emulated {

// A matrix (outer, depth) of small integers; the memory around it is NaN or a large number.
template <class Element>
class Matrix {
 public:
  // Runs lie along `along`. The leading dimension is a multiple of `width` elements, and `slack * width`
  // elements larger than necessary.
  Matrix(int outer, int depth, int batch, Along along, int width, int slack, int seed) : batch_stride_(0) {
    int const run = along == Along::k ? depth : outer, runs = along == Along::k ? outer : depth;
    int const leading = ((run + width - 1) / width + slack) * width;
    row_stride_ = along == Along::k ? leading : 1;
    column_stride_ = along == Along::k ? 1 : leading;
    batch_stride_ = Index{leading} * runs;
    std::size_t const guard = 64 / sizeof(Element);
    memory_.assign(static_cast<std::size_t>(batch_stride_ * batch) + 2 * guard + 16, filler());
    auto const address = reinterpret_cast<std::size_t>(memory_.data());
    data_ = memory_.data() + ((64 - address % 64) % 64) / sizeof(Element);
    unsigned state = static_cast<unsigned>(seed) * 2654435761u + 12345u;
    for (int b = 0; b < batch; ++b)
      for (int i = 0; i < outer; ++i)
        for (int j = 0; j < depth; ++j) {
          state = state * 1664525u + 1013904223u;
          int const low = is_same<Element, u8> ? 0 : -2;
          at(b, i, j) = convert<Element>(static_cast<double>(static_cast<int>(state >> 28) % 5 + low));
        }
  }
  // Moves the matrix by one element, so that only the element's alignment remains.
  void misalign() {
    std::vector<Element> copy(memory_);
    for (std::size_t i = 1; i < memory_.size(); ++i) memory_[i] = copy[i - 1];
    memory_[0] = filler();
    ++data_;
  }

  Element& at(int batch, int i, int j) {
    return data_[batch * batch_stride_ + i * row_stride_ + j * column_stride_];
  }
  double value(int batch, int i, int j) { return static_cast<double>(at(batch, i, j)); }
  MatrixArguments arguments() {
    MatrixArguments arguments;
    arguments.data = data_;
    arguments.row_stride = row_stride_;
    arguments.column_stride = column_stride_;
    arguments.batch_stride = batch_stride_;
    return arguments;
  }
  // The number of elements outside the matrix that were changed.
  int trespasses(int outer, int depth, int batch) {
    std::vector<Element> copy(memory_);
    auto const offset = data_ - memory_.data();
    int count = 0;
    for (int b = 0; b < batch; ++b)
      for (int i = 0; i < outer; ++i)
        for (int j = 0; j < depth; ++j)
          copy[static_cast<std::size_t>(offset + b * batch_stride_ + i * row_stride_ + j * column_stride_)] =
              filler();
    for (Element const& element : copy) {
      Element const expected = filler();
      count += __builtin_memcmp(&element, &expected, sizeof(Element)) != 0;
    }
    return count;
  }

 private:
  static Element filler() {
    if constexpr (is_same<Element, s8> || is_same<Element, u8>)
      return Element{101};
    else if constexpr (is_same<Element, s32>)
      return 1000003;
    else
      return Element(__builtin_nan(""));
  }
  std::vector<Element> memory_;
  Element* data_ = nullptr;
  Index row_stride_, column_stride_, batch_stride_;
};

struct Size {
  int m, n, k;
};

struct Setting {
  int batch = 1;
  int splits = 1;
  int blocks = 0;     // grid size of stream-K
  int streamed = -1;  // streamed tiles; -1: according to tiles_to_stream()
  bool misaligned = false;
  bool pointer_array = false;
};

inline std::string text_of(Size const& size, Setting const& setting) {
  return std::to_string(size.m) + "x" + std::to_string(size.n) + "x" + std::to_string(size.k) + ", batch " +
         std::to_string(setting.batch) + ", splits " + std::to_string(setting.splits) +
         (setting.blocks > 0 ? ", " + std::to_string(setting.blocks) + " blocks" : "");
}

// A workspace with arbitrary content before the first launch; later launches find what the previous one left.
template <class Register>
class Slots {
 public:
  Slots(Index slots, Index registers)
      : flags_(static_cast<std::size_t>(slots), 0xdeadbeefdeadbeefULL),
        partials_(static_cast<std::size_t>(slots * registers) * sizeof(Register) + 64, 0xff) {}
  void fill(ScheduleArguments& schedule) {
    schedule.flags = flags_.data();
    schedule.partials = partials_.data() + (64 - reinterpret_cast<std::size_t>(partials_.data()) % 64) % 64;
    schedule.tag = tag;
  }
  // Whether all raised flags have been consumed.
  bool is_clean() const {
    for (unsigned long long const flag : flags_)
      if (flag == tag) return false;
    return true;
  }

 private:
  static constexpr unsigned long long tag = 0x1234567890abcdefULL;
  std::vector<unsigned long long> flags_;
  std::vector<unsigned char> partials_;
};

// Runs gemm_kernel<Traits>, whose epilogue has Arguments `epilogue`, and compares every element of d with
// expected(sum, m, n).
template <class Traits, class Expected>
void expect_product(Size const& size, Setting const& setting,
                    typename Traits::Epilogue::Arguments const& epilogue, Expected const& expected) {
  using A = typename Traits::SourceA;
  using B = typename Traits::SourceB;
  using D = typename Traits::Destination;
  constexpr GemmPolicy policy = Traits::policy;
  Matrix<typename A::Element> a(size.m, size.k, setting.batch, A::along, is_unaligned<A> ? 1 : A::width, 1,
                                1);
  Matrix<typename B::Element> b(size.n, size.k, setting.batch, B::along, is_unaligned<B> ? 1 : B::width, 0,
                                2);
  Matrix<typename D::Element> d(size.m, size.n, setting.batch, Along::k, D::width, 1, 3);
  if (setting.misaligned) a.misalign(), b.misalign(), d.misalign();

  typename Traits::Params params;
  params.m = size.m, params.n = size.n, params.k = size.k;
  params.a = a.arguments(), params.b = b.arguments(), params.d = d.arguments();
  params.epilogue = epilogue;
  std::vector<void*> pointers;
  if (setting.pointer_array) {
    for (int i = 0; i < setting.batch; ++i) pointers.push_back(&a.at(setting.batch - 1 - i, 0, 0));
    params.a.pointers = pointers.data();
  }
  int const tiles =
      static_cast<int>(ceiling_divide(size.m, policy.block_m) * ceiling_divide(size.n, policy.block_n));
  bool const streams = setting.blocks > 0;
  Slots<typename Traits::Product::Register> slots(
      streams ? setting.blocks : Index{tiles} * setting.batch * (setting.splits - 1),
      Traits::Product::registers * Traits::threads);
  params.schedule.splits = setting.splits;
  params.schedule.batch = setting.batch;
  if (streams)
    params.schedule.streamed = setting.streamed >= 0
                                   ? setting.streamed
                                   : static_cast<int>(tiles_to_stream(tiles * setting.batch, setting.blocks));
  slots.fill(params.schedule);
  emulator::Grid const grid =
      streams ? emulator::Grid{setting.blocks}
              : emulator::Grid{tiles, setting.splits,
                               static_cast<int>(ceiling_divide(setting.batch, policy.matrices))};
  for (int launch = 0; tiles > 0 && launch < (setting.splits > 1 || streams ? 2 : 1); ++launch)
    emulator::launch_kernel<&gemm_kernel<Traits>>(grid, Traits::threads,
                                                  sizeof(typename Traits::SharedStorage), params);
  EXPECT_TRUE(slots.is_clean()) << text_of(size, setting);
  int wrong = 0;
  for (int i = 0; i < setting.batch; ++i)
    for (int m = 0; m < size.m; ++m)
      for (int n = 0; n < size.n; ++n) {
        double sum = 0;
        int const from = setting.pointer_array ? setting.batch - 1 - i : i;
        for (int k = 0; k < size.k; ++k) sum += a.value(from, m, k) * b.value(i, n, k);
        double const right = static_cast<double>(convert<typename D::Element>(expected(sum, m, n)));
        if (!(d.value(i, m, n) == right) && ++wrong <= 3)
          ADD_FAILURE() << text_of(size, setting) << ": d(" << i << ", " << m << ", " << n << ") is "
                        << d.value(i, m, n) << ", not " << right;
      }
  EXPECT_EQ(wrong, 0) << text_of(size, setting);
  EXPECT_EQ(d.trespasses(size.m, size.n, setting.batch), 0) << text_of(size, setting);
}

template <class Traits>
void expect_product(Size const& size, Setting const& setting = {}) {
  expect_product<Traits>(size, setting, {}, [](double sum, int, int) { return sum; });
}

// Small tiles: two warps.
constexpr GemmPolicy small_policy(MainLoop main_loop, Multiply multiply = Multiply::fma, bool split = false) {
  GemmPolicy policy;
  policy.block_m = policy.block_n = 32;
  policy.block_k = 8 * pack_depth_of(multiply);
  policy.warp_m = 16, policy.warp_n = 32;
  policy.thread_m = policy.thread_n = 4;
  policy.stages = main_loop == MainLoop::multistage ? 3 : 2;
  policy.main_loop = main_loop;
  policy.multiply = multiply;
  policy.partition = split ? Partition::split_k : Partition::tiles;
  policy.raster_width = 2;
  return policy;
}

template <GemmPolicy policy, class Element, class Sum, Along a, Along b, int width, class Result = Sum,
          int result_width = (sizeof(Result) > 4 ? 2 : 4)>
using PlainGemm = GemmTraits<policy, StridedSource<Element, a, width>, StridedSource<Element, b, width>, Sum,
                             IdentityEpilogue<Sum>, StridedDestination<Result, result_width>>;

}  // namespace cosmati::emulated
