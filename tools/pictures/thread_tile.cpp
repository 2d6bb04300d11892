// The thread tile of the fma multiply, and the reads of a warp for it.
#include <map>
#include <set>

#include "cosmati/gemm/source.h"
#include "cosmati/gemm/traits.h"
#include "tools/pictures/banks.h"
#include "tools/pictures/pictures.h"

namespace cosmati::pictures {
namespace {

constexpr GemmPolicy policy{
    .block_m = 128, .block_n = 128, .block_k = 8, .warp_m = 32, .warp_n = 64, .thread_m = 8, .thread_n = 8};
using Path = MultiplyPath<policy, StridedSource<f32, Along::k, 4>, StridedSource<f32, Along::mn, 4>, f32>;

constexpr int left = 40, width = 30, height = 20;

void draw_sums(Picture& picture, int top) {
  int const run_m = Path::partition_m.vector, run_n = Path::partition_n.vector;
  for (int lane = 0; lane < 32; ++lane) {
    ThreadPlace const place = Path::place(lane);
    for (int i = 0; i < policy.thread_m; i += run_m)
      for (int j = 0; j < policy.thread_n; j += run_n) {
        int const m = Path::partition_m.position(0, place.lane_m, i),
                  n = Path::partition_n.position(0, place.lane_n, j);
        picture.cell(left + n / run_n * width, top + m / run_m * height, width, height,
                     lane == 0  ? Fill::dark
                     : lane < 8 ? Fill::pale
                                : Fill::white,
                     std::to_string(lane));
      }
  }
  for (int m = 0; m < policy.warp_m; m += run_m)
    picture.text(left - 5, top + m / run_m * height + 14, Anchor::end, std::to_string(m), Size::small);
  for (int n = 0; n < policy.warp_n; n += run_n)
    picture.text(left + n / run_n * width + width / 2, top - 5, Anchor::middle, std::to_string(n),
                 Size::small);
  picture.text(left - 5, top - 5, Anchor::end, "m \\ n", Size::small);
  picture.frame(left, top, policy.warp_n / run_n * width, policy.warp_m / run_m * height);
}

// Draws the first read of the lanes at one depth: 16 bytes each, so eight lanes at a time.
template <class Tile>
void draw_reads(Picture& picture, int top, LinePartition const& partition, bool is_a) {
  bank_heads(picture, top);
  for (int first = 0; first < 32; first += 8) {
    std::map<int, std::string> lanes;     // by group of four banks (16 bytes)
    std::map<int, std::set<int>> places;  // addresses read in each group
    for (int lane = first; lane < first + 8; ++lane) {
      ThreadPlace const place = Path::place(lane);
      int const outer = partition.position(0, is_a ? place.lane_m : place.lane_n, 0);
      int const address = outer * static_cast<int>(sizeof(typename Tile::Pack)), group = address % 128 / 16;
      lanes[group] += (lanes[group].empty() ? "" : " ") + std::to_string(lane);
      places[group].insert(address);
    }
    int const y = top + first / 8 * line_height;
    picture.text(line_left - 6, y + 13, Anchor::end,
                 "lanes " + std::to_string(first) + " to " + std::to_string(first + 7), Size::small);
    for (int group = 0; group < 8; ++group) {
      bool const conflict = places[group].size() > 1;
      sixteen_bytes(picture, y, 16 * group,
                    lanes[group].empty() ? Fill::white
                    : conflict           ? Fill::gray
                    : first == 0         ? Fill::pale
                                         : Fill::warm,
                    conflict ? "conflict" : lanes[group]);
    }
  }
}

}  // namespace

std::string thread_tile() {
  Picture picture(
      "A warp of 32 x 64 sums, 8 x 8 per thread (f32)",
      "Which lane of a warp has which sums, four rows by four columns per cell, and which banks of shared "
      "memory the lanes read.");
  draw_sums(picture, 52);
  picture.text(12, 230, Anchor::start,
               "A cell: 4 x 4 sums of the lane that it names. Each lane has four. Blue: lanes 0 to 7, served "
               "together.");
  picture.text(12, 256, Anchor::start, "Reading A: lanes that read the same 16 bytes share them");
  draw_reads<typename Path::TileA>(picture, 282, Path::partition_m, true);
  picture.text(12, 376, Anchor::start, "Reading B");
  draw_reads<typename Path::TileB>(picture, 402, Path::partition_n, false);
  picture.text(12, 492, Anchor::start,
               "Eight lanes are served at a time. No bank has two of their words: no conflict.");
  return picture.finish(540, 504);
}

}  // namespace cosmati::pictures
