// The parameters of the kernel that adds the parts of a split-K product, and the shape of its blocks.
#pragma once
#include "cosmati/gemm/arguments.h"

namespace cosmati {

// Part p of matrix b is the (m, n) matrix at parts + (b * count + p) * part_pitch, with rows `pitch` elements
// apart: a multiple of the elements in 16 bytes.
template <class Epilogue, class Destination>
struct SumOfPartsParameters {
  Index m = 0, n = 0;
  void const* parts = nullptr;
  Index pitch = 0, part_pitch = 0;  // elements
  int count = 1;
  Index first_batch = 0;
  Epilogue epilogue;
  Destination d;
};

// A thread adds a group of the parts for `width` adjacent elements of a row; the groups of a block are then
// added in order.
struct SumOfPartsBlock {
  static constexpr int threads = 256, width = 4;  // sums have 4 bytes
  int groups = 1;
  COSMATI_CONSTEXPR int runs() const { return threads / groups; }  // of `width` elements, per block
  COSMATI_CONSTEXPR int shared_bytes() const { return groups > 1 ? threads * width * 4 : 1; }
};

}  // namespace cosmati
