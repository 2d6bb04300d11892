/* The problems of Cosmati's C interface. Included by cosmati.h.
 *
 * Each function cosmati_..._problem validates its struct and creates a problem, for any device; it accesses
 * no device. Errors: COSMATI_BAD_REQUEST with the tensor, its value and the valid values,
 * COSMATI_OUT_OF_MEMORY. The struct and what it points to need not outlive the call.
 *
 * The names in a formula are the names of the arguments of cosmati_run: inputs on the right-hand side,
 * outputs on the left-hand side. A tensor of rank 0 is absent; by default all tensors are. Tensors marked
 * "optional" may be absent; those used only in another direction or mode must be. Extents of 0 are valid
 * wherever the formula is defined. Sums are accumulated in f32; in f64 if an input is f64; in s32 if all are
 * integers.
 *
 * Comments beside fields give the default, or the tensor's dimensions.
 */
#ifndef COSMATI_C_PROBLEMS_H
#define COSMATI_C_PROBLEMS_H

#include <math.h>

#include "cosmati.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Epilogues: an expression applied to the accumulator before it is stored, fused into the kernel, e.g.
 * "relu(alpha*acc + beta*c + bias[n])" or "let t = acc + bias[k]; store(before, t); gelu(t)".
 *   acc              the accumulator
 *   c                the tensor c of a matrix product
 *   bias[n]          a tensor described in epilogue_tensors, with one dimension per letter in the brackets:
 *                    batch, m, n for a matrix product; n, k, p, q for the output of a convolution
 *                    (n, k, o, p, q for volumes), whose channels are k
 *   alpha            any other name: a scalar, passed to run by cosmati_number
 *   store(x, v);     an additional output with the shape of the output, described in epilogue_tensors
 * Operators are + - * / and comparisons; `cosmati list epilogue-functions` lists the functions. Null: "acc".
 */
typedef struct cosmati_named_tensor {
  char const* name;
  cosmati_tensor tensor;
} cosmati_named_tensor;

/* ---- Matrix products: d[i, m, n] = epilogue(sum over k of a[i, m, k] * b[i, k, n], c[i, m, n]) */
typedef struct cosmati_gemm {
  size_t size;
  /* (batch, m, k), (batch, k, n), (batch, m, n) or absent, (batch, m, n). A tensor of rank 2 has batch 1; if
   * d has rank 3, all matrices of the batch share it. */
  cosmati_tensor a, b, c, d;
  char const* epilogue;
  cosmati_named_tensor const* epilogue_tensors;
  size_t epilogue_tensor_count;
  int32_t accumulate_in_f16; /* not 0: permitted for f16 a and b; a backend may use a wider type */
  /* Not 0: the arguments a, b, c and d are arrays of `batch` pointers, one per matrix (on cuda: arrays in
   * device memory), each with the alignment of its tensor; batch strides are ignored. */
  int32_t by_pointers;
  /* 3, 6 or 9: products of f32 a and b may be computed by that many products of bf16 on tensor cores, with
   * sums in f32 and the error that the plan states (cosmati_plan_expected_error); 0: exact products. */
  int32_t bf16_products;
  int32_t tf32_products;     /* 3: the same with products of tf32 on GPUs with mma.sync; 0: exact products */
  int32_t fast_accumulation; /* not 0: for 8-bit floats only: sums may keep about 14 bits, as Hopper's tensor
                                cores do */
} cosmati_gemm;
static inline cosmati_gemm cosmati_default_gemm(void) {
  cosmati_gemm gemm;
  memset(&gemm, 0, sizeof(gemm));
  gemm.size = sizeof(gemm);
  return gemm;
}
COSMATI_API cosmati_status cosmati_gemm_problem(cosmati_gemm const* gemm, cosmati_problem_t* problem);

