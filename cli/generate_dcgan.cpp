// The body of `cosmati generate dcgan`: files in, images out.
#include "cli/generate_dcgan.h"

#include <fmt/format.h>

#include <chrono>

#include "cli/record.h"
#include "cli/table.h"
#include "nets/dcgan/generator.h"
#include "nets/dcgan/picture.h"
#include "nets/dcgan/text.h"
#include "src/io/file.h"
#include "src/io/npy.h"

namespace cosmati::cli {
namespace {

[[noreturn]] void refuse(std::string const& sentence) { throw Error(ErrorCode::bad_request, sentence); }

std::vector<float> latents_from_npy(std::string const& path) {
  Tensor const tensor = io::to_tensor(io::read_npy(path));
  if (tensor.shape().rank != 2 || tensor.shape()[1] != dcgan::latent_size || tensor.shape()[0] < 1)
    throw Error(ErrorCode::bad_file,
                path + ": holds " + to_string(tensor.description()) + "; expected (count, 100)");
  Tensor const dense = copy(tensor, describe(DataType::f32, tensor.shape()));
  return {dense.as<float>(), dense.as<float>() + dense.size()};
}

std::vector<float> latents(GenerateRequest const& request) {
  if (request.input.empty() == (request.count == -1))
    refuse("generate dcgan needs either --input FILE or --count N");
  if (!request.input.empty())
    return request.input.ends_with(".npy") ? latents_from_npy(request.input)
                                           : dcgan::read_latents(request.input);
  if (request.count < 1 || request.count > 10'000'000)
    refuse(fmt::format("--count {} is out of range; expected 1 to 10000000", request.count));
  if (request.common.seed < 0)
    refuse(fmt::format("--seed {} is negative; expected 0 or more", request.common.seed));
  return dcgan::random_latents(request.count, static_cast<unsigned long long>(request.common.seed));
}

void write_output(std::string const& path, std::vector<float> const& images, Index count, int threads) {
  using namespace dcgan;
  if (path.ends_with(".npy")) {
    Tensor tensor(DataType::f32, {count, image_size, image_size, image_channels});
    std::copy(images.begin(), images.end(), tensor.as<float>());
    io::write_npy(path, tensor);
    return;
  }
  auto const text = images_to_text(images.data(), count, image_elements, threads);
  io::write_atomically(path, [&](io::FileWriter& writer) {
    for (std::string const& piece : text) writer.write(piece);
  });
}

void write_image(std::string const& path, std::vector<float> const& images, Index count) {
  io::Image const picture = dcgan::picture(images.data(), count);
  if (path.ends_with(".bmp"))
    io::write_bmp(path, picture);
  else
    io::write_png(path, picture);
}

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

void generate_dcgan(GenerateRequest const& request) {
  if (request.weights.empty()) refuse("generate dcgan needs --weights FILE, a network.bin or .safetensors");
  if (!request.image.empty() && !request.image.ends_with(".bmp") && !request.image.ends_with(".png"))
    refuse("--image " + request.image + ": the name must end in .bmp or .png");
  if (request.output.empty() && request.image.empty() && request.save_weights.empty())
    refuse("generate dcgan needs --output FILE or --image FILE to write to");
  if (request.batch < 1 || request.batch > 65536)
    refuse(fmt::format("--batch {} is out of range; expected 1 to 65536", request.batch));
  if (request.gpus > 0)
    throw Error(ErrorCode::unavailable,
                fmt::format("--gpus {}: this build has no cuda backend", request.gpus));
  auto const weights = dcgan::Weights::read(request.weights);
  if (!request.save_weights.empty()) weights.write_safetensors(request.save_weights);
  if (request.output.empty() && request.image.empty()) return;

  Device const device = request.common.device_to_run_on(false);
  auto const z = latents(request);
  auto const count = static_cast<Index>(z.size()) / dcgan::latent_size;
  dcgan::FoldedWeights const folded(weights);
  double const start = seconds_now();
  auto const images = dcgan::generate(folded, device, z, request.batch);
  double const generated = seconds_now();
  if (!request.output.empty()) write_output(request.output, images, count, device.threads);
  if (!request.image.empty()) write_image(request.image, images, count);
  double const generating = generated - start, writing = seconds_now() - generated;
  if (request.common.json)
    print_text(Record()
                   .add("images", count)
                   .add("seconds", generating)
                   .add("images_per_second", static_cast<double>(count) / generating)
                   .add("writing_seconds", writing)
                   .add("backend", name_of(device.backend))
                   .add("threads", device.threads)
                   .json());
  else
    print_line(fmt::format("{} images in {} ({:.0f} images/s), written in {}{}{}{}{}", count,
                           in_seconds(generating), static_cast<double>(count) / generating,
                           in_seconds(writing), request.output.empty() ? "" : ": ", request.output,
                           request.image.empty() ? "" : ", ", request.image));
}

}  // namespace cosmati::cli
