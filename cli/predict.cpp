// cosmati predict lenet5: its options.
#include <memory>

#include "cli/command.h"
#include "cli/commands.h"
#include "cli/lenet5_report.h"

namespace cosmati::cli {

void add_predict_command(CLI::App& program) {
  Command const predict = Command(program).add_subcommand("predict", "Ask a trained network");
  predict.require_subcommand();
  Command const lenet5 = predict.add_subcommand("lenet5", "Classify images with LeNet-5");
  lenet5.footer(
      "Pictures of any size are made grey, inverted if their border is light, and scaled to 28x28.\n"
      "Example: cosmati predict lenet5 --model lenet5.safetensors --image digit.png");
  auto const request = std::make_shared<PredictRequest>();
  Options options(lenet5);
  options.text("--model", request->model, "FILE", "what `train lenet5` saved (required)")
      .text("--data", request->data, "FOLDER", "classify its t10k images and compare with the labels")
      .several("--image", request->images, "FILE", "PNG or BMP; several files, or the option more than once");
  add_common_options(options, request->common);
  lenet5.callback([request] {
    refuse_batch_invariant(request->common, "predict");
    predict_lenet5(*request);
  });
}

}  // namespace cosmati::cli
