// Large products whose epilogue oneDNN cannot apply: single-threaded matmul primitives on tiles that fit in
// the L2 cache, each followed by our own epilogue evaluator.
#include <array>
#include <optional>

#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/gemm/blas_form.h"
#include "src/backend/cpu/gemm/tile_epilogue.h"
#include "src/backend/cpu/onednn/kernels.h"
#include "src/backend/cpu/onednn/recipe.h"
#include "src/backend/cpu/runtime/cache.h"

namespace cosmati::cpu::onednn {
namespace {

// Two tiles per thread, so that other threads can take over tiles of one that is delayed.
Index tiles_wanted(int threads) { return 2 * threads; }

// The largest tiles that give enough tiles and whose sums fit in the L2 cache.
TileGrid choose_grid(OrientedGemm const& product, Device const& device) {
  GemmProblem const& p = product.problem;
  TileGrid grid;
  for (auto const& [rows, columns] :
       {std::pair<Index, Index>{256, 1024}, {128, 1024}, {128, 512}, {64, 512}}) {
    bool const minimum = rows == 64;
    if (!minimum && rows * columns * Index{sizeof(float)} > second_cache_bytes(device)) continue;
    grid = make_tile_grid(p.batch(), p.m(), p.n(), rows, columns);
    if (grid.size() >= tiles_wanted(device.threads)) break;
  }
  return grid;
}

// A tile reads its part of the right operand in place, or oneDNN packs that part for each tile. Packing the
// full operand beforehand costs a pass through memory. It pays off if the operand is large and its rows are
// far apart: because its columns are contiguous, or because the row pitch is a multiple of the page size, so
// that rows conflict in the cache.
bool is_packed(GemmProblem const& p) {
  constexpr Index min_elements = Index{1} << 21, page = 4096;
  auto const& stride = p.b.layout.stride;
  bool const far = stride[2] != 1 || stride[1] * size_of(p.b.type) % page == 0;
  return far && p.n() * p.k() >= min_elements;
}

std::string violates_types(GemmProblem const& problem, Device const& device) {
  DataType const a = problem.a.type, b = problem.b.type;
  bool const bf16 = a == DataType::bf16 && device.avx512_bf16;
  if (a == b && (a == DataType::f32 || bf16)) return {};
  return std::string("a is ") + name_of(a) + ", b is " + name_of(b) +
         "; both must be f32, or bf16 on processors with AVX-512 BF16";
}

std::string violates_strides(GemmProblem const& problem, Device const&) {
  BlasOperand operand;
  for (TensorDescription const* t : {&problem.a, &problem.b})
    if (!read_blas_operand(*t, operand))
      return std::string(t == &problem.a ? "a" : "b") + " is " + to_string(*t) +
             "; rows or columns must be contiguous and not overlap";
  return {};
}

std::string violates_extents(GemmProblem const& problem, Device const&) {
  if (problem.batch() != 1) return "the batch is " + std::to_string(problem.batch()) + "; it must be 1";
  return problem.k() > 0 ? "" : "k is 0; it must be at least 1";
}

// Rejects products for which a second pass over the result is cheaper than products in tiles.
std::string violates_worth(GemmProblem const& problem, Device const& device) {
  constexpr Index min_rows = 512, min_columns = 256;
  OrientedGemm const product(problem);
  Index const rows = product.problem.m(), columns = product.problem.n();
  if (rows < min_rows || columns < min_columns)
    return "d has " + std::to_string(rows) + " by " + std::to_string(columns) +
           " elements, the contiguous ones last; tiles pay off starting at " + std::to_string(min_rows) +
           " by " + std::to_string(min_columns);
  BlasOperand left;
  if (read_blas_operand(product.problem.a, left); left.letter == 'T')
    return std::string(product.transposed ? "rows of b" : "columns of a") +
           " are contiguous: oneDNN would transpose its part for each tile; tiles pay off where k is "
           "contiguous";
  Index const wanted = tiles_wanted(device.threads), tiles = choose_grid(product, device).size();
  if (tiles >= wanted) return {};
  return std::to_string(tiles) + " tiles are too few for " + std::to_string(device.threads) +
         " threads, which require " + std::to_string(wanted);
}

// oneDNN packs operands in advance only for its AVX-512 kernels; other kernels would repack them for each
// tile.
std::string violates_level(GemmProblem const&, Device const& device) {
  return device.avx512 ? "" : "this processor lacks AVX-512, without which oneDNN packs no operands";
}

std::string violates_need(GemmProblem const& problem, Device const& device) {
  if (!matmul_applies_epilogue(problem, device)) return {};
  return "onednn_matmul applies the epilogue " + problem.epilogue.expression.text() + " by itself";
}

// The descriptor of a matrix; the stride along an extent of 1 is replaced by one that oneDNN recognizes.
Descriptor matrix(DataType type, Index rows, Index columns, Layout const& layout) {
  Index row = layout.stride[1], column = layout.stride[2];
  if (layout.extent(2) == 1) column = row == 1 ? rows : 1;
  if (layout.extent(1) == 1) row = column == 1 ? columns : 1;
  return {{rows, columns}, kind_of(type), {row, column}};
}

class TiledKernel final : public HostKernel<GemmProblem> {
 public:
  TiledKernel(GemmProblem const& problem, Device const& device)
      : product_(problem),
        threads_(device.threads),
        grid_(choose_grid(product_, device)),
        epilogue_(product_, grid_, DataType::f32, false),
        packs_(is_packed(product_.problem)) {
    auto const alone = one_maker_at_a_time();
    Index const last_row = (grid_.down() - 1) * grid_.tile_m,
                last_column = (grid_.across() - 1) * grid_.tile_n;
    for (Index const column : {Index{0}, last_column}) {
      Index const columns = std::min(grid_.tile_n, grid_.n - column);
      Descriptor weights = packs_ ? any_layout(right(columns)) : right(columns);
      for (Index const row : {Index{0}, last_row})
        add_product({0, row, column, std::min(grid_.tile_m, grid_.m - row), columns}, weights);
      if (packs_) add_packing(columns, weights);
    }
    for (auto const& program : products_)
      if (program) part_bytes_ = std::max(part_bytes_, program->workspace_bytes());
    part_bytes_ = sums_bytes() + round_up(std::max(part_bytes_, epilogue_.workspace_bytes()));
    panels_bytes_ = static_cast<std::size_t>(grid_.across()) * panel_bytes_;
    for (auto const& program : packing_)
      if (program) packing_bytes_ = std::max(packing_bytes_, program->workspace_bytes());
  }