/* ---- Grouped matrix products: `count` products of different sizes, as in a mixture of experts, in one
 * launch where a kernel supports it. Members have batch 1 and the same types, epilogue and
 * accumulate_in_f16; extents, strides and alignments may differ. No member may write memory that another one
 * reads or writes.
 *
 * The arguments of cosmati_run are those of one member. Each tensor is passed as a host array of `count`
 * pointers, one per member in order (on cuda: to device memory); cosmati_run reads the arrays before it
 * returns. A scalar applies to all members. cosmati_run allocates host memory for the members' arguments; a
 * CUDA graph keeps the pointers. cosmati_find_plan returns COSMATI_UNAVAILABLE: plans of groups are only
 * predicted. */
typedef struct cosmati_grouped_gemm {
  size_t size;
  cosmati_gemm const* members; /* `count` structs */
  size_t count;
} cosmati_grouped_gemm;
static inline cosmati_grouped_gemm cosmati_default_grouped_gemm(void) {
  cosmati_grouped_gemm group;
  memset(&group, 0, sizeof(group));
  group.size = sizeof(group);
  return group;
}
COSMATI_API cosmati_status cosmati_grouped_gemm_problem(cosmati_grouped_gemm const* group,
                                                        cosmati_problem_t* problem);

/* ---- Convolutions. With h = p*stride[0] + r*dilation[0] - pad_begin[0], likewise for w, and c running over
 * the channels of k's group:
 *   FORWARD      y[n, k, p, q]  = epilogue(sum over c, r, s of x[n, c, h, w] * w[k, c, r, s])
 *   DATA         dx[n, c, h, w] = epilogue(sum over k, r, s of dy[n, k, p, q] * w[k, c, r, s])
 *   FILTER       dw[k, c, r, s] = sum over n, p, q of dy[n, k, p, q] * x[n, c, h, w], and db if present
 *   BIAS         db[k] = sum over n, p, q of dy[n, k, p, q]
 *   TRANSPOSED   y[n, k, h, w]  = epilogue(sum over c, r, s of x[n, c, p, q] * w[c, k, r, s])
 * TRANSPOSED is DATA with x and y exchanged; it does not multiply by inserted zeros. Its gradients are
 * FORWARD, for x, and FILTER, with its dy as x. One-dimensional convolutions have extents of 1. For volumes,
 * x is (N, C, D, H, W), w is (K, C / groups, T, R, S), y is (N, K, O, P, Q), and
 * d = o*depth_stride + t*depth_dilation - depth_pad_begin. */
typedef enum cosmati_convolution_direction {
  COSMATI_CONVOLUTION_FORWARD = 0,
  COSMATI_CONVOLUTION_DATA = 1,
  COSMATI_CONVOLUTION_FILTER = 2,
  COSMATI_CONVOLUTION_BIAS = 3,
  COSMATI_CONVOLUTION_TRANSPOSED = 4
} cosmati_convolution_direction;

typedef struct cosmati_convolution {
  size_t size;
  int32_t direction; /* FORWARD */
  cosmati_tensor x;  /* x or dx: (N, C, H, W); BIAS: absent */
  cosmati_tensor w;  /* w or dw: (K, C / groups, R, S); TRANSPOSED: (C, K / groups, R, S); BIAS: absent */
  cosmati_tensor y;  /* y or dy: (N, K, P, Q) */
  cosmati_tensor db; /* (K), for FILTER (optional) and BIAS */
  int64_t stride[2], pad_begin[2], pad_end[2], dilation[2]; /* vertical, horizontal; 1, 0, 0, 1 */
  int64_t groups;                                           /* 1 */
  char const* epilogue;                                     /* for FORWARD, DATA and TRANSPOSED */
  cosmati_named_tensor const* epilogue_tensors;
  size_t epilogue_tensor_count;
  int64_t depth_stride, depth_pad_begin, depth_pad_end, depth_dilation; /* for volumes; 1, 0, 0, 1 */
} cosmati_convolution;
static inline cosmati_convolution cosmati_default_convolution(void) {
  cosmati_convolution convolution;
  memset(&convolution, 0, sizeof(convolution));
  convolution.size = sizeof(convolution);
  for (int i = 0; i < 2; ++i) convolution.stride[i] = convolution.dilation[i] = 1;
  convolution.groups = 1;
  convolution.depth_stride = convolution.depth_dilation = 1;
  return convolution;
}
COSMATI_API cosmati_status cosmati_convolution_problem(cosmati_convolution const* convolution,
                                                       cosmati_problem_t* problem);
