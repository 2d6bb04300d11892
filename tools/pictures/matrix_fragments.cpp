// Fragments and sums of mma.sync, determined by running the kernels' own functions in the emulator: tiles are
// filled with the numbers of their elements, and with factors whose products number the sums.
#include <cstring>
#include <vector>

#include "cosmati/arch/memory.h"
#include "cosmati/gemm/source.h"
#include "cosmati/gemm/traits.h"
#include "tools/pictures/picture.h"
#include "tools/pictures/pictures.h"

namespace cosmati::pictures {
namespace {

constexpr int shown_lane = 5;

// The calls of a kernel with this `Path`, for one warp. The tiles of A and B are K-major.
template <class Element_, class Sum_, GemmPolicy policy_>
struct Case {
  using Element = Element_;
  using Sum = Sum_;
  static constexpr GemmPolicy policy = policy_;
  using Source = StridedSource<Element, Along::k, 16 / static_cast<int>(sizeof(Element))>;
  using Path = MultiplyPath<policy, Source, Source, Sum>;
  static constexpr int depth = policy.block_k, packs = Path::packs_deep;
  static constexpr int rows = policy.block_m, columns = policy.block_n;
  struct Storage {
    typename Path::TileA a;
    typename Path::TileB b;
  };
};

// An element in shared memory, and its number in a register.
template <class Tile>
void put(Tile& tile, int outer, int k, typename Tile::Element element) {
  std::memcpy(tile.at(outer, k * static_cast<int>(sizeof element)), &element, sizeof element);
}
template <int depth, int outer_>
void put(SharedTile<f64, depth, outer_>& tile, int outer, int k, f64 element) {
  tile.pack[k][outer] = element;
}
template <class Element>
Element numbered(int number) {
  Element element{};
  if constexpr (is_same<Element, f64>)
    element = number;
  else
    std::memcpy(static_cast<void*>(&element), &number, sizeof element);
  return element;
}
template <class Element>
int number_of(void const* at) {
  if constexpr (is_same<Element, f64>) {
    f64 value;
    std::memcpy(&value, at, sizeof value);
    return static_cast<int>(value);
  }
  int number = 0;
  std::memcpy(&number, at, sizeof(Element));
  return number;
}

template <class C>
struct Found {
  typename C::Path::Fragment* fragments;  // (pack, lane)
  int* sums;                              // (lane, row of the lane, column of the lane): number of the sum
};

template <class C>
COSMATI_KERNEL(32, 1)
find(COSMATI_PARAMETER Found<C> found) {
  using Path = typename C::Path;
  using Element = typename C::Element;
  auto& storage = arch::shared_storage<typename C::Storage>();
  int const lane = arch::thread();
  ThreadPlace const place = Path::place(lane);
  for (int i = lane; i < C::rows * C::depth; i += 32)
    put(storage.a, i / C::depth, i % C::depth, numbered<Element>(i));
  for (int i = lane; i < C::columns * C::depth; i += 32)
    put(storage.b, i / C::depth, i % C::depth, numbered<Element>(i));
  arch::block_barrier();
  for (int pack = 0; pack < C::packs; ++pack)
    Path::read(found.fragments[pack * 32 + lane], storage.a, storage.b, pack, place);
  arch::block_barrier();
  // Makes sum (m, n) equal 64 m + n: all depths but 0 and 1 are zero.
  for (int i = lane; i < C::rows * C::depth; i += 32)
    put(storage.a, i / C::depth, i % C::depth,
        Element(static_cast<double>(i % C::depth == 0 ? i / C::depth : i % C::depth == 1)));
  for (int i = lane; i < C::columns * C::depth; i += 32)
    put(storage.b, i / C::depth, i % C::depth,
        Element(static_cast<double>(i % C::depth == 0   ? 64
                                    : i % C::depth == 1 ? i / C::depth
                                                        : 0)));
  arch::block_barrier();
  typename Path::Product product;
  for (int pack = 0; pack < C::packs; ++pack) {
    typename Path::Fragment fragment;
    Path::read(fragment, storage.a, storage.b, pack, place);
    product.add_product(fragment);
  }
  for (int i = 0; i < C::policy.thread_m; ++i)
    for (int j = 0; j < C::policy.thread_n; ++j)
      found.sums[(lane * C::policy.thread_m + i) * C::policy.thread_n + j] =
          static_cast<int>(product.get(i, j));
}

struct Form {
  int cell_width, cell_height;
  int per_cell;  // elements per cell of a fragment: a 4-byte register, or one double
  int top;       // y coordinate of B
};

class Drawing {
 public:
  Drawing(Picture& picture, Form const& form) : picture_(picture), form_(form) {}

