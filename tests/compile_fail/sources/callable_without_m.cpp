// A callable without the row as a parameter.
// expect: an epilogue callable must be const, take (Real sum, Index m, Index n)
// names: CallableEpilogue<float, Relu>
#include "tests/compile_fail/mistake.h"

struct Relu {
  COSMATI_DEVICE float operator()(float sum, cosmati::Index) const { return sum > 0 ? sum : 0; }
};
auto const parameters = mistake::parameters<
    mistake::Gemm<mistake::right, float, float, cosmati::CallableEpilogue<float, Relu>>>();
