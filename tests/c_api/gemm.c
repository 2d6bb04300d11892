/* Matrix products: layouts, epilogues with every kind of name, batches by stride and by pointer. */
#include <math.h>
#include <string.h>

#include "tests/c_api/support.h"

enum { M = 33, N = 18, K = 29, LD = 37, BATCH = 3 };

static float a[BATCH * LD * LD], b[BATCH * LD * LD], c[BATCH * LD * LD], bias[N];
static float d[BATCH * LD * LD], wanted[BATCH * LD * LD], before[BATCH * M * N], wanted_before[BATCH * M * N];

static void fill_all(void) {
  fill(a, sizeof a / sizeof a[0], 1);
  fill(b, sizeof b / sizeof b[0], 2);
  fill(c, sizeof c / sizeof c[0], 3);
  fill(bias, N, 4);
  for (size_t i = 0; i < sizeof d / sizeof d[0]; ++i) d[i] = wanted[i] = -77;
}

/* a is column-major with a gap, b row-major with a gap, d column-major; the gaps of d are not changed. */
static void test_epilogue(cosmati_handle_t handle) {
  cosmati_gemm gemm = cosmati_default_gemm();
  cosmati_problem_t problem = NULL;
  int64_t const bias_extent = N;
  cosmati_named_tensor tensors[2];
  cosmati_argument const arguments[] = {cosmati_data("bias", bias),     cosmati_data("d", d),
                                        cosmati_number("alpha", 0.5),   cosmati_data("a", a),
                                        cosmati_data("c", c),           cosmati_number("beta", -2),
                                        cosmati_data("before", before), cosmati_data("b", b)};
  fill_all();
  gemm.a = cosmati_matrix(COSMATI_F32, M, K, 1, LD);
  gemm.b = cosmati_matrix(COSMATI_F32, K, N, LD, 1);
  gemm.c = cosmati_matrix(COSMATI_F32, M, N, N, 1);
  gemm.d = cosmati_matrix(COSMATI_F32, M, N, 1, LD);
  gemm.epilogue = "store(before, acc); relu(alpha*acc + beta*c + bias[n])";
  tensors[0].name = "before", tensors[0].tensor = cosmati_matrix(COSMATI_F32, M, N, N, 1);
  tensors[1].name = "bias", tensors[1].tensor = cosmati_packed(COSMATI_F32, 1, &bias_extent);
  gemm.epilogue_tensors = tensors, gemm.epilogue_tensor_count = 2;
  OK(cosmati_gemm_problem(&gemm, &problem));
  RUN(handle, problem, arguments);
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      float sum = 0, value;
      for (int k = 0; k < K; ++k) sum += a[m + k * LD] * b[k * LD + n];
      value = 0.5f * sum - 2 * c[m * N + n] + bias[n];
      wanted_before[m * N + n] = sum;
      wanted[m + n * LD] = value > 0 ? value : 0;
    }
  SAME(before, wanted_before, (size_t)M * N, 0);
  SAME(d, wanted, sizeof d / sizeof d[0], 0);
}

/* One b for all products; then the same by pointers, in reverse order. */
static void test_batches(cosmati_handle_t handle) {
  cosmati_gemm gemm = cosmati_default_gemm();
  cosmati_problem_t problem = NULL;
  int64_t const extent_a[3] = {BATCH, M, K}, stride_a[3] = {LD * LD, LD, 1};
  int64_t const extent_d[3] = {BATCH, M, N};
  void const *pointers_a[BATCH], *pointers_b[BATCH];
  void* pointers_d[BATCH];
  cosmati_argument const by_stride[] = {cosmati_data("a", a), cosmati_data("b", b), cosmati_data("d", d)};
  cosmati_argument const by_pointer[] = {cosmati_data("a", pointers_a), cosmati_data("b", pointers_b),
                                         cosmati_data("d", pointers_d)};
  fill_all();
  gemm.a = cosmati_strided(COSMATI_F32, 3, extent_a, stride_a);
  gemm.b = cosmati_matrix(COSMATI_F32, K, N, 1, LD);
  gemm.d = cosmati_packed(COSMATI_F32, 3, extent_d);
  OK(cosmati_gemm_problem(&gemm, &problem));
  RUN(handle, problem, by_stride);
  for (int i = 0; i < BATCH; ++i)
    for (int m = 0; m < M; ++m)
      for (int n = 0; n < N; ++n) {
        float sum = 0;
        for (int k = 0; k < K; ++k) sum += a[i * LD * LD + m * LD + k] * b[k + n * LD];
        wanted[(i * M + m) * N + n] = sum;
      }
  SAME(d, wanted, (size_t)BATCH * M * N, 0);

  for (int i = 0; i < BATCH; ++i) {
    pointers_a[i] = a + (BATCH - 1 - i) * LD * LD;
    pointers_b[i] = b;
    pointers_d[i] = d + (BATCH - 1 - i) * M * N;
  }
  memset(d, 0xff, sizeof d);
  gemm.a.alignment = gemm.b.alignment = gemm.d.alignment = 4;
  gemm.by_pointers = 1;
  OK(cosmati_gemm_problem(&gemm, &problem));
  RUN(handle, problem, by_pointer);
  SAME(d, wanted, (size_t)BATCH * M * N, 0);
}

