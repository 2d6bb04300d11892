// What the 1998 network has that others have not: which maps C3 sees, and the pictures that its outputs stand
// for. LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, Proc. IEEE 86
// (1998).
#pragma once
#include <string_view>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::lenet5 {

// Table I: the maps of S2 that each map of C3 is connected to: 6 see three, 9 see four, the last sees all
// six.
inline constexpr std::string_view c3_inputs[16] = {"012",  "123",  "234",  "345",   "045",  "015",
                                                   "0123", "1234", "2345", "0345",  "0145", "0125",
                                                   "0134", "1245", "0235", "012345"};

// connected[k * 6 + c]: whether map k of C3 sees map c of S2; 60 of 96 pairs.
std::vector<bool> c3_connections();

inline constexpr Index code_rows = 12, code_columns = 7;  // 84 units of F6

// The target of unit i of F6 for `digit`: 1 where the digit's picture is black, else -1 (figure 3 in spirit:
// a stylised picture of the character, so that characters that look alike have codes that are alike).
float code(int digit, Index unit);

}  // namespace cosmati::lenet5
