// A number that a kernel sends to another device.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// A value and the number of the exchange, which travel as one word, so that a reader that finds the expected
// number has the value; no barrier or fence orders them.
struct alignas(8) Delivery {
  float value;
  unsigned number;
};

}  // namespace cosmati