/* Returns P for H, or Q for W: floor((input + pads - dilation*(filter - 1) - 1) / stride) + 1; 0 if the
 * filter does not fit or stride is less than 1. */
COSMATI_API int64_t cosmati_convolution_extent(int64_t input, int64_t filter, int64_t stride,
                                               int64_t pad_begin, int64_t pad_end, int64_t dilation);

/* ---- Pooling over the taps of a window that lie inside the image:
 *   MAX                    y[n, c, p, q] = max of x[n, c, h, w]; the first maximum wins; NaN is propagated
 *   AVERAGE                their mean
 *   AVERAGE_WITH_PADDING   their sum, divided by the number of taps that lie in the padded image
 * backward: dx from dy; MAX also requires x or indices. dx is overwritten, not added to. For volumes,
 * x is (N, C, D, H, W), y is (N, C, O, P, Q), and only the backend reference supports indices:
 * (d*H + h)*W + w or (t*R + r)*S + s. */
typedef enum cosmati_direction { COSMATI_FORWARD = 0, COSMATI_BACKWARD = 1 } cosmati_direction;
typedef enum cosmati_pooling_mode {
  COSMATI_POOLING_MAX = 0,
  COSMATI_POOLING_AVERAGE = 1,
  COSMATI_POOLING_AVERAGE_WITH_PADDING = 2
} cosmati_pooling_mode;

typedef struct cosmati_pooling {
  size_t size;
  int32_t direction; /* FORWARD */
  int32_t mode;      /* MAX */
  cosmati_tensor x;  /* x or dx: (N, C, H, W) */
  cosmati_tensor y;  /* y or dy: (N, C, P, Q) */
  /* (N, C, P, Q), optional, for MAX: s32, h*W + w within the plane, or u8, r*S + s within the window. */
  cosmati_tensor indices;
  int64_t window[2], stride[2], pad_begin[2], pad_end[2], dilation[2]; /* 2, 2, 0, 0, 1 */
  /* For volumes; 2, 2, 0, 0, 1. */
  int64_t depth_window, depth_stride, depth_pad_begin, depth_pad_end, depth_dilation;
} cosmati_pooling;
static inline cosmati_pooling cosmati_default_pooling(void) {
  cosmati_pooling pooling;
  memset(&pooling, 0, sizeof(pooling));
  pooling.size = sizeof(pooling);
  for (int i = 0; i < 2; ++i) pooling.window[i] = pooling.stride[i] = 2, pooling.dilation[i] = 1;
  pooling.depth_window = pooling.depth_stride = 2, pooling.depth_dilation = 1;
  return pooling;
}
COSMATI_API cosmati_status cosmati_pooling_problem(cosmati_pooling const* pooling,
                                                   cosmati_problem_t* problem);
/* Returns P for H like cosmati_convolution_extent; if ceil_mode is not 0, rounded up, but without windows
 * that begin in the right padding. */
COSMATI_API int64_t cosmati_pooling_extent(int64_t input, int64_t window, int64_t stride, int64_t pad_begin,
                                           int64_t pad_end, int64_t dilation, int ceil_mode);

/* ---- Activations: y = f(x); backward: dx = dy * f'(x), from x and dy. At 0, f' is 0 for RELU and alpha for
 * LEAKY_RELU and ELU. y may be x, dx may be dy. All tensors have the same shape. */
typedef enum cosmati_function {
  COSMATI_ACTIVATION_RELU = 0,        /* max(x, 0) */
  COSMATI_ACTIVATION_LEAKY_RELU = 1,  /* x < 0 ? alpha*x : x; alpha 0.01 */
  COSMATI_ACTIVATION_ELU = 2,         /* x < 0 ? alpha*(exp(x) - 1) : x; alpha 1 */
  COSMATI_ACTIVATION_SIGMOID = 3,     /* 1 / (1 + exp(-x)) */
  COSMATI_ACTIVATION_TANH = 4,        /* tanh(x) */
  COSMATI_ACTIVATION_SCALED_TANH = 5, /* alpha*tanh(beta*x); alpha 1.7159, beta 2/3 */
  COSMATI_ACTIVATION_GELU = 6,        /* x * (1 + erf(x / sqrt 2)) / 2 */
  COSMATI_ACTIVATION_GELU_TANH = 7,   /* GELU's tanh approximation */
  COSMATI_ACTIVATION_SILU = 8         /* x * sigmoid(x) */
} cosmati_function;