/* An empty sum is 0; and memory owned by the handle. */
static void test_empty_and_memory(cosmati_handle_t handle) {
  cosmati_gemm gemm = cosmati_default_gemm();
  cosmati_problem_t problem = NULL;
  cosmati_memory_t memory = NULL;
  float back[M * N];
  gemm.a = cosmati_matrix(COSMATI_F32, M, 0, 1, 1);
  gemm.b = cosmati_matrix(COSMATI_F32, 0, N, N, 1);
  gemm.d = cosmati_matrix(COSMATI_F32, M, N, N, 1);
  gemm.epilogue = "acc + 4";
  OK(cosmati_allocate(handle, sizeof back, &memory));
  OK(cosmati_upload(memory, 4, a, sizeof back - 4));
  {
    cosmati_argument const arguments[] = {cosmati_data("d", cosmati_address(memory))};
    OK(cosmati_gemm_problem(&gemm, &problem));
    RUN(handle, problem, arguments);
  }
  OK(cosmati_wait(handle, NULL));
  OK(cosmati_download(memory, 0, back, sizeof back));
  for (int i = 0; i < M * N; ++i) wanted[i] = 4;
  SAME(back, wanted, (size_t)M * N, 0);
  REFUSED(cosmati_download(memory, 8, back, sizeof back), COSMATI_BAD_REQUEST, "at 8|exceeds a memory");
  cosmati_free(memory);
}

static float half_to_float(uint16_t bits) { /* for small normal numbers and 0 */
  int const exponent = bits >> 10 & 31;
  float const magnitude = exponent == 0 ? 0 : ldexpf((float)(1024 + (bits & 1023)), exponent - 25);
  return bits >> 15 ? -magnitude : magnitude;
}

/* f16 factors and results, which are exact for small integers. */
static void test_halves(cosmati_handle_t handle) {
  static uint16_t const codes[7] = {0xc200, 0xc000, 0xbc00, 0, 0x3c00, 0x4000, 0x4200}; /* -3 to 3 */
  static uint16_t x[M * K], w[K * N], y[M * N];
  cosmati_gemm gemm = cosmati_default_gemm();
  cosmati_problem_t problem = NULL;
  cosmati_argument const arguments[] = {cosmati_data("a", x), cosmati_data("b", w), cosmati_data("d", y)};
  fill_all();
  for (int i = 0; i < M * K; ++i) x[i] = codes[(int)a[i] + 3];
  for (int i = 0; i < K * N; ++i) w[i] = codes[(int)b[i] + 3];
  gemm.a = cosmati_matrix(COSMATI_F16, M, K, K, 1);
  gemm.b = cosmati_matrix(COSMATI_F16, K, N, N, 1);
  gemm.d = cosmati_matrix(COSMATI_F16, M, N, N, 1);
  gemm.accumulate_in_f16 = 0;
  OK(cosmati_gemm_problem(&gemm, &problem));
  RUN(handle, problem, arguments);
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += a[m * K + k] * b[k * N + n];
      wanted[m * N + n] = sum;
      d[m * N + n] = half_to_float(y[m * N + n]);
    }
  SAME(d, wanted, (size_t)M * N, 0);
}

/* Small integers are exact bf16 numbers, whichever kernel computes their products. */
static void test_bf16_products(cosmati_handle_t handle) {
  cosmati_gemm gemm = cosmati_default_gemm();
  cosmati_problem_t problem = NULL;
  cosmati_argument const arguments[] = {cosmati_data("a", a), cosmati_data("b", b), cosmati_data("d", d)};
  fill_all();
  gemm.a = cosmati_matrix(COSMATI_F32, M, K, K, 1);
  gemm.b = cosmati_matrix(COSMATI_F32, K, N, N, 1);
  gemm.d = cosmati_matrix(COSMATI_F32, M, N, N, 1);
  gemm.bf16_products = 4;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "bf16_products is 4|0, 3, 6, 9");
  gemm.bf16_products = 0, gemm.fast_accumulation = 1;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "fast_accumulation|8-bit floats");
  gemm.bf16_products = 3;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "fast_accumulation|not split");
  gemm.fast_accumulation = 0, gemm.bf16_products = 0, gemm.tf32_products = 6;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "tf32_products is 6|0, 3");
  gemm.bf16_products = 6;
  REFUSED(cosmati_gemm_problem(&gemm, &problem), COSMATI_BAD_REQUEST, "bf16_products|tf32_products|only one");
  gemm.tf32_products = 0;
  OK(cosmati_gemm_problem(&gemm, &problem));
  RUN(handle, problem, arguments);
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      float sum = 0;
      for (int k = 0; k < K; ++k) sum += a[m * K + k] * b[k * N + n];
      wanted[m * N + n] = sum;
    }
  SAME(d, wanted, (size_t)M * N, 0);
}

void test_gemm(cosmati_handle_t handle) {
  test_bf16_products(handle);
  test_epilogue(handle);
  test_batches(handle);
  test_empty_and_memory(handle);
  test_halves(handle);
}
