// Launch parameters of the primitives' kernels: one struct for all, independent of template parameters, so
// that the host can fill it for kernels compiled at run time.
#pragma once
#include "cosmati/core/divisor.h"
#include "cosmati/core/number.h"
#include "cosmati/core/shape.h"

namespace cosmati {

// A kernel reads tensors [0, primitive_inputs) and writes those from there on.
inline constexpr int primitive_inputs = 9, primitive_outputs = 4, primitive_scalars = 12;

// Windows whose extents the compiler knows; of local response normalization, `columns` is the size.
struct WindowPolicy {
  int rows = 0, columns = 0;     // taps
  int down = 1, along = 1;       // strides of the windows
  int pad = 0;                   // columns before the image
  bool padded = false;           // some windows have taps outside of the image
  bool runs_of_columns = false;  // runs lie along the columns of y, else along channels
};

// How a kernel is made; a template argument of the composed kernels.
struct PrimitivePolicy {
  int threads = 256;           // of a block
  int width = 1;               // elements of a run, which a thread moves by accesses of up to 16 bytes
  int unroll = 1;              // runs that a thread has on their way at once
  int kept = 1, terms = 0;     // axes of the positions, and of the terms that each is made from
  int along = 1;               // threads that share the terms of one position; a power of two
  bool runs_of_terms = false;  // runs lie along the first axis of the terms, else along that of the positions
  int cached = 0;              // runs of a row that a thread keeps in registers; 0: it reads them twice
  bool packed = false;         // what is kept of a row stays in the type of the input
  int operation = 0;           // Combine, RowOperation or WindowOperation
  int indices = 0;             // of maximum pooling: 0 none, 1 places in the image, 2 taps of the window
  int columns_axis = 0;        // of a window: which axis are the columns; the rows are the next
  int cluster = 1;             // blocks that share a row
  bool whole = false;          // all runs have all their elements
  bool backwards = false;      // the last positions first: what the pass before has read last
  WindowPolicy window = {};
};

// Element (i, j, ...) lies at data[i * stride[0] + j * stride[1] + ...], one stride for each axis of the
// launch; along the axis that runs are taken of, the stride is that of a whole run.
struct PrimitiveTensor {
  void* data = nullptr;
  Index stride[max_rank] = {};
  DataType type = DataType::f32;  // read by the emulator alone: the composed kernels know their types
  int run_stride = 0;             // elements between the elements of a run: 1, or 0 if they are all the same
};

// One axis of a window that slides over an image: tap t of window p lies at p * stride + t * dilation - pad.
struct WindowSide {
  int image = 1, windows = 1, taps = 1, stride = 1, pad = 0, pad_end = 0, dilation = 1;
  Divisor by_stride, by_dilation;
  Index tap_step = 0;    // elements of x, and dx, from one place of the image to the next
  Index pair_step = 0;   // elements of dy from one window to the next
  Index index_step = 0;  // the same, of the indices
};

struct PrimitiveParameters {
  // The first axes are those of what is written, the others those that one result is made from; fastest
  // first. The extent of an axis that runs are taken of counts runs.
  Divisor axis[max_rank];
  unsigned positions = 0;       // the product of the first axes
  unsigned terms = 0;           // the product of the others
  unsigned terms_of_split = 0;  // that one block along y of the grid has
  Index split_stride = 0;       // of the outputs, where there are several such blocks
  Index run_extent = 0;         // elements of the axis that runs are taken of
  PrimitiveTensor tensor[primitive_inputs + primitive_outputs];
  double scalar[primitive_scalars] = {};
  // Which elements dropout keeps.
  unsigned long long seed = 0, step = 0, threshold = 0;
  WindowSide window[2];
  int classes = 0;
  // The emulator's: what a composed kernel knows when it is compiled.
  PrimitivePolicy policy;
  void const* functions = nullptr;
};
// The limits of a launch that applies the same operation to several dense tensors; member m has the blocks
// from first_block[m] on.
inline constexpr int group_members = 32, group_inputs = 4, group_outputs = 3;
struct PrimitiveGroup {
  PrimitiveParameters common;
  int members = 0;
  unsigned first_block[group_members] = {};
  Index extent[group_members] = {};
  void* input[group_members][group_inputs] = {};
  void* output[group_members][group_outputs] = {};
};
static_assert(sizeof(PrimitiveGroup) <= 4096, "what every driver passes to a kernel");

}  // namespace cosmati
