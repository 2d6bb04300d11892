// What `cosmati train dcgan` was asked for.
#pragma once
#include <atomic>
#include <string>

#include "cli/options.h"

namespace cosmati::cli {

// Numbers below zero and empty texts: not given.
struct TrainDcganRequest {
  std::string data, save, resume, samples, generator;
  long long steps = -1, batch = -1, width = -1, report = 100, gpus = 0;
  double learning_rate = -1;
  Common common;
};

// Trains, printing a line every so many steps; writes a grid of samples after each pass over the data, and a
// checkpoint, at most one a minute. False if it was interrupted: then the checkpoint is written and how to
// resume is printed.
bool train_dcgan(TrainDcganRequest const& request, std::atomic<bool> const& interrupted);

}  // namespace cosmati::cli
