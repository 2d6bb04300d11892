// The widest access has 16 bytes.
// expect: a source's run of width elements must not exceed 16 bytes
// names: StridedSource<float,
#include "tests/compile_fail/mistake.h"

using Destination = cosmati::StridedDestination<float, 1>;
auto const parameters =
    mistake::parameters<mistake::Gemm<mistake::right, float, float, cosmati::IdentityEpilogue<float>,
                                      Destination, mistake::Source<float, 8>>>();
