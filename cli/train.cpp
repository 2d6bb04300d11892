// cosmati train lenet5: its options, and what the terminal shows of it.
#include <csignal>

#include <CLI/CLI.hpp>
#include <atomic>
#include <memory>

#include "cli/commands.h"
#include "cli/lenet5_report.h"
#include "cli/options.h"

namespace cosmati::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

extern "C" void note_interrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);  // a second Ctrl-C ends the program at once
}

void run(TrainRequest const& request) {
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
  if (!train_lenet5(request, interrupted)) std::exit(130);
}

}  // namespace

void add_train_command(CLI::App& program) {
  CLI::App* const train = program.add_subcommand("train", "Train a network");
  train->require_subcommand(1);
  CLI::App* const lenet5 = train->add_subcommand("lenet5", "Train LeNet-5 on MNIST or Fashion-MNIST");
  lenet5->footer(
      "Ctrl-C saves a checkpoint and says how to continue.\n"
      "Example: cosmati train lenet5 --data /usr/share/datasets/fashion-mnist --save lenet5.safetensors");
  auto const request = std::make_shared<TrainRequest>();
  Options options(*lenet5);
  options.text("--data", request->data, "FOLDER", "with MNIST's four IDX files, plain or .gz (required)")
      .text("--save", request->save, "FILE", "the model, a checkpoint after each epoch (lenet5.safetensors)")
      .text("--resume", request->resume, "FILE", "a checkpoint to continue, with its own hyperparameters")
      .text("--picture", request->picture, "FILE", "a PNG of sample answers and the training curve")
      .group("Hyperparameters")
      .text("--variant", request->variant, "NAME", "modern, chapter, lecun1998 (modern)")
      .integer("--epochs", request->epochs, "passes over the training images (modern 10, chapter 20)")
      .integer("--batch", request->batch, "images a step (64)")
      .text("--optimizer", request->optimizer, "NAME", "sgd, adam (modern sgd, chapter adam)")
      .text("--schedule", request->schedule, "NAME", "constant, step, inverse, cosine, one-cycle (one-cycle)")
      .number("--learning-rate", request->learning_rate, "base, or peak of one-cycle (each variant its own)")
      .number("--momentum", request->momentum, "of sgd (0.9)")
      .number("--weight-decay", request->weight_decay, "(modern 0.0005, chapter 0)")
      .integer("--gpus", request->gpus, "GPUs to train on (0)");
  add_common_options(options, request->common);
  lenet5->callback([request] { run(*request); });
}

}  // namespace cosmati::cli
