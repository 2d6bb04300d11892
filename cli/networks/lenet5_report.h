// Training and prediction with LeNet-5 on the command line.
#pragma once
#include <atomic>
#include <string>
#include <vector>

#include "cli/options/options.h"

namespace cosmati::cli {

// Empty strings mean not given.
struct TrainRequest {
  std::string data, save, resume, picture;
  std::string variant, optimizer, schedule;
  long long epochs = not_given, batch = not_given, gpus = 0;
  bool explain = false, layered = false;
  double learning_rate = no_number, momentum = no_number, weight_decay = no_number;
  Common common;
};

// Trains, printing a line per epoch, then the confusion matrix; writes the model and the picture. Returns
// false if interrupted, after writing the checkpoint and printing how to resume. Under mpirun every process
// calls it, and they train together.
bool train_lenet5(TrainRequest const& request, std::atomic<bool> const& interrupted);

struct PredictRequest {
  std::string model, data;
  std::string background;  // empty: white
  std::vector<std::string> images;
  Common common;
};

void predict_lenet5(PredictRequest const& request);

// A confusion matrix with labels as rows and predictions as columns, [label][prediction].
std::string confusion_text(std::vector<std::vector<long long>> const& confusion,
                           std::vector<std::string> const& classes);

}  // namespace cosmati::cli
