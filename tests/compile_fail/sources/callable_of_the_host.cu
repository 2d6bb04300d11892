// A callable that the device cannot call: its operator() lacks COSMATI_DEVICE.
// expect: calling a __host__ function
#include "tests/compile_fail/mistake.h"

struct Relu {
  float operator()(float sum, cosmati::Index, cosmati::Index) const { return sum > 0 ? sum : 0; }
};
using Gemm = mistake::Gemm<mistake::right, float, float, cosmati::CallableEpilogue<float, Relu>>;
template __global__ void cosmati::gemm_kernel<Gemm>(__grid_constant__ Gemm::Params const);
