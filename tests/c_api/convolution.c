/* Convolution in five directions, with unequal strides, pads and dilations, in groups, NHWC. */
#include <math.h>
#include <string.h>

#include "tests/c_api/support.h"

enum { IMAGES = 2, GROUPS = 2, C = 6, F = 4, H = 9, W = 11, R = 3, S = 2 };
enum { UP = 2, ACROSS = 1, TOP = 1, BOTTOM = 2, LEFT = 0, RIGHT = 1, TALL = 1, WIDE = 2 };
enum {
  P = (H + TOP + BOTTOM - TALL * (R - 1) - 1) / UP + 1,
  Q = (W + LEFT + RIGHT - WIDE * (S - 1) - 1) / ACROSS + 1
};
enum { X = IMAGES * C * H * W, WEIGHTS = F * C / GROUPS * R * S, Y = IMAGES * F * P * Q };

static float x[X], w[WEIGHTS], y[Y], bias[F], sum[F];
static float got[X > Y ? X : Y], wanted[X > Y ? X : Y], got_sum[F];

/* x and y are NHWC, w is KCRS. */
static float* x_at(float* data, int n, int c, int h, int v) { return data + ((n * H + h) * W + v) * C + c; }
static float* y_at(float* data, int n, int k, int p, int q) { return data + ((n * P + p) * Q + q) * F + k; }
static float* w_at(float* data, int k, int c, int r, int s) {
  return data + ((k * (C / GROUPS) + c) * R + r) * S + s;
}

/* Visits each product of the convolution: y += x * w, dx += dy * w, or dw += dy * x. */
static void accumulate(float* into_y, float* into_x, float* into_w) {
  for (int n = 0; n < IMAGES; ++n)
    for (int k = 0; k < F; ++k)
      for (int p = 0; p < P; ++p)
        for (int q = 0; q < Q; ++q)
          for (int c = 0; c < C / GROUPS; ++c)
            for (int r = 0; r < R; ++r)
              for (int s = 0; s < S; ++s) {
                int const h = p * UP + r * TALL - TOP, v = q * ACROSS + s * WIDE - LEFT;
                int const channel = k / (F / GROUPS) * (C / GROUPS) + c;
                if (h < 0 || h >= H || v < 0 || v >= W) continue;
                if (into_y) *y_at(into_y, n, k, p, q) += *x_at(x, n, channel, h, v) * *w_at(w, k, c, r, s);
                if (into_x) *x_at(into_x, n, channel, h, v) += *y_at(y, n, k, p, q) * *w_at(w, k, c, r, s);
                if (into_w) *w_at(into_w, k, c, r, s) += *y_at(y, n, k, p, q) * *x_at(x, n, channel, h, v);
              }
}

static cosmati_convolution description(void) {
  cosmati_convolution convolution = cosmati_default_convolution();
  convolution.x = cosmati_image(COSMATI_F32, COSMATI_NHWC, IMAGES, C, H, W);
  convolution.w = cosmati_image(COSMATI_F32, COSMATI_NCHW, F, C / GROUPS, R, S);
  convolution.y = cosmati_image(COSMATI_F32, COSMATI_NHWC, IMAGES, F, P, Q);
  convolution.stride[0] = UP, convolution.stride[1] = ACROSS;
  convolution.pad_begin[0] = TOP, convolution.pad_begin[1] = LEFT;
  convolution.pad_end[0] = BOTTOM, convolution.pad_end[1] = RIGHT;
  convolution.dilation[0] = TALL, convolution.dilation[1] = WIDE;
  convolution.groups = GROUPS;
  return convolution;
}

