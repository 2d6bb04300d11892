/* Rejected calls: their status, and a message that names the error, the value, and the valid values. */
#include <string.h>

#include "tests/c_api/support.h"

static float numbers[64];

static cosmati_gemm product(void) {
  cosmati_gemm gemm = cosmati_default_gemm();
  gemm.a = cosmati_matrix(COSMATI_F32, 4, 3, 3, 1);
  gemm.b = cosmati_matrix(COSMATI_F32, 3, 5, 5, 1);
  gemm.d = cosmati_matrix(COSMATI_F32, 4, 5, 5, 1);
  return gemm;
}

static void test_devices(void) {
  cosmati_handle_t none = NULL;
  REFUSED(cosmati_create("gpu", NULL, &none), COSMATI_BAD_REQUEST, "'gpu'|cuda, cpu, emulator, reference");
  REFUSED(cosmati_create("cuda:x", NULL, &none), COSMATI_BAD_REQUEST, "'cuda:x'|cuda:N");
  REFUSED(cosmati_create("cpu", "thread=2", &none), COSMATI_BAD_REQUEST, "'thread'|threads, tuning");
  REFUSED(cosmati_create("cpu", "threads=two", &none), COSMATI_BAD_REQUEST, "threads=two|an integer");
  REFUSED(cosmati_create("cpu", "threads=2;threads=3", &none), COSMATI_BAD_REQUEST, "threads is given twice");
  REFUSED(cosmati_create("cpu", "tuning=/nowhere/tuning.txt", &none), COSMATI_BAD_FILE,
          "/nowhere/tuning.txt");
  REFUSED(cosmati_create(NULL, NULL, &none), COSMATI_BAD_REQUEST, "cosmati_create: backend is null");
  REFUSED(cosmati_create("cpu", NULL, NULL), COSMATI_BAD_REQUEST, "handle is null");
  REFUSED(cosmati_create("cuda:63", NULL, &none), COSMATI_UNAVAILABLE, "");
  CHECK(none == NULL);
  CHECK(strcmp(cosmati_status_text(COSMATI_UNAVAILABLE), "unavailable") == 0);
  cosmati_destroy(NULL);
  cosmati_free(NULL);
  cosmati_plan_destroy(NULL);
  cosmati_problem_destroy(NULL);
  CHECK(cosmati_plan_workspace(NULL) == 0 && cosmati_plan_kernel(NULL) == NULL &&
        cosmati_address(NULL) == NULL);
}

static void test_problems(void) {
  cosmati_problem_t problem = NULL;
  cosmati_gemm gemm = product();
  cosmati_convolution convolution = cosmati_default_convolution();
  cosmati_named_tensor tensor;
  tensor.name = "bais", tensor.tensor = gemm.b;

  gemm.b.extent[0] = 7;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "gemm|b is f32 (1, 7, 5)|must be 3");
  gemm = product(), gemm.size = 12;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "size is 12|cosmati_default_");
  gemm = product(), gemm.a.type = 77;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "a is of type 77|COSMATI_S32 (9)");
  gemm = product(), gemm.a.rank = 9;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "a is of rank 9|to 6");
  gemm = product(), gemm.d.rank = 0;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "d is missing");
  gemm = product(), gemm.d.alignment = 24;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "d declares|24 bytes|power of two");
  gemm = product(), gemm.d.stride[0] = 2;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "d is written|strides");
  gemm = product(), gemm.b.stride[1] = -1;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "b: stride -1|negative");
  gemm = product(), gemm.epilogue = "relu(acc + bias[n]";
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "relu(acc + bias[n]|^");
  gemm.epilogue = "relu(acc + bias[n])", gemm.epilogue_tensors = &tensor, gemm.epilogue_tensor_count = 1;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "bias[...]|has no 'bias'|it has bais");
  tensor.name = "bias";
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "bias is f32 (3, 5)|must be (5)");
  gemm.epilogue = "acc";
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "'bias'|does not name");
  gemm.epilogue = "acc + b[n]", tensor.name = "b", tensor.tensor.rank = 1, tensor.tensor.extent[0] = 5;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "the name b|another name");
  gemm = product(), gemm.epilogue = "acc + c";
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "the problem has no c");
  REFUSED(cosmati_gemm_problem(NULL, &problem), COSMATI_BAD_REQUEST, "gemm|null");
  convolution.direction = 5;
  REFUSED(cosmati_convolution_problem(&convolution, &problem), COSMATI_BAD_REQUEST, "direction is 5|0 to 4");
  CHECK(problem == NULL);
}

