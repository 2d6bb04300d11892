/* Cosmati's C interface (C11 and C++): matrix products, convolutions and the operations around them, on
 * tensors of any strides. docs/c-api.md is a tour with a complete program.
 *
 *   handle    a device: the CPU, a GPU or the emulator                    cosmati_create
 *   problem   what to compute: types, extents, strides; no pointers       cosmati_gemm_problem, ...
 *   plan      how to compute it; compiled and ready to run                cosmati_make_plan, _find_plan
 *   run       takes arguments by name and enqueues on a stream; fast      cosmati_run
 *
 * Threads: handles, problems and plans are immutable once created; any number of threads may use one
 * concurrently. A plan needs neither the handle nor the problem that it was made from: they may be destroyed
 * first. The caller must not destroy an object that another thread is using. The only other state is the
 * message of the last error, which is thread-local.
 *
 * Errors: functions that can fail return a status, and cosmati_last_error() returns a sentence that names the
 * tensor, its value and the valid values. Outputs are written only on success. A null pointer is
 * COSMATI_BAD_REQUEST unless null is documented to have a meaning. Destroying null does nothing.
 *
 * Structs that begin with `size` are created by the function cosmati_default_..., which sets it and every
 * field.
 */
#ifndef COSMATI_H
#define COSMATI_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define COSMATI_VERSION_MAJOR 0
#define COSMATI_VERSION_MINOR 1
#define COSMATI_VERSION_PATCH 0
#define COSMATI_VERSION_NUMBER \
  (COSMATI_VERSION_MAJOR * 10000 + COSMATI_VERSION_MINOR * 100 + COSMATI_VERSION_PATCH)

#if defined(__GNUC__)
#define COSMATI_API __attribute__((visibility("default")))
#else
#define COSMATI_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Returns COSMATI_VERSION_NUMBER of the loaded library, which may be newer than this header. Before 1.0.0
 * only libraries of the same minor version are compatible. Cannot fail. */
COSMATI_API int cosmati_version(void);

/* ---- Errors */

typedef enum cosmati_status {
  COSMATI_SUCCESS = 0,
  COSMATI_BAD_REQUEST = 1,   /* the request is invalid, or impossible under the given options */
  COSMATI_BAD_FILE = 2,      /* a file is malformed */
  COSMATI_UNAVAILABLE = 3,   /* a backend, device, library or kernel is not available */
  COSMATI_OUT_OF_MEMORY = 4, /* an allocation failed, on the host or on the device */
  COSMATI_SYSTEM = 5,        /* an operating system or driver call failed; the message contains its reason */
  COSMATI_INTERNAL = 6       /* a defect of the library */
} cosmati_status;

/* Returns the message of this thread's last failed call; "" if none failed. Valid until the next failure in
 * this thread; successful calls do not clear it. At most 4095 bytes of UTF-8. Cannot fail. */
COSMATI_API char const* cosmati_last_error(void);
/* Returns the name of a status, e.g. "bad request"; a static string. Cannot fail. */
COSMATI_API char const* cosmati_status_text(cosmati_status status);

/* ---- Tensors as a problem describes them: type, extents, strides; no pointer */

typedef enum cosmati_type {
  COSMATI_F64 = 0,
  COSMATI_F32 = 1,
  COSMATI_TF32 = 2, /* stored as f32; products may round off its last 13 bits */
  COSMATI_F16 = 3,
  COSMATI_BF16 = 4,
  COSMATI_E4M3 = 5,
  COSMATI_E5M2 = 6,
  COSMATI_S8 = 7,
  COSMATI_U8 = 8,
  COSMATI_S32 = 9
} cosmati_type;

#define COSMATI_MAX_RANK 6

/* Element (i, j, ...) is at data + i * stride[0] + j * stride[1] + ..., in elements. Strides are
 * non-negative; elements of an output must not overlap. Rank 0: the tensor is absent. */
