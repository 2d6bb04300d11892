// The product of a warpgroup (four warps) by wgmma: 64 or 128 rows of D by up to 256 columns, operands in
// shared memory, A through registers if wgmma cannot read it directly, sums in registers.
#pragma once
#include "cosmati/arch/warpgroup.h"
#include "cosmati/gemm/policy.h"
#include "cosmati/gemm/tensor_source.h"
#include "cosmati/tile/matrix_fragment.h"
#include "cosmati/tile/outer_fragment.h"
#include "cosmati/tile/tensor_tile.h"

namespace cosmati {

// A register of sums: one sum, or two f16 sums of adjacent columns.
template <class Sum>
struct RegisterOfSums {
  using Register = Sum;
  static constexpr int sums_of_register = 1;
  COSMATI_DEVICE static Sum get(Register value, int) { return value; }
  COSMATI_DEVICE static void add(Register& sum, Register more) { sum += more; }
};
template <>
struct RegisterOfSums<f16> {
  using Register = arch::HalfPair;
  static constexpr int sums_of_register = 2;
  COSMATI_DEVICE static f16 get(Register value, int which) {
    return which == 0 ? arch::low_half(value) : arch::high_half(value);
  }
  COSMATI_DEVICE static void add(Register& sum, Register more) {
    sum = arch::multiply_add(more, arch::HalfPair{0x3c003c00u}, sum);  // more * 1 + sum
  }
};

// A thread's sums in the order of wgmma: of every 64 rows, rows g and g + 8 of its warp's 16, and columns 2 t
// and 2 t + 1 of every 8; row i and column j of this thread are get(i, j).
template <class Sum_, int rows_, int columns_>
struct WarpgroupAccumulators : RegisterOfSums<Sum_> {
  using Sum = Sum_;
  using Base = RegisterOfSums<Sum>;
  using Register = typename Base::Register;
  static constexpr int rows = rows_, columns = columns_, registers = rows * columns / Base::sums_of_register;
  static constexpr int registers_of_block = 2 * columns / Base::sums_of_register;  // of 64 rows
  Register value[rows / 2][registers_of_block];

  COSMATI_DEVICE Sum get(int i, int j) const {
    int const at = j / 2 * 4 + i % 2 * 2 + j % 2;
    return Base::get(value[i / 2][at / Base::sums_of_register], at % Base::sums_of_register);
  }
  template <class Visit>
  COSMATI_DEVICE void for_each(Visit&& visit) {
    COSMATI_UNROLL
    for (int block = 0; block < rows / 2; ++block) {
      COSMATI_UNROLL
      for (int r = 0; r < registers_of_block; ++r) visit(value[block][r]);
    }
  }
  COSMATI_DEVICE void clear() {
    for_each([](Register& sums) { sums = Register{}; });
  }
  // Leaves the sums uninitialized: the first product does not accumulate.
  COSMATI_DEVICE void keep_uninitialized() {
    for_each([](Register& sums) { arch::keep_uninitialized(sums); });
  }
  // Must be called after waiting for the products and before any other use of the sums.
  COSMATI_DEVICE void fence_registers() {
    COSMATI_UNROLL
    for (int block = 0; block < rows / 2; ++block) arch::fence_registers(value[block]);
  }
};

// The rows of a block tile's warpgroups, 64 * `blocks` each; has the interface of LinePartition, with a
// warp's position.
struct WarpgroupRows {
  int blocks;
  COSMATI_CONSTEXPR int position(int warp, int lane, int i) const {
    return warp / 4 * (64 * blocks) + i / 2 * 64 + warp % 4 * 16 + i % 2 * 8 + lane;
  }
};

// Tensor cores accumulate products of these types with only 14 bits, so the result of each step is added in
// f32.
template <class Element>
inline constexpr bool promotes = is_same<Element, e4m3> || is_same<Element, e5m2>;

// A's operands of a step if they are in registers; they must not change until its products are complete.
template <bool present, int packs, int blocks>
struct FragmentsOfA {
  unsigned value[packs][blocks][4];
};
template <int packs, int blocks>
struct FragmentsOfA<false, packs, blocks> {};

// How the warpgroup's rows of A, which start at `first_outer` in its tile, get to wgmma.
template <class Tile, bool in_registers>
struct OperandA : OuterFragmentReader<Tile> {
  COSMATI_DEVICE OperandA(Tile const& tile, int first_outer)
      : OuterFragmentReader<Tile>(tile, first_outer + arch::thread() / 32 % 4 * 16) {}
};
template <class Tile>
struct OperandA<Tile, false> {
  unsigned long long descriptor;
  COSMATI_DEVICE OperandA(Tile const& tile, int first_outer) : descriptor(tile.descriptor(first_outer)) {}
};

// The operand tiles of one step, the sums, and their product.
template <GemmPolicy gemm_policy, class SourceA, class SourceB, class Sum>
struct WarpgroupProduct {
  static constexpr GemmPolicy policy = gemm_policy;
  using ElementA = typename SourceA::Element;
  using ElementB = typename SourceB::Element;
  // Blocks of a cluster share A within a row of tiles, and B within a column.
  using TileA = TensorTile<ElementA, SourceA::along, policy.block_k, policy.block_m, policy.cluster_n>;
  using TileB = TensorTile<ElementB, SourceB::along, policy.block_k, policy.block_n, policy.cluster_m>;
  using Product = WarpgroupAccumulators<Sum, policy.thread_m, policy.thread_n>;
  static constexpr int packs_deep = policy.block_k * static_cast<int>(sizeof(ElementA)) / 32;
  static constexpr int blocks = policy.warp_m / 16, group_m = 64 * blocks,
                       groups_m = policy.block_m / group_m;
  // The sums of one step are kept in addition to the total: registers for 64 rows by at most 128 columns.
  static constexpr bool promotes = policy.promotes || (cosmati::promotes<ElementA> && !policy.fast_sums);
  static constexpr int columns = !promotes || policy.warp_n <= 128 ? policy.warp_n : policy.warp_n / 2;
  // wgmma reads 32-bit elements only if they are K-major; M-major A is read by the warps.
  static constexpr bool a_in_registers = sizeof(ElementA) == 4 && SourceA::along == Along::mn;
  using Fragments = FragmentsOfA<a_in_registers, packs_deep, blocks>;
  // Commit groups per step, for warpgroup_wait.
  static constexpr int groups_of_a_step = a_in_registers ? packs_deep : 1;

