/* Descriptions of plans, options, and find. */
#include <stdlib.h>
#include <string.h>

#include "tests/c_api/support.h"

enum { N = 64 };

static cosmati_problem_t square(void) {
  cosmati_gemm gemm = cosmati_default_gemm();
  cosmati_problem_t problem = NULL;
  gemm.a = gemm.b = gemm.d = cosmati_matrix(COSMATI_F32, N, N, N, 1);
  OK(cosmati_gemm_problem(&gemm, &problem));
  return problem;
}

static cosmati_candidate candidate(cosmati_plan_t plan, size_t index) {
  cosmati_candidate result;
  memset(&result, 0, sizeof result);
  result.size = sizeof result;
  OK(cosmati_plan_candidate(plan, index, &result));
  return result;
}

static void test_choice(cosmati_handle_t handle, cosmati_problem_t problem) {
  cosmati_plan_t plan = NULL;
  size_t chosen = 0;
  OK(cosmati_make_plan(handle, problem, " ; kernel = reference ;", &plan));
  CHECK(strcmp(cosmati_plan_kernel(plan), "reference") == 0);
  CHECK(strstr(cosmati_plan_explanation(plan), "reference: chosen") != NULL);
  for (size_t i = 0; i < cosmati_plan_candidates(plan); ++i) {
    cosmati_candidate const one = candidate(plan, i);
    chosen += strcmp(one.kernel, "reference") == 0 && one.refusal[0] == '\0' && one.measured_seconds == 0;
  }
  CHECK(chosen == 1);
  CHECK(cosmati_plan_expected_error(plan) > 0 && cosmati_plan_expected_error(plan) < 1e-14); /* sums in f64 */
  CHECK(cosmati_plan_expected_error(NULL) == 0);
  {
    cosmati_candidate none;
    memset(&none, 0, sizeof none);
    REFUSED(cosmati_plan_candidate(plan, 0, &none), COSMATI_BAD_REQUEST, "size is 0");
    none.size = sizeof none;
    REFUSED(cosmati_plan_candidate(plan, 1000, &none), COSMATI_BAD_REQUEST, "index is 1000");
  }
  cosmati_plan_destroy(plan);
}

static void test_find(cosmati_handle_t handle, cosmati_problem_t problem) {
  static float a[N * N], d[N * N], wanted[N * N];
  cosmati_argument const arguments[] = {cosmati_data("a", a), cosmati_data("b", a), cosmati_data("d", d)};
  cosmati_plan_t plan = NULL;
  cosmati_memory_t workspace = NULL;
  size_t measured = 0;
  double before = 0;
  OK(cosmati_find_plan(handle, problem, "seconds=0.002; reference=yes", &plan));
  for (size_t i = 0; i < cosmati_plan_candidates(plan); ++i) {
    cosmati_candidate const one = candidate(plan, i);
    if (i == 0) {
      CHECK(strcmp(one.kernel, cosmati_plan_kernel(plan)) == 0);
      CHECK(one.expected_error == cosmati_plan_expected_error(plan));
    }
    if (strcmp(one.kernel, "reference") != 0 && one.refusal[0] == '\0')
      CHECK(one.expected_error > 1e-8 && one.expected_error < 1e-6);
    if (one.measured_seconds > 0) {
      CHECK(i == measured && one.refusal[0] == '\0' && one.measured_seconds >= before);
      before = one.measured_seconds;
      ++measured;
    }
  }
  CHECK(measured >= 1);
  CHECK(strcmp(cosmati_backend(handle), "cpu") != 0 || measured >= 2);
  fill(a, sizeof a / sizeof a[0], 1);
  for (int i = 0; i < N * N; ++i)
    for (int k = 0; k < N; ++k) wanted[i] += a[i / N * N + k] * a[k * N + i % N];
  OK(cosmati_allocate(handle, cosmati_plan_workspace(plan), &workspace));
  OK(cosmati_run(plan, arguments, 3, cosmati_address(workspace), cosmati_plan_workspace(plan), NULL));
  SAME(d, wanted, sizeof d / sizeof d[0], 0);
  cosmati_free(workspace);
  cosmati_plan_destroy(plan);
}

void test_plans(cosmati_handle_t handle) {
  cosmati_problem_t const problem = square();
  CHECK(cosmati_version() == COSMATI_VERSION_NUMBER);
  if (strcmp(cosmati_backend(handle), "emulator") != 0) test_choice(handle, problem);
  test_find(handle, problem);
  cosmati_problem_destroy(problem);
}
