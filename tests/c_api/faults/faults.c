/* c_api_faults fork|threads|memory: conditions that a host process may encounter. A fork after threaded work,
 * no more threads, sizes that exceed all memory. SIGALRM ends a hang. Exit status 1 if any check fails. */
#define _GNU_SOURCE /* setresuid */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/c_api/support.h"

enum { N = 192, IMAGES = 8, C = 32, H = 14, FILTERS = 32, R = 3, OUTPUTS = 3, THREADS = 4, USER = 65534 };
enum { IMAGE = IMAGES * C * H * H, WEIGHTS = FILTERS * C * R * R, MATRIX = N * N, LARGEST = IMAGE };

static float a[LARGEST], b[LARGEST], wanted[OUTPUTS][LARGEST], got[LARGEST];

/* A product, one with our own epilogue, and a filter gradient, whose sums oneDNN divides among the number of
 * threads for which it was prepared. */
static cosmati_problem_t make_problem(int which) {
  cosmati_problem_t problem = NULL;
  cosmati_gemm gemm = cosmati_default_gemm();
  cosmati_convolution convolution = cosmati_default_convolution();
  if (which < 2) {
    gemm.a = gemm.b = gemm.d = cosmati_matrix(COSMATI_F32, N, N, N, 1);
    if (which == 1) gemm.epilogue = "tanh(acc) + sqrt(abs(acc))";
    OK(cosmati_gemm_problem(&gemm, &problem));
    return problem;
  }
  convolution.x = cosmati_image(COSMATI_F32, COSMATI_NHWC, IMAGES, C, H, H);
  convolution.y = cosmati_image(COSMATI_F32, COSMATI_NHWC, IMAGES, FILTERS, H, H);
  convolution.w = cosmati_image(COSMATI_F32, COSMATI_NCHW, FILTERS, C, R, R);
  for (int i = 0; i < 2; ++i) convolution.pad_begin[i] = convolution.pad_end[i] = 1;
  convolution.direction = COSMATI_CONVOLUTION_FILTER;
  OK(cosmati_convolution_problem(&convolution, &problem));
  return problem;
}

static size_t count_of(int which) { return which < 2 ? MATRIX : WEIGHTS; }

static cosmati_plan_t make_plan(cosmati_handle_t handle, int which) {
  cosmati_plan_t plan = NULL;
  cosmati_problem_t problem = make_problem(which);
  OK(cosmati_make_plan(handle, problem, NULL, &plan));
  cosmati_problem_destroy(problem);
  return plan;
}

static cosmati_status run_plan(cosmati_plan_t plan, int which, float* result) {
  size_t const bytes = cosmati_plan_workspace(plan);
  void* const workspace = aligned_alloc(256, (bytes / 256 + 1) * 256);
  cosmati_argument const gemm[] = {cosmati_data("a", a), cosmati_data("b", b), cosmati_data("d", result)};
  cosmati_argument const filter[] = {cosmati_data("x", a), cosmati_data("dy", b), cosmati_data("dw", result)};
  cosmati_status const status = cosmati_run(plan, which < 2 ? gemm : filter, 3, workspace, bytes, NULL);
  free(workspace);
  return status;
}

static void compare_all(cosmati_plan_t const* plans) {
  for (int i = 0; i < OUTPUTS; ++i) {
    memset(got, 0xff, sizeof got);
    OK(run_plan(plans[i], i, got));
    CHECK(memcmp(got, wanted[i], count_of(i) * sizeof got[0]) == 0); /* the same threads, the same bits */
  }
}

