// The result buffers that TMA stores, as a warp writes them.
#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "cosmati/tile/matrix_fragment.h"
#include "cosmati/tile/tensor_box.h"
#include "tools/pictures/banks.h"
#include "tools/pictures/pictures.h"

namespace cosmati::pictures {
namespace {

std::string times(int count) { return count == 1 ? "once" : std::to_string(count) + " times"; }

// The number of passes over the banks that the warp's first store takes, and the minimum.
std::string passes_of(int columns, int element_bytes) {
  int const lanes_at_once = 128 / (2 * element_bytes);
  int passes = 0;
  for (int first = 0; first < 32; first += lanes_at_once) {
    std::map<int, std::set<int>> words_of_bank;
    std::size_t busiest = 0;
    for (int lane = first; lane < first + lanes_at_once; ++lane) {
      ThreadPlace const place = matrix_place(lane, 4);
      int const offset = tensor_store_offset(place.lane_m, place.lane_n * 2, columns, element_bytes);
      for (int byte = 0; byte < 2 * element_bytes; byte += 4) {
        std::set<int>& words = words_of_bank[(offset + byte) / 4 % 32];
        words.insert((offset + byte) / 4);
        busiest = std::max(busiest, words.size());
      }
    }
    passes += static_cast<int>(busiest);
  }
  int const minimum = 32 / lanes_at_once;
  return "The banks are busy " + times(passes) + " for 32 lanes" +
         (passes > minimum ? "; " + times(minimum) + " would suffice without conflicts."
                           : ", the minimum: no conflicts.");
}

// Draws the first eight rows of a box; a lane writes two adjacent elements at a time.
int draw_buffer(Picture& picture, int top, char const* type, int element_bytes) {
  TensorStore const store = tensor_store(16, 128, 8, element_bytes, 4 * 128 * (128 + 256), 1);
  picture.text(12, top, Anchor::start,
               std::string(type) + ": a box of " + std::to_string(tensor_store_rows) + " rows by " +
                   std::to_string(store.columns) + " columns; rows 0 to 7 of it");
  int const y = top + 24, lanes_at_once = 128 / (2 * element_bytes);
  bank_heads(picture, y);
  for (int j = 0; j < store.columns / 8; ++j) {
    std::map<int, std::string> lanes;
    std::map<int, int> first_lane;
    for (int lane = 0; lane < 32; ++lane) {
      ThreadPlace const place = matrix_place(lane, 4);
      int const offset =
          tensor_store_offset(place.lane_m, j * 8 + place.lane_n * 2, store.columns, element_bytes) / 16 * 16;
      first_lane.emplace(offset, lane);
      lanes[offset] = std::to_string(first_lane[offset]) + " to " + std::to_string(lane);
    }
    for (auto const& [offset, words] : lanes)
      sixteen_bytes(picture, y, offset,
                    j > 0                                ? Fill::white
                    : first_lane[offset] < lanes_at_once ? Fill::dark
                                                         : Fill::warm,
                    j == 0 ? words : "j " + std::to_string(j));
  }
  for (int row = 0; row < 8; ++row)
    picture.text(line_left - 6, y + row * line_height + 13, Anchor::end, "row " + std::to_string(row),
                 Size::small);
  picture.text(12, y + 8 * line_height + 14, Anchor::start, passes_of(store.columns, element_bytes));
  return y + 8 * line_height + 44;
}

}  // namespace

std::string tensor_stores() {
  Picture picture("Results in the buffer that TMA stores",
                  "Which lanes of a warp write which 16 bytes of its buffer in shared memory.");
  picture.text(
      12, 40, Anchor::start,
      "Lanes of the warp's first store, of eight columns (j 0). Dark: served together; orange: after these.");
  int y = draw_buffer(picture, 62, "16-bit elements", 2);
  y = draw_buffer(picture, y, "32-bit elements", 4);
  picture.text(12, y - 10, Anchor::start,
               "Other columns follow (j 1 to 7, or 3), and rows 8 to 15 likewise.");
  return picture.finish(540, y + 4);
}

}  // namespace cosmati::pictures
