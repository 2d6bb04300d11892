// A matrix product by the emulated warp_specialized kernel: tensor maps of matrices surrounded by NaN, and
// the comparison with sums in f64.
#pragma once
#include <deque>

#include "cosmati/gemm/warp_specialized.h"
#include "src/plan/gemm/program/tensor_maps.h"
#include "tests/emulated/gemm_case.h"

namespace cosmati::emulated {

// The parts of a policy that the tests vary.
struct WarpgroupTiles {
  int block_m = 64, block_n = 32, warp_m = 16, warp_n = 32, stages = 2, cluster_m = 1, cluster_n = 1,
      cluster_k = 1, step_bytes = 128;
  bool ping_pong = false, whole = false;
  Partition partition = Partition::tiles;
  EpilogueSchedule epilogue = EpilogueSchedule::direct;
};
template <class Element>
constexpr GemmPolicy policy_of(WarpgroupTiles const& tiles) {
  GemmPolicy policy;
  policy.block_m = tiles.block_m, policy.block_n = tiles.block_n;
  policy.block_k = tiles.step_bytes / static_cast<int>(sizeof(Element));
  policy.warp_m = tiles.warp_m, policy.warp_n = tiles.warp_n;
  policy.thread_m = tiles.warp_m / 8, policy.thread_n = tiles.warp_n / 4;
  policy.stages = tiles.stages;
  policy.cluster_m = tiles.cluster_m, policy.cluster_n = tiles.cluster_n;
  policy.cluster_k = tiles.cluster_k;
  policy.ping_pong = tiles.ping_pong, policy.partition = tiles.partition, policy.full_tiles = tiles.whole;
  policy.epilogue = tiles.epilogue;
  policy.raster_width = 2;
  policy.main_loop = MainLoop::warp_specialized;
  policy.multiply = Multiply::wgmma;
  return policy;
}

template <class Element>
emulator::TiledTensor tiled_tensor(MatrixArguments const& matrix, Along along, int outer, int depth,
                                   int batch, int box_row, int box_rows) {
  int const size = static_cast<int>(sizeof(Element));
  bool const along_depth = along == Along::k;
  return {.address = matrix.data,
          .rank = 3,
          .element_bytes = size,
          .extent = {along_depth ? depth : outer, along_depth ? outer : depth, batch},
          .stride = {0, (along_depth ? matrix.row_stride : matrix.column_stride) * size,
                     matrix.batch_stride * size},
          .box = {box_row, box_rows, 1},
          .swizzle_bytes = swizzle_of(box_row * size) == Swizzle::none ? 0 : box_row * size};
}

template <class Element>
arch::TensorMap tensor_map(MatrixArguments const& matrix, Along along, int outer, int depth, int batch,
                           int box_row, int box_rows) {
  return emulator::encode_tensor_map(
      tiled_tensor<Element>(matrix, along, outer, depth, batch, box_row, box_rows));
}

struct WarpgroupSetting {
  int batch = 1, splits = 1;
  int clusters = 1;   // clusters that share all tiles
  int streamed = -1;  // streamed tiles; -1: according to tiles_to_stream()
  Along d = Along::k;
};

// Operands, result and parameters of one product by warp_specialized_kernel<Traits> with the sources
// Source<ElementA, along_a> and Source<ElementB, along_b>.
template <class Traits, class ElementA, Along along_a, class ElementB, Along along_b>
class WarpSpecializedCase {
  using Result = typename Traits::Destination::Element;
  static constexpr bool by_engine = is_same<typename Traits::Destination::Arguments, TensorArguments>;
  static constexpr int full(std::size_t size) { return 16 / static_cast<int>(size); }
  // Leading dimensions are multiples of this: no more than the source requires.
  template <class Source>
  static constexpr int width_of() {
    if constexpr (is_copied<Source>)
      return Source::width;
    else
      return full(sizeof(typename Source::Element));
  }

 public:
  WarpSpecializedCase(Size const& size, WarpgroupSetting const& setting)
      : size_(size),
        setting_(setting),
        a_(size.m, size.k, setting.batch, along_a, width_of<typename Traits::SourceA>(), 1, 1),
        b_(size.n, size.k, setting.batch, along_b, width_of<typename Traits::SourceB>(), 0, 2),
        d_(size.m, size.n, setting.batch, setting.d, full(sizeof(Result)), 1, 3),
        slots_(slots(size, setting), Traits::Result::Product::registers * 32 * Traits::warps) {
    constexpr GemmPolicy policy = Traits::policy;
    parameters.m = size.m, parameters.n = size.n, parameters.k = size.k;
    if (size.k > 0) {
      fill(parameters.a, a_, along_a, size.m, Traits::TileA::box);
      fill(parameters.b, b_, along_b, size.n, Traits::TileB::box);
    }
    if constexpr (by_engine) {
      using ToDestination = typename Traits::ToDestination;
      constexpr bool along_n = Traits::Destination::along == Along::k;
      parameters.d.map =
          tensor_map<Result>(d_.arguments(), Traits::Destination::along, size.m, size.n, setting.batch,
                             along_n ? ToDestination::columns : tensor_store_rows,
                             along_n ? tensor_store_rows : ToDestination::columns);
    } else {
      parameters.d = d_.arguments();
    }
    parameters.schedule.batch = setting.batch;
    parameters.schedule.splits = setting.splits;
    if (policy.partition == Partition::stream_k)
      parameters.schedule.streamed =
          setting.streamed >= 0
              ? setting.streamed
              : static_cast<int>(tiles_to_stream(tiles(size) * setting.batch, setting.clusters));
    slots_.fill(parameters.schedule);
  }

