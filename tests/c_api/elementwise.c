/* Sums, transforms, reductions, dropout, optimizers. */
#include <math.h>

#include "tests/c_api/support.h"

enum { N = 3, C = 5, H = 4, W = 6, X = N * C * H * W };

static float a[X], b[X], y[X], again[X], wanted[X];

static void test_add_and_transform(cosmati_handle_t handle) {
  cosmati_add add = cosmati_default_add();
  cosmati_transform transform = cosmati_default_transform();
  cosmati_problem_t problem = NULL;
  cosmati_argument const sum[] = {cosmati_data("a", a), cosmati_data("b", b), cosmati_data("y", y)};
  cosmati_argument const moved[] = {cosmati_data("x", a), cosmati_data("y", y)};
  add.a = add.b = add.y = cosmati_image(COSMATI_F32, COSMATI_NCHW, N, C, H, W);
  add.alpha = 2, add.beta = -3;
  OK(cosmati_add_problem(&add, &problem));
  RUN(handle, problem, sum);
  for (int i = 0; i < X; ++i) wanted[i] = 2 * a[i] - 3 * b[i];
  SAME(y, wanted, X, 0);

  transform.x = add.a;
  transform.y = cosmati_image(COSMATI_F32, COSMATI_NHWC, N, C, H, W);
  OK(cosmati_transform_problem(&transform, &problem));
  RUN(handle, problem, moved);
  for (int i = 0; i < X; ++i) {
    int const v = i % W, h = i / W % H, c = i / W / H % C, n = i / W / H / C;
    wanted[((n * H + h) * W + v) * C + c] = a[i];
  }
  SAME(y, wanted, X, 0);
}

static void test_reduce(cosmati_handle_t handle) {
  cosmati_reduce reduce = cosmati_default_reduce();
  cosmati_problem_t problem = NULL;
  cosmati_argument const arguments[] = {cosmati_data("x", a), cosmati_data("y", y)};
  reduce.x = cosmati_image(COSMATI_F32, COSMATI_NCHW, N, C, H, W);
  reduce.y = cosmati_image(COSMATI_F32, COSMATI_NCHW, 1, C, 1, 1);
  OK(cosmati_reduce_problem(&reduce, &problem));
  RUN(handle, problem, arguments);
  for (int c = 0; c < C; ++c) wanted[c] = 0;
  for (int i = 0; i < X; ++i) wanted[i / W / H % C] += a[i];
  SAME(y, wanted, C, 0);
  reduce.operation = COSMATI_REDUCE_MAX;
  OK(cosmati_reduce_problem(&reduce, &problem));
  RUN(handle, problem, arguments);
  for (int c = 0; c < C; ++c) wanted[c] = -100;
  for (int i = 0; i < X; ++i) wanted[i / W / H % C] = fmaxf(wanted[i / W / H % C], a[i]);
  SAME(y, wanted, C, 0);
}

static int differences(float const* x, float const* z) {
  int count = 0;
  for (int i = 0; i < X; ++i) count += x[i] != z[i];
  return count;
}

static void test_dropout(cosmati_handle_t handle) {
  cosmati_dropout dropout = cosmati_default_dropout();
  cosmati_problem_t problem = NULL;
  cosmati_plan_t plan = NULL;
  cosmati_argument arguments[] = {cosmati_data("x", b), cosmati_data("y", y), cosmati_number("step", 7)};
  int dropped = 0;
  for (int i = 0; i < X; ++i) b[i] = (float)(i + 1);
  dropout.x = dropout.y = cosmati_image(COSMATI_F32, COSMATI_NCHW, N, C, H, W);
  dropout.probability = 0.75, dropout.seed = 0x123456789abcdef;
  OK(cosmati_dropout_problem(&dropout, &problem));
  OK(cosmati_make_plan(handle, problem, NULL, &plan));
  OK(cosmati_run(plan, arguments, 3, NULL, 0, NULL));
  for (int i = 0; i < X; ++i) dropped += y[i] == 0;
  CHECK(dropped > X / 2 && dropped < X);
  for (int i = 0; i < X; ++i) wanted[i] = y[i] == 0 ? 0 : 4 * b[i];
  SAME(y, wanted, X, 0);
  arguments[1].data = again;
  OK(cosmati_run(plan, arguments, 3, NULL, 0, NULL));
  CHECK(differences(y, again) == 0);
  arguments[2].value = 8;
  OK(cosmati_run(plan, arguments, 3, NULL, 0, NULL));
  CHECK(differences(y, again) > 0);
  arguments[2].value = 0.5;
  REFUSED(cosmati_run(plan, arguments, 3, NULL, 0, NULL), COSMATI_BAD_REQUEST, "step is 0.5|an integer");
  cosmati_plan_destroy(plan);
  cosmati_problem_destroy(problem);
}

void test_elementwise(cosmati_handle_t handle) {
  fill(a, X, 1);
  fill(b, X, 2);
  test_add_and_transform(handle);
  test_reduce(handle);
  test_dropout(handle);
}

void test_optimizer(cosmati_handle_t handle) {
  static float parameter[X], gradient[X], velocity[X], second[X];
  cosmati_optimizer optimizer = cosmati_default_optimizer();
  cosmati_problem_t problem = NULL;
  int64_t const count = X;
  cosmati_argument const sgd[] = {cosmati_data("parameter", parameter), cosmati_data("gradient", gradient),
                                  cosmati_data("velocity", velocity), cosmati_number("rate", 0.5)};
  cosmati_argument const adam[] = {cosmati_data("parameter", parameter), cosmati_data("gradient", gradient),
                                   cosmati_data("velocity", velocity),   cosmati_data("second", second),
                                   cosmati_number("rate", 0.5),          cosmati_number("step", 1)};
  fill(parameter, X, 1);
  fill(gradient, X, 2);
  fill(velocity, X, 3);
  for (int i = 0; i < X; ++i) wanted[i] = parameter[i] - 0.5f * (0.5f * velocity[i] + gradient[i]);
  optimizer.parameter = optimizer.gradient = optimizer.state = cosmati_packed(COSMATI_F32, 1, &count);
  optimizer.momentum = 0.5;
  OK(cosmati_optimizer_problem(&optimizer, &problem));
  RUN(handle, problem, sgd);
  SAME(parameter, wanted, X, 1e-6);

  /* Adam's first step is as large as the learning rate, against the direction of the gradient. */
  for (int i = 0; i < X; ++i) {
    wanted[i] = parameter[i] - (gradient[i] > 0 ? 0.5f : gradient[i] < 0 ? -0.5f : 0);
    velocity[i] = second[i] = 0;
  }
  optimizer.kind = COSMATI_ADAM;
  OK(cosmati_optimizer_problem(&optimizer, &problem));
  RUN(handle, problem, adam);
  SAME(parameter, wanted, X, 1e-5);
}
