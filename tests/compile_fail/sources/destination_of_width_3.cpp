// Three contiguous elements are not a vector.
// expect: the width of a destination, or of an operand of the epilogue, must be a power of two elements in at
// most 16 bytes names: MatrixTile<float, 3>
#include "tests/compile_fail/mistake.h"

auto const parameters =
    mistake::parameters<mistake::Gemm<mistake::right, float, float, cosmati::IdentityEpilogue<float>,
                                      cosmati::StridedDestination<float, 3>>>();