typedef struct cosmati_tensor {
  int32_t type; /* a cosmati_type */
  int32_t rank;
  int64_t extent[COSMATI_MAX_RANK];
  int64_t stride[COSMATI_MAX_RANK];
  /* Guaranteed alignment of the pointer in bytes, a power of two; 0 means 16. A larger alignment allows wider
   * loads on GPUs. cosmati_run rejects a pointer that is not aligned accordingly, on every backend. If
   * nothing more is known, use the size of the type. */
  int64_t alignment;
} cosmati_tensor;

typedef enum cosmati_format { COSMATI_NCHW = 0, COSMATI_NHWC = 1, COSMATI_CHWN = 2 } cosmati_format;

/* A tensor with arbitrary extents and strides. These four functions cannot fail: an invalid tensor is
 * reported by the function that creates a problem from it. */
static inline cosmati_tensor cosmati_strided(int type, int rank, int64_t const* extent,
                                             int64_t const* stride) {
  cosmati_tensor tensor;
  memset(&tensor, 0, sizeof(tensor));
  tensor.type = type;
  tensor.rank = rank;
  for (int d = 0; d < rank && d < COSMATI_MAX_RANK; ++d) {
    tensor.extent[d] = extent[d];
    tensor.stride[d] = stride[d];
  }
  return tensor;
}

/* A dense tensor in row-major order (the last index is contiguous). */
static inline cosmati_tensor cosmati_packed(int type, int rank, int64_t const* extent) {
  int64_t stride[COSMATI_MAX_RANK] = {0, 0, 0, 0, 0, 0};
  int64_t step = 1;
  for (int d = (rank < COSMATI_MAX_RANK ? rank : COSMATI_MAX_RANK) - 1; d >= 0; --d) {
    stride[d] = step;
    /* Negative or too large extents are rejected later. */
    step = extent[d] <= 0 ? 0 : step > INT64_MAX / extent[d] ? INT64_MAX : step * extent[d];
  }
  return cosmati_strided(type, rank, extent, stride);
}

/* A matrix with element (i, j) at i * row_stride + j * column_stride. The strides of a dense matrix are
 * (columns, 1) if it is row-major and (1, rows) if it is column-major. */
static inline cosmati_tensor cosmati_matrix(int type, int64_t rows, int64_t columns, int64_t row_stride,
                                            int64_t column_stride) {
  int64_t extent[2], stride[2];
  extent[0] = rows, extent[1] = columns;
  stride[0] = row_stride, stride[1] = column_stride;
  return cosmati_strided(type, 2, extent, stride);
}

/* A dense batch of images, always indexed (n, c, h, w), in the memory order of `format`. For filters, indexed
 * (k, c, r, s), the same formats mean KCRS, KRSC and CRSK. */
static inline cosmati_tensor cosmati_image(int type, int format, int64_t n, int64_t c, int64_t h, int64_t w) {
  /* The dimensions, slowest first. */
  static int const orders[3][4] = {{0, 1, 2, 3}, {0, 2, 3, 1}, {1, 2, 3, 0}};
  int const* order = orders[format == COSMATI_NHWC ? 1 : format == COSMATI_CHWN ? 2 : 0];
  int64_t extent[4], in_memory[4], stride[4];
  cosmati_tensor packed;
  extent[0] = n, extent[1] = c, extent[2] = h, extent[3] = w;
  for (int d = 0; d < 4; ++d) in_memory[d] = extent[order[d]];
  packed = cosmati_packed(type, 4, in_memory);
  for (int d = 0; d < 4; ++d) stride[order[d]] = packed.stride[d];
  return cosmati_strided(type, 4, extent, stride);
}

/* ---- Devices */

typedef struct cosmati_handle* cosmati_handle_t;

/* Creates a handle of a device. `backend` is one of
 *   "cpu"                 the CPU
 *   "cuda", "cuda:N"      GPU 0, or GPU N
 *   "emulator"            the GPU kernels, executed slowly on the CPU
 *   "reference"           naive loops in double precision
 *   "auto"                "cuda" if there is a GPU, otherwise "cpu"
 * `options`: null, or entries "key=value" separated by ';':
 *   threads=N             CPU threads per run (default: one per core); fewer if the system refuses to create
 *                         them
 *   tuning=FILE           measured choices as written by `cosmati find` and `tune`, which plans then use
 * Handles and plans of the CPU survive a fork: the child can use them like its parent, provided that no other
 * thread was inside a call when the process forked. Those of a GPU do not.
 * Errors: COSMATI_UNAVAILABLE (the backend or GPU is not available), COSMATI_BAD_REQUEST, COSMATI_BAD_FILE.
 */
