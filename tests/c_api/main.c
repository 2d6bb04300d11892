/* c_api_test BACKEND GROUP...: the C interface on one backend, against loops in C. Exit status 1 if
 * any check fails. */
#include <string.h>

#include "tests/c_api/support.h"

typedef struct {
  char const* name;
  void (*test)(cosmati_handle_t handle);
} group;

static group const groups[] = {
    {"gemm", test_gemm},       {"convolution", test_convolution},   {"pooling", test_pooling},
    {"softmax", test_softmax}, {"elementwise", test_elementwise},   {"normalization", test_normalization},
    {"plans", test_plans},     {"optimizer", test_optimizer},       {"errors", test_errors},
    {"rbf", test_rbf},         {"grouped_gemm", test_grouped_gemm},
};

static int run_group(cosmati_handle_t handle, char const* name) {
  for (size_t i = 0; i < sizeof groups / sizeof groups[0]; ++i)
    if (strcmp(groups[i].name, name) == 0) {
      int const before = failures;
      groups[i].test(handle);
      printf("%s: %s\n", name, failures == before ? "passed" : "FAILED");
      return 1;
    }
  return 0;
}

int main(int count, char** arguments) {
  cosmati_handle_t handle = NULL;
  if (count < 3) {
    fprintf(stderr, "usage: c_api_test BACKEND GROUP...\n");
    return 2;
  }
  if (!OK(cosmati_create(arguments[1], "threads=2", &handle))) return 1;
  CHECK(strcmp(cosmati_backend(handle), arguments[1]) == 0);
  for (int i = 2; i < count; ++i)
    if (!run_group(handle, arguments[i])) {
      fprintf(stderr, "there is no group %s\n", arguments[i]);
      return 2;
    }
  cosmati_destroy(handle);
  return failures == 0 ? 0 : 1;
}
