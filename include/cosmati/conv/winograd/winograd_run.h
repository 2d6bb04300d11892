// The elements of a result that the last kernel of winograd stores together.
#pragma once
#include "cosmati/core/cxx20.h"

namespace cosmati {

// Contiguous elements of the result's row: channels, if those are n; columns of a tile or single pixels, if
// pixels are n.
enum class WinogradRun : unsigned char { channels, columns, pixel };

}  // namespace cosmati
