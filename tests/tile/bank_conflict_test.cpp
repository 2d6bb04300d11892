// Bank conflicts in shared memory, counted from the layout functions that the kernels use.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "cosmati/core/number.h"
#include "cosmati/gemm/tensor_epilogue.h"
#include "cosmati/gemm/warpgroup_product.h"
#include "cosmati/tile/double_fragment.h"
#include "cosmati/tile/double_lines.h"
#include "cosmati/tile/matrix_fragment.h"
#include "cosmati/tile/operand_loader.h"
#include "cosmati/tile/outer_fragment.h"
#include "cosmati/tile/padded_tile.h"
#include "cosmati/tile/partition.h"
#include "cosmati/tile/swizzled_tile.h"
#include "src/plan/gemm/policies.h"

namespace cosmati {
namespace {

struct Access {
  int address;  // in bytes
  int bytes;
};

// The number of passes over the banks for one access of a warp: 32 banks of 4 bytes serve 128 bytes at once,
// so lanes are served in groups of 128 bytes, and each group takes as many passes as its busiest bank has
// different words.
int wavefronts(std::vector<Access> const& lanes) {
  int total = 0;
  std::size_t const group = std::min<std::size_t>(32, 128 / static_cast<std::size_t>(lanes.front().bytes));
  for (std::size_t first = 0; first < lanes.size(); first += group) {
    std::map<int, std::set<int>> words_of_bank;
    for (std::size_t i = first; i < std::min(first + group, lanes.size()); ++i)
      for (int byte = 0; byte < lanes[i].bytes; byte += 4) {
        int const word = (lanes[i].address + byte) / 4;
        words_of_bank[word % 32].insert(word);
      }
    std::size_t busiest = 1;
    for (auto const& [bank, words] : words_of_bank) busiest = std::max(busiest, words.size());
    total += static_cast<int>(busiest);
  }
  return total;
}

int min_wavefronts(std::vector<Access> const& lanes) {
  int const bytes = lanes.front().bytes * static_cast<int>(lanes.size());
  return std::max(1, (bytes + 127) / 128);
}

int address_of(int depth, int outer, int pack_bytes, int extent) {
  return depth * shared_tile_bytes(pack_bytes, 1, extent) + outer * pack_bytes;
}

struct Operand {
  int block, warp, thread, lanes;
  bool is_a;
};

std::vector<Operand> operands_of(GemmPolicy const& p) {
  return {{p.block_m, p.warp_m, p.thread_m, p.lanes_m(), true},
          {p.block_n, p.warp_n, p.thread_n, p.lanes_n(), false}};
}

struct Case {
  MainLoop main_loop;
  Multiply multiply;
  DataType sum;
  int pack_bytes, element_bytes;
};

// half2 converts A's elements to pairs of equal values.
Case of_operand(Case const& both, Operand const& operand) {
  Case result = both;
  if (both.multiply == Multiply::half2 && both.main_loop == MainLoop::double_buffered && operand.is_a)
    result.pack_bytes = 4;
  return result;
}

constexpr Case cases[] = {
    {MainLoop::double_buffered, Multiply::fma, DataType::f32, 4, 4},
    {MainLoop::double_buffered, Multiply::fma, DataType::f32, 4,
     2},  // f16 and bf16 are widened while being copied
    {MainLoop::double_buffered, Multiply::fma, DataType::f64, 8, 8},
    {MainLoop::double_buffered, Multiply::half2, DataType::f16, 2, 2},
    {MainLoop::double_buffered, Multiply::dp4a, DataType::s32, 4, 1},
    {MainLoop::multistage, Multiply::fma, DataType::f32, 4, 4},
    {MainLoop::multistage, Multiply::half2, DataType::f16, 2, 2},
    {MainLoop::multistage, Multiply::fma, DataType::f64, 8, 8},
    {MainLoop::multistage, Multiply::dp4a, DataType::s32, 4, 1},
};

TEST(BankConflicts, FragmentsAreReadWithoutAny) {
  for (Case const& both : cases)
    for (plan::NamedPolicy const& named : plan::named_policies(both.main_loop, both.multiply, both.sum))
      for (Operand const& operand : operands_of(named.policy)) {
        Case const c = of_operand(both, operand);
        LinePartition const line{operand.warp, operand.lanes, operand.thread,
                                 vector_within(operand.thread, 16 / c.pack_bytes)};
        for (int warp = 0; warp < operand.block / operand.warp; ++warp)
          for (int i = 0; i < operand.thread; i += line.vector) {
            std::vector<Access> lanes;
            for (int lane = 0; lane < 32; ++lane) {
              ThreadPlace const place =
                  thread_place(lane, named.policy.warps_m(), named.policy.lanes_m(), named.policy.lanes_n());
              int const outer = line.position(warp, operand.is_a ? place.lane_m : place.lane_n, i);
              lanes.push_back(
                  {address_of(1, outer, c.pack_bytes, operand.block), line.vector * c.pack_bytes});
            }
            EXPECT_LE(wavefronts(lanes), min_wavefronts(lanes)) << named.name << ' ' << name_of(c.sum);
          }
      }
}

// The simultaneous writes of an item, in the order of its stores.
std::vector<Access> stores_of(ItemShape const& shape, ItemPlace const& place, Along along, int pack_depth,
                              Case const& c, int extent) {
  int const row = place.depth / pack_depth;
  if (along == Along::mn)
    return {{address_of(row, place.outer, c.pack_bytes, extent), shape.item_outer * c.pack_bytes}};
  std::vector<Access> list;
  for (int p = 0; p < shape.item_depth / pack_depth; ++p)
    list.push_back({address_of(row + p, place.outer, c.pack_bytes, extent), c.pack_bytes});
  return list;
}

TEST(BankConflicts, TilesAreWrittenWithoutAny) {
  for (Case const& both : cases)
    for (plan::NamedPolicy const& named : plan::named_policies(both.main_loop, both.multiply, both.sum))
      for (Operand const& operand : operands_of(named.policy))
        for (Along along : {Along::mn, Along::k}) {
          Case const c = of_operand(both, operand);
          for (int width = 1; width * c.element_bytes <= 16; width *= 2) {
            bool const copies = c.main_loop == MainLoop::multistage;
            int const pack_depth = pack_depth_of(c.multiply), depth = named.policy.block_k;
            ItemShape const shape = item_shape(along, width, c.pack_bytes, pack_depth, depth, copies);
            int const items = depth / shape.item_depth * (operand.block / shape.item_outer);
            for (int first = 0; first + 32 <= items; first += 32) {
              std::vector<std::vector<Access>> by_store;
              for (int lane = 0; lane < 32; ++lane) {
                auto const place = item_place(along, shape, pack_depth, depth, operand.block, first + lane);
                auto const stores = stores_of(shape, place, along, pack_depth, c, operand.block);
                by_store.resize(stores.size());
                for (std::size_t s = 0; s < stores.size(); ++s) by_store[s].push_back(stores[s]);
              }
              for (auto const& lanes : by_store)
                EXPECT_LE(wavefronts(lanes), min_wavefronts(lanes))
                    << named.name << ' ' << name_of(c.sum) << " along "
                    << (along == Along::k ? "k" : "m or n") << " by " << width << ", " << c.element_bytes
                    << " bytes";
            }
          }
        }
}

TEST(BankConflicts, FragmentsOfDoublesAreReadWithoutAny) {
  for (plan::NamedPolicy const& named :
       plan::named_policies(MainLoop::multistage, Multiply::mma, DataType::f64, 8))
    for (Operand const& operand : operands_of(named.policy))
      for (int pack = 0; pack < named.policy.block_k / 4; ++pack) {
        std::vector<Access> lanes;
        for (int thread = 0; thread < 32; ++thread) {
          ThreadPlace const place = matrix_place(thread, named.policy.warps_m());
          lanes.push_back(
              {address_of(double_depth(pack, place.lane_n), 2 * place.lane_m, 8, operand.block), 16});
        }
        EXPECT_EQ(wavefronts(lanes), 4) << named.name << ' ' << pack;
      }
}

// As for warp_specialized. A deep A is read by two loads of 8 bytes instead, all in one half of the chunks.
template <Along along>
void expect_lines_of_doubles() {
  using Tile = TensorTile<f64, along, 32, 128>;
  using Lines = DoubleLines<Tile, false>;
  std::set<int> read;
  for (int first = 0; first < 128; first += 16)
    for (int octet = 0; octet < 4; ++octet)
      for (int i : {0, 1}) {
        std::vector<Access> lanes;
        for (int lane = 0; lane < 32; ++lane) {
          int const offset = Lines::deep ? Lines::offset(first, lane, octet % 2, 0) +
                                               octet / 2 * Tile::box_bytes + 8 * i * Tile::row_bytes
                                         : Lines::offset(first, lane, 0, i) + octet * 8 * Tile::row_bytes;
          lanes.push_back({offset, 16});
          EXPECT_TRUE(read.insert(offset).second) << first << ' ' << octet << ' ' << lane;
        }
        EXPECT_EQ(wavefronts(lanes), 4) << first << ' ' << octet << ' ' << i;
        for (Access& lane : lanes) lane.bytes = 8;
        if (Lines::deep) {
          EXPECT_EQ(wavefronts(lanes), 4) << first << ' ' << octet << ' ' << i;
        }
      }
  EXPECT_EQ(read.size(), sizeof(Tile) / 16);
}

TEST(BankConflicts, LinesOfDoublesHaveNone) {
  expect_lines_of_doubles<Along::k>();
  expect_lines_of_doubles<Along::mn>();
}

// The simultaneous reads of ldmatrix, eight rows of 16 bytes, and the writes of cp.async.
template <class Tile>
void expect_swizzle() {
  for (int first = 0; first + 8 <= Tile::rows; first += 8)
    for (int byte = 0; byte + 16 <= Tile::row_bytes; byte += 16) {
      std::vector<Access> read;
      for (int row = 0; row < 8; ++row) read.push_back({Tile::offset(first + row, byte), 16});
      EXPECT_EQ(wavefronts(read), 1) << first << ' ' << byte;
    }
  std::vector<Access> written;
  for (int lane = 0; lane < 32; ++lane)
    written.push_back({Tile::offset(lane / Tile::chunks % Tile::rows, lane % Tile::chunks * 16), 16});
  EXPECT_EQ(wavefronts(written), 4);
}

TEST(BankConflicts, SwizzledTilesHaveNone) {
  expect_swizzle<SwizzledTile<f16, Along::k, 32, 128>>();
  expect_swizzle<SwizzledTile<f16, Along::k, 64, 64>>();
  expect_swizzle<SwizzledTile<f16, Along::k, 16, 64>>();
  expect_swizzle<SwizzledTile<f16, Along::mn, 32, 128>>();
  expect_swizzle<SwizzledTile<f16, Along::mn, 32, 32>>();
  expect_swizzle<SwizzledTile<s8, Along::k, 64, 256>>();
  expect_swizzle<SwizzledTile<tf32, Along::k, 16, 128>>();
}

// The loads of the warps of a warpgroup from an M-major tile: every load of every warp, and that each
// register then holds the element that wgmma requires.
TEST(BankConflicts, OperandsOnTheirWayToRegistersHaveNone) {
  using Tile = TensorTile<tf32, Along::mn, 32, 128>;
  using Reader = OuterFragmentReader<Tile>;
  for (int first = 0; first < 128; first += 16)
    for (int load = 0; load < 4; ++load) {
      std::vector<Access> lanes;
      for (int lane = 0; lane < 32; ++lane) {
        lanes.push_back({Reader::offset(first, lane, load), 4});
        int const r = lane < 16 ? load : load ^ 2;
        EXPECT_EQ(outer_place(lane, load).outer, lane / 4 + r % 2 * 8);
        EXPECT_EQ(outer_place(lane, load).depth, lane % 4 + r / 2 * 4);
      }
      EXPECT_EQ(wavefronts(lanes), 1) << first << ' ' << load;
    }
}

// The stores of a warp's sums to a box of an M-major result, first and second columns in turn.
template <class Result>
void expect_stores_along_m() {
  constexpr GemmPolicy policy = [] {
    GemmPolicy p;
    p.block_m = 64, p.block_n = p.warp_n = 64, p.block_k = 32, p.warp_m = 16, p.thread_m = 2, p.thread_n = 16;
    p.main_loop = MainLoop::warp_specialized, p.multiply = Multiply::wgmma;
    return p;
  }();
  using Source = TensorSource<tf32, Along::k>;
  using Store = EpilogueScheduleOf<EpilogueSchedule::direct, WarpgroupProduct<policy, Source, Source, float>,
                                   IdentityEpilogue<float>, TensorDestination<Result, Along::mn>>;
  std::set<int> bytes;
  for (int n = 0; n < Store::columns; n += 8)
    for (int m : {0, 8})
      for (int second : {0, 1}) {
        std::vector<Access> lanes;
        for (int lane = 0; lane < 32; ++lane) {
          int const own = n + lane % 4 * 2, column = own + (Store::first_column(own) ^ second);
          lanes.push_back({Store::offset(m + lane / 4, column), static_cast<int>(sizeof(Result))});
          bytes.insert(lanes.back().address);
        }
        EXPECT_EQ(wavefronts(lanes), min_wavefronts(lanes)) << n << ' ' << m << ' ' << second;
      }
  EXPECT_EQ(static_cast<int>(bytes.size()), 16 * Store::columns);
}

TEST(BankConflicts, ResultsAlongMAreStoredWithoutAny) {
  expect_stores_along_m<float>();
  expect_stores_along_m<bf16>();
}

// The machine code of wmma.load: the address that lane l reads or, for ldmatrix, the 16-byte line for which
// it provides the address.
template <class Tile>
std::vector<Access> wmma_access(int line, int byte) {
  std::vector<Access> lanes;
  bool const deep = Tile::along == Along::k;
  if (Tile::size == 2 || (Tile::size == 1 && deep)) {
    for (int lane = 0; lane < 8; ++lane) lanes.push_back({(line + lane) * Tile::pitch + byte, 16});
    return lanes;
  }
  int const lines = Tile::size == 4 && deep ? 8 : Tile::size == 8 && deep ? 8 : 4;
  for (int lane = 0; lane < 32; ++lane) {
    int const across = lines == 8 ? lane / 4 : lane % 4, along = lines == 8 ? lane % 4 : lane / 4;
    int const step = Tile::size == 1 ? 4 : 1;  // four depths per register
    lanes.push_back({(line + across * step) * Tile::pitch + byte + along * Tile::size, Tile::size});
  }
  return lanes;
}

template <class Tile>
void expect_padded(int max_wavefronts) {
  for (int line = 0; line + 16 <= Tile::lines; line += 8)
    for (int byte = 0; byte + 8 * Tile::size <= Tile::line_bytes; byte += 16) {
      auto const lanes = wmma_access<Tile>(line, byte);
      EXPECT_EQ(wavefronts(lanes), max_wavefronts) << line << ' ' << byte;
    }
  for (int bytes : {16, 8, 4, 2, 1}) {
    if (bytes < Tile::size) continue;
    PieceShape const shape = piece_shape(Tile::line_bytes, Tile::padding, bytes);
    int const pieces = Tile::lines * Tile::line_bytes / bytes;
    std::vector<int> hits(static_cast<std::size_t>(pieces));
    for (int first = 0; first < pieces; first += 32) {
      std::vector<Access> lanes;
      for (int lane = 0; lane < 32; ++lane) {
        PiecePlace const place = piece_place(shape, first + lane);
        ++hits.at(static_cast<std::size_t>((place.line * Tile::line_bytes + place.byte) / bytes));
        lanes.push_back({place.line * Tile::pitch + place.byte, bytes});
      }
      EXPECT_EQ(wavefronts(lanes), min_wavefronts(lanes)) << bytes << ' ' << first;
    }
    EXPECT_EQ(hits, std::vector<int>(hits.size(), 1)) << bytes;
  }
}

TEST(BankConflicts, PaddedTilesHaveNone) {
  expect_padded<PaddedTile<f16, Along::k, 32, 128>>(1);
  expect_padded<PaddedTile<bf16, Along::k, 64, 64>>(1);
  expect_padded<PaddedTile<f16, Along::mn, 32, 128>>(1);
  expect_padded<PaddedTile<f16, Along::mn, 32, 32>>(1);
  expect_padded<PaddedTile<s8, Along::k, 64, 256>>(1);
  expect_padded<PaddedTile<tf32, Along::k, 16, 128>>(1);
  expect_padded<PaddedTile<tf32, Along::mn, 16, 64>>(1);
  expect_padded<PaddedTile<tf32, Along::mn, 16, 128>>(1);
  expect_padded<PaddedTile<f64, Along::k, 8, 64>>(2);  // 256 bytes
  expect_padded<PaddedTile<f64, Along::mn, 16, 128>>(2);
  expect_padded<PaddedTile<s8, Along::mn, 64, 128>>(2);  // the only layout that no padding helps
}

// wmma.store: two adjacent elements in eight rows by four columns.
TEST(BankConflicts, RowsOfFragmentsAreStoredWithoutAny) {
  for (int columns : {64, 128, 192, 256})
    for (int bytes : {2, 4, 8}) {
      std::vector<Access> lanes;
      for (int lane = 0; lane < 32; ++lane)
        lanes.push_back({(lane / 4 * padded_sums(columns) + lane % 4 * 2) * bytes, 2 * bytes});
      EXPECT_EQ(wavefronts(lanes), min_wavefronts(lanes)) << columns << ' ' << bytes;
    }
}

TEST(BankConflicts, AreCounted) {
  std::vector<Access> column, row;
  for (int lane = 0; lane < 32; ++lane) {
    column.push_back({lane * 128, 4});
    row.push_back({lane * 4, 4});
  }
  EXPECT_EQ(wavefronts(column), 32);
  EXPECT_EQ(wavefronts(row), 1);
}

TEST(Items, CoverEveryPackOfATileOnce) {
  for (Along along : {Along::mn, Along::k})
    for (int pack_depth : {1, 4})
      for (int width : {1, 2, 4, 8})
        for (int depth : {8 * pack_depth, 16 * pack_depth, 32 * pack_depth})
          for (bool copies : {false, true}) {
            int const outer = 96;
            ItemShape const shape = item_shape(along, width, 4, pack_depth, depth, copies);
            std::vector<int> hits(static_cast<std::size_t>(depth * outer));
            for (int i = 0; i < depth / shape.item_depth * (outer / shape.item_outer); ++i) {
              ItemPlace const place = item_place(along, shape, pack_depth, depth, outer, i);
              for (int d = 0; d < shape.item_depth; ++d)
                for (int o = 0; o < shape.item_outer; ++o)
                  ++hits[static_cast<std::size_t>((place.depth + d) * outer + place.outer + o)];
            }
            EXPECT_EQ(hits, std::vector<int>(hits.size(), 1)) << width << ' ' << depth << ' ' << copies;
          }
}

TEST(Partition, GivesEveryElementToOneThread) {
  for (auto [sum, multiply, pack_bytes] : {std::tuple{DataType::f32, Multiply::fma, 4},
                                           {DataType::f64, Multiply::fma, 8},
                                           {DataType::f16, Multiply::half2, 2}})
    for (plan::NamedPolicy const& named : plan::named_policies(MainLoop::double_buffered, multiply, sum)) {
      GemmPolicy const& p = named.policy;
      LinePartition const m{p.warp_m, p.lanes_m(), p.thread_m, vector_within(p.thread_m, 16 / pack_bytes)};
      LinePartition const n{p.warp_n, p.lanes_n(), p.thread_n, vector_within(p.thread_n, 16 / pack_bytes)};
      std::vector<int> hits(static_cast<std::size_t>(p.block_m * p.block_n));
      for (int thread = 0; thread < p.threads(); ++thread) {
        ThreadPlace const place = thread_place(thread, p.warps_m(), p.lanes_m(), p.lanes_n());
        for (int i = 0; i < p.thread_m; ++i)
          for (int j = 0; j < p.thread_n; ++j)
            ++hits[static_cast<std::size_t>(m.position(place.warp_m, place.lane_m, i) * p.block_n +
                                            n.position(place.warp_n, place.lane_n, j))];
      }
      EXPECT_EQ(hits, std::vector<int>(hits.size(), 1)) << named.name;
    }
}

}  // namespace
}  // namespace cosmati
