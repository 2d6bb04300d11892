/* Batch normalization in its three modes, and local response normalization. */
#include <math.h>

#include "tests/c_api/support.h"

enum { IMAGES = 5, C = 7, PIXELS = 6, X = IMAGES * C * PIXELS, COUNT = IMAGES * PIXELS };

static float x[X], y[X], dy[X], dx[X], scale[C], bias[C], mean[C], variance[C], dscale[C], dbias[C];
static float wanted[X], wanted_mean[C], wanted_variance[C], wanted_dscale[C], wanted_dbias[C];
static double const epsilon = 1e-3;

static int at(int n, int c, int pixel) { return (n * C + c) * PIXELS + pixel; }

static void statistics_of(int c, double* average, double* spread) {
  double sum = 0, squares = 0;
  for (int i = 0; i < COUNT; ++i) sum += (double)x[at(i / PIXELS, c, i % PIXELS)];
  *average = sum / COUNT;
  for (int i = 0; i < COUNT; ++i) {
    double const distance = (double)x[at(i / PIXELS, c, i % PIXELS)] - *average;
    squares += distance * distance;
  }
  *spread = squares / COUNT;
}

/* Training mode: y, and the gradients of sum of y * dy. */
static void expect(int c, float* forward, float* backward) {
  double average, spread, sum_dy = 0, sum_dy_x = 0;
  statistics_of(c, &average, &spread);
  double const inverse = 1 / sqrt(spread + epsilon);
  wanted_mean[c] = (float)average, wanted_variance[c] = (float)spread;
  for (int i = 0; i < COUNT; ++i) {
    int const place = at(i / PIXELS, c, i % PIXELS);
    double const normal = ((double)x[place] - average) * inverse;
    forward[place] = (float)(normal * (double)scale[c] + (double)bias[c]);
    sum_dy += (double)dy[place];
    sum_dy_x += (double)dy[place] * normal;
  }
  wanted_dscale[c] = (float)sum_dy_x, wanted_dbias[c] = (float)sum_dy;
  for (int i = 0; i < COUNT; ++i) {
    int const place = at(i / PIXELS, c, i % PIXELS);
    double const normal = ((double)x[place] - average) * inverse;
    backward[place] = (float)((double)scale[c] * inverse *
                              ((double)dy[place] - sum_dy / COUNT - normal * sum_dy_x / COUNT));
  }
}

static void test_batch_norm(cosmati_handle_t handle) {
  cosmati_batch_norm batch_norm = cosmati_default_batch_norm();
  cosmati_problem_t problem = NULL;
  int64_t const extent[3] = {IMAGES, C, PIXELS}, channels = C;
  static float forward[X], backward[X];
  cosmati_argument const training[] = {
      cosmati_data("x", x), cosmati_data("scale", scale),     cosmati_data("bias", bias),
      cosmati_data("y", y), cosmati_data("saved_mean", mean), cosmati_data("saved_variance", variance)};
  cosmati_argument const inference[] = {
      cosmati_data("x", x),       cosmati_data("scale", scale),       cosmati_data("bias", bias),
      cosmati_data("mean", mean), cosmati_data("variance", variance), cosmati_data("y", y)};
  cosmati_argument const gradients[] = {cosmati_data("x", x),
                                        cosmati_data("dy", dy),
                                        cosmati_data("scale", scale),
                                        cosmati_data("mean", mean),
                                        cosmati_data("variance", variance),
                                        cosmati_data("dx", dx),
                                        cosmati_data("dscale", dscale),
                                        cosmati_data("dbias", dbias)};
  for (int c = 0; c < C; ++c) expect(c, forward, backward);
  batch_norm.x = batch_norm.y = cosmati_packed(COSMATI_F32, 3, extent);
  batch_norm.statistics = cosmati_packed(COSMATI_F32, 1, &channels);
  batch_norm.epsilon = epsilon;
  batch_norm.mode = COSMATI_BATCH_NORM_TRAINING;
  OK(cosmati_batch_norm_problem(&batch_norm, &problem));
  RUN(handle, problem, training);
  SAME(y, forward, X, 1e-5);
  SAME(mean, wanted_mean, C, 1e-6);
  SAME(variance, wanted_variance, C, 1e-5);

  batch_norm.mode = COSMATI_BATCH_NORM_BACKWARD;
  batch_norm.dx = batch_norm.x;
  OK(cosmati_batch_norm_problem(&batch_norm, &problem));
  RUN(handle, problem, gradients);
  SAME(dx, backward, X, 1e-4);
  SAME(dscale, wanted_dscale, C, 1e-4);
  SAME(dbias, wanted_dbias, C, 1e-4);

  for (int c = 0; c < C; ++c) mean[c] = (float)c, variance[c] = 4;
  for (int i = 0; i < X; ++i) {
    int const c = i / PIXELS % C;
    wanted[i] = (float)(((double)x[i] - c) / sqrt(4 + epsilon) * (double)scale[c] + (double)bias[c]);
  }
  batch_norm.mode = COSMATI_BATCH_NORM_INFERENCE;
  batch_norm.dx.rank = 0;
  OK(cosmati_batch_norm_problem(&batch_norm, &problem));
  RUN(handle, problem, inference);
  SAME(y, wanted, X, 1e-5);
}