static void expect_success(pid_t child) {
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Prepared plans and new ones in a child, and in a child of that one; then in this process again. */
static void compute_in_children(cosmati_handle_t handle, cosmati_plan_t const* plans, int generations) {
  pid_t const child = fork();
  if (child == 0) {
    cosmati_plan_t own[OUTPUTS];
    alarm(60);
    compare_all(plans);
    for (int i = 0; i < OUTPUTS; ++i) own[i] = make_plan(handle, i);
    compare_all(own);
    if (generations > 1) compute_in_children(handle, plans, generations - 1);
    fflush(stdout);
    _exit(failures == 0 ? 0 : 1);
  }
  expect_success(child);
  compare_all(plans);
}

static void test_fork(void) {
  cosmati_handle_t handle = NULL;
  cosmati_plan_t plans[OUTPUTS];
  OK(cosmati_create("cpu", "threads=4", &handle));
  for (int i = 0; i < OUTPUTS; ++i) {
    plans[i] = make_plan(handle, i);
    OK(run_plan(plans[i], i, wanted[i]));
  }
  for (int round = 0; round < 3; ++round) compute_in_children(handle, plans, 2);
  for (int i = 0; i < OUTPUTS; ++i) cosmati_plan_destroy(plans[i]);
  cosmati_destroy(handle);
}

static void* do_nothing(void* none) { return none; }

/* Limits the user's processes and threads to fewer than exist; returns false if that is not possible. */
static int refuse_threads(void) {
  struct rlimit const none = {1, 1};
  pthread_t thread;
  if (getuid() == 0 && (setresgid(USER, USER, USER) != 0 || setresuid(USER, USER, USER) != 0)) return 0;
  if (setrlimit(RLIMIT_NPROC, &none) != 0) return 0;
  if (pthread_create(&thread, NULL, do_nothing, NULL) != 0) return 1;
  pthread_join(thread, NULL);
  return 0;
}

/* Plans made before the limit either run or report why not; later ones run. */
static void test_no_threads(void) {
  cosmati_handle_t before = NULL, after = NULL;
  cosmati_plan_t plans[OUTPUTS];
  OK(cosmati_create("cpu", "threads=4", &before));
  for (int i = 0; i < OUTPUTS; ++i) plans[i] = make_plan(before, i);
  if (!refuse_threads()) {
    printf("the system gives threads beyond RLIMIT_NPROC\n");
    exit(77);
  }
  for (int i = 0; i < OUTPUTS; ++i) {
    cosmati_status const status = run_plan(plans[i], i, got);
    CHECK(status == COSMATI_SUCCESS || status == COSMATI_SYSTEM);
    if (status == COSMATI_SYSTEM)
      CHECK(strstr(cosmati_last_error(), "4 threads, but the system provides 1") != NULL);
    cosmati_plan_destroy(plans[i]);
  }
  OK(cosmati_create("cpu", "threads=4", &after));
  for (int i = 0; i < OUTPUTS; ++i) {
    plans[i] = make_plan(after, i);
    OK(run_plan(plans[i], i, got));
    cosmati_plan_destroy(plans[i]);
  }
  cosmati_destroy(before);
  cosmati_destroy(after);
}

static void test_memory(void) {
  static char const* const backends[] = {"cpu", "reference", "emulator"};
  static size_t const sizes[] = {SIZE_MAX, SIZE_MAX - 254, SIZE_MAX - 255, SIZE_MAX / 2 + 1, SIZE_MAX / 2};
  unsigned char byte = 1;
  for (size_t i = 0; i < sizeof backends / sizeof backends[0]; ++i) {
    cosmati_handle_t handle = NULL;
    cosmati_memory_t memory = NULL;
    OK(cosmati_create(backends[i], NULL, &handle));
    for (size_t k = 0; k < sizeof sizes / sizeof sizes[0]; ++k) {
      REFUSED(cosmati_allocate(handle, sizes[k], &memory), COSMATI_OUT_OF_MEMORY, "no memory for");
      CHECK(memory == NULL);
    }
    OK(cosmati_allocate(handle, 3, &memory));
    OK(cosmati_upload(memory, 2, &byte, 1));
    OK(cosmati_download(memory, 2, &byte, 1));
    REFUSED(cosmati_upload(memory, 3, &byte, 1), COSMATI_BAD_REQUEST, "exceeds a memory");
    REFUSED(cosmati_upload(memory, SIZE_MAX, &byte, 2), COSMATI_BAD_REQUEST, "exceeds a memory");
    REFUSED(cosmati_download(memory, 1, &byte, SIZE_MAX), COSMATI_BAD_REQUEST, "exceeds a memory");
    cosmati_free(memory);
    cosmati_destroy(handle);
  }
}

int main(int count, char** arguments) {
  char const* const mode = count > 1 ? arguments[1] : "";
  alarm(240);
  fill_reals(a, LARGEST, 1);
  fill_reals(b, LARGEST, 2);
  if (strcmp(mode, "fork") == 0)
    test_fork();
  else if (strcmp(mode, "threads") == 0)
    test_no_threads();
  else if (strcmp(mode, "memory") == 0)
    test_memory();
  else
    return fprintf(stderr, "usage: c_api_faults fork|threads|memory\n"), 2;
  return failures == 0 ? 0 : 1;
}