  // Element (row, column of cells) of the matrix at (x, y).
  void cell(int x, int y, int row, int column, int lane, std::string const& register_name, bool other_pack) {
    picture_.cell(x + column * form_.cell_width, y + row * form_.cell_height, form_.cell_width,
                  form_.cell_height,
                  lane == shown_lane  ? Fill::dark
                  : other_pack        ? Fill::warm
                  : lane / 4 % 2 == 1 ? Fill::pale
                                      : Fill::white,
                  lane == shown_lane ? register_name : std::to_string(lane));
  }

 private:
  Picture& picture_;
  Form const& form_;
};

template <class C>
void draw(Picture& picture, Form const& form) {
  using Element = typename C::Element;
  using Fragment = typename C::Path::Fragment;
  std::vector<Fragment> fragments(static_cast<std::size_t>(C::packs * 32));
  std::vector<int> sums(static_cast<std::size_t>(32 * C::policy.thread_m * C::policy.thread_n));
  emulator::launch_kernel<find<C>>({1}, 32, static_cast<unsigned>(sizeof(typename C::Storage)),
                                   Found<C>{fragments.data(), sums.data()});
  int const cells_deep = C::depth / form.per_cell;
  int const left_a = 42, top_b = form.top, left_d = left_a + cells_deep * form.cell_width + 34,
            top_a = top_b + cells_deep * form.cell_height + 34;
  Drawing drawing(picture, form);
  constexpr std::size_t cell_bytes = is_same<Element, f64> ? 8 : 4;
  for (int pack = 0; pack < C::packs; ++pack)
    for (int lane = 0; lane < 32; ++lane) {
      Fragment const& fragment = fragments[static_cast<std::size_t>(pack * 32 + lane)];
      auto const draw_register = [&](void const* at, bool is_a, std::string const& name) {
        int const number = number_of<Element>(at), outer = number / C::depth,
                  column = number % C::depth / form.per_cell;
        if (is_a)
          drawing.cell(left_a, top_a, outer, column, lane, name, pack > 0);
        else
          drawing.cell(left_d, top_b, column, outer, lane, name, pack > 0);
      };
      // Draws the registers of one instruction; a fragment may hold those of several.
      auto const* const a = reinterpret_cast<unsigned char const*>(&fragment.a);
      for (std::size_t r = 0; r < sizeof(fragment.a[0]) / cell_bytes; ++r)
        draw_register(a + r * cell_bytes, true, "a" + std::to_string(r));
      auto const* const b = reinterpret_cast<unsigned char const*>(&fragment.b);
      constexpr std::size_t of_one = sizeof(fragment.b[0]) / cell_bytes;
      for (std::size_t r = 0; r < sizeof(fragment.b) / cell_bytes; ++r)
        draw_register(b + r * cell_bytes, false, "b" + std::to_string(r % of_one));
    }
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < C::policy.thread_m; ++i)
      for (int j = 0; j < C::policy.thread_n; ++j) {
        int const sum =
            sums[static_cast<std::size_t>((lane * C::policy.thread_m + i) * C::policy.thread_n + j)];
        drawing.cell(left_d, top_a, sum / 64, sum % 64, lane, std::to_string(i) + std::to_string(j), false);
      }
  int const rows = C::rows * form.cell_height, columns = C::columns * form.cell_width,
            deep_x = cells_deep * form.cell_width, deep_y = cells_deep * form.cell_height;
  picture.frame(left_a, top_a, deep_x, rows)
      .frame(left_d, top_b, columns, deep_y)
      .frame(left_d, top_a, columns, rows);
  for (int row = 0; row < C::rows; ++row)
    picture.text(left_a - 5, top_a + row * form.cell_height + form.cell_height / 2 + 4, Anchor::end,
                 std::to_string(row), Size::small);
  for (int column = 0; column < C::columns; ++column)
    picture.text(left_d + column * form.cell_width + form.cell_width / 2, top_b - 5, Anchor::middle,
                 std::to_string(column), Size::small);
  for (int cell = 0; cell < cells_deep; ++cell) {
    picture.text(left_a + cell * form.cell_width + form.cell_width / 2, top_a - 5, Anchor::middle,
                 std::to_string(cell * form.per_cell), Size::small);
    picture.text(left_d - 5, top_b + cell * form.cell_height + form.cell_height / 2 + 4, Anchor::end,
                 std::to_string(cell * form.per_cell), Size::small);
  }
  picture.text(left_a, top_a - 18, Anchor::start, "A: rows m, depths k");
  picture.text(left_d, top_b - 18, Anchor::start, "B: depths k, columns n");
  picture.text(left_d, top_a - 8, Anchor::start, "D: rows m, columns n");
}

}  // namespace

