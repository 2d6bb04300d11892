/* Cosmati's C interface (C11, and C++): matrix products, convolutions and what surrounds them, on tensors of
 * any strides. docs/c-api.md is a tour with a complete program.
 *
 *   handle    a device: the processor, a GPU, the emulator                cosmati_create
 *   problem   what is asked: types, extents, strides; no pointers         cosmati_gemm_problem, ...
 *   plan      how it is computed, compiled and ready to run               cosmati_make_plan, _find_plan
 *   run       arguments by name, enqueued on a stream; nothing is slow    cosmati_run
 *
 * Threads: handles, problems and plans are immutable once made; any number of threads may use one at once. A
 * plan needs neither the handle nor the problem that it was made of: they may be destroyed before it. To
 * destroy an object while another thread uses it is an error of the caller. There is no other state but the
 * message of the last error, which is the calling thread's own.
 *
 * Errors: what can fail returns a status, and cosmati_last_error() is a sentence that names the tensor, its
 * value and what would be legal. Outputs are written on success only. A null pointer is COSMATI_BAD_REQUEST
 * except where null is said to mean something. Destroying null does nothing.
 *
 * Structs that begin with `size` come from the function cosmati_default_..., which sets it and every field.
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

/* COSMATI_VERSION_NUMBER of the library that runs, which may be newer than this header. Before 1.0.0 only
 * libraries of the same minor version are compatible. Cannot fail. */
COSMATI_API int cosmati_version(void);

/* ---- Errors */

typedef enum cosmati_status {
  COSMATI_SUCCESS = 0,
  COSMATI_BAD_REQUEST = 1,   /* what was asked for is not defined, or not possible under the options given */
  COSMATI_BAD_FILE = 2,      /* a file is not what it should be */
  COSMATI_UNAVAILABLE = 3,   /* a backend, device, library or kernel is not here */
  COSMATI_OUT_OF_MEMORY = 4, /* an allocation failed, on the host or on the device */
  COSMATI_SYSTEM = 5,        /* the operating system or the driver refused; the message holds its reason */
  COSMATI_INTERNAL = 6       /* a defect of the library */
} cosmati_status;

/* What went wrong in this thread's last call that failed; "" if none did. Valid until the next failure in
 * this thread; later successes leave it. At most 4095 bytes of UTF-8. Cannot fail. */
COSMATI_API char const* cosmati_last_error(void);
/* "bad request", ...; static. Cannot fail. */
COSMATI_API char const* cosmati_status_text(cosmati_status status);

/* ---- Tensors, as a problem describes them: type, extents, strides; no pointer */

typedef enum cosmati_type {
  COSMATI_F64 = 0,
  COSMATI_F32 = 1,
  COSMATI_TF32 = 2, /* held as f32; products may round its last 13 bits away */
  COSMATI_F16 = 3,
  COSMATI_BF16 = 4,
  COSMATI_E4M3 = 5,
  COSMATI_E5M2 = 6,
  COSMATI_S8 = 7,
  COSMATI_U8 = 8,
  COSMATI_S32 = 9
} cosmati_type;

#define COSMATI_MAX_RANK 6

/* Element (i, j, ...) lies at data + i * stride[0] + j * stride[1] + ..., in elements. Strides are 0 or more;
 * of what is written no two elements may share a place. Rank 0: there is no such tensor. */
typedef struct cosmati_tensor {
  int32_t type; /* a cosmati_type */
  int32_t rank;
  int64_t extent[COSMATI_MAX_RANK];
  int64_t stride[COSMATI_MAX_RANK];
  /* Bytes, a power of two: what the pointer is promised to be a multiple of. 0 is 16. Wider promises make
   * wider loads on GPUs; cosmati_run refuses a pointer that breaks the promise, on every backend. Promise the
   * type's size if you know no more. */
  int64_t alignment;
} cosmati_tensor;

typedef enum cosmati_format { COSMATI_NCHW = 0, COSMATI_NHWC = 1, COSMATI_CHWN = 2 } cosmati_format;

/* Any extents and strides. These four cannot fail: what is wrong with a tensor is said by the problem that
 * gets it. */
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

