// cosmati predict lenet5: declares its options.
#include <memory>

#include "cli/command.h"
#include "cli/networks/lenet5_report.h"
#include "cli/options/shared_options.h"
#include "cli/verbs/commands.h"

namespace cosmati::cli {

void add_predict_command(CLI::App& program) {
  Command const predict = Command(program).add_subcommand("predict", "Run inference with a trained network");
  predict.require_subcommand();
  Command const lenet5 = predict.add_subcommand("lenet5", "Classify images with LeNet-5");
  lenet5.footer(
      "Pictures of any size are composited onto a white page, converted to gray, inverted if their "
      "border is light, and scaled to 28x28.\nExample: cosmati predict lenet5 --model "
      "lenet5.safetensors --image digit.png");
  auto const request = std::make_shared<PredictRequest>();
  Options options(lenet5);
  options.text("--model", request->model, "FILE", "model saved by `train lenet5` (required)")
      .text("--data", request->data, "FOLDER", "classify its t10k images and compare with the labels")
      .several("--image", request->images, "FILE", "PNG or BMP; several files, or the option more than once");
  options.text("--background", request->background, "LEVEL",
               "page behind transparent pixels of --image: white, black, or a gray level from 0 to 255 "
               "(default: white)");
  add_shared_options(options, request->common, "predict lenet5");
  lenet5.callback([request] {
    use_cache_of(request->common);
    predict_lenet5(*request);
  });
}

}  // namespace cosmati::cli
