// The limits of the driver's tensor maps, which every map is checked against before it is encoded.
#pragma once
#include <string>

#include "cosmati/arch/emulator_async.h"

namespace cosmati::program {

// Return the limit that the map exceeds, as the end of a sentence that begins with "a tensor map"; empty if
// the driver accepts it. (CUDA driver API, cuTensorMapEncodeTiled and cuTensorMapEncodeIm2col.)
std::string map_violation(emulator::TiledTensor const& tensor);
std::string map_violation(emulator::WindowedTensor const& tensor);

}  // namespace cosmati::program
