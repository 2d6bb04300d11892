// Pictures of the ten digits, 12 rows of 7 pixels.
#include "nets/lenet5/codes.h"

namespace cosmati::lenet5 {
namespace {

// clang-format off
constexpr std::string_view pictures[10] = {
    "       "
    " ##### "
    "##   ##"
    "##   ##"
    "##   ##"
    "##   ##"
    "##   ##"
    "##   ##"
    "##   ##"
    " ##### "
    "       "
    "       ",

    "       "
    "   ##  "
    " ####  "
    "   ##  "
    "   ##  "
    "   ##  "
    "   ##  "
    "   ##  "
    "   ##  "
    " ######"
    "       "
    "       ",

    "       "
    " ##### "
    "##   ##"
    "     ##"
    "     ##"
    "    ## "
    "  ##   "
    " ##    "
    "##     "
    "#######"
    "       "
    "       ",

    "       "
    " ##### "
    "##   ##"
    "     ##"
    "     ##"
    "  #### "
    "     ##"
    "     ##"
    "##   ##"
    " ##### "
    "       "
    "       ",

    "       "
    "    ## "
    "   ### "
    "  #### "
    " ## ## "
    "##  ## "
    "#######"
    "    ## "
    "    ## "
    "    ## "
    "       "
    "       ",

    "       "
    "#######"
    "##     "
    "##     "
    "###### "
    "     ##"
    "     ##"
    "     ##"
    "##   ##"
    " ##### "
    "       "
    "       ",

    "       "
    "  #### "
    " ##    "
    "##     "
    "###### "
    "##   ##"
    "##   ##"
    "##   ##"
    "##   ##"
    " ##### "
    "       "
    "       ",

    "       "
    "#######"
    "     ##"
    "     ##"
    "    ## "
    "    ## "
    "   ##  "
    "   ##  "
    "  ##   "
    "  ##   "
    "       "
    "       ",

    "       "
    " ##### "
    "##   ##"
    "##   ##"
    "##   ##"
    " ##### "
    "##   ##"
    "##   ##"
    "##   ##"
    " ##### "
    "       "
    "       ",

    "       "
    " ##### "
    "##   ##"
    "##   ##"
    "##   ##"
    "##   ##"
    " ######"
    "     ##"
    "    ## "
    " ####  "
    "       "
    "       ",
};
// clang-format on

constexpr bool every_picture_is_whole() {
  for (std::string_view picture : pictures)
    if (picture.size() != code_rows * code_columns) return false;
  return true;
}
static_assert(every_picture_is_whole(), "a picture has 12 rows of 7");

}  // namespace

std::vector<bool> c3_connections() {
  std::vector<bool> connected(16 * 6);
  for (std::size_t k = 0; k < 16; ++k)
    for (char input : c3_inputs[k]) connected[k * 6 + static_cast<std::size_t>(input - '0')] = true;
  return connected;
}

float code(int digit, Index unit) {
  return pictures[digit][static_cast<std::size_t>(unit)] == '#' ? 1.0F : -1.0F;
}

}  // namespace cosmati::lenet5
