// cosmati generate dcgan: its options.
#include <memory>

#include "cli/command.h"
#include "cli/networks/generate_dcgan.h"
#include "cli/options/shared_options.h"
#include "cli/verbs/commands.h"

namespace cosmati::cli {

void add_generate_command(CLI::App& program) {
  Command const generate = Command(program).add_subcommand("generate", "Let a generator draw");
  generate.require_subcommand();
  Command const dcgan = generate.add_subcommand("dcgan", "Draw 64x64 images with the DCGAN generator");
  dcgan.footer(
      "Text: a count, then 100 numbers for each image; the answer as \"%.4f \" in HWC order. Pictures: a "
      "square grid.\n"
      "A run that was ended leaves FILE.partial; the same command does the rest. Under mpirun all ranks "
      "draw.\n"
      "Types: f32, tf32, f16, bf16 by --type.\n"
      "Examples: cosmati generate dcgan --count 16 --seed 1 --image grid.png\n"
      "          cosmati generate dcgan --walk 48 --seed 3 --animation walk.png");
  auto const request = std::make_shared<GenerateRequest>();
  Options options(dcgan);
  options
      .text("--weights", request->weights, "FILE",
            "network.bin, or .safetensors of any number of hidden channels, as train dcgan saves it (the one "
            "that "
            "comes with the program)")
      .text("--input", request->input, "FILE", "latent vectors as text, or .npy (count, 100)")
      .integer("--count", request->count, "draw this many random latent vectors instead")
      .text("--output", request->output, "FILE",
            "the images as text, or (count, 64, 64, 3) in .npy, or these numbers alone in .raw")
      .text("--output-type", request->output_type, "TYPE",
            "of .npy and .raw: f32, f16, or u8 for (int)((x + 1) / 2 * 255); f32 if not given")
      .text("--image", request->image, "FILE", "the images as a grid, .bmp or .png")
      .integer("--walk", request->walk,
               "draw this many frames of a walk from one latent vector to the next and back to the first: "
               "--image is a row of them")
      .integer("--walk-stops", request->walk_stops,
               "random latent vectors on the way of --walk; 8 if not given. With --input: its vectors")
      .text("--animation", request->animation, "FILE",
            "the images one after the other, an animated .png or .apng")
      .integer("--frames-per-second", request->frames_per_second,
               "of the animation, 1 to 100; 20 if not given")
      .text("--timeline", request->timeline, "FILE",
            "when each chunk of images went up, was computed, came down, was converted and written, "
            "measured: a "
            "picture (.svg) or a trace for a browser's viewer (.json)")
      .text("--save-weights", request->save_weights, "FILE", "the weights as .safetensors")
      .integer("--batch", request->batch,
               "images at a time, evenly divided; if not given 64, on GPUs a 16th of all, 128 to 1024")
      .text("--method", request->method, "NAME[,NAME...]",
            "of the transposed convolutions, one for all or four: auto, gradient, merged, zeros (GEMM over "
            "inserted "
            "zeros), naive (needs the kernel 'direct' of the backends cuda and emulator)")
      .integer("--gpus", request->gpus, "GPUs to draw on; under mpirun, of each machine")
      .flag("--explain", request->explain, "only print how each layer would be computed")
      .text("--measure", request->measure, "WHERE",
            "write nothing, only measure: images that arrive in host memory (host) or stay on the GPU "
            "(device); or formatting and writing alone (files), of the first images in the place of all");
  add_shared_options(options, request->common, "generate dcgan");
  dcgan.callback([request] {
    use_cache_of(request->common);
    generate_dcgan(*request);
  });
}

}  // namespace cosmati::cli
