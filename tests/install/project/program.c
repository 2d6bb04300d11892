/* y = relu(convolution(x, w) + bias[k]) on whatever device is there. */
#include <stdio.h>
#include <stdlib.h>

#include <cosmati.h>

enum { N = 2, C = 3, H = 32, W = 32, K = 8, R = 3, S = 3 };

static void check(cosmati_status status) {
  if (status == COSMATI_SUCCESS) return;
  fprintf(stderr, "%s: %s\n", cosmati_status_text(status), cosmati_last_error());
  exit(1);
}

/* A tensor of floats on the device, each of them `value`. */
static cosmati_memory_t filled(cosmati_handle_t device, size_t count, float value) {
  cosmati_memory_t memory;
  float* numbers = malloc(count * sizeof *numbers);
  if (numbers == NULL) exit(1);
  for (size_t i = 0; i < count; ++i) numbers[i] = value;
  check(cosmati_allocate(device, count * sizeof *numbers, &memory));
  check(cosmati_upload(memory, 0, numbers, count * sizeof *numbers));
  free(numbers);
  return memory;
}

int main(int count, char** arguments) {
  cosmati_handle_t device;
  check(cosmati_create(count > 1 ? arguments[1] : "cpu", NULL, &device));

  /* What is asked: shapes, layouts, an epilogue. No pointer yet. */
  int64_t const channels = K;
  cosmati_named_tensor const bias = {"bias", cosmati_packed(COSMATI_F32, 1, &channels)};
  cosmati_convolution convolution = cosmati_default_convolution();
  convolution.x = cosmati_image(COSMATI_F32, COSMATI_NHWC, N, C, H, W);
  convolution.w = cosmati_image(COSMATI_F32, COSMATI_NCHW, K, C, R, S);
  convolution.y = cosmati_image(COSMATI_F32, COSMATI_NHWC, N, K, H, W);
  for (int i = 0; i < 2; ++i) convolution.pad_begin[i] = convolution.pad_end[i] = 1;
  convolution.epilogue = "relu(scale*acc + bias[k])";
  convolution.epilogue_tensors = &bias;
  convolution.epilogue_tensor_count = 1;
  cosmati_problem_t problem;
  check(cosmati_convolution_problem(&convolution, &problem));

  /* How: the fastest way, measured. All that is slow happens here. */
  cosmati_plan_t plan;
  check(cosmati_find_plan(device, problem, "seconds=0.01; max_workspace=100000000", &plan));
  cosmati_problem_destroy(problem);
  fputs(cosmati_plan_explanation(plan), stdout);

  /* Run, as often as one likes, from as many threads, each with a workspace of its own. */
  size_t const bytes = cosmati_plan_workspace(plan);
  cosmati_memory_t x = filled(device, N * C * H * W, 1), w = filled(device, K * C * R * S, 0.5f);
  cosmati_memory_t b = filled(device, K, -1), y = filled(device, N * K * H * W, 0), workspace;
  check(cosmati_allocate(device, bytes, &workspace));
  cosmati_argument const bound[] = {cosmati_data("x", cosmati_address(x)),
                                    cosmati_data("w", cosmati_address(w)),
                                    cosmati_data("y", cosmati_address(y)),
                                    cosmati_data("bias", cosmati_address(b)), cosmati_number("scale", 2)};
  cosmati_stream const stream = NULL;
  check(cosmati_run(plan, bound, sizeof bound / sizeof bound[0], cosmati_address(workspace), bytes, stream));
  check(cosmati_wait(device, stream));

  float corner, inside;
  check(cosmati_download(y, 0, &corner, sizeof corner));
  check(cosmati_download(y, (5 * W + 5) * K * sizeof inside, &inside, sizeof inside));
  printf("%s, by %s: %g in the corner, %g inside\n", cosmati_backend(device), cosmati_plan_kernel(plan),
         (double)corner, (double)inside); /* 2 * 12 * 0.5 - 1 and 2 * 27 * 0.5 - 1 */

  cosmati_memory_t const all[] = {x, w, b, y, workspace};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i) cosmati_free(all[i]);
  cosmati_plan_destroy(plan);
  cosmati_destroy(device);
  return corner == 11 && inside == 26 ? 0 : 1;
}
