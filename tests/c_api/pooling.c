/* Pooling forward and backward; activations. */
#include <math.h>
#include <string.h>

#include "tests/c_api/support.h"

enum { PLANES = 6, C = 3, H = 7, W = 6, P = 4, Q = 3, X = PLANES * H * W, Y = PLANES * P * Q };

static float x[X], y[Y], dy[Y], dx[X], wanted[X];
static int32_t indices[Y];

/* 3 x 2 windows, 2 apart, one row of padding at the top and one at the bottom. */
static cosmati_pooling description(void) {
  cosmati_pooling pooling = cosmati_default_pooling();
  pooling.x = cosmati_image(COSMATI_F32, COSMATI_NCHW, PLANES / C, C, H, W);
  pooling.y = cosmati_image(COSMATI_F32, COSMATI_NCHW, PLANES / C, C, P, Q);
  pooling.window[0] = 3, pooling.window[1] = 2;
  pooling.pad_begin[0] = pooling.pad_end[0] = 1;
  return pooling;
}

static void test_max(cosmati_handle_t handle) {
  cosmati_pooling pooling = description();
  cosmati_problem_t problem = NULL;
  cosmati_argument const forward[] = {cosmati_data("x", x), cosmati_data("y", y),
                                      cosmati_data("indices", indices)};
  cosmati_argument const backward[] = {cosmati_data("dy", dy), cosmati_data("indices", indices),
                                       cosmati_data("dx", dx)};
  int wrong_places = 0;
  static float gradient[X];
  memset(gradient, 0, sizeof gradient);
  pooling.indices = pooling.y;
  pooling.indices.type = COSMATI_S32;
  OK(cosmati_pooling_problem(&pooling, &problem));
  RUN(handle, problem, forward);
  for (int plane = 0; plane < PLANES; ++plane)
    for (int p = 0; p < P; ++p)
      for (int q = 0; q < Q; ++q) {
        int const at = (plane * P + p) * Q + q;
        int best = -1;
        for (int r = 0; r < 3; ++r)
          for (int s = 0; s < 2; ++s) {
            int const h = 2 * p + r - 1, v = 2 * q + s;
            if (h >= 0 && h < H && (best < 0 || x[plane * H * W + h * W + v] > x[plane * H * W + best]))
              best = h * W + v;
          }
        wanted[at] = x[plane * H * W + best];
        gradient[plane * H * W + best] += dy[at];
        wrong_places += indices[at] != best;
      }
  SAME(y, wanted, Y, 0);
  CHECK(wrong_places == 0);
  pooling.direction = COSMATI_BACKWARD;
  OK(cosmati_pooling_problem(&pooling, &problem));
  RUN(handle, problem, backward);
  SAME(dx, gradient, X, 0);
}

static void test_average(cosmati_handle_t handle) {
  cosmati_pooling pooling = description();
  cosmati_problem_t problem = NULL;
  cosmati_argument const forward[] = {cosmati_data("x", x), cosmati_data("y", y)};
  pooling.mode = COSMATI_POOLING_AVERAGE;
  OK(cosmati_pooling_problem(&pooling, &problem));
  RUN(handle, problem, forward);
  for (int plane = 0; plane < PLANES; ++plane)
    for (int p = 0; p < P; ++p)
      for (int q = 0; q < Q; ++q) {
        double sum = 0;
        int taps = 0;
        for (int r = 0; r < 3; ++r)
          for (int s = 0; s < 2; ++s) {
            int const h = 2 * p + r - 1, v = 2 * q + s;
            if (h < 0 || h >= H) continue;
            sum += (double)x[plane * H * W + h * W + v];
            ++taps;
          }
        wanted[(plane * P + p) * Q + q] = (float)(sum / taps);
      }
  SAME(y, wanted, Y, 1e-6);
  CHECK(cosmati_pooling_extent(H, 3, 2, 1, 1, 1, 0) == P);
  CHECK(cosmati_pooling_extent(8, 3, 2, 0, 0, 1, 0) == 3);
  CHECK(cosmati_pooling_extent(8, 3, 2, 0, 0, 1, 1) == 4);
}

static void test_activation(cosmati_handle_t handle) {
  cosmati_activation activation = cosmati_default_activation();
  cosmati_problem_t problem = NULL;
  cosmati_argument const forward[] = {cosmati_data("x", x), cosmati_data("y", dx)};
  cosmati_argument const backward[] = {cosmati_data("x", x), cosmati_data("dy", wanted),
                                       cosmati_data("dx", dx)};
  activation.x = activation.y = cosmati_image(COSMATI_F32, COSMATI_CHWN, PLANES / C, C, H, W);
  activation.function = COSMATI_ACTIVATION_SCALED_TANH;
  OK(cosmati_activation_problem(&activation, &problem));
  RUN(handle, problem, forward);
  for (int i = 0; i < X; ++i) wanted[i] = (float)(1.7159 * tanh(2.0 / 3 * (double)x[i]));
  SAME(dx, wanted, X, 1e-5);

  activation.function = COSMATI_ACTIVATION_LEAKY_RELU;
  activation.parameters = 1, activation.alpha = 0.5;
  activation.direction = COSMATI_BACKWARD;
  activation.dx = activation.x;
  OK(cosmati_activation_problem(&activation, &problem));
  RUN(handle, problem, backward);
  for (int i = 0; i < X; ++i) wanted[i] *= x[i] < 0 ? 0.5f : 1;
  SAME(dx, wanted, X, 1e-6);
}

void test_pooling(cosmati_handle_t handle) {
  fill_reals(x, X, 1);
  fill(dy, Y, 2);
  test_max(handle);
  test_average(handle);
  test_activation(handle);
}