/* Messages use the names of the struct's fields, and tensors of another direction are rejected. */
static void test_fields(void) {
  int64_t const three = 3, one = 1;
  cosmati_tensor const channels = cosmati_packed(COSMATI_F32, 1, &three);
  cosmati_tensor const image = cosmati_image(COSMATI_F32, COSMATI_NCHW, 2, 3, 4, 4);
  cosmati_tensor const rows = cosmati_matrix(COSMATI_F32, 2, 3, 3, 1);
  cosmati_problem_t problem = NULL;
  cosmati_convolution convolution = cosmati_default_convolution();
  cosmati_lrn lrn = cosmati_default_lrn();
  cosmati_batch_norm batch_norm = cosmati_default_batch_norm();
  cosmati_activation activation = cosmati_default_activation();
  cosmati_softmax softmax = cosmati_default_softmax();
  cosmati_cross_entropy cross_entropy = cosmati_default_cross_entropy();
  cosmati_rbf rbf = cosmati_default_rbf();
  cosmati_optimizer optimizer = cosmati_default_optimizer();

  lrn.x = lrn.y = image, lrn.window = 0;
  REFUSED(cosmati_lrn_problem(&lrn, &problem), COSMATI_BAD_REQUEST, "normalization: window is 0|at least 1");
  lrn.window = 3, lrn.dx = image;
  REFUSED(cosmati_lrn_problem(&lrn, &problem), COSMATI_BAD_REQUEST, "dx is of rank 4|BACKWARD|0 (none)");
  batch_norm.x = batch_norm.y = image;
  REFUSED(cosmati_batch_norm_problem(&batch_norm, &problem), COSMATI_BAD_REQUEST, ": statistics (|missing");
  batch_norm.statistics = channels, batch_norm.statistics.stride[0] = -1;
  REFUSED(cosmati_batch_norm_problem(&batch_norm, &problem), COSMATI_BAD_REQUEST, ": statistics (|stride -1");
  batch_norm.statistics = channels, batch_norm.dx = image;
  REFUSED(cosmati_batch_norm_problem(&batch_norm, &problem), COSMATI_BAD_REQUEST, "dx is of rank 4|BACKWARD");
  activation.x = activation.y = activation.dx = image;
  REFUSED(cosmati_activation_problem(&activation, &problem), COSMATI_BAD_REQUEST, "dx is of rank 4|BACKWARD");
  softmax.x = softmax.y = softmax.dy = rows;
  REFUSED(cosmati_softmax_problem(&softmax, &problem), COSMATI_BAD_REQUEST, "dy is of rank 2|BACKWARD");
  cross_entropy.direction = COSMATI_BACKWARD, cross_entropy.x = cross_entropy.dx = rows;
  cross_entropy.loss = cosmati_packed(COSMATI_F32, 1, &one);
  REFUSED(cosmati_cross_entropy_problem(&cross_entropy, &problem), COSMATI_BAD_REQUEST,
          "loss is of rank 1|FORWARD");
  rbf.x = rbf.centres = rbf.dcentres = rows, rbf.distances = cosmati_matrix(COSMATI_F32, 2, 2, 2, 1);
  REFUSED(cosmati_rbf_problem(&rbf, &problem), COSMATI_BAD_REQUEST, "dcentres is of rank 2|BACKWARD");
  rbf.dcentres.rank = 0, rbf.loss = cross_entropy.loss;
  REFUSED(cosmati_rbf_problem(&rbf, &problem), COSMATI_BAD_REQUEST, "loss is of rank 1|FORWARD with labels");
  convolution.x = convolution.y = image, convolution.w = cosmati_image(COSMATI_F32, COSMATI_NCHW, 3, 3, 1, 1);
  convolution.db = channels;
  REFUSED(cosmati_convolution_problem(&convolution, &problem), COSMATI_BAD_REQUEST, "db is of rank 1|FILTER");
  convolution.direction = COSMATI_CONVOLUTION_BIAS;
  REFUSED(cosmati_convolution_problem(&convolution, &problem), COSMATI_BAD_REQUEST, "x is of rank 4|filter");
  optimizer.kind = COSMATI_ADAM, optimizer.parameter = optimizer.gradient = optimizer.state = rows;
  optimizer.state.stride[0] = -1;
  REFUSED(cosmati_optimizer_problem(&optimizer, &problem), COSMATI_BAD_REQUEST, "adam: state|stride -1");
  CHECK(problem == NULL);
}