typedef struct cosmati_activation {
  size_t size;
  int32_t direction;  /* FORWARD */
  int32_t function;   /* RELU */
  int32_t parameters; /* not 0: use alpha and beta; 0: the defaults above */
  double alpha, beta;
  cosmati_tensor x, y, dx; /* y: y or dy; dx: absent for FORWARD */
} cosmati_activation;
static inline cosmati_activation cosmati_default_activation(void) {
  cosmati_activation activation;
  memset(&activation, 0, sizeof(activation));
  activation.size = sizeof(activation);
  return activation;
}
COSMATI_API cosmati_status cosmati_activation_problem(cosmati_activation const* activation,
                                                      cosmati_problem_t* problem);

/* ---- Batch normalization. x, y, dx are (N, C, ...) of rank 2 to 5; scale, bias, mean, variance and their
 * gradients are (C), with the type and stride of `statistics`; mean and variance (divided by the count) are
 * over all dimensions but c.
 *   INFERENCE   y = (x - mean[c]) / sqrt(variance[c] + epsilon) * scale[c] + bias[c]
 *   TRAINING    y, saved_mean, saved_variance from x, scale, bias: the same with the batch's own statistics
 *   BACKWARD    dx, dscale, dbias from x, dy, scale, and the mean and variance saved by training */
typedef enum cosmati_batch_norm_mode {
  COSMATI_BATCH_NORM_INFERENCE = 0,
  COSMATI_BATCH_NORM_TRAINING = 1,
  COSMATI_BATCH_NORM_BACKWARD = 2
} cosmati_batch_norm_mode;

typedef struct cosmati_batch_norm {
  size_t size;
  int32_t mode;            /* INFERENCE */
  cosmati_tensor x, y, dx; /* y: y or dy; dx: for BACKWARD */
  cosmati_tensor statistics;
  double epsilon; /* 1e-5 */
} cosmati_batch_norm;
static inline cosmati_batch_norm cosmati_default_batch_norm(void) {
  cosmati_batch_norm batch_norm;
  memset(&batch_norm, 0, sizeof(batch_norm));
  batch_norm.size = sizeof(batch_norm);
  batch_norm.epsilon = 1e-5;
  return batch_norm;
}
COSMATI_API cosmati_status cosmati_batch_norm_problem(cosmati_batch_norm const* batch_norm,
                                                      cosmati_problem_t* problem);

/* ---- Layer normalization and RMS normalization of rows: the dimensions of x starting at `axis`, n elements.
 * Layer: mean = sum of x / n, inverse = 1 / sqrt(sum of (x - mean)^2 / n + epsilon).
 * RMS: inverse = 1 / sqrt(sum of x^2 / n + epsilon), and a mean of 0, which is neither saved nor passed.
 * With u = (x - mean) * inverse and g = dy * weight:
 *   FORWARD    y = u * weight + bias; saved_mean and saved_inverse, if there are statistics
 *   BACKWARD   dx = inverse * (g - mean of g - u * mean of g*u), means over the row, for RMS without the
 *              mean of g; dweight = sum of dy * u and dbias = sum of dy over the rows, in a fixed order, if
 *              they are present; from x, dy, weight, mean and inverse
 * weight and bias have the shape of x starting at `axis`; default: ones, zeros. RMS has no bias. */