  void create() {
    auto const alone = one_maker_at_a_time();
    ThreadCount const threads(threads_);
    for (auto& program : packing_)
      if (program) program->create();
    ThreadCount const one(1);
    for (auto& program : products_)
      if (program) program->create();
  }

  // The packed panels, followed by memory shared by packing and by the threads' tiles, which do not overlap
  // in time.
  std::size_t workspace_bytes() const {
    return panels_bytes_ + std::max(packing_bytes_, static_cast<std::size_t>(threads_) * part_bytes_);
  }

  void run(GemmProblem::Arguments const& given, std::byte* workspace) const override {
    GemmProblem::Arguments const arguments = product_.arguments(given);
    if (packs_) pack(arguments, workspace);
    for_each_tile(grid_, threads_, [&](int part, Tile const& tile) {
      std::byte* const sums = workspace + panels_bytes_ + static_cast<std::size_t>(part) * part_bytes_;
      std::byte* const scratch = sums + sums_bytes();
      TensorDescription const& left = product_.problem.a;
      std::array<void*, 3> const pointers{
          pointer_to(left.type, arguments.a, tile.row * left.layout.stride[1]),
          packs_ ? panel(workspace, tile.column) : given_panel(arguments, tile.column), sums};
      ThreadCount const one(1);
      products_[shape_of(tile)]->run(pointers, scratch);
      epilogue_.run(tile, sums, arguments, scratch);
    });
  }

