// The elements of the result that winograd's last kernel stores together.
#pragma once
#include "cosmati/core/cxx20.h"

namespace cosmati {

// Contiguous elements along n: channels, if n is the channel; columns of a tile or single pixels, if n is the
// pixel.
enum class WinogradRun : unsigned char { channels, columns, pixel };

}  // namespace cosmati
