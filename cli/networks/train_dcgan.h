// The request of `cosmati train dcgan`.
#pragma once
#include <atomic>
#include <string>

#include "cli/options/options.h"

namespace cosmati::cli {

// Empty texts: not given.
struct TrainDcganRequest {
  std::string data, save, resume, samples, generator;
  long long steps = not_given, batch = not_given, width = not_given, report = 100, gpus = 0;
  long long sample_every = not_given;  // then after 1, 2, 4, 8, ... steps and each pass
  double learning_rate = no_number;
  Common common;
};

// Trains, printing a line every so many steps; writes grids of samples as training goes on, and a checkpoint
// after a pass over the data, at most one a minute. False if it was interrupted: then the checkpoint is
// written and how to resume is printed.
bool train_dcgan(TrainDcganRequest const& request, std::atomic<bool> const& interrupted);

}  // namespace cosmati::cli
