// The contents of a handle of the C interface; immutable.
#pragma once
#include <memory>

#include "cosmati.h"
#include "cosmati/ops/device.h"
#include "cosmati/ops/tuning.h"

struct cosmati_handle {
  cosmati::Device device;
  std::shared_ptr<cosmati::TuningTable const> tuning;
};
