/* Helpers of the C programs of this folder: checks that count failures, numbers with exact sums, and plans
 * run by one call. */
#ifndef COSMATI_TESTS_C_API_SUPPORT_H
#define COSMATI_TESTS_C_API_SUPPORT_H

#include <stdio.h>

#include "cosmati.h"

extern int failures;

/* Checks a condition; a failure is counted and printed. */
#define CHECK(condition) check_that((condition) != 0, #condition, __FILE__, __LINE__)
void check_that(int holds, char const* text, char const* file, int line);

/* Expects the call to succeed; otherwise prints its message. */
#define OK(call) ok((call), #call, __FILE__, __LINE__)
int ok(cosmati_status status, char const* text, char const* file, int line);

/* Expects the call to fail with this status and a message that contains all fragments, separated by '|'. */
#define REFUSED(call, status, fragments) refused((call), (status), (fragments), #call, __FILE__, __LINE__)
void refused(cosmati_status given, cosmati_status wanted, char const* fragments, char const* text,
             char const* file, int line);

/* Expects both arrays to agree within `tolerance`; NaN agrees with nothing. */
#define SAME(given, wanted, count, tolerance) \
  same((given), (wanted), (count), (tolerance), __FILE__, __LINE__)
void same(float const* given, float const* wanted, size_t count, double tolerance, char const* file,
          int line);

/* Fills an array with integers from -3 to 3, so that sums of products are exact in f32. */
void fill(float* data, size_t count, unsigned seed);
/* Fills an array with numbers between -2 and 2. */
void fill_reals(float* data, size_t count, unsigned seed);

/* Plans, runs with an uninitialized workspace, and destroys problem and plan. */
#define RUN(handle, problem, arguments)                                                                  \
  run_once((handle), (problem), NULL, (arguments), sizeof(arguments) / sizeof((arguments)[0]), __FILE__, \
           __LINE__)
void run_once(cosmati_handle_t handle, cosmati_problem_t problem, char const* options,
              cosmati_argument const* arguments, size_t count, char const* file, int line);

void test_gemm(cosmati_handle_t handle);
void test_grouped_gemm(cosmati_handle_t handle);
void test_convolution(cosmati_handle_t handle);
void test_pooling(cosmati_handle_t handle);
void test_normalization(cosmati_handle_t handle);
void test_softmax(cosmati_handle_t handle);
void test_rbf(cosmati_handle_t handle);
void test_elementwise(cosmati_handle_t handle);
void test_optimizer(cosmati_handle_t handle);
void test_plans(cosmati_handle_t handle);
void test_errors(cosmati_handle_t handle);

#endif