/* One group, whose gradients of weight and bias are those of a layer normalization, summed by channel. */
static void test_group_norm(cosmati_handle_t handle) {
  cosmati_group_norm group_norm = cosmati_default_group_norm();
  cosmati_problem_t problem = NULL;
  int64_t const extent[3] = {IMAGES, C, PIXELS}, channels = C, groups[2] = {IMAGES, 1};
  static float group_mean[IMAGES], group_inverse[IMAGES], backward[X], sums[C], of_dy[C];
  memset(sums, 0, sizeof(sums));
  memset(of_dy, 0, sizeof(of_dy));
  for (int n = 0; n < IMAGES; ++n) {
    int const row = C * PIXELS, first = n * row;
    double average = 0, square = 0, of_g = 0, of_g_u = 0;
    for (int i = 0; i < row; ++i) average += (double)x[first + i] / row;
    for (int i = 0; i < row; ++i) square += pow((double)x[first + i] - average, 2) / row;
    double const inverse = 1 / sqrt(square + epsilon);
    for (int i = 0; i < row; ++i) {
      double const u = ((double)x[first + i] - average) * inverse;
      int const c = i / PIXELS;
      wanted[first + i] = (float)(u * (double)scale[c] + (double)bias[c]);
      of_g += (double)(dy[first + i] * scale[c]) / row;
      of_g_u += (double)(dy[first + i] * scale[c]) * u / row;
      sums[c] += (float)((double)dy[first + i] * u);
      of_dy[c] += dy[first + i];
    }
    for (int i = 0; i < row; ++i) {
      double const u = ((double)x[first + i] - average) * inverse;
      backward[first + i] =
          (float)(inverse * ((double)(dy[first + i] * scale[i / PIXELS]) - of_g - u * of_g_u));
    }
  }
  group_norm.x = group_norm.y = cosmati_packed(COSMATI_F32, 3, extent);
  group_norm.weight = group_norm.bias = cosmati_packed(COSMATI_F32, 1, &channels);
  group_norm.statistics = cosmati_packed(COSMATI_F32, 2, groups);
  group_norm.epsilon = epsilon;
  cosmati_argument const forward[] = {cosmati_data("x", x),
                                      cosmati_data("weight", scale),
                                      cosmati_data("bias", bias),
                                      cosmati_data("y", y),
                                      cosmati_data("saved_mean", group_mean),
                                      cosmati_data("saved_inverse", group_inverse)};
  OK(cosmati_group_norm_problem(&group_norm, &problem));
  run_once(handle, problem, NULL, forward, 6, __FILE__, __LINE__);
  SAME(y, wanted, X, 1e-5);
  memset(&group_norm.bias, 0, sizeof(group_norm.bias));
  group_norm.direction = COSMATI_BACKWARD;
  group_norm.dx = group_norm.x;
  group_norm.dweight = group_norm.dbias = group_norm.weight;
  cosmati_argument const gradients[] = {cosmati_data("x", x),
                                        cosmati_data("dy", dy),
                                        cosmati_data("weight", scale),
                                        cosmati_data("mean", group_mean),
                                        cosmati_data("inverse", group_inverse),
                                        cosmati_data("dx", dx),
                                        cosmati_data("dweight", dscale),
                                        cosmati_data("dbias", dbias)};
  OK(cosmati_group_norm_problem(&group_norm, &problem));
  run_once(handle, problem, NULL, gradients, 8, __FILE__, __LINE__);
  SAME(dx, backward, X, 1e-4);
  SAME(dscale, sums, C, 1e-4);
  SAME(dbias, of_dy, C, 1e-4);
  group_norm.groups = 2;
  REFUSED(cosmati_group_norm_problem(&group_norm, &problem), COSMATI_BAD_REQUEST, "divide the 7 channels");
}