typedef struct cosmati_row_norm {
  size_t size;
  int32_t direction;             /* FORWARD */
  int32_t axis;                  /* 1 */
  cosmati_tensor x, y, dx;       /* y: y or dy; dx: for BACKWARD */
  cosmati_tensor weight, bias;   /* optional; bias: for FORWARD */
  cosmati_tensor dweight, dbias; /* for BACKWARD; optional */
  cosmati_tensor statistics;     /* x's shape with extents of 1 starting at `axis`; FORWARD: optional */
  double epsilon;                /* 1e-5 */
} cosmati_row_norm;
static inline cosmati_row_norm cosmati_default_row_norm(void) {
  cosmati_row_norm row_norm;
  memset(&row_norm, 0, sizeof(row_norm));
  row_norm.size = sizeof(row_norm);
  row_norm.axis = 1;
  row_norm.epsilon = 1e-5;
  return row_norm;
}
COSMATI_API cosmati_status cosmati_layer_norm_problem(cosmati_row_norm const* layer_norm,
                                                      cosmati_problem_t* problem);
COSMATI_API cosmati_status cosmati_rms_norm_problem(cosmati_row_norm const* rms_norm,
                                                    cosmati_problem_t* problem);

/* ---- Group normalization: layer normalization of rows that consist of C / groups adjacent channels of an
 * image, x (N, C, ...) of rank 2 to 5, with a weight and a bias for each channel:
 *   FORWARD    y = u * weight[c] + bias[c]; saved_mean and saved_inverse, if there are statistics
 *   BACKWARD   dx, and dweight[c] = sum of dy * u and dbias[c] = sum of dy, in a fixed order, if they are
 *              present; from x, dy, weight, mean and inverse */
typedef struct cosmati_group_norm {
  size_t size;
  int32_t direction;             /* FORWARD */
  int64_t groups;                /* 1; divides C */
  cosmati_tensor x, y, dx;       /* y: y or dy; dx: for BACKWARD */
  cosmati_tensor weight, bias;   /* (C); optional: default ones, zeros; bias: for FORWARD */
  cosmati_tensor dweight, dbias; /* for BACKWARD; optional */
  cosmati_tensor statistics;     /* (N, groups); FORWARD: optional */
  double epsilon;                /* 1e-5 */
} cosmati_group_norm;
static inline cosmati_group_norm cosmati_default_group_norm(void) {
  cosmati_group_norm group_norm;
  memset(&group_norm, 0, sizeof(group_norm));
  group_norm.size = sizeof(group_norm);
  group_norm.groups = 1;
  group_norm.epsilon = 1e-5;
  return group_norm;
}
COSMATI_API cosmati_status cosmati_group_norm_problem(cosmati_group_norm const* group_norm,
                                                      cosmati_problem_t* problem);

/* ---- Softmax along `axis`: y = exp(x - max) / sum of exp(x - max), or its logarithm.
 * BACKWARD, from y and dy: dx = y * (dy - sum of dy*y), or for the logarithm dx = dy - exp(y) * sum of dy. */
typedef struct cosmati_softmax {
  size_t size;
  int32_t direction;       /* FORWARD */
  int32_t logarithm;       /* 0 */
  int32_t axis;            /* 1 */
  cosmati_tensor x, y, dy; /* x: x or dx; dy: absent for FORWARD */
} cosmati_softmax;
static inline cosmati_softmax cosmati_default_softmax(void) {
  cosmati_softmax softmax;
  memset(&softmax, 0, sizeof(softmax));
  softmax.size = sizeof(softmax);
  softmax.axis = 1;
  return softmax;
}
COSMATI_API cosmati_status cosmati_softmax_problem(cosmati_softmax const* softmax,
                                                   cosmati_problem_t* problem);

/* ---- Cross-entropy: loss[0] = mean over n of -log softmax(x[n])[labels[n]],
 * dx = (softmax(x) - one_hot(labels)) / N. FORWARD computes the loss, and dx if present; BACKWARD computes
 * dx.
 * On the host, run rejects labels outside [0, classes). */