static void test_run(cosmati_handle_t handle, cosmati_problem_t problem, cosmati_plan_t plan) {
  cosmati_argument arguments[5];
  cosmati_plan_t none = NULL;
  size_t const bytes = cosmati_plan_workspace(plan);
  arguments[0] = cosmati_data("a", numbers), arguments[1] = cosmati_data("b", numbers);
  arguments[2] = cosmati_data("d", numbers + 32), arguments[3] = cosmati_number("alpha", 2);
  arguments[4] = cosmati_data("e", numbers);
  REFUSED(cosmati_make_plan(handle, problem, "kernel=magic", &none), COSMATI_BAD_REQUEST,
          "'magic'|valid kernels");
  REFUSED(cosmati_make_plan(handle, problem, "seconds=1", &none), COSMATI_BAD_REQUEST,
          "'seconds'|max_workspace");
  REFUSED(cosmati_make_plan(handle, NULL, NULL, &none), COSMATI_BAD_REQUEST, "problem is null");
  CHECK(none == NULL);
  REFUSED(cosmati_run(plan, arguments, 2, numbers, bytes, NULL), COSMATI_BAD_REQUEST,
          "d, f32 (1, 4, 5)|is missing|takes a, b, d and the scalars alpha|got a, b");
  REFUSED(cosmati_run(plan, arguments, 3, numbers, bytes, NULL), COSMATI_BAD_REQUEST,
          "alpha, a scalar, is missing");
  REFUSED(cosmati_run(plan, arguments, 5, numbers, bytes, NULL), COSMATI_BAD_REQUEST,
          "e is not part of this problem");
  arguments[4].name = "b";
  REFUSED(cosmati_run(plan, arguments, 5, numbers, bytes, NULL), COSMATI_BAD_REQUEST, "b is given twice");
  arguments[4].name = NULL;
  REFUSED(cosmati_run(plan, arguments, 5, numbers, bytes, NULL), COSMATI_BAD_REQUEST, "arguments[4] is null");
  arguments[3] = cosmati_data("alpha", numbers);
  REFUSED(cosmati_run(plan, arguments, 4, numbers, bytes, NULL), COSMATI_BAD_REQUEST, "alpha is a scalar");
  arguments[3] = cosmati_number("alpha", 2);
  arguments[1].data = NULL;
  REFUSED(cosmati_run(plan, arguments, 4, numbers, bytes, NULL), COSMATI_BAD_REQUEST,
          "b is null|f32 (1, 3, 5)");
  arguments[1].data = (char*)numbers + 2;
  REFUSED(cosmati_run(plan, arguments, 4, numbers, bytes, NULL), COSMATI_BAD_REQUEST,
          "b is misaligned: 2 bytes past|of 4");
  REFUSED(cosmati_run(NULL, arguments, 4, NULL, 0, NULL), COSMATI_BAD_REQUEST, "plan is null");
  REFUSED(cosmati_run(plan, NULL, 4, NULL, 0, NULL), COSMATI_BAD_REQUEST, "arguments is null");
  arguments[1].data = numbers + 1; /* the same on every backend */
  REFUSED(cosmati_run(plan, arguments, 4, numbers, bytes, NULL), COSMATI_BAD_REQUEST,
          "b is misaligned|of 16|the problem declares");
}

/* On the emulator, a product with large K is split, so the plan has a workspace. */
static void test_workspace(cosmati_handle_t handle) {
  cosmati_gemm gemm = product();
  cosmati_problem_t problem = NULL;
  cosmati_plan_t plan = NULL;
  cosmati_argument arguments[3];
  if (strcmp(cosmati_backend(handle), "emulator") != 0) return;
  gemm.a = cosmati_matrix(COSMATI_F32, 4, 65536, 1, 4);
  gemm.b = cosmati_matrix(COSMATI_F32, 65536, 5, 5, 1);
  arguments[0] = cosmati_data("a", numbers), arguments[1] = cosmati_data("b", numbers);
  arguments[2] = cosmati_data("d", numbers);
  OK(cosmati_gemm_problem(&gemm, &problem));
  OK(cosmati_make_plan(handle, problem, NULL, &plan));
  CHECK(cosmati_plan_workspace(plan) > 0);
  REFUSED(cosmati_run(plan, arguments, 3, numbers, 8, NULL), COSMATI_BAD_REQUEST,
          "workspace has 8 bytes|needs");
  REFUSED(cosmati_run(plan, arguments, 3, NULL, cosmati_plan_workspace(plan), NULL), COSMATI_BAD_REQUEST,
          "needs a workspace|none was given");
  cosmati_plan_destroy(plan);
  OK(cosmati_make_plan(handle, problem, "max_workspace=0", &plan));
  CHECK(cosmati_plan_workspace(plan) == 0);
  cosmati_plan_destroy(plan);
  cosmati_problem_destroy(problem);
}

/* A long message is truncated. */
static void test_long_message(void) {
  static char name[6000];
  cosmati_handle_t none = NULL;
  memset(name, 'x', sizeof name - 1);
  CHECK(cosmati_create(name, NULL, &none) == COSMATI_BAD_REQUEST);
  CHECK(strlen(cosmati_last_error()) == 4095 && strcmp(cosmati_last_error() + 4091, " ...") == 0);
}

void test_errors(cosmati_handle_t handle) {
  cosmati_gemm gemm = product();
  cosmati_problem_t problem = NULL;
  cosmati_plan_t plan = NULL;
  test_devices();
  test_problems();
  test_fields();
  gemm.epilogue = "alpha*acc";
  OK(cosmati_gemm_problem(&gemm, &problem));
  if (OK(cosmati_make_plan(handle, problem, NULL, &plan))) test_run(handle, problem, plan);
  cosmati_plan_destroy(plan);
  cosmati_problem_destroy(problem);
  test_workspace(handle);
  test_long_message();
}
