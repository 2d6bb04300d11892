/* Groups of matrix products: members of different sizes that share an array, by offsets. */
#include "tests/c_api/support.h"

enum { MEMBERS = 4, N = 18, K = 29, ROWS = 40 };

static int const rows[MEMBERS] = {7, 0, 21, 12};
static float a[ROWS * K], b[MEMBERS * K * N], d[ROWS * N], wanted[ROWS * N], bias[MEMBERS * N];
static void const *pointers_a[MEMBERS], *pointers_b[MEMBERS], *pointers_bias[MEMBERS];
static void* pointers_d[MEMBERS];
static cosmati_gemm members[MEMBERS];
static cosmati_named_tensor named_bias;

/* d[g] = scale * relu(a[g] * b[g] + bias[g]), with a and d cut from one array each; b[g] is column-major in
 * odd members. */
static cosmati_grouped_gemm group_of_slices(void) {
  cosmati_grouped_gemm group = cosmati_default_grouped_gemm();
  int64_t const extent = N;
  int first = 0;
  fill(a, sizeof a / sizeof a[0], 1);
  fill(b, sizeof b / sizeof b[0], 2);
  fill(bias, sizeof bias / sizeof bias[0], 3);
  named_bias.name = "bias", named_bias.tensor = cosmati_packed(COSMATI_F32, 1, &extent);
  named_bias.tensor.alignment = 4;
  for (int g = 0; g < MEMBERS; ++g) {
    cosmati_gemm gemm = cosmati_default_gemm();
    gemm.a = cosmati_matrix(COSMATI_F32, rows[g], K, K, 1);
    gemm.b = g % 2 == 0 ? cosmati_matrix(COSMATI_F32, K, N, N, 1) : cosmati_matrix(COSMATI_F32, K, N, 1, K);
    gemm.d = cosmati_matrix(COSMATI_F32, rows[g], N, N, 1);
    gemm.a.alignment = gemm.b.alignment = gemm.d.alignment = 4;
    gemm.epilogue = "scale*relu(acc + bias[n])";
    gemm.epilogue_tensors = &named_bias, gemm.epilogue_tensor_count = 1;
    members[g] = gemm;
    pointers_a[g] = a + first * K, pointers_b[g] = b + g * K * N, pointers_d[g] = d + first * N;
    pointers_bias[g] = bias + g * N;
    for (int m = 0; m < rows[g]; ++m)
      for (int n = 0; n < N; ++n) {
        float sum = bias[g * N + n];
        for (int k = 0; k < K; ++k)
          sum += a[(first + m) * K + k] * b[g * K * N + (g % 2 == 0 ? k * N + n : k + n * K)];
        wanted[(first + m) * N + n] = sum > 0 ? 2 * sum : 0;
      }
    first += rows[g];
  }
  group.members = members, group.count = MEMBERS;
  return group;
}

static void test_results(cosmati_handle_t handle) {
  cosmati_grouped_gemm group = group_of_slices();
  cosmati_problem_t problem = NULL;
  cosmati_argument const arguments[] = {cosmati_data("bias", pointers_bias), cosmati_data("a", pointers_a),
                                        cosmati_number("scale", 2), cosmati_data("b", pointers_b),
                                        cosmati_data("d", pointers_d)};
  for (int i = 0; i < ROWS * N; ++i) d[i] = -77;
  OK(cosmati_grouped_gemm_problem(&group, &problem));
  RUN(handle, problem, arguments);
  SAME(d, wanted, (size_t)ROWS * N, 0);

  group.count = 0, group.members = NULL;
  OK(cosmati_grouped_gemm_problem(&group, &problem));
  run_once(handle, problem, NULL, arguments, 0, __FILE__, __LINE__);
}

static void test_refusals(cosmati_handle_t handle) {
  cosmati_grouped_gemm group = group_of_slices();
  cosmati_problem_t problem = NULL;
  cosmati_plan_t plan = NULL;
  cosmati_argument arguments[] = {cosmati_data("a", pointers_a), cosmati_data("b", pointers_b),
                                  cosmati_data("d", pointers_d), cosmati_data("bias", pointers_bias),
                                  cosmati_number("scale", 2)};
  OK(cosmati_grouped_gemm_problem(&group, &problem));
  REFUSED(cosmati_find_plan(handle, problem, NULL, &plan), COSMATI_UNAVAILABLE, "groups of matrix products");
  OK(cosmati_make_plan(handle, problem, "kernel=reference", &plan));
  REFUSED(cosmati_run(plan, arguments, 4, NULL, 0, NULL), COSMATI_BAD_REQUEST, "member 0|scale, a scalar");
  arguments[4] = cosmati_data("scale", pointers_a);
  REFUSED(cosmati_run(plan, arguments, 5, NULL, 0, NULL), COSMATI_BAD_REQUEST, "scale is a scalar");
  arguments[4] = cosmati_number("gain", 2);
  REFUSED(cosmati_run(plan, arguments, 5, NULL, 0, NULL), COSMATI_BAD_REQUEST, "scale");
  arguments[4] = cosmati_number("scale", 2);
  pointers_b[2] = NULL;
  REFUSED(cosmati_run(plan, arguments, 5, NULL, 0, NULL), COSMATI_BAD_REQUEST, "member 2|b");
  pointers_b[2] = b + 2 * K * N;
  arguments[1] = cosmati_data("b", NULL);
  REFUSED(cosmati_run(plan, arguments, 5, NULL, 0, NULL), COSMATI_BAD_REQUEST, "member 0|b");
  cosmati_plan_destroy(plan);
  cosmati_problem_destroy(problem);

  problem = NULL;
  members[3].d.type = COSMATI_F16;
  REFUSED(cosmati_grouped_gemm_problem(&group, &problem), COSMATI_BAD_REQUEST, "member 3|d is f16");
  members[3].size = 8;
  REFUSED(cosmati_grouped_gemm_problem(&group, &problem), COSMATI_BAD_REQUEST, "member 3|size is 8");
  group.members = NULL;
  REFUSED(cosmati_grouped_gemm_problem(&group, &problem), COSMATI_BAD_REQUEST, "members is null");
  group.size = 3;
  REFUSED(cosmati_grouped_gemm_problem(&group, &problem), COSMATI_BAD_REQUEST, "size is 3");
  CHECK(problem == NULL);
}

void test_grouped_gemm(cosmati_handle_t handle) {
  test_results(handle);
  if (cosmati_backend(handle)[0] != 'e') test_refusals(handle); /* the emulator has no kernel "reference" */
}
