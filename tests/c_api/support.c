/* Checks, and numbers to fill arrays with. */
#include "tests/c_api/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int failures = 0;

static void fail(char const* file, int line) {
  ++failures;
  printf("%s:%d: ", file, line);
}

void check_that(int holds, char const* text, char const* file, int line) {
  if (holds) return;
  fail(file, line);
  printf("%s does not hold; the last message is: %s\n", text, cosmati_last_error());
}

int ok(cosmati_status status, char const* text, char const* file, int line) {
  if (status == COSMATI_SUCCESS) return 1;
  fail(file, line);
  printf("%s: %s: %s\n", text, cosmati_status_text(status), cosmati_last_error());
  return 0;
}

void refused(cosmati_status given, cosmati_status wanted, char const* fragments, char const* text,
             char const* file, int line) {
  char copy[512];
  if (given != wanted) {
    fail(file, line);
    printf("%s: status is %s, not %s: %s\n", text, cosmati_status_text(given), cosmati_status_text(wanted),
           cosmati_last_error());
  }
  strncpy(copy, fragments, sizeof copy - 1);
  copy[sizeof copy - 1] = '\0';
  for (char* fragment = strtok(copy, "|"); fragment != NULL; fragment = strtok(NULL, "|"))
    if (strstr(cosmati_last_error(), fragment) == NULL) {
      fail(file, line);
      printf("%s: the message does not have '%s': %s\n", text, fragment, cosmati_last_error());
    }
}

void same(float const* given, float const* wanted, size_t count, double tolerance, char const* file,
          int line) {
  for (size_t i = 0; i < count; ++i)
    if (!(fabs((double)given[i] - (double)wanted[i]) <= tolerance)) {
      fail(file, line);
      printf("element %zu is %.9g, not %.9g\n", i, (double)given[i], (double)wanted[i]);
      return;
    }
}

static unsigned next(unsigned* state) {
  *state = *state * 1664525u + 1013904223u;
  return *state >> 8;
}

void fill(float* data, size_t count, unsigned seed) {
  for (size_t i = 0; i < count; ++i) data[i] = (float)(next(&seed) / 7 % 7) - 3;
}

void fill_reals(float* data, size_t count, unsigned seed) {
  for (size_t i = 0; i < count; ++i) data[i] = (float)next(&seed) / 4194304.0f - 2;
}

void run_once(cosmati_handle_t handle, cosmati_problem_t problem, char const* options,
              cosmati_argument const* arguments, size_t count, char const* file, int line) {
  cosmati_plan_t plan = NULL;
  cosmati_memory_t workspace = NULL;
  size_t bytes;
  if (problem == NULL) {
    fail(file, line);
    printf("there is no problem\n");
    return;
  }
  if (ok(cosmati_make_plan(handle, problem, options, &plan), "cosmati_make_plan", file, line)) {
    bytes = cosmati_plan_workspace(plan);
    ok(cosmati_allocate(handle, bytes, &workspace), "cosmati_allocate", file, line);
    memset(cosmati_address(workspace), 0xff, bytes);
    ok(cosmati_run(plan, arguments, count, cosmati_address(workspace), bytes, NULL), "cosmati_run", file,
       line);
    cosmati_free(workspace);
  }
  cosmati_plan_destroy(plan);
  cosmati_problem_destroy(problem);
}
