// Data for verification and measurement.
#pragma once
#include <functional>
#include <string>

#include "cosmati/ops/tensor.h"
#include "nets/random.h"

namespace cosmati::cli {

struct DataKind {
  bool small_integers = false;  // -3 to 3: sums of their products are exact
  Index classes = 1;            // labels lie in [0, classes)
};

// Normal numbers (8-bit integers: 20 times as large), labels, and positive numbers where the name says so.
void fill_random(Tensor& tensor, std::string const& slot, DataKind const& kind, nets::Random& random);

// Whether a slot, by its name, is the argument of a square root: a variance, or Adam's second moment.
bool is_positive(std::string const& slot);

// The same layout with gaps between rows, planes and images, as a part of a larger array has them; `gap` is
// asked for each in elements.
Layout with_gaps(Layout const& layout, std::function<Index()> const& gap);

}  // namespace cosmati::cli
