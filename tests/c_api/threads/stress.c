/* c_api_stress [race]: many threads on shared handles and plans, and on their own handles; every result
 * and every message must be the thread's own. With `race`, two threads write one output, which
 * ThreadSanitizer must detect. */
#define _POSIX_C_SOURCE 200112L /* barriers */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cosmati.h"

enum { THREADS = 8, ROUNDS = 12, N = 24, COUNT = N * N, PLANS = 6 };

typedef struct {
  char const* backend;
  char const* options;
  int product; /* 0: a sum of two arrays */
} shared_plan;

static shared_plan const kinds[PLANS] = {{"cpu", NULL, 1},       {"cpu", "kernel=reference", 1},
                                         {"reference", NULL, 1}, {"emulator", NULL, 1},
                                         {"cpu", NULL, 0},       {"reference", NULL, 0}};

static cosmati_handle_t handles[PLANS];
static cosmati_problem_t problems[PLANS];
static cosmati_plan_t plans[PLANS];
static pthread_barrier_t together;
static float a[COUNT], b[COUNT], bias[N], expected[2][COUNT];

static void die(char const* where) {
  fprintf(stderr, "%s: %s\n", where, cosmati_last_error());
  exit(1);
}
#define OK(call) \
  if ((call) != COSMATI_SUCCESS) die(#call)

static cosmati_problem_t make_problem(int product) {
  cosmati_problem_t problem = NULL;
  cosmati_gemm gemm = cosmati_default_gemm();
  cosmati_add add = cosmati_default_add();
  int64_t const columns = N;
  cosmati_named_tensor tensor;
  tensor.name = "bias", tensor.tensor = cosmati_packed(COSMATI_F32, 1, &columns);
  gemm.a = gemm.b = gemm.d = add.a = add.b = add.y = cosmati_matrix(COSMATI_F32, N, N, N, 1);
  gemm.epilogue = "relu(alpha*acc + bias[n])";
  gemm.epilogue_tensors = &tensor, gemm.epilogue_tensor_count = 1;
  if (product) {
    OK(cosmati_gemm_problem(&gemm, &problem));
  } else {
    OK(cosmati_add_problem(&add, &problem));
  }
  return problem;
}

static void run_into(cosmati_plan_t plan, int product, float* result) {
  _Alignas(64) unsigned char workspace[65536];
  cosmati_argument const factors[] = {cosmati_data("a", a), cosmati_data("b", b), cosmati_data("bias", bias),
                                      cosmati_number("alpha", 2), cosmati_data("d", result)};
  cosmati_argument const terms[] = {cosmati_data("a", a), cosmati_data("b", b), cosmati_data("y", result)};
  if (cosmati_plan_workspace(plan) > sizeof workspace) die("the workspace is larger than this program's");
  OK(cosmati_run(plan, product ? factors : terms, product ? 5 : 3, workspace, sizeof workspace, NULL));
}

static void run_and_compare(cosmati_plan_t plan, int product) {
  float result[COUNT];
  memset(result, 0xff, sizeof result);
  run_into(plan, product, result);
  for (int i = 0; i < COUNT; ++i)
    if (!(result[i] == expected[product][i])) {
      fprintf(stderr, "%s: element %d is %g, not %g\n", cosmati_plan_kernel(plan), i, (double)result[i],
              (double)expected[product][i]);
      exit(1);
    }
}

/* Makes a call that is rejected with a message that contains `number`. If `wait`, reads the message only
 * after all other threads have made such a call. */
static void be_refused(int number, int wait) {
  char options[64], wanted[64];
  cosmati_plan_t plan = NULL;
  snprintf(options, sizeof options, "kernel=magic%d", number);
  snprintf(wanted, sizeof wanted, "'magic%d'", number);
  if (cosmati_make_plan(handles[0], problems[0], options, &plan) != COSMATI_BAD_REQUEST) die("no refusal");
  if (wait) pthread_barrier_wait(&together);
  if (strstr(cosmati_last_error(), wanted) == NULL) die(wanted);
}

static void use_own(int kind) {
  cosmati_handle_t handle = NULL;
  cosmati_plan_t plan = NULL;
  cosmati_problem_t const problem = make_problem(kinds[kind].product);
  OK(cosmati_create(kinds[kind].backend, "threads=1", &handle));
  if (kind % 3 == 0) {
    OK(cosmati_find_plan(handle, problem, "seconds=0.0005", &plan));
  } else {
    OK(cosmati_make_plan(handle, problem, kinds[kind].options, &plan));
  }
  cosmati_destroy(handle);
  cosmati_problem_destroy(problem);
  run_and_compare(plan, kinds[kind].product);
  cosmati_plan_destroy(plan);
}

static void look_at(int kind) {
  cosmati_candidate candidate;
  candidate.size = sizeof candidate;
  OK(cosmati_plan_candidate(plans[kind], 0, &candidate));
  if (strstr(cosmati_plan_explanation(plans[kind]), candidate.kernel) == NULL) die("explanation");
}

static void make_and_run(int kind) {
  cosmati_plan_t plan = NULL;
  OK(cosmati_make_plan(handles[kind], problems[kind], kinds[kind].options, &plan));
  run_and_compare(plan, kinds[kind].product);
  cosmati_plan_destroy(plan);
}

/* First all threads run the same operation, one operation after another, since the sanitizer would take locks
 * in one operation to order the accesses of another one. Then all operations run at once. */
static void* work(void* argument) {
  int const thread = *(int const*)argument;
  pthread_barrier_wait(&together);
  for (int i = 0; i < ROUNDS; ++i) be_refused(thread * ROUNDS + i, i % 4 == 0);
  for (int kind = 0; kind < PLANS; ++kind) {
    pthread_barrier_wait(&together);
    for (int i = 0; i < 3; ++i) run_and_compare(plans[kind], kinds[kind].product);
    pthread_barrier_wait(&together);
    look_at(kind);
    make_and_run(kind);
  }
  pthread_barrier_wait(&together);
  for (int round = 0; round < ROUNDS; ++round) {
    int const kind = (thread + round) % PLANS;
    run_and_compare(plans[kind], kinds[kind].product);
    be_refused(thread * ROUNDS + round, 0);
    make_and_run(kind);
    if (round % 4 == 0) use_own(kind);
  }
  return NULL;
}

static void* race(void* output) {
  for (int i = 0; i < 20; ++i) run_into(plans[2], 1, output);
  return NULL;
}

static void prepare_all(void) {
  for (int i = 0; i < COUNT; ++i) a[i] = (float)(i * 5 % 7 - 3), b[i] = (float)(i * 3 % 5 - 2);
  for (int n = 0; n < N; ++n) bias[n] = (float)(n % 4);
  for (int i = 0; i < COUNT; ++i) {
    float sum = 0;
    for (int k = 0; k < N; ++k) sum += a[i / N * N + k] * b[k * N + i % N];
    sum = 2 * sum + bias[i % N];
    expected[1][i] = sum > 0 ? sum : 0;
    expected[0][i] = a[i] + b[i];
  }
  for (int i = 0; i < PLANS; ++i) {
    OK(cosmati_create(kinds[i].backend, "threads=1", &handles[i]));
    problems[i] = make_problem(kinds[i].product);
    OK(cosmati_make_plan(handles[i], problems[i], kinds[i].options, &plans[i]));
  }
}

int main(int count, char** arguments) {
  static float output[COUNT];
  pthread_t threads[THREADS];
  int numbers[THREADS];
  int const racing = count > 1 && strcmp(arguments[1], "race") == 0;
  prepare_all();
  if (pthread_barrier_init(&together, NULL, THREADS) != 0) return 1;
  for (int i = 0; i < THREADS; ++i) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, racing ? race : work, racing ? (void*)output : &numbers[i]) != 0)
      return 1;
  }
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < PLANS; ++i) {
    cosmati_plan_destroy(plans[i]);
    cosmati_problem_destroy(problems[i]);
    cosmati_destroy(handles[i]);
  }
  puts("done");
  return 0;
}
