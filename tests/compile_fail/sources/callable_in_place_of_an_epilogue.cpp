// A callable that is not wrapped.
// expect: wrap a plain callable in CallableEpilogue<Real, Callable>
// names: EpilogueRequirements<Relu>
#include "tests/compile_fail/mistake.h"

struct Relu {
  COSMATI_DEVICE float operator()(float sum, cosmati::Index, cosmati::Index) const {
    return sum > 0 ? sum : 0;
  }
};
auto const parameters = mistake::parameters<mistake::Gemm<mistake::right, float, float, Relu>>();
