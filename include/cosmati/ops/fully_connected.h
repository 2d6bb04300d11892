// A fully connected layer as three matrix products.
#pragma once
#include "cosmati/ops/gemm.h"

namespace cosmati {

// y[n, o] = epilogue(sum over i of x[n, i] * w[o, i]); in the epilogue the output feature is `n`: bias[n].
// x (N, inputs), w (outputs, inputs), y (N, outputs), in any strides.
GemmProblem fully_connected_forward(TensorDescription const& x, TensorDescription const& w,
                                    TensorDescription const& y, Epilogue epilogue);
// dx[n, i] = sum over o of dy[n, o] * w[o, i]
GemmProblem fully_connected_data(TensorDescription const& dy, TensorDescription const& w,
                                 TensorDescription const& dx);
// dw[o, i] = sum over n of dy[n, o] * x[n, i]
GemmProblem fully_connected_filter(TensorDescription const& dy, TensorDescription const& x,
                                   TensorDescription const& dw);

}  // namespace cosmati
