// The table of kernels of one instruction set; COSMATI_ISA is v3 or v4.
#include "src/backend/cpu/chwn/kernels.h"

#include "src/backend/cpu/chwn/average_pool.h"
#include "src/backend/cpu/chwn/convolution.h"
#include "src/backend/cpu/chwn/max_pool.h"
#include "src/backend/cpu/chwn/weight_gradient.h"

#define COSMATI_JOIN(a, b) a##b
#define COSMATI_TABLE(isa) COSMATI_JOIN(kernels_, isa)

namespace cosmati::cpu::chwn {

Kernels const COSMATI_TABLE(COSMATI_ISA) = {convolve,   convolve_data, convolve_filter, max_pool,
                                            max_unpool, average_pool,  average_unpool};

}  // namespace cosmati::cpu::chwn