typedef struct cosmati_cross_entropy {
  size_t size;
  int32_t direction;     /* FORWARD */
  cosmati_tensor x;      /* (N, classes) */
  cosmati_tensor labels; /* (N), s32 */
  cosmati_tensor loss;   /* (1); BACKWARD: absent */
  cosmati_tensor dx;     /* (N, classes); FORWARD: optional */
} cosmati_cross_entropy;
static inline cosmati_cross_entropy cosmati_default_cross_entropy(void) {
  cosmati_cross_entropy cross_entropy;
  memset(&cross_entropy, 0, sizeof(cross_entropy));
  cross_entropy.size = sizeof(cross_entropy);
  return cross_entropy;
}
COSMATI_API cosmati_status cosmati_cross_entropy_problem(cosmati_cross_entropy const* cross_entropy,
                                                         cosmati_problem_t* problem);

/* ---- Gaussian (RBF) units, LeNet-5's last layer: distances[n, i] = sum over f of (x[n, f] - centres[i,
 * f])^2; unit i outputs exp(-distance). With labels also loss[0] = mean over n of distances[n, label] +
 * log(exp(-rubbish) + sum over i of exp(-distances[n, i])) (LeCun et al. 1998, eq. 9); rubbish = infinity
 * omits the constant.
 *   FORWARD    distances, and with labels the loss, from x and centres; distances may then be absent
 *   BACKWARD   dx, and dcentres if present: of the loss if there are labels, otherwise from ddistances
 * On the host, run rejects labels outside [0, classes). */
typedef struct cosmati_rbf {
  size_t size;
  int32_t direction;        /* FORWARD */
  cosmati_tensor x;         /* x or dx: (N, F) */
  cosmati_tensor centres;   /* (classes, F) */
  cosmati_tensor labels;    /* (N), s32, optional */
  cosmati_tensor distances; /* distances or ddistances: (N, classes); optional with labels; else required */
  cosmati_tensor loss;      /* (1), for FORWARD with labels */
  cosmati_tensor dcentres;  /* (classes, F), optional; for BACKWARD */
  double rubbish;           /* infinity */
} cosmati_rbf;
static inline cosmati_rbf cosmati_default_rbf(void) {
  cosmati_rbf rbf;
  memset(&rbf, 0, sizeof(rbf));
  rbf.size = sizeof(rbf);
  rbf.rubbish = HUGE_VAL;
  return rbf;
}
COSMATI_API cosmati_status cosmati_rbf_problem(cosmati_rbf const* rbf, cosmati_problem_t* problem);

/* ---- Scaled addition: y = alpha*a + beta*b; without b: y = alpha*a. y may be a or b. All have the same
 * shape. */
typedef struct cosmati_add {
  size_t size;
  cosmati_tensor a, b, y; /* b is optional */
  double alpha, beta;     /* 1, 1 */
} cosmati_add;
static inline cosmati_add cosmati_default_add(void) {
  cosmati_add add;
  memset(&add, 0, sizeof(add));
  add.size = sizeof(add);
  add.alpha = add.beta = 1;
  return add;
}
COSMATI_API cosmati_status cosmati_add_problem(cosmati_add const* add, cosmati_problem_t* problem);

/* ---- Layout transform: y = x in another layout or type; each element is rounded once. */
typedef struct cosmati_transform {
  size_t size;
  cosmati_tensor x, y;
} cosmati_transform;
static inline cosmati_transform cosmati_default_transform(void) {
  cosmati_transform transform;
  memset(&transform, 0, sizeof(transform));
  transform.size = sizeof(transform);
  return transform;
}
COSMATI_API cosmati_status cosmati_transform_problem(cosmati_transform const* transform,
                                                     cosmati_problem_t* problem);

/* ---- Reduction: y = operation over the axes in which y's extent is 1 and x's is not. x and y have the same
 * rank. MAX and MIN propagate NaN. */
typedef enum cosmati_reduction {
  COSMATI_REDUCE_SUM = 0,
  COSMATI_REDUCE_MEAN = 1,
  COSMATI_REDUCE_MAX = 2,
  COSMATI_REDUCE_MIN = 3,
  COSMATI_REDUCE_SUM_OF_SQUARES = 4
} cosmati_reduction;
typedef struct cosmati_reduce {
  size_t size;
  int32_t operation; /* SUM */
  cosmati_tensor x, y;
} cosmati_reduce;
static inline cosmati_reduce cosmati_default_reduce(void) {
  cosmati_reduce reduce;
  memset(&reduce, 0, sizeof(reduce));
  reduce.size = sizeof(reduce);
  return reduce;
}
COSMATI_API cosmati_status cosmati_reduce_problem(cosmati_reduce const* reduce, cosmati_problem_t* problem);

