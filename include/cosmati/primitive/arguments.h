// Launch parameters of the primitives' kernels: one struct for all, independent of template parameters, so
// that the host can fill it for kernels compiled at run time.
#pragma once
#include "cosmati/core/divisor.h"
#include "cosmati/core/number.h"
#include "cosmati/core/philox.h"
#include "cosmati/core/shape.h"

namespace cosmati {

// A kernel reads tensors [0, primitive_inputs) and writes the following ones.
inline constexpr int primitive_inputs = 9, primitive_outputs = 4, primitive_scalars = 12;

// Windows with compile-time extents; for local response normalization, `columns` is the size, and `rows` the
// positions of a plane that a block keeps in shared memory, if any; for transposes of planes, `columns` is
// the channels of a block, and runs_of_columns tells whether y has the planes.
struct WindowPolicy {
  int rows = 0, columns = 0;     // taps
  int down = 1, along = 1;       // strides of the windows
  int pad = 0;                   // columns of padding before the image
  bool padded = false;           // some windows have taps outside the image
  bool runs_of_columns = false;  // runs are along the columns of y, otherwise along channels
};

// The compile-time parameters of a kernel.
struct PrimitivePolicy {
  int threads = 256;           // per block
  int width = 1;               // elements per run; a thread accesses it in vectors of up to 16 bytes
  int unroll = 1;              // runs that a thread has in flight
  int kept = 1, terms = 0;     // number of axes of the positions, and of the terms of each position
  int along = 1;               // threads that share the terms of one position; a power of two. Transposes of
                               // planes: lanes with adjacent runs of a pixel
  bool runs_of_terms = false;  // runs are along the first axis of the terms, otherwise of the positions
  int cached = 0;              // runs of a row that a thread keeps in registers; 0: it reads them twice
  bool packed = false;         // a row is kept in the type of the input
  int operation = 0;           // Combine, RowOperation or WindowOperation
  int indices = 0;             // indices of maximum pooling: 0: none, 1: positions in the image, 2: taps of
                               // the window
  int columns_axis = 0;        // axis of a window's columns; the rows are the next axis
  int cluster = 1;             // blocks that share a row
  bool whole = false;          // all runs are full
  bool backwards = false;      // start with the last positions, which the previous pass read last
  bool bulk = false;           // planes of channels are copied by the copy engine (sm_90 and later)
  WindowPolicy window = {};
  unsigned fixed = 0;  // bit i: input i is the same in all runs of a thread
  int step = 0;        // elements between channels of all tensors of local response normalization; 0: see
                       // the parameters
  int groups = 1;      // groups of `unroll` runs that a thread processes one after the other
};

// Element (i, j, ...) is at data[i * stride[0] + j * stride[1] + ...], with one stride per axis of the
// launch; along the axis of the runs, the stride is that of a complete run.
struct PrimitiveTensor {
  void* data = nullptr;
  Index stride[max_rank] = {};
  DataType type = DataType::f32;  // used only by the emulator: composed kernels have compile-time types

  // Elements between the elements of a run: 1, or 0 if all are the same element.
  int run_stride = 0;
};

// One axis of a window that slides over an image: tap t of window p is at position p * stride + t * dilation
// - pad.
struct WindowSide {
  int image = 1, windows = 1, taps = 1, stride = 1, pad = 0, pad_end = 0, dilation = 1;
  Divisor by_stride, by_dilation;
  Index tap_step = 0;    // elements of x and dx between positions of the image
  Index pair_step = 0;   // elements of dy between windows
  Index index_step = 0;  // elements of the indices between windows
};

struct PrimitiveParameters {
  // The axes of the results, then the axes of the terms of one result; fastest first. The extent of the axis
  // of the runs is in runs.
  Divisor axis[max_rank];
  unsigned positions = 0;       // the product of the result axes
  unsigned terms = 0;           // the product of the term axes
  unsigned terms_of_split = 0;  // terms per block along y of the grid
  Index split_stride = 0;       // elements between the outputs of such blocks
  Index run_extent = 0;         // elements along the axis of the runs
  PrimitiveTensor tensor[primitive_inputs + primitive_outputs];
  double scalar[primitive_scalars] = {};
  // Parameters of dropout.
  PhiloxKeys seed;
  unsigned long long step = 0, threshold = 0;
  WindowSide window[2];
  int classes = 0;
  // For the emulator: the compile-time parameters of a composed kernel.
  PrimitivePolicy policy;
  void const* functions = nullptr;
};
// Launch parameters for the same operation on several dense tensors; member m is computed by the blocks
// starting at first_block[m].
inline constexpr int group_members = 32, group_inputs = 4, group_outputs = 3;
struct PrimitiveGroup {
  PrimitiveParameters common;
  int members = 0;
  unsigned first_block[group_members] = {};
  Index extent[group_members] = {};
  void* input[group_members][group_inputs] = {};
  void* output[group_members][group_outputs] = {};
};
static_assert(sizeof(PrimitiveGroup) <= 4096, "kernel parameters are limited to 4096 bytes");

}  // namespace cosmati