/* Without gaps, the last index fastest. */
static inline cosmati_tensor cosmati_packed(int type, int rank, int64_t const* extent) {
  int64_t stride[COSMATI_MAX_RANK] = {0, 0, 0, 0, 0, 0};
  int64_t step = 1;
  for (int d = (rank < COSMATI_MAX_RANK ? rank : COSMATI_MAX_RANK) - 1; d >= 0; --d) {
    stride[d] = step;
    /* What is negative or too large is refused later. */
    step = extent[d] <= 0 ? 0 : step > INT64_MAX / extent[d] ? INT64_MAX : step * extent[d];
  }
  return cosmati_strided(type, rank, extent, stride);
}

/* Element (i, j) at i * row_stride + j * column_stride: row-major (columns, 1), column-major (1, rows). */
static inline cosmati_tensor cosmati_matrix(int type, int64_t rows, int64_t columns, int64_t row_stride,
                                            int64_t column_stride) {
  int64_t extent[2], stride[2];
  extent[0] = rows, extent[1] = columns;
  stride[0] = row_stride, stride[1] = column_stride;
  return cosmati_strided(type, 2, extent, stride);
}

/* Images, always indexed (n, c, h, w), without gaps, in the order of `format`. Filters, indexed (k, c, r, s):
 * the same formats mean KCRS, KRSC and CRSK. */
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

/* A device, ready for use. `backend` is one of
 *   "cpu"                 the processor
 *   "cuda", "cuda:N"      GPU 0, or N
 *   "emulator"            the GPU kernels, slowly, on the processor
 *   "reference"           naive loops in double precision
 *   "auto"                "cuda" if there is a GPU, else "cpu"
 * `options`: null, or entries "key=value" separated by ';':
 *   threads=N             of one run, on the processor (default: as many as there are cores); fewer where the
 *                         system refuses threads
 *   tuning=FILE           measured choices as `cosmati find` and `tune` write them; plans go by them
 * Handles and plans of the processor outlive a fork: the child computes as its parent does, provided that no
 * other thread was within a call when the process forked. Those of a GPU do not.
 * Errors: COSMATI_UNAVAILABLE (no such backend or GPU here), COSMATI_BAD_REQUEST, COSMATI_BAD_FILE. */
COSMATI_API cosmati_status cosmati_create(char const* backend, char const* options, cosmati_handle_t* handle);
COSMATI_API void cosmati_destroy(cosmati_handle_t handle);
/* The name of the handle's backend: "cuda", "cpu", "emulator" or "reference"; static. */
COSMATI_API char const* cosmati_backend(cosmati_handle_t handle);

/* A CUstream or cudaStream_t of the device's primary context (that of the CUDA runtime); null: the default
 * stream. The other backends ignore it and are done when a call returns. */
typedef void* cosmati_stream;

/* Waits until all that was enqueued on `stream` is done, and reports errors of kernels that ran there. */
COSMATI_API cosmati_status cosmati_wait(cosmati_handle_t handle, cosmati_stream stream);

/* Memory that every plan of the handle takes for tensors and workspace: of the device on the backend cuda,
 * else of the host; aligned to 256 bytes, contents undefined. For programs that have no allocator of their
 * own: any other memory that the device can reach will do as well. */
typedef struct cosmati_memory* cosmati_memory_t;
COSMATI_API cosmati_status cosmati_allocate(cosmati_handle_t handle, size_t bytes, cosmati_memory_t* memory);
COSMATI_API void cosmati_free(cosmati_memory_t memory);
/* The address, on the device; null for null. */
COSMATI_API void* cosmati_address(cosmati_memory_t memory);
/* Copies `bytes` bytes from and to the host, at `offset` of the memory. Ordered after what is in the default
 * stream, and done when they return; not to be captured. Errors: COSMATI_BAD_REQUEST (the range is not inside
 * the memory), COSMATI_SYSTEM. */
COSMATI_API cosmati_status cosmati_upload(cosmati_memory_t memory, size_t offset, void const* source,
                                          size_t bytes);
COSMATI_API cosmati_status cosmati_download(cosmati_memory_t memory, size_t offset, void* target,
                                            size_t bytes);

/* ---- Plans */

typedef struct cosmati_problem* cosmati_problem_t; /* made by the functions of cosmati/c/problems.h, below */
typedef struct cosmati_plan* cosmati_plan_t;

COSMATI_API void cosmati_problem_destroy(cosmati_problem_t problem);

