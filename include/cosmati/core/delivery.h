// A number that a kernel sends to another device.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// A value and the number of its exchange, sent as one word: a reader that finds the expected number also has
// the value, without a barrier or fence.
struct alignas(8) Delivery {
  float value;
  unsigned number;
};

}  // namespace cosmati