COSMATI_API cosmati_status cosmati_create(char const* backend, char const* options, cosmati_handle_t* handle);
COSMATI_API void cosmati_destroy(cosmati_handle_t handle);
/* Returns the name of the handle's backend: "cuda", "cpu", "emulator" or "reference"; a static string. */
COSMATI_API char const* cosmati_backend(cosmati_handle_t handle);

/* A CUstream or cudaStream_t of the device's primary context (the one that the CUDA runtime uses); null: the
 * default stream. Other backends ignore it and are synchronous. */
typedef void* cosmati_stream;

/* Waits until all work enqueued on `stream` is complete; COSMATI_SYSTEM if a kernel that ran on it failed. */
COSMATI_API cosmati_status cosmati_wait(cosmati_handle_t handle, cosmati_stream stream);

/* Memory for the tensors and workspaces of the handle's plans: device memory on the backend cuda, otherwise
 * host memory; aligned to 256 bytes, contents undefined. It is for programs without an allocator of their
 * own: any other memory that the device can access works as well. Errors: COSMATI_OUT_OF_MEMORY. */
typedef struct cosmati_memory* cosmati_memory_t;
COSMATI_API cosmati_status cosmati_allocate(cosmati_handle_t handle, size_t bytes, cosmati_memory_t* memory);
COSMATI_API void cosmati_free(cosmati_memory_t memory);
/* Returns the address (on cuda a device pointer); null for null. */
COSMATI_API void* cosmati_address(cosmati_memory_t memory);
/* Copy `bytes` bytes from or to the host, at byte `offset` of the memory. They run after all work enqueued on
 * the default stream, and are complete when they return; they cannot be captured. Errors: COSMATI_BAD_REQUEST
 * (the range is not inside the memory), COSMATI_SYSTEM. */
COSMATI_API cosmati_status cosmati_upload(cosmati_memory_t memory, size_t offset, void const* source,
                                          size_t bytes);
COSMATI_API cosmati_status cosmati_download(cosmati_memory_t memory, size_t offset, void* target,
                                            size_t bytes);

/* ---- Plans */

typedef struct cosmati_problem* cosmati_problem_t; /* created by functions of cosmati/c/problems.h */
typedef struct cosmati_plan* cosmati_plan_t;

COSMATI_API void cosmati_problem_destroy(cosmati_problem_t problem);

/* Chooses the kernel for a problem by predicted time and prepares it: compiles or loads it, or creates oneDNN
 * primitives. All slow work happens here. `options`: null, or entries "key=value" separated by ';':
 *   kernel=NAME           use this kernel; cosmati_plan_candidate lists the names
 *   max_workspace=BYTES   reject kernels that need a larger workspace
 *   max_error=RATIO       reject kernels with a larger expected relative rounding error
 *   deterministic=yes     only kernels whose results are bit-identical in every run (default: no; currently
 *                         all are)
 *   batch_invariant=yes   only kernels for which the result of a row of a product, of a matrix of a batch or
 *                         of an image is bit-identical for every batch size (default: no); not for
 *                         cosmati_find_plan
 *   policy=TEXT           for kernels with policies: a name, field=value,..., or both
 * Errors: COSMATI_BAD_REQUEST (no kernel accepts the problem; the message says why each rejects it),
 * COSMATI_UNAVAILABLE (the backend does not support the operation), COSMATI_OUT_OF_MEMORY, COSMATI_SYSTEM. */
COSMATI_API cosmati_status cosmati_make_plan(cosmati_handle_t handle, cosmati_problem_t problem,
                                             char const* options, cosmati_plan_t* plan);
/* Like cosmati_make_plan, but runs each kernel that accepts the problem, on random data, and chooses the
 * fastest; cosmati_plan_candidate reports the times. Allocates memory, waits for the default stream, takes
 * tenths of a second; it cannot be captured. Options as above, and
 *   seconds=S             measuring time per kernel (default: 0.1); each runs at least twice
 *   reference=yes         also measure naive loops if another kernel accepts the problem (default: no)
 * Errors as above. */
