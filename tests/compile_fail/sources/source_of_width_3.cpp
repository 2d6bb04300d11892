// Three contiguous elements are not a vector.
// expect: a source's width, the elements per run, must be a static constexpr power of two
// names: StridedSource<float,
#include "tests/compile_fail/mistake.h"

using Destination = cosmati::StridedDestination<float, 1>;
auto const parameters =
    mistake::parameters<mistake::Gemm<mistake::right, float, float, cosmati::IdentityEpilogue<float>,
                                      Destination, mistake::Source<float, 3>>>();