 private:
  static void* pointer_to(DataType type, void const* data, Index offset) {
    return const_cast<std::byte*>(element(type, data, offset));
  }
  std::size_t shape_of(Tile const& tile) const {
    return (tile.rows != grid_.tile_m ? 2u : 0u) + (tile.columns != grid_.tile_n ? 1u : 0u);
  }
  std::size_t sums_bytes() const {
    return round_up(static_cast<std::size_t>(grid_.tile_m * grid_.tile_n) * sizeof(float));
  }
  std::byte* panel(std::byte* workspace, Index column) const {
    return workspace + static_cast<std::size_t>(column / grid_.tile_n) * panel_bytes_;
  }
  void* given_panel(GemmProblem::Arguments const& arguments, Index column) const {
    TensorDescription const& b = product_.problem.b;
    return pointer_to(b.type, arguments.b, column * b.layout.stride[2]);
  }
  // The first `columns` columns of the right operand, in its own layout.
  Descriptor right(Index columns) const {
    TensorDescription const& b = product_.problem.b;
    return matrix(b.type, product_.problem.k(), columns, b.layout);
  }

  dnnl::matmul::primitive_desc product(Index rows, Descriptor const& weights) const {
    GemmProblem const& p = product_.problem;
    Descriptor const sums({rows, weights.dims()[1]}, Kind::f32, Tag::ab);
    ThreadCount const one(1);
    dnnl::matmul::primitive_desc const primitive(
        dnnl::matmul::desc(matrix(p.a.type, rows, p.k(), p.a.layout), weights, sums), user_scratchpad(),
        engine());
    if (is_slow(primitive))
      throw Unsupported("oneDNN has only its reference loops for tiles of these strides");
    return primitive;
  }

  // `weights` in any layout is replaced by the layout that oneDNN chose.
  void add_product(Tile const& tile, Descriptor& weights) {
    auto const primitive = product(tile.rows, weights);
    weights = primitive.weights_desc();
    auto& program = products_[shape_of(tile)];
    if (program) return;
    program.emplace();
    auto const left = program->argument(primitive.src_desc()), right = program->argument(weights),
               sums = program->argument(primitive.dst_desc());
    program->add(primitive, {{DNNL_ARG_SRC, left}, {DNNL_ARG_WEIGHTS, right}, {DNNL_ARG_DST, sums}});
  }

  void add_packing(Index columns, Descriptor const& packed) {
    auto& program = packing_[columns != grid_.tile_n ? 1 : 0];
    if (program) return;
    program.emplace();
    ThreadCount const threads(threads_);
    auto const from = program->argument(right(columns));
    program->copy_back(from, program->argument(packed));
    panel_bytes_ = std::max(panel_bytes_, round_up(packed.get_size()));
  }

  void pack(GemmProblem::Arguments const& arguments, std::byte* workspace) const {
    ThreadCount const threads(threads_);
    for (Index column = 0; column < grid_.n; column += grid_.tile_n) {
      std::array<void*, 2> const pointers{given_panel(arguments, column), panel(workspace, column)};
      packing_[grid_.n - column < grid_.tile_n ? 1 : 0]->run(pointers, workspace + panels_bytes_);
    }
  }

  OrientedGemm product_;
  int threads_;
  TileGrid grid_;
  TileEpilogue epilogue_;
  bool packs_;
  std::array<std::optional<Program>, 2> packing_;   // for full panels and for the last one
  std::array<std::optional<Program>, 4> products_;  // by shape_of
  std::size_t panel_bytes_ = 0, panels_bytes_ = 0, packing_bytes_ = 0, part_bytes_ = 0;
};

std::string violates_build_tiles(GemmProblem const& problem, Device const& device) {
  try {
    TiledKernel(problem, device);
    return {};
  } catch (Unsupported const& reason) {
    return reason.what();
  } catch (dnnl::error const& error) {
    return std::string("oneDNN has no implementation for tiles of these types and layouts (") + error.what() +
           ")";
  }
}

}  // namespace

Candidate<GemmProblem> tiled_matmul_candidate() {
  return {"onednn_tiled",
          {{violates_size<GemmProblem>},
           {violates_types},
           {violates_strides},
           {violates_extents},
           {violates_level, true},
           {violates_worth, true},
           {violates_need, true},
           {violates_build_tiles}},
          [](GemmProblem const& problem, Device const& device) {
            return TiledKernel(problem, device).workspace_bytes();
          },
          [](Plan<GemmProblem> const& plan) -> std::unique_ptr<Kernel<GemmProblem>> {
            auto kernel = std::make_unique<TiledKernel>(plan.problem, plan.device);
            kernel->create();
            return kernel;
          }};
}

}  // namespace cosmati::cpu::onednn
