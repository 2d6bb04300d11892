// What a handle of the C interface holds; it does not change once it is made.
#pragma once
#include <memory>

#include "cosmati.h"
#include "cosmati/ops/device.h"
#include "cosmati/ops/tuning.h"

struct cosmati_handle {
  cosmati::Device device;
  std::shared_ptr<cosmati::TuningTable const> tuning;
};