COSMATI_API cosmati_status cosmati_find_plan(cosmati_handle_t handle, cosmati_problem_t problem,
                                             char const* options, cosmati_plan_t* plan);
COSMATI_API void cosmati_plan_destroy(cosmati_plan_t plan);

/* Returns the bytes of workspace that a run needs; 0 for null. */
COSMATI_API size_t cosmati_plan_workspace(cosmati_plan_t plan);
/* Returns the name of the chosen kernel. This string and the next are valid as long as the plan. Null for
 * null. */
COSMATI_API char const* cosmati_plan_kernel(cosmati_plan_t plan);
/* Returns the expected relative rounding error of the chosen kernel: the standard deviation of an output's
 * error divided by that of the outputs, for random inputs of mean 0, before rounding to the output type; 0 if
 * sums are exact (integers) or if the kernel states none. 0 for null. */
COSMATI_API double cosmati_plan_expected_error(cosmati_plan_t plan);
/* Returns human-readable text, one line per kernel considered: chosen, possible, or rejected and why. */
COSMATI_API char const* cosmati_plan_explanation(cosmati_plan_t plan);

typedef struct cosmati_candidate {
  size_t size;
  char const* kernel;
  char const* refusal; /* "": accepts the problem; else the requirement, the value, valid values */
  char const* recipe;  /* parameters: tiles, splits, ...; "": nothing to choose */
  size_t workspace_bytes;
  double predicted_seconds; /* 0: no prediction */
  double measured_seconds;  /* by cosmati_find_plan; 0: not measured */
  double expected_error;    /* as in cosmati_plan_expected_error */
} cosmati_candidate;

/* The number of kernels considered, and the one at `index`. After cosmati_find_plan, only those that were
 * measured, fastest first; otherwise in order of preference. The strings are valid as long as the plan. */
COSMATI_API size_t cosmati_plan_candidates(cosmati_plan_t plan);
COSMATI_API cosmati_status cosmati_plan_candidate(cosmati_plan_t plan, size_t index,
                                                  cosmati_candidate* candidate);

/* An argument of a run by name: a tensor's address or a scalar's value. */
typedef struct cosmati_argument {
  char const* name;
  void const* data; /* a tensor's address; outputs are written through it */
  double value;     /* a scalar's value */
} cosmati_argument;

static inline cosmati_argument cosmati_data(char const* name, void const* data) {
  cosmati_argument argument;
  memset(&argument, 0, sizeof(argument));
  argument.name = name, argument.data = data;
  return argument;
}
static inline cosmati_argument cosmati_number(char const* name, double value) {
  cosmati_argument argument;
  memset(&argument, 0, sizeof(argument));
  argument.name = name, argument.value = value;
  return argument;
}

/* Computes the plan's problem. On the backend cuda it enqueues kernels and memsets on `stream` and returns;
 * it allocates nothing, does not block and may be captured in a CUDA graph from its first call (the graph
 * keeps addresses and scalars; the plan must outlive it). Other backends return when the result is complete.
 *
 * `arguments`: those that the problem names, in any order, each once. Data are device pointers on the backend
 * cuda, otherwise host pointers, and must stay valid until the work is complete; the array itself and the
 * names need not outlive the call.
 *
 * `workspace`: cosmati_plan_workspace bytes, device memory aligned to 256 bytes on cuda, otherwise host
 * memory aligned to 64; null if the size is 0. Its initial content does not matter, the caller owns it, and
 * concurrent runs must not share it.
 *
 * Errors: COSMATI_BAD_REQUEST (an argument is missing, unknown, given twice, null or not aligned as
 * described; the workspace is too small), COSMATI_SYSTEM (also if the system cannot create the threads that a
 * plan requires). */
COSMATI_API cosmati_status cosmati_run(cosmati_plan_t plan, cosmati_argument const* arguments, size_t count,
                                       void* workspace, size_t workspace_bytes, cosmati_stream stream);

#ifdef __cplusplus
}
#endif

#include "cosmati/c/problems.h"

#endif
