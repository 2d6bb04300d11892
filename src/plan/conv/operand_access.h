// How the threads of a kernel load an operand of a convolution: along which index, and how many elements at a
// time.
#pragma once
#include "src/plan/conv/form.h"

namespace cosmati::plan {

// The largest vector width (a power of two, at most 16 bytes) that is contiguous along the last digit of
// `index` and aligned for all values of the other digits.
int width_along(ProductIndex const& index, IndexStrides const& along, IndexStrides const& across, Index base,
                Index batch_stride, DataType type, int alignment);

// Sets the operand's access and lane_stride.
void set_access(WindowForm& form, ProductIndex const& outer, ProductIndex const& depth);

// Merges digits of an operand without windows that have a common stride, for longer runs.
void merge_digits(WindowForm& operand, Index outer, Index depth);

}  // namespace cosmati::plan
