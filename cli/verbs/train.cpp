// cosmati train lenet5: declares its options and handles Ctrl-C.
#include <unistd.h>
#include <csignal>

#include <atomic>
#include <memory>

#include "cli/command.h"
#include "cli/networks/lenet5_report.h"
#include "cli/networks/train_dcgan.h"
#include "cli/networks/train_team.h"
#include "cli/options/options.h"
#include "cli/options/shared_options.h"
#include "cli/output/sigterm_report.h"
#include "cli/output/text.h"
#include "cli/verbs/commands.h"

namespace cosmati::cli {
namespace {

std::atomic<bool> interrupted{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

extern "C" void note_interrupt(int signal) {
  interrupted = true;
  std::signal(signal, SIG_DFL);  // a second Ctrl-C terminates the program at once
}

std::string* last_words = nullptr;

extern "C" void end_at_once(int) {
  [[maybe_unused]] auto const written = write(STDERR_FILENO, last_words->data(), last_words->size());
  linger();
  _exit(1);
}

void run(TrainRequest const& request) {
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
  if (!train_lenet5(request, interrupted)) std::exit(130);
}

void run(TrainDcganRequest const& request) {
  std::signal(SIGINT, note_interrupt);
  std::signal(SIGTERM, note_interrupt);
  if (!train_dcgan(request, interrupted)) std::exit(130);
}

void add_dcgan(CLI::App& train) {
  Command const dcgan =
      Command(train).add_subcommand("dcgan", "Train a generator of 64x64 images against a discriminator");
  dcgan.footer(
      "Gray pictures (IDX) are tinted, each with its own hue. Ctrl-C saves a checkpoint and prints "
      "how to continue. Under mpirun the processes share each batch, one GPU per process.\nExample: "
      "cosmati train dcgan --data /usr/share/datasets/fashion-mnist --samples samples.png --save "
      "dcgan.safetensors");
  auto const request = std::make_shared<TrainDcganRequest>();
  Options options(dcgan);
  options
      .text("--data", request->data, "PATH",
            "folder of train-images-idx3-ubyte (plain or .gz) or of PNGs, or an IDX file (required)")
      .text("--save", request->save, "FILE",
            "checkpoint after each pass over the data, at most one per minute; also for generate "
            "(default: dcgan.safetensors)")
      .text("--resume", request->resume, "FILE", "a checkpoint to resume, with its own settings")
      .text("--samples", request->samples, "FILE.png",
            "grids of 64 images during training, to FILE-000001.png, FILE-000002.png, ...: numbered by step")
      .integer("--sample-every", request->sample_every,
               "steps between grids (default: a grid after 1, 2, 4, 8, ... steps and after each pass)")
      .text("--generator", request->generator, "FILE", "only the generator, in f16, saved at the end")
      .integer("--gpus", request->gpus, "GPUs that share each batch (0: one device, by --backend)")
      .integer("--report", request->report, "steps between lines of progress (default: 100)")
      .group("Hyperparameters")
      .integer("--steps", request->steps, "total steps (default: 7000); larger with --resume to continue")
      .integer("--batch", request->batch, "real and generated images per step (default: 256)")
      .integer("--width", request->width,
               "channels before the last layer, an eighth of those after the projection (default: 64)")
      .number("--learning-rate", request->learning_rate,
              "learning rate of Adam, for both networks (default: 0.0002)")
      .text("--statistics", request->statistics, "batch|device",
            "what devices that share a batch normalize by: means and variances of the whole batch, as one "
            "device does, or of each device's part, which is faster (default: batch)");
  add_shared_options(options, request->common, "train dcgan");
  dcgan.callback([request] {
    use_cache_of(request->common);
    run(*request);
  });
}

}  // namespace

void when_lost(std::string text) {
  static std::string words;
  words = printable_text(text);
  last_words = &words;
  std::signal(SIGTERM, end_at_once);
}

void add_train_command(CLI::App& program) {
  Command const train = Command(program).add_subcommand("train", "Train a network");
  train.require_subcommand();
  Command const lenet5 = train.add_subcommand("lenet5", "Train LeNet-5 on MNIST or Fashion-MNIST");
  lenet5.footer(
      "Ctrl-C saves a checkpoint and prints how to continue. Under mpirun the processes share each "
      "batch, one GPU per process or, with --backend cpu, a share of the cores.\n--type f16 or bf16: "
      "activations and their gradients in 16 bits, weights in f32; f16 with dynamic loss scaling. "
      "--compute tf32: factors rounded to TF32.\nExample: cosmati train lenet5 --data "
      "/usr/share/datasets/fashion-mnist --save lenet5.safetensors");
  auto const request = std::make_shared<TrainRequest>();
  Options options(lenet5);
  options
      .text("--data", request->data, "FOLDER", "folder with MNIST's four IDX files, plain or .gz (required)")
      .text("--save", request->save, "FILE",
            "the model, saved as a checkpoint after each epoch (default: lenet5.safetensors)")
      .text("--resume", request->resume, "FILE", "a checkpoint to resume, with its own hyperparameters")
      .flag("--explain", request->explain, "print the layers, their kernels and memory, without training")
      .flag("--layered", request->layered,
            "run layer by layer on a GPU that could train with one kernel for many steps")
      .text("--picture", request->picture, "FILE", "a PNG with sample predictions and the training curve")
      .group("Hyperparameters")
      .text("--variant", request->variant, "NAME", "modern, chapter, lecun1998 (default: modern)")
      .integer("--epochs", request->epochs,
               "passes over the training images (default: modern 10, chapter 20)")
      .integer("--batch", request->batch, "images per step (default: 64)")
      .text("--optimizer", request->optimizer, "NAME", "sgd, adam (default: modern sgd, chapter adam)")
      .text("--schedule", request->schedule, "NAME",
            "constant, step, inverse, cosine, one-cycle (default: one-cycle)")
      .number("--learning-rate", request->learning_rate,
              "base rate, or peak of one-cycle (default: depends on the variant)")
      .number("--momentum", request->momentum, "momentum of sgd (default: 0.9)")
      .number("--weight-decay", request->weight_decay, "(default: modern 0.0005, chapter 0)")
      .integer("--gpus", request->gpus, "GPUs that share each batch (0: one device, by --backend)");
  add_shared_options(options, request->common, "train lenet5");
  lenet5.callback([request] {
    use_cache_of(request->common);
    run(*request);
  });
  add_dcgan(train);
}

}  // namespace cosmati::cli