/* Rows of PIXELS elements; the second row of rms is like that of layer norm without its mean. */
static void test_row_norm(cosmati_handle_t handle, int is_layer) {
  enum { ROWS = IMAGES * C };
  cosmati_row_norm row_norm = cosmati_default_row_norm();
  cosmati_problem_t problem = NULL;
  int64_t const extent[2] = {ROWS, PIXELS}, row = PIXELS, one[2] = {ROWS, 1};
  static float weight[PIXELS], shift[PIXELS], row_mean[ROWS], row_inverse[ROWS], dweight[PIXELS],
      dshift[PIXELS];
  static float wanted_inverse[ROWS], backward[X], sums[PIXELS];
  cosmati_argument forward[6], gradients[8];
  size_t count = 0;
  fill_reals(weight, PIXELS, 5);
  fill_reals(shift, PIXELS, 6);
  memset(sums, 0, sizeof(sums));
  for (int r = 0; r < ROWS; ++r) {
    double average = 0, square = 0, of_g = 0, of_g_u = 0;
    for (int i = 0; i < PIXELS; ++i) average += is_layer ? (double)x[r * PIXELS + i] / PIXELS : 0;
    for (int i = 0; i < PIXELS; ++i) square += pow((double)x[r * PIXELS + i] - average, 2) / PIXELS;
    double const inverse = 1 / sqrt(square + epsilon);
    wanted_inverse[r] = (float)inverse;
    for (int i = 0; i < PIXELS; ++i) {
      double const u = ((double)x[r * PIXELS + i] - average) * inverse,
                   g = (double)(dy[r * PIXELS + i] * weight[i]);
      wanted[r * PIXELS + i] = (float)(u * (double)weight[i] + (is_layer ? (double)shift[i] : 0));
      of_g += is_layer ? g / PIXELS : 0;
      of_g_u += g * u / PIXELS;
      sums[i] += (float)((double)dy[r * PIXELS + i] * u);
    }
    for (int i = 0; i < PIXELS; ++i) {
      double const u = ((double)x[r * PIXELS + i] - average) * inverse,
                   g = (double)(dy[r * PIXELS + i] * weight[i]);
      backward[r * PIXELS + i] = (float)(inverse * (g - of_g - u * of_g_u));
    }
  }
  row_norm.x = row_norm.y = cosmati_packed(COSMATI_F32, 2, extent);
  row_norm.weight = cosmati_packed(COSMATI_F32, 1, &row);
  if (is_layer) row_norm.bias = row_norm.weight;
  row_norm.statistics = cosmati_packed(COSMATI_F32, 2, one);
  row_norm.epsilon = epsilon;
  forward[count++] = cosmati_data("x", x);
  forward[count++] = cosmati_data("weight", weight);
  forward[count++] = cosmati_data("y", y);
  forward[count++] = cosmati_data("saved_inverse", row_inverse);
  if (is_layer) forward[count++] = cosmati_data("bias", shift);
  if (is_layer) forward[count++] = cosmati_data("saved_mean", row_mean);
  OK((is_layer ? cosmati_layer_norm_problem : cosmati_rms_norm_problem)(&row_norm, &problem));
  run_once(handle, problem, NULL, forward, count, __FILE__, __LINE__);
  SAME(y, wanted, X, 1e-5);
  SAME(row_inverse, wanted_inverse, ROWS, 1e-5);

  memset(&row_norm.bias, 0, sizeof(row_norm.bias));
  row_norm.direction = COSMATI_BACKWARD;
  row_norm.dx = row_norm.x;
  row_norm.dweight = row_norm.weight;
  if (is_layer) row_norm.dbias = row_norm.weight;
  count = 0;
  gradients[count++] = cosmati_data("x", x);
  gradients[count++] = cosmati_data("dy", dy);
  gradients[count++] = cosmati_data("weight", weight);
  gradients[count++] = cosmati_data("inverse", row_inverse);
  gradients[count++] = cosmati_data("dx", dx);
  gradients[count++] = cosmati_data("dweight", dweight);
  if (is_layer) gradients[count++] = cosmati_data("mean", row_mean);
  if (is_layer) gradients[count++] = cosmati_data("dbias", dshift);
  OK((is_layer ? cosmati_layer_norm_problem : cosmati_rms_norm_problem)(&row_norm, &problem));
  run_once(handle, problem, NULL, gradients, count, __FILE__, __LINE__);
  SAME(dx, backward, X, 1e-4);
  SAME(dweight, sums, PIXELS, 1e-4);
  memset(sums, 0, sizeof(sums));
  for (int i = 0; i < X; ++i) sums[i % PIXELS] += dy[i];
  if (is_layer) SAME(dshift, sums, PIXELS, 1e-4);
}

static void test_lrn(cosmati_handle_t handle) {
  cosmati_lrn lrn = cosmati_default_lrn();
  cosmati_problem_t problem = NULL;
  int64_t const extent[3] = {IMAGES, C, PIXELS};
  cosmati_argument const arguments[] = {cosmati_data("x", x), cosmati_data("y", y)};
  lrn.x = lrn.y = cosmati_packed(COSMATI_F32, 3, extent);
  lrn.window = 3, lrn.alpha = 0.5, lrn.k = 2;
  OK(cosmati_lrn_problem(&lrn, &problem));
  RUN(handle, problem, arguments);
  for (int i = 0; i < X; ++i) {
    int const c = i / PIXELS % C;
    double squares = 0;
    for (int near = c > 0 ? c - 1 : 0; near <= c + 1 && near < C; ++near) {
      double const value = (double)x[i + (near - c) * PIXELS];
      squares += value * value;
    }
    wanted[i] = (float)((double)x[i] / pow(2 + 0.5 / 3 * squares, 0.75));
  }
  SAME(y, wanted, X, 1e-5);
}

void test_normalization(cosmati_handle_t handle) {
  fill_reals(x, X, 1);
  fill_reals(dy, X, 2);
  fill_reals(scale, C, 3);
  fill_reals(bias, C, 4);
  test_batch_norm(handle);
  test_row_norm(handle, 1);
  test_row_norm(handle, 0);
  test_group_norm(handle);
  test_lrn(handle);
}