/* ---- Dropout: y = kept ? x / (1 - probability) : 0, decided by Philox4x32-10 of (seed, step, index): the
 * same mask on every backend. `step`, an integer, is a scalar argument of run. Backward: the same operation
 * on dy. */
typedef struct cosmati_dropout {
  size_t size;
  cosmati_tensor x, y;
  double probability; /* 0.5 */
  uint64_t seed;      /* 0 */
} cosmati_dropout;
static inline cosmati_dropout cosmati_default_dropout(void) {
  cosmati_dropout dropout;
  memset(&dropout, 0, sizeof(dropout));
  dropout.size = sizeof(dropout);
  dropout.probability = 0.5;
  return dropout;
}
COSMATI_API cosmati_status cosmati_dropout_problem(cosmati_dropout const* dropout,
                                                   cosmati_problem_t* problem);

/* ---- Local response normalization across channels, x (N, C, ...): y = x / base^beta,
 * base = k + alpha / window * sum of x[n, i]^2 over i in [c - (window-1)/2, c + window/2].
 * backward: dx from x and dy. */
typedef struct cosmati_lrn {
  size_t size;
  int32_t direction;       /* FORWARD */
  cosmati_tensor x, y, dx; /* y: y or dy; dx: absent for FORWARD */
  int64_t window;          /* 5 */
  double alpha, beta, k;   /* 1e-4, 0.75, 1 */
} cosmati_lrn;
static inline cosmati_lrn cosmati_default_lrn(void) {
  cosmati_lrn lrn;
  memset(&lrn, 0, sizeof(lrn));
  lrn.size = sizeof(lrn);
  lrn.window = 5;
  lrn.alpha = 1e-4, lrn.beta = 0.75, lrn.k = 1;
  return lrn;
}
COSMATI_API cosmati_status cosmati_lrn_problem(cosmati_lrn const* lrn, cosmati_problem_t* problem);

/* ---- One optimizer step, in place, with g = gradient + weight_decay * parameter:
 *   SGD    velocity = momentum*velocity + g
 *          parameter -= rate*velocity; with nesterov: rate * (g + momentum*velocity)
 *   ADAM   velocity = beta1*velocity + (1-beta1)*g; second = beta2*second + (1-beta2)*g*g
 *          parameter -= rate * (velocity/(1-beta1^step)) / (sqrt(second/(1-beta2^step)) + epsilon)
 * Arguments: parameter, gradient, velocity (except for SGD without momentum), second (ADAM), and the scalars
 * rate and, for ADAM, step (from 1). velocity and second are initially zero. All tensors have the same shape.
 */
typedef enum cosmati_optimizer_kind { COSMATI_SGD = 0, COSMATI_ADAM = 1 } cosmati_optimizer_kind;
typedef struct cosmati_optimizer {
  size_t size;
  int32_t kind;     /* SGD */
  int32_t nesterov; /* 0 */
  cosmati_tensor parameter, gradient;
  cosmati_tensor state;          /* velocity and second; absent for SGD without momentum */
  double momentum, weight_decay; /* 0, 0 */
  double beta1, beta2, epsilon;  /* 0.9, 0.999, 1e-8 */
} cosmati_optimizer;
static inline cosmati_optimizer cosmati_default_optimizer(void) {
  cosmati_optimizer optimizer;
  memset(&optimizer, 0, sizeof(optimizer));
  optimizer.size = sizeof(optimizer);
  optimizer.beta1 = 0.9, optimizer.beta2 = 0.999, optimizer.epsilon = 1e-8;
  return optimizer;
}
COSMATI_API cosmati_status cosmati_optimizer_problem(cosmati_optimizer const* optimizer,
                                                     cosmati_problem_t* problem);

#ifdef __cplusplus
}
#endif

#endif
