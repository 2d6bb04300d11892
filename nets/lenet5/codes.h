// Features of the 1998 network: which maps C3 is connected to, and the pictures that its outputs represent.
// LeCun, Bottou, Bengio, Haffner: Gradient-based learning applied to document recognition, Proc. IEEE 86
// (1998).
#pragma once
#include <string_view>
#include <vector>

#include "cosmati/core/config.h"

namespace cosmati::lenet5 {

// Table I: the maps of S2 to which each map of C3 is connected: 6 to three, 9 to four, the last to all six.
inline constexpr std::string_view c3_inputs[16] = {"012",  "123",  "234",  "345",   "045",  "015",
                                                   "0123", "1234", "2345", "0345",  "0145", "0125",
                                                   "0134", "1245", "0235", "012345"};

// connected[k * 6 + c]: whether map k of C3 is connected to map c of S2; 60 of 96 pairs.
std::vector<bool> c3_connections();

inline constexpr Index code_rows = 12, code_columns = 7;  // 84 units of F6

// Returns the target of unit i of F6 for `digit`: 1 where the digit's picture is black, else -1 (as in figure
// 3: a stylized picture of the character, so that characters that look alike have similar codes).
float code(int digit, Index unit);

}  // namespace cosmati::lenet5
