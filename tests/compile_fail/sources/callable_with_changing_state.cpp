// A callable that counts its calls, although all threads share it.
// expect: an epilogue callable must be const, take (Real sum, Index m, Index n)
// names: CallableEpilogue<float, Count>
#include "tests/compile_fail/mistake.h"

struct Count {
  int calls;
  COSMATI_DEVICE float operator()(float sum, cosmati::Index, cosmati::Index) { return ++calls, sum; }
};
auto const parameters = mistake::parameters<
    mistake::Gemm<mistake::right, float, float, cosmati::CallableEpilogue<float, Count>>>();