  void launch() {
    emulator::launch_kernel_clusters<&warp_specialized_kernel<Traits>>(
        {setting_.clusters * Traits::cluster}, {Traits::cluster}, Traits::threads,
        sizeof(typename Traits::SharedStorage), parameters, 1);
    EXPECT_TRUE(slots_.is_clean());
  }

  // Compares every element of d with expected(sum, m, n).
  template <class Expected>
  void expect(Expected const& expected) {
    std::string const text = text_of(size_, {.batch = setting_.batch, .splits = setting_.splits});
    int wrong = 0;
    std::vector<double> row(static_cast<std::size_t>(size_.k)), columns(row.size() * std::size_t(size_.n));
    for (int i = 0; i < setting_.batch; ++i) {
      for (std::size_t at = 0; at < columns.size(); ++at)
        columns[at] = b_.value(i, static_cast<int>(at) / size_.k, static_cast<int>(at) % size_.k);
      for (int m = 0; m < size_.m; ++m) {
        for (int k = 0; k < size_.k; ++k) row[static_cast<std::size_t>(k)] = a_.value(i, m, k);
        for (int n = 0; n < size_.n; ++n) {
          double sum = 0;
          double const* const column = columns.data() + n * size_.k;
          for (std::size_t k = 0; k < row.size(); ++k) sum += row[k] * column[k];
          double const right = static_cast<double>(convert<Result>(expected(sum, m, n)));
          if (!(d_.value(i, m, n) == right) && ++wrong <= 3)
            ADD_FAILURE() << text << ": d(" << i << ", " << m << ", " << n << ") is " << d_.value(i, m, n)
                          << ", not " << right;
        }
      }
    }
    EXPECT_EQ(wrong, 0) << text;
    EXPECT_EQ(d_.trespasses(size_.m, size_.n, setting_.batch), 0) << text;
  }

  typename Traits::Params parameters;

 private:
  static Index tiles(Size const& size) {  // in clusters
    constexpr GemmPolicy policy = Traits::policy;
    return ceiling_divide(size.m, policy.block_m * policy.cluster_m) *
           ceiling_divide(size.n, policy.block_n * policy.cluster_n);
  }
  static Index slots(Size const& size, WarpgroupSetting const& setting) {
    return Index{Traits::cluster} * (Traits::policy.partition == Partition::stream_k
                                         ? setting.clusters
                                         : tiles(size) * setting.batch * (setting.splits - 1));
  }

  template <class Element>
  void fill(TensorArguments& arguments, Matrix<Element>& matrix, Along along, int outer,
            TensorBox const& box) {
    arguments.map = tensor_map<Element>(matrix.arguments(), along, outer, size_.k, setting_.batch, box.row,
                                        lines_of_copy(box, along, outer));
  }
  template <class Element>
  void fill(AddressedTensors& arguments, Matrix<Element>& matrix, Along along, int outer,
            TensorBox const& box) {
    MatrixArguments const all = matrix.arguments();
    arguments.map = emulator::encode_tensor_map(plan::address_space(
        tiled_tensor<Element>(all, along, outer, size_.k, 1, box.row, lines_of_copy(box, along, outer))));
    std::vector<void*>& pointers = pointers_.emplace_back();
    for (int i = 0; i < setting_.batch; ++i)
      pointers.push_back(static_cast<Element*>(all.data) + i * all.batch_stride);
    arguments.pointers = pointers.data();
    arguments.extent = outer;
  }
  template <class Element>
  void fill(MatrixArguments& arguments, Matrix<Element>& matrix, Along, int, TensorBox const&) {
    arguments = matrix.arguments();
  }

  Size size_;
  WarpgroupSetting setting_;
  Matrix<ElementA> a_;
  Matrix<ElementB> b_;
  Matrix<Result> d_;
  Slots<typename Traits::Product::Register> slots_;
  std::deque<std::vector<void*>> pointers_;  // to the matrices of operands, if the kernel reads pointers
};

// The kernel of one pair of operands, run for several sizes.
template <class ElementA, Along along_a, class ElementB, Along along_b, class Sum,
          class Maps = TensorArguments>
struct Warpgroups {
  template <WarpgroupTiles tiles, class Destination, class Epilogue>
  using Traits = WarpSpecializedTraits<policy_of<ElementA>(tiles), TensorSource<ElementA, along_a, Maps>,
                                       TensorSource<ElementB, along_b, Maps>, Sum, Epilogue, Destination>;
  template <class OfCase>
  using Case = WarpSpecializedCase<OfCase, ElementA, along_a, ElementB, along_b>;

  template <WarpgroupTiles tiles, class Destination>
  static void expect_product(Size const& size, WarpgroupSetting const& setting = {}) {
    Case<Traits<tiles, Destination, IdentityEpilogue<Sum>>> product(size, setting);
    product.launch();
    product.expect([](double sum, int, int) { return sum; });
  }
  // The callable may read memory at any m and n in D.
  template <WarpgroupTiles tiles, class Destination, class Callable>
  static void expect_values(Callable const& callable, Size const& size,
                            WarpgroupSetting const& setting = {}) {
    Case<Traits<tiles, Destination, CallableEpilogue<Sum, Callable>>> product(size, setting);
    product.parameters.epilogue = callable;
    product.launch();
    product.expect([&](double sum, int m, int n) { return callable(static_cast<Sum>(sum), m, n); });
  }
};

}  // namespace cosmati::emulated
