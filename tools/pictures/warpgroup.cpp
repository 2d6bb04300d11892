// The operand descriptors of wgmma, and the registers that hold its sums.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "cosmati/gemm/warpgroup_product.h"
#include "tools/pictures/picture.h"
#include "tools/pictures/pictures.h"

namespace cosmati::pictures {
namespace {

constexpr unsigned start_address = 0x2400;  // start address in the descriptors shown

template <class Tile>
unsigned long long descriptor_of() {
  return matrix_descriptor(
      start_address, strides_of_tile(Tile::box.rows, Tile::along == Along::mn, Tile::swizzle), Tile::swizzle);
}

// The lowest and the highest bit of a field.
struct Bits {
  int first = 64, last = -1;
};
Bits bits_of(unsigned long long mask) {
  Bits bits;
  for (int bit = 0; bit < 64; ++bit)
    if ((mask >> bit & 1) != 0) bits = {bit < bits.first ? bit : bits.first, bit};
  return bits;
}

void draw_fields(Picture& picture, int y) {
  constexpr int left = 14, width = 8, all = 0x3ffff;
  unsigned long long base = 0;
  for (int bit = 0; bit < 64; ++bit)
    if (decoded(1ULL << bit).base_offset != 0) base |= 1ULL << bit;
  struct Field {
    unsigned long long mask;
    char const* name;
    char const* below;
  };
  Field const fields[] = {
      {matrix_descriptor(all, {0, 0}, Swizzle::none), "start / 16", ""},
      {matrix_descriptor(0, {all, 0}, Swizzle::none), "leading / 16", ""},
      {matrix_descriptor(0, {0, all}, Swizzle::none), "stride / 16", ""},
      {base, "", "base offset"},
      {matrix_descriptor(0, {0, 0}, Swizzle::bytes128) | matrix_descriptor(0, {0, 0}, Swizzle::bytes64), "",
       "swizzle"}};
  picture.cell(left, y, 64 * width, 22, Fill::white);
  int shade = 0;
  for (Field const& field : fields) {
    Bits const bits = bits_of(field.mask);
    int const x = left + (63 - bits.last) * width, extent = (bits.last - bits.first + 1) * width;
    picture.cell(x, y, extent, 22, shade++ % 2 == 0 ? Fill::pale : Fill::warm, field.name);
    bool const at_edge = bits.last == 63;
    int const at = at_edge ? x : x + extent / 2;
    Anchor const anchor = at_edge ? Anchor::start : Anchor::middle;
    picture.text(at, y - 5, anchor, fmt::format("{} to {}", bits.last, bits.first), Size::small);
    if (*field.below != '\0') picture.text(at, y + 34, anchor, field.below, Size::small);
  }
}

template <class Tile>
void table_row(Picture& picture, int y, char const* what) {
  MatrixDescriptor const told = decoded(descriptor_of<Tile>());
  std::string const swizzle =
      told.swizzle == Swizzle::none ? "none" : fmt::format("{} B", span_of(told.swizzle));
  std::string const cells[] = {what,
                               swizzle,
                               std::to_string(told.strides.leading),
                               std::to_string(told.strides.stride),
                               fmt::format("+{}", Tile::pack_offset(1) * 16),
                               fmt::format("+{}", Tile::outer_offset(64) * 16),
                               fmt::format("{:016x}", descriptor_of<Tile>())};
  constexpr int ends[] = {12, 218, 266, 312, 360, 412, 530};
  for (int i = 0; i < 7; ++i)
    picture.text(ends[i], y, i == 0 ? Anchor::start : Anchor::end, cells[i], Size::small);
}

// Draws blocks of eight lines of one span, with each one's offset in bytes from the start.
template <class Tile>
void draw_blocks(Picture& picture, int x, int y, char const* lines, char const* across) {
  constexpr int width = 84, height = 18;
  int const span = span_of(Tile::swizzle), spans = Tile::box.boxes;
  for (int column = 0; column < spans; ++column)
    for (int row = 0; row < Tile::box.rows / 8; ++row)
      picture.cell(x + column * width, y + row * height, width, height,
                   column + row == 0         ? Fill::dark
                   : row == 0                ? Fill::warm
                   : row == 1 && column == 0 ? Fill::pale
                                             : Fill::white,
                   fmt::format("+{}", tile_offset(8 * row, column * span, Tile::box.rows, Tile::swizzle)));
  picture.text(x - 4, y + 12, Anchor::end, std::string(lines) + " 0 to 7", Size::small);
  picture.text(x - 4, y + height + 12, Anchor::end, "8 to 15", Size::small);
  for (int column = 0; column < spans; ++column)
    picture.text(x + column * width + width / 2, y - 5, Anchor::middle,
                 fmt::format("{} {} to {}", across, column * Tile::box.row, (column + 1) * Tile::box.row - 1),
                 Size::small);
}

}  // namespace

std::string matrix_descriptors() {
  Picture picture(
      "The 64-bit descriptor of an operand of wgmma",
      "The fields of a matrix descriptor, their values for some tiles, and where the strides point.");
  draw_fields(picture, 50);
  int y = 108;
  constexpr char const* heads[] = {
      "tile (depth x outer)", "swizzle", "leading", "stride", "32 B of k", "64 outer", "descriptor"};
  constexpr int ends[] = {12, 218, 266, 312, 360, 412, 530};
  for (int i = 0; i < 7; ++i)
    picture.text(ends[i], y, i == 0 ? Anchor::start : Anchor::end, heads[i], Size::small);
  picture.line(12, y + 5, 530, y + 5);
  table_row<TensorTile<bf16, Along::k, 64, 128>>(picture, y += 20, "bf16 64 x 128, along k");
  table_row<TensorTile<bf16, Along::k, 32, 128>>(picture, y += 16, "bf16 32 x 128, along k");
  table_row<TensorTile<bf16, Along::mn, 64, 128>>(picture, y += 16, "bf16 64 x 128, along m or n");
  table_row<TensorTile<tf32, Along::k, 32, 256>>(picture, y += 16, "tf32 32 x 256, along k");
  table_row<TensorTile<e4m3, Along::k, 128, 128>>(picture, y += 16, "e4m3, s8 128 x 128, along k");
  picture.text(12, y += 20, Anchor::start,
               "All in bytes; these tiles start at 0x2400. 32 B of k, 64 outer: how far the start moves to "
               "the next of these.",
               Size::small);
  picture.text(12, y += 28, Anchor::start, "bf16 64 x 64 along k: blocks of 8 rows");
  picture.text(268, y, Anchor::start, "bf16 64 x 128 along m or n: blocks of 8 depths");
  draw_blocks<TensorTile<bf16, Along::k, 64, 64>>(picture, 90, y + 24, "rows", "k");
  draw_blocks<TensorTile<bf16, Along::mn, 64, 128>>(picture, 350, y + 24, "k", "m or n");
  picture.text(12, y + 188, Anchor::start,
               "From the dark block, stride leads down to the blue one, leading to the right, to the orange "
               "one (not used along k).",
               Size::small);
  return picture.finish(540, y + 202);
}

std::string warpgroup_accumulators() {
  constexpr GemmPolicy policy{.block_m = 64,
                              .block_n = 16,
                              .block_k = 64,
                              .warp_m = 16,
                              .warp_n = 16,
                              .thread_m = 2,
                              .thread_n = 4,
                              .main_loop = MainLoop::warp_specialized,
                              .multiply = Multiply::wgmma};
  using Product = WarpgroupProduct<policy, TensorSource<bf16, Along::k>, TensorSource<bf16, Along::k>, float>;
  constexpr int left = 44, top = 74, width = 60, height = 17, shown = 5;
  Picture picture("wgmma: 64 rows by n columns of sums, in 128 threads",
                  "Which thread of a warpgroup holds which sums, in which registers.");
  picture.text(12, 40, Anchor::start,
               "A cell: two adjacent sums, and the thread that holds them. Dark: thread 5's registers.");
  Product::Product numbers;
  int count = 0;
  numbers.for_each([&count](float& sum) { sum = static_cast<float>(count++); });
  for (int thread = 0; thread < 128; ++thread) {
    ThreadPlace const place = Product::place(thread);
    for (int i = 0; i < policy.thread_m; ++i)
      for (int j = 0; j < policy.thread_n; j += 2) {
        int const m = Product::partition_m.position(place.warp_m, place.lane_m, i),
                  n = Product::partition_n.position(place.warp_n, place.lane_n, j);
        if (m >= 16) continue;
        auto const number = [&](int column) {
          return std::to_string(static_cast<int>(numbers.get(i, column)));
        };
        picture.cell(left + n / 2 * width, top + m * height, width, height,
                     thread == shown       ? Fill::dark
                     : thread / 4 % 2 == 1 ? Fill::pale
                                           : Fill::white,
                     thread == shown ? "d" + number(j) + " d" + number(j + 1) : std::to_string(thread));
      }
  }
  for (int m = 0; m < 16; ++m)
    picture.text(left - 5, top + m * height + 12, Anchor::end, std::to_string(m), Size::small);
  for (int n = 0; n < 16; n += 2)
    picture.text(left + n / 2 * width + width / 2, top - 5, Anchor::middle, fmt::format("{}, {}", n, n + 1),
                 Size::small);
  int y = top + 16 * height + 6;
  for (int warp = 1; warp < 4; ++warp, y += 22) {
    ThreadPlace const first = Product::place(32 * warp), last = Product::place(32 * warp + 31);
    picture.cell(
        left, y, 8 * width, 20, Fill::gray,
        fmt::format("warp {}: rows {} to {}, in threads {} to {} likewise", warp,
                    Product::partition_m.position(first.warp_m, first.lane_m, 0),
                    Product::partition_m.position(last.warp_m, last.lane_m, 1), 32 * warp, 32 * warp + 31));
  }
  picture.text(
      12, y + 14, Anchor::start,
      "Eight columns further on: the same threads, the next four registers; n / 2 registers in all.");
  return picture.finish(540, y + 28);
}

}  // namespace cosmati::pictures
