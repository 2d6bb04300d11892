// cosmati generate dcgan: its options.
#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/generate_dcgan.h"

namespace cosmati::cli {

void add_generate_command(CLI::App& program) {
  CLI::App* const generate = program.add_subcommand("generate", "Let a generator draw");
  generate->require_subcommand(1);
  CLI::App* const dcgan = generate->add_subcommand("dcgan", "Draw 64x64 images with the DCGAN generator");
  dcgan->footer(
      "Text: a count, then 100 numbers for each image; the answer as \"%.4f \" in HWC order. Pictures: a "
      "square grid.\n"
      "Example: cosmati generate dcgan --weights network.bin --count 16 --seed 1 --image grid.png");
  auto const request = std::make_shared<GenerateRequest>();
  Options options(*dcgan);
  options.text("--weights", request->weights, "FILE", "network.bin or .safetensors (required)")
      .text("--input", request->input, "FILE", "latent vectors as text, or .npy (count, 100)")
      .integer("--count", request->count, "draw this many random latent vectors instead")
      .text("--output", request->output, "FILE", "the images as text, or as f32 (count, 64, 64, 3) in .npy")
      .text("--image", request->image, "FILE", "the images as a grid, .bmp or .png")
      .text("--save-weights", request->save_weights, "FILE", "the weights as .safetensors")
      .integer("--batch", request->batch, "images at a time (64)")
      .integer("--gpus", request->gpus, "GPUs to draw on (0)");
  add_common_options(options, request->common);
  dcgan->callback([request] { generate_dcgan(*request); });
}

}  // namespace cosmati::cli