std::string matrix_fragments_f16() {
  using C = Case<f16, f32,
                 GemmPolicy{.block_m = 16,
                            .block_n = 16,
                            .block_k = 16,
                            .warp_m = 16,
                            .warp_n = 16,
                            .thread_m = 2,
                            .thread_n = 4,
                            .main_loop = MainLoop::multistage,
                            .multiply = Multiply::mma}>;
  Picture picture("mma.sync of f16 and bf16, m16n8k16: two side by side",
                  "Which lane of a warp holds which elements of the operands A and B and which sums D.");
  picture.text(12, 40, Anchor::start,
               "A cell: the lane. Depths k and k + 1 share a register. Dark: lane 5's registers, and its "
               "sums: row, column.");
  draw<C>(picture, {19, 17, 2, 84});
  return picture.finish(540, 550);
}

std::string matrix_fragments_tf32() {
  using C = Case<tf32, f32,
                 GemmPolicy{.block_m = 16,
                            .block_n = 16,
                            .block_k = 8,
                            .warp_m = 16,
                            .warp_n = 16,
                            .thread_m = 2,
                            .thread_n = 4,
                            .main_loop = MainLoop::multistage,
                            .multiply = Multiply::mma}>;
  Picture picture("mma.sync of tf32, m16n8k8: two side by side",
                  "Which lane of a warp holds which elements of the operands A and B and which sums D.");
  picture.text(
      12, 40, Anchor::start,
      "A cell: the lane. An element is a register. Dark: lane 5's registers, and its sums: row, column.");
  draw<C>(picture, {19, 17, 1, 84});
  return picture.finish(540, 550);
}

std::string matrix_fragments_f64() {
  using C = Case<f64, f64,
                 GemmPolicy{.block_m = 16,
                            .block_n = 16,
                            .block_k = 8,
                            .warp_m = 16,
                            .warp_n = 16,
                            .thread_m = 2,
                            .thread_n = 4,
                            .main_loop = MainLoop::multistage,
                            .multiply = Multiply::mma}>;
  Picture picture("mma.sync of f64, m16n8k4: two side by side, two in depth",
                  "Which lane of a warp holds which elements of the operands A and B and which sums D.");
  picture.text(12, 40, Anchor::start,
               "A cell: the lane. Orange: the second product in depth. Dark: lane 5's registers, and its "
               "sums: row, column.");
  draw<C>(picture, {19, 17, 1, 84});
  return picture.finish(540, 550);
}

}  // namespace cosmati::pictures
