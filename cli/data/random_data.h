// Random data for verification and measurement.
#pragma once
#include <functional>
#include <string>

#include "cosmati/ops/tensor.h"
#include "nets/random.h"

namespace cosmati::cli {

struct DataKind {
  bool small_integers = false;  // -3 to 3: sums of their products are exact
  Index classes = 1;            // labels are in [0, classes)
};

// Normally distributed numbers (scaled by 20 for 8-bit integers), labels, or positive numbers, depending on
// the slot's name.
void fill_random(Tensor& tensor, std::string const& slot, DataKind const& kind, nets::Random& random);

// Whether a slot's name implies positive numbers: a variance, Adam's second moment, or the numbers of an
// optimizer's step.
bool is_positive(std::string const& slot);

// The layout with gaps between rows, planes and images, like a part of a larger array; `gap` returns the size
// of each gap in elements.
Layout with_gaps(Layout const& layout, std::function<Index()> const& gap);

}  // namespace cosmati::cli