static void test_forward(cosmati_handle_t handle) {
  cosmati_convolution convolution = description();
  cosmati_problem_t problem = NULL;
  int64_t const filters = F;
  cosmati_named_tensor tensor;
  cosmati_argument const arguments[] = {cosmati_data("x", x), cosmati_data("w", w), cosmati_data("y", got),
                                        cosmati_data("bias", bias), cosmati_number("slope", 0.25)};
  tensor.name = "bias", tensor.tensor = cosmati_packed(COSMATI_F32, 1, &filters);
  convolution.epilogue = "let t = acc + bias[k]; select(t < 0, slope*t, t)";
  convolution.epilogue_tensors = &tensor, convolution.epilogue_tensor_count = 1;
  OK(cosmati_convolution_problem(&convolution, &problem));
  RUN(handle, problem, arguments);
  memset(wanted, 0, sizeof wanted);
  accumulate(wanted, NULL, NULL);
  for (int i = 0; i < Y; ++i) {
    float const t = wanted[i] + bias[i % F];
    wanted[i] = t < 0 ? 0.25f * t : t;
  }
  SAME(got, wanted, Y, 0);
  CHECK(cosmati_convolution_extent(H, R, UP, TOP, BOTTOM, TALL) == P);
  CHECK(cosmati_convolution_extent(W, S, ACROSS, LEFT, RIGHT, WIDE) == Q);
}

static void test_data(cosmati_handle_t handle) {
  cosmati_convolution convolution = description();
  cosmati_problem_t problem = NULL;
  cosmati_argument const gradient[] = {cosmati_data("dy", y), cosmati_data("w", w), cosmati_data("dx", got)};
  cosmati_argument const transposed[] = {cosmati_data("x", y), cosmati_data("w", w), cosmati_data("y", got)};
  memset(wanted, 0, sizeof wanted);
  accumulate(NULL, wanted, NULL);
  convolution.direction = COSMATI_CONVOLUTION_DATA;
  OK(cosmati_convolution_problem(&convolution, &problem));
  RUN(handle, problem, gradient);
  SAME(got, wanted, X, 0);

  memset(got, 0xff, sizeof got);
  convolution.direction = COSMATI_CONVOLUTION_TRANSPOSED;
  convolution.x = description().y, convolution.y = description().x;
  convolution.epilogue = "acc + 1";
  OK(cosmati_convolution_problem(&convolution, &problem));
  RUN(handle, problem, transposed);
  for (int i = 0; i < X; ++i) wanted[i] += 1;
  SAME(got, wanted, X, 0);

  convolution.w.extent[0] = F + 1;
  REFUSED(cosmati_convolution_problem(&convolution, &problem), COSMATI_BAD_REQUEST,
          "w is f32 (5, 3, 3, 2)|must be 4 and 3|transposed convolution x is dy");
}

static void test_filter_and_bias(cosmati_handle_t handle) {
  cosmati_convolution convolution = description();
  cosmati_problem_t problem = NULL;
  int64_t const filters = F;
  cosmati_argument const filter[] = {cosmati_data("dy", y), cosmati_data("x", x), cosmati_data("dw", got),
                                     cosmati_data("db", got_sum)};
  cosmati_argument const only_bias[] = {cosmati_data("dy", y), cosmati_data("db", got_sum)};
  memset(wanted, 0, sizeof wanted);
  accumulate(NULL, NULL, wanted);
  for (int k = 0; k < F; ++k) sum[k] = 0;
  for (int i = 0; i < Y; ++i) sum[i % F] += y[i];
  convolution.direction = COSMATI_CONVOLUTION_FILTER;
  if (strcmp(cosmati_backend(handle), "emulator") == 0) { /* it has no bias gradient */
    cosmati_argument const alone[] = {filter[0], filter[1], filter[2]};
    OK(cosmati_convolution_problem(&convolution, &problem));
    RUN(handle, problem, alone);
    SAME(got, wanted, WEIGHTS, 0);
    return;
  }
  convolution.db = cosmati_packed(COSMATI_F32, 1, &filters);
  OK(cosmati_convolution_problem(&convolution, &problem));
  RUN(handle, problem, filter);
  SAME(got, wanted, WEIGHTS, 0);
  SAME(got_sum, sum, F, 0);

  memset(got_sum, 0xff, sizeof got_sum);
  convolution.direction = COSMATI_CONVOLUTION_BIAS;
  convolution.x.rank = convolution.w.rank = 0;
  OK(cosmati_convolution_problem(&convolution, &problem));
  RUN(handle, problem, only_bias);
  SAME(got_sum, sum, F, 0);
}

void test_convolution(cosmati_handle_t handle) {
  fill(x, X, 1);
  fill(w, WEIGHTS, 2);
  fill(y, Y, 3);
  fill(bias, F, 4);
  test_forward(handle);
  test_data(handle);
  test_filter_and_bias(handle);
}
