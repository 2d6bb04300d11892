// cosmati generate dcgan: declares its options.
#include <memory>

#include "cli/command.h"
#include "cli/networks/generate_dcgan.h"
#include "cli/options/shared_options.h"
#include "cli/verbs/commands.h"

namespace cosmati::cli {

void add_generate_command(CLI::App& program) {
  Command const generate = Command(program).add_subcommand("generate", "Generate images");
  generate.require_subcommand();
  Command const dcgan = generate.add_subcommand("dcgan", "Generate 64x64 images with DCGAN");
  dcgan.footer(
      "Text: a count, then 100 numbers per image; the output as \"%.4f \" in HWC order. Pictures: a "
      "square grid.\nAn interrupted run leaves FILE.partial; the same command resumes it. Under "
      "mpirun, all ranks generate images.\nTypes: f32, tf32, f16, bf16 by --type.\nExamples: cosmati "
      "generate dcgan --count 16 --seed 1 --image grid.png\n          cosmati generate dcgan --walk "
      "48 --seed 3 --animation walk.png");
  auto const request = std::make_shared<GenerateRequest>();
  Options options(dcgan);
  options
      .text("--weights", request->weights, "FILE",
            "network.bin, or .safetensors with any number of hidden channels, as saved by train dcgan "
            "(default: the bundled file)")
      .text("--input", request->input, "FILE", "latent vectors as text, or .npy (count, 100)")
      .integer("--count", request->count, "generate from this many random latent vectors instead")
      .text("--output", request->output, "FILE",
            "the images as text, or (count, 64, 64, 3) in .npy, or only these numbers in .raw")
      .text("--output-type", request->output_type, "TYPE",
            "element type of .npy and .raw: f32, f16, or u8 for (int)((x + 1) / 2 * 255) (default: f32)")
      .text("--image", request->image, "FILE", "the images as a grid, .bmp or .png")
      .integer("--walk", request->walk,
               "generate this many frames of a walk from one latent vector to the next and back to "
               "the first; --image shows them in a row")
      .integer("--walk-stops", request->walk_stops,
               "random latent vectors visited by --walk (default: 8; with --input: its vectors)")
      .text("--animation", request->animation, "FILE", "the images as an animated .png or .apng")
      .integer("--frames-per-second", request->frames_per_second,
               "frame rate of the animation, 1 to 100 (default: 20)")
      .text("--timeline", request->timeline, "FILE",
            "measured times of upload, computation, download, conversion and writing of each chunk: "
            "a picture (.svg) or a trace for a browser's trace viewer (.json)")
      .text("--save-weights", request->save_weights, "FILE", "the weights as .safetensors")
      .integer("--batch", request->batch,
               "images per batch (default: 64; on GPUs a 16th of all images, 128 to 1024)")
      .text(
          "--method", request->method, "NAME[,NAME...]",
          "method of the transposed convolutions, one for all or one for each of the four: auto, gradient, merged, zeros (GEMM over "
          "inserted "
          "zeros), naive (needs the kernel 'direct' of the backends cuda and emulator)")
      .integer("--gpus", request->gpus, "GPUs to use; under mpirun, per machine")
      .flag("--explain", request->explain, "only print how each layer is computed")
      .text("--measure", request->measure, "WHERE",
            "write nothing, only measure: images copied to host memory (host) or kept on the GPU (device); "
            "or only formatting and writing (files), repeating the first images");
  add_shared_options(options, request->common, "generate dcgan");
  dcgan.callback([request] {
    use_cache_of(request->common);
    generate_dcgan(*request);
  });
}

}  // namespace cosmati::cli
