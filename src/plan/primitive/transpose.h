// Copies between tensors whose contiguous dimensions differ.
#pragma once
#include "src/plan/primitive/builder.h"

namespace cosmati::plan {

// Whether an element-wise map of this space, from one tensor to another, is a copy of this kind. The first
// axis is contiguous in y.
bool is_transposition(CollapsedSpace const& space);

// Whether blocks can keep planes of so many elements of `size` bytes in shared memory, if they are no
// multiples of 16 bytes and follow each other.
bool keeps_planes(Index plane, int size, Gpu const& gpu);

void add_transpose(PrimitiveProgram& program, CollapsedSpace space, StridedTensor const& x,
                   StridedTensor const& y, PrimitiveTarget const& target);

}  // namespace cosmati::plan
