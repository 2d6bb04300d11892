// The request of `cosmati train dcgan`.
#pragma once
#include <atomic>
#include <string>

#include "cli/options/options.h"

namespace cosmati::cli {

// Empty strings mean not given.
struct TrainDcganRequest {
  std::string data, save, resume, samples, generator, statistics;
  long long steps = not_given, batch = not_given, width = not_given, report = 100, gpus = 0;
  long long sample_every = not_given;  // default: after 1, 2, 4, 8, ... steps and after each epoch
  double learning_rate = no_number;
  Common common;
};

// Trains, printing a line every few steps; writes grids of samples during training, and a checkpoint after an
// epoch, at most once a minute. Returns false if interrupted, after writing the checkpoint and printing how
// to resume.
bool train_dcgan(TrainDcganRequest const& request, std::atomic<bool> const& interrupted);

}  // namespace cosmati::cli