  static constexpr int warps = policy.warps_m() * policy.warps_n();  // warps that share a tile
  static constexpr WarpgroupRows partition_m{blocks};
  static constexpr LinePartition partition_n{policy.warp_n, 4, policy.thread_n, 2};
  // Row i of a warp: 16 of every 64.
  COSMATI_CONSTEXPR static int row_of_warp(int i) { return i / 16 * 64 + i % 16; }
  COSMATI_DEVICE static ThreadPlace place(int thread) {
    return matrix_place(thread % (32 * warps), policy.warps_m());
  }

  // This warpgroup's part of the tiles at (a, b); stage s is at offset s * stride_of_tiles.
  OperandA<TileA, a_in_registers> a;
  unsigned long long b;
  COSMATI_DEVICE WarpgroupProduct(TileA const& tile_a, TileB const& tile_b, int group)
      : a(tile_a, group % groups_m * group_m),
        b(tile_b.descriptor(group / groups_m % policy.warps_n() * policy.warp_n)) {}

  // sums = (accumulate ? sums : 0) + a * b over the step in `stage`; in flight until warpgroup_wait, unless
  // the sums are promoted: then the products are complete, and always accumulate.
  COSMATI_DEVICE void multiply(Product& sums, Fragments& fragments, int stage, bool accumulate) const {
    unsigned long long const from_b = b + static_cast<unsigned>(stage * TileB::stride_of_tiles);
    if constexpr (a_in_registers)
      multiply_by_registers(sums, fragments, stage, from_b, accumulate);
    else
      multiply(sums, a.descriptor + static_cast<unsigned>(stage * TileA::stride_of_tiles), from_b,
               accumulate);
  }

 private:
  COSMATI_DEVICE static void multiply(Product& sums, unsigned long long from_a, unsigned long long from_b,
                                      bool accumulate) {
    if constexpr (promotes) return multiply_and_promote(sums, from_a, from_b);
    arch::warpgroup_begin();
    COSMATI_UNROLL
    for (int pack = 0; pack < packs_deep; ++pack) {
      COSMATI_UNROLL
      for (int block = 0; block < blocks; ++block)
        multiply_pack(sums.value[block], from_a, from_b, pack, block, 0, accumulate || pack > 0);
    }
    arch::warpgroup_commit();
  }

  // Each pack along k is one commit group: its registers are reloaded after the products that used them, four
  // groups earlier, are complete, while three groups keep the tensor cores busy.
  COSMATI_DEVICE void multiply_by_registers(Product& sums, Fragments& fragments, int stage,
                                            unsigned long long from_b, bool accumulate) const {
    COSMATI_UNROLL
    for (int pack = 0; pack < packs_deep; ++pack) {
      arch::warpgroup_wait<packs_deep - 1>();
      COSMATI_UNROLL
      for (int block = 0; block < blocks; ++block) a.read(fragments.value[pack][block], stage, pack, block);
      arch::warpgroup_begin();
      COSMATI_UNROLL
      for (int block = 0; block < blocks; ++block)
        arch::multiply_warpgroup<ElementA, ElementB, false, SourceB::along == Along::mn, policy.warp_n>(
            sums.value[block], fragments.value[pack][block],
            from_b + static_cast<unsigned>(TileB::pack_offset(pack)), accumulate || pack > 0);
      arch::warpgroup_commit();
    }
  }

  COSMATI_DEVICE static void multiply_and_promote(Product& sums, unsigned long long from_a,
                                                  unsigned long long from_b) {
    COSMATI_UNROLL
    for (int block = 0; block < blocks; ++block) {
      COSMATI_UNROLL
      for (int first_n = 0; first_n < policy.warp_n; first_n += columns) {
        Sum step[columns / 2];
        COSMATI_UNROLL
        for (Sum& sum : step) arch::keep_uninitialized(sum);
        arch::warpgroup_begin();
        COSMATI_UNROLL
        for (int pack = 0; pack < packs_deep; ++pack)
          multiply_pack(step, from_a, from_b, pack, block, first_n, pack > 0);
        arch::warpgroup_commit();
        arch::warpgroup_wait<0>();
        arch::fence_registers(step);
        COSMATI_UNROLL
        for (int r = 0; r < columns / 2; ++r) sums.value[block][first_n / 2 + r] += step[r];
      }
    }
  }

  // One pack: 64 rows of A by the columns that `count` registers of sums hold.
  template <class Register, int count>
  COSMATI_DEVICE static void multiply_pack(Register (&sums)[count], unsigned long long from_a,
                                           unsigned long long from_b, int pack, int block, int first_n,
                                           bool accumulate) {
    arch::multiply_warpgroup<ElementA, ElementB, SourceA::along == Along::mn, SourceB::along == Along::mn,
                             2 * count * Product::sums_of_register>(
        sums, from_a + static_cast<unsigned>(TileA::pack_offset(pack) + TileA::outer_offset(64 * block)),
        from_b + static_cast<unsigned>(TileB::pack_offset(pack) + TileB::outer_offset(first_n)), accumulate);
  }
};

}  // namespace cosmati
