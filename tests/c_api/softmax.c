/* Softmax, its logarithm and gradient; cross-entropy. */
#include <math.h>
#include <string.h>

#include "tests/c_api/support.h"

enum { ROWS = 9, CLASSES = 10, X = ROWS * CLASSES };

static float x[X], y[X], dy[X], dx[X], wanted[X], wanted_loss[1];
static _Alignas(16) float loss[1];
static int32_t labels[ROWS];

static double sum_of_exponentials(int row) {
  double sum = 0;
  for (int i = 0; i < CLASSES; ++i) sum += exp((double)x[row * CLASSES + i]);
  return sum;
}

static void test_both_directions(cosmati_handle_t handle, int logarithm) {
  cosmati_softmax softmax = cosmati_default_softmax();
  cosmati_problem_t problem = NULL;
  cosmati_argument const forward[] = {cosmati_data("x", x), cosmati_data("y", y)};
  cosmati_argument const backward[] = {cosmati_data("y", y), cosmati_data("dy", dy), cosmati_data("dx", dx)};
  softmax.logarithm = logarithm;
  softmax.x = softmax.y = cosmati_matrix(COSMATI_F32, ROWS, CLASSES, CLASSES, 1);
  OK(cosmati_softmax_problem(&softmax, &problem));
  RUN(handle, problem, forward);
  for (int i = 0; i < X; ++i) {
    double const share = exp((double)x[i]) / sum_of_exponentials(i / CLASSES);
    wanted[i] = (float)(logarithm ? log(share) : share);
  }
  SAME(y, wanted, X, 1e-5);
  softmax.direction = COSMATI_BACKWARD;
  softmax.dy = softmax.x;
  OK(cosmati_softmax_problem(&softmax, &problem));
  RUN(handle, problem, backward);
  for (int row = 0; row < ROWS; ++row) {
    double sum = 0;
    for (int i = row * CLASSES; i < (row + 1) * CLASSES; ++i)
      sum += (double)dy[i] * (logarithm ? 1 : (double)wanted[i]);
    for (int i = row * CLASSES; i < (row + 1) * CLASSES; ++i)
      dx[i] -= (float)(logarithm ? (double)dy[i] - exp((double)wanted[i]) * sum
                                 : (double)wanted[i] * ((double)dy[i] - sum));
  }
  for (int i = 0; i < X; ++i) wanted[i] = 0;
  SAME(dx, wanted, X, 1e-5);
}

static void test_cross_entropy(cosmati_handle_t handle) {
  cosmati_cross_entropy cross_entropy = cosmati_default_cross_entropy();
  cosmati_problem_t problem = NULL;
  cosmati_plan_t plan = NULL;
  cosmati_memory_t workspace = NULL;
  size_t bytes;
  int64_t const rows = ROWS, one = 1;
  double sum = 0;
  cosmati_argument const arguments[] = {cosmati_data("x", x), cosmati_data("labels", labels),
                                        cosmati_data("loss", loss), cosmati_data("dx", dx)};
  for (int row = 0; row < ROWS; ++row) {
    labels[row] = row * 7 % CLASSES;
    sum -= (double)x[row * CLASSES + labels[row]] - log(sum_of_exponentials(row));
    for (int i = 0; i < CLASSES; ++i)
      wanted[row * CLASSES + i] =
          (float)((exp((double)x[row * CLASSES + i]) / sum_of_exponentials(row) - (i == labels[row])) / ROWS);
  }
  wanted_loss[0] = (float)(sum / ROWS);
  cross_entropy.x = cross_entropy.dx = cosmati_matrix(COSMATI_F32, ROWS, CLASSES, CLASSES, 1);
  cross_entropy.labels = cosmati_packed(COSMATI_S32, 1, &rows);
  cross_entropy.loss = cosmati_packed(COSMATI_F32, 1, &one);
  OK(cosmati_cross_entropy_problem(&cross_entropy, &problem));
  OK(cosmati_make_plan(handle, problem, NULL, &plan));
  cosmati_problem_destroy(problem);
  bytes = cosmati_plan_workspace(plan);
  OK(cosmati_allocate(handle, bytes, &workspace));
  OK(cosmati_run(plan, arguments, 4, cosmati_address(workspace), bytes, NULL));
  SAME(loss, wanted_loss, 1, 1e-5);
  SAME(dx, wanted, X, 1e-6);
  labels[3] = CLASSES;
  if (strcmp(cosmati_backend(handle), "emulator") != 0) /* its kernels do not check labels, as on a GPU */
    REFUSED(cosmati_run(plan, arguments, 4, cosmati_address(workspace), bytes, NULL), COSMATI_BAD_REQUEST,
            "label 3 is 10|from 0 to 9");
  cosmati_free(workspace);
  cosmati_plan_destroy(plan);
}

void test_softmax(cosmati_handle_t handle) {
  fill_reals(x, X, 1);
  fill_reals(dy, X, 2);
  test_both_directions(handle, 0);
  test_both_directions(handle, 1);
  test_cross_entropy(handle);
}