/* Chooses the kernel for a problem by prediction, and prepares it: compiles or loads it, creates a library's
 * primitives. All that is slow happens here. `options`: null, or entries "key=value" separated by ';':
 *   kernel=NAME           only this kernel; cosmati_plan_candidate tells the names
 *   max_workspace=BYTES   no kernel that needs more
 *   max_error=RATIO       no kernel that states a larger expected rounding error, as a share of the results
 *   deterministic=yes     only kernels that give the same bits in every run (no; all of them do)
 *   batch_invariant=yes   only kernels that compute a row of a product, a matrix of a batch or an image to
 *                         the same bits however many others there are (no); not for cosmati_find_plan
 *   policy=TEXT           of kernels that have one: a name, field=value,..., or both
 * Errors: COSMATI_BAD_REQUEST (no kernel accepts this; the message says why each refuses),
 * COSMATI_UNAVAILABLE (the backend cannot do this operation), COSMATI_OUT_OF_MEMORY, COSMATI_SYSTEM. */
COSMATI_API cosmati_status cosmati_make_plan(cosmati_handle_t handle, cosmati_problem_t problem,
                                             char const* options, cosmati_plan_t* plan);
/* The same, but each kernel that accepts the problem is run on data of the library's own, and the fastest is
 * taken; cosmati_plan_candidate tells the times. Allocates, waits for the default stream, takes tenths of
 * seconds; not to be captured. Options as above, and
 *   seconds=S             for each kernel (0.1); it runs twice at least
 *   reference=yes         also naive loops where there is something better (no)
 * Errors as above. */
COSMATI_API cosmati_status cosmati_find_plan(cosmati_handle_t handle, cosmati_problem_t problem,
                                             char const* options, cosmati_plan_t* plan);
COSMATI_API void cosmati_plan_destroy(cosmati_plan_t plan);

/* Bytes of workspace that run needs; 0 for null. */
COSMATI_API size_t cosmati_plan_workspace(cosmati_plan_t plan);
/* The kernel that was chosen. This and the next live as long as the plan. Null for null. */
COSMATI_API char const* cosmati_plan_kernel(cosmati_plan_t plan);
/* For people: every kernel that was considered, a line each: chosen, possible, or refused and why. */
COSMATI_API char const* cosmati_plan_explanation(cosmati_plan_t plan);

typedef struct cosmati_candidate {
  size_t size;
  char const* kernel;
  char const* refusal; /* "": it accepts the problem; else the requirement, the value, what would be legal */
  char const* recipe;  /* how it would run: tiles, splits, ...; "": nothing to choose */
  size_t workspace_bytes;
  double predicted_seconds; /* 0: it has no prediction */
  double measured_seconds;  /* by cosmati_find_plan; 0: not measured */
} cosmati_candidate;

/* How many kernels were considered, and number `index` of them: in order of time if they were measured, those
 * that were not behind; else in order of preference. The strings live as long as the plan. */
COSMATI_API size_t cosmati_plan_candidates(cosmati_plan_t plan);
COSMATI_API cosmati_status cosmati_plan_candidate(cosmati_plan_t plan, size_t index,
                                                  cosmati_candidate* candidate);

/* One argument of a run: a tensor's address or a scalar's value, by its name. */
typedef struct cosmati_argument {
  char const* name;
  void const* data; /* of a tensor; outputs are written through it */
  double value;     /* of a scalar */
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

/* Computes what the plan's problem says. On the backend cuda: enqueues kernels and memsets on `stream` and
 * returns; it allocates nothing, waits for nothing and may be captured in a CUDA graph from its first call
 * (the graph keeps addresses and scalars; the plan must outlive it). Elsewhere: done when it returns.
 *
 * `arguments`: those that the problem names, in any order, each once. Data are device pointers on the backend
 * cuda, else host pointers, and stay in use until the work is done; the array itself and the names may go
 * when this returns.
 *
 * `workspace`: device memory on cuda, aligned to 256 bytes (host: 64), cosmati_plan_workspace bytes of it;
 * null if that is 0. It may be dirty, belongs to the caller, and must not be shared by runs that may happen
 * at the same time.
 *
 * Errors: COSMATI_BAD_REQUEST (an argument is missing, unknown, given twice, null or not aligned as promised;
 * the workspace is too small), COSMATI_SYSTEM (also where the system has no more threads for a plan that
 * needs as many as it was made for). */
COSMATI_API cosmati_status cosmati_run(cosmati_plan_t plan, cosmati_argument const* arguments, size_t count,
                                       void* workspace, size_t workspace_bytes, cosmati_stream stream);

#ifdef __cplusplus
}
#endif

#include "cosmati/c/problems.h"

#endif
