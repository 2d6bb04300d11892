// The body of `cosmati generate dcgan`: files in, images out, by the devices of this process or of all ranks.
#include "cli/networks/generate_dcgan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <filesystem>
#include <string_view>
#include <thread>

#include "cli/networks/generate_report.h"
#include "cli/networks/output_files.h"
#include "cli/output/sigterm_report.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/output/timeline.h"
#include "cli/shipped.h"
#include "nets/dcgan/output.h"
#include "nets/dcgan/ranks.h"
#include "nets/dcgan/text.h"
#include "nets/dcgan/walk.h"
#include "nets/dcgan/workers.h"
#include "nets/dcgan/writer.h"
#include "src/io/file.h"
#include "src/io/image/image_checks.h"
#include "src/io/npy.h"

namespace cosmati::cli {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

dcgan::Latents latents_from_npy(std::string const& path) {
  Tensor const tensor = io::to_tensor(io::read_npy(path));
  if (tensor.shape().rank != 2 || tensor.shape()[1] != dcgan::latent_size || tensor.shape()[0] < 1)
    throw Error(ErrorCode::bad_file,
                path + ": holds " + to_string(tensor.description()) + "; expected (count, 100)");
  Tensor const dense = copy(tensor, describe(DataType::f32, tensor.shape()));
  for (Index i = 0; i < dense.size(); ++i)
    if (!(std::abs(dense.as<float>()[i]) <= std::numeric_limits<float>::max()))
      throw Error(ErrorCode::bad_file,
                  fmt::format("{}: element ({}, {}) is {}; expected a finite number", path,
                              i / dcgan::latent_size, i % dcgan::latent_size, dense.as<float>()[i]));
  return dcgan::Latents({dense.as<float>(), dense.as<float>() + dense.size()});
}

dcgan::Latents vectors_of_file(std::string const& path) {
  return path.ends_with(".npy") ? latents_from_npy(path) : dcgan::Latents(dcgan::read_latents(path));
}

dcgan::Latents random_vectors(GenerateRequest const& request, Index count) {
  if (request.common.seed < 0)
    refuse(fmt::format("--seed {} is negative; expected 0 or more", request.common.seed));
  return dcgan::Latents(count, static_cast<unsigned long long>(request.common.seed));
}

// With vectors from a file, a seed would have no effect.
void refuse_unused_seed(GenerateRequest const& request) {
  if (request.common.seed != Common().seed)
    refuse(fmt::format("--seed {} applies to random vectors; this run reads its vectors from {}",
                       request.common.seed, request.input));
}

// The stops of a walk are the vectors of a file, or random ones.
dcgan::Latents walk(GenerateRequest const& request) {
  if (request.walk < 2 || request.walk > dcgan::max_images_of_a_picture)
    refuse(fmt::format("--walk {} is out of range; expected 2 to {}", request.walk,
                       dcgan::max_images_of_a_picture));
  if (request.count != not_given)
    refuse("--walk sets the number of frames; remove --count, or use --walk-stops for the number of vectors");
  if (!request.input.empty() && request.walk_stops != not_given)
    refuse("--walk-stops applies to random vectors; this walk reads its stops from " + request.input);
  if (!request.input.empty()) refuse_unused_seed(request);
  Index const random_stops =
      request.walk_stops == not_given ? std::min<Index>(8, request.walk) : request.walk_stops;
  if (random_stops < 2 || random_stops > request.walk)
    refuse(fmt::format("--walk-stops {} is out of range; expected 2 to {}, the frames of the walk",
                       random_stops, request.walk));
  auto const stops =
      request.input.empty() ? random_vectors(request, random_stops) : vectors_of_file(request.input);
  if (stops.count() < 2)
    throw Error(ErrorCode::bad_file, request.input + ": holds one vector; a walk requires at least two");
  std::vector<float> z(static_cast<std::size_t>(stops.count() * dcgan::latent_size));
  stops.read(0, stops.count(), z.data());
  return dcgan::Latents(dcgan::walk(z, request.walk));
}

void check_count(GenerateRequest const& request) {
  if (request.count < 1 || request.count > 1'000'000'000)
    refuse(fmt::format("--count {} is out of range; expected 1 to 1000000000", request.count));
}

dcgan::Latents latents(GenerateRequest const& request) {
  if (request.walk != not_given) return walk(request);
  if (request.walk_stops != not_given) refuse("--walk-stops requires --walk FRAMES");
  if (request.input.empty() == (request.count == not_given))
    refuse("missing required option: one of --input FILE, --count N or --walk FRAMES");
  if (!request.input.empty()) {
    refuse_unused_seed(request);
    return vectors_of_file(request.input);
  }
  check_count(request);
  return random_vectors(request, request.count);
}

std::string weights_file(GenerateRequest const& request) {
  return request.weights.empty() ? shipped_generator() : request.weights;
}

void check_generate_files(GenerateRequest const& request) {
  if (!request.image.empty() && !request.image.ends_with(".bmp") && !request.image.ends_with(".png"))
    refuse("--image " + request.image + ": the name must end in .bmp or .png");
  if (!request.animation.empty() && !request.animation.ends_with(".png") &&
      !request.animation.ends_with(".apng"))
    refuse("--animation " + request.animation + ": the name must end in .png or .apng");
  if (request.frames_per_second != not_given && request.animation.empty())
    refuse("--frames-per-second requires --animation FILE");
  if (request.frames_per_second != not_given &&
      (request.frames_per_second < 1 || request.frames_per_second > 100))
    refuse(
        fmt::format("--frames-per-second {} is out of range; expected 1 to 100", request.frames_per_second));
  if (!request.timeline.empty() && !request.timeline.ends_with(".svg") &&
      !request.timeline.ends_with(".json"))
    refuse("--timeline " + request.timeline + ": the name must end in .svg or .json");
  std::error_code failed;
  bool const kept = !request.output.empty() && (!std::filesystem::exists(request.output, failed) ||
                                                std::filesystem::is_regular_file(request.output, failed));
  check_files({{"--output", request.output},
               {"--output", kept ? request.output + ".partial" : ""},
               {"--output", kept ? request.output + ".progress" : ""},
               {"--image", request.image},
               {"--animation", request.animation},
               {"--save-weights", request.save_weights},
               {"--timeline", request.timeline}},
              inputs_of(request.common, {{"--input", request.input}, {"--weights", weights_file(request)}}));
  bool const writes = !request.output.empty() || !request.image.empty() || !request.animation.empty();
  if (!request.measure.empty()) {
    one_of(request.measure, {"host", "device", "files"}, "--measure");
    bool const files = request.measure == "files";
    if (files && !writes) refuse("--measure files requires --output FILE or --image FILE");
    if (writes && !files)
      refuse("--measure " + request.measure + " writes nothing; remove --output, --image and --animation");
  } else if (!writes && request.save_weights.empty()) {
    refuse("missing required option: one of --output FILE, --image FILE or --animation FILE");
  } else if (!writes) {  // writes only the weights
    for (auto const& [option, given] :
         {std::pair{"--timeline", !request.timeline.empty()}, std::pair{"--input", !request.input.empty()},
          std::pair{"--count", request.count != not_given}, std::pair{"--walk", request.walk != not_given}})
      if (given)
        refuse(std::string(option) +
               " applies to images; it requires --output FILE, --image FILE or --animation FILE");
  }
  one_of(request.output_type, {"f32", "f16", "u8"}, "--output-type");
  if (request.output_type != "f32" && !dcgan::is_array(request.output) &&
      (request.measure.empty() || request.measure == "files"))
    refuse("--output-type " + request.output_type +
           " applies only to an --output whose name ends in .npy or .raw");
}

// The files to be written.
std::vector<std::string> files(GenerateRequest const& request) {
  std::vector<std::string> list;
  for (std::string const& path : {request.output, request.image, request.animation})
    if (!path.empty()) list.push_back(path);
  return list;
}

void check_pictures(GenerateRequest const& request, Index count) {
  constexpr Index longest_strip = io::largest_image_extent / dcgan::image_size;
  if (!request.image.empty() && request.walk > longest_strip)
    refuse(fmt::format(
        "--image {}: a row of {} frames; an image holds at most {} side by side, --animation has no "
        "limit",
        request.image, request.walk, longest_strip));
  std::string const& path = request.image.empty() ? request.animation : request.image;
  if (!path.empty() && count > dcgan::max_images_of_a_picture)
    refuse(fmt::format("{} {}: {} images; a file holds at most {}",
                       request.image.empty() ? "--animation" : "--image", path, count,
                       dcgan::max_images_of_a_picture));
}

std::array<dcgan::Method, dcgan::layer_count> methods(std::string const& text) {
  auto names = split(text, ',');
  if (names.size() == 1) names.resize(dcgan::layer_count, names.front());
  if (names.size() != dcgan::layer_count)
    refuse(fmt::format("--method {}: {} names; expected one, or one for each of the {} layers", text,
                       names.size(), dcgan::layer_count));
  std::array<dcgan::Method, dcgan::layer_count> result{};
  std::transform(names.begin(), names.end(), result.begin(), dcgan::parse_method);
  return result;
}

// Each rank uses one GPU of its machine, or its share of the processors.
std::vector<Device> devices(GenerateRequest const& request, parallel::ProcessGroup const* group) {
  if (request.gpus < 0 || request.gpus > 64)
    refuse(fmt::format("--gpus {} is out of range; expected 1 to 64", request.gpus));
  Common common = request.common;
  if (request.gpus > 0 && common.backend == "auto") common.backend = "cuda";
  int const local = group == nullptr ? 0 : group->local_rank(),
            sharers = group == nullptr ? 1 : group->local_size();
  Device device = common.device_to_run_on();
  bool const told_threads = common.threads > 0;
  Index const here = group == nullptr ? std::max<Index>(request.gpus, 1) : 1;
  if (!told_threads)
    device.threads = static_cast<int>(
        std::max<Index>(1, device.threads / (device.backend == Backend::cuda ? sharers : sharers * here)));
  std::vector<Device> list(static_cast<std::size_t>(here), device);
  if (device.backend != Backend::cuda) return list;
  if (group == nullptr && request.gpus == 0) return list;
  int const gpus = static_cast<int>(cosmati::devices().size());
  if (request.gpus > gpus)
    throw Error(ErrorCode::unavailable, fmt::format("--gpus {}: this machine has {}", request.gpus, gpus));
  int const used = request.gpus > 0 ? static_cast<int>(request.gpus) : gpus;
  for (int i = 0; i < static_cast<int>(list.size()); ++i)
    list[static_cast<std::size_t>(i)] =
        this_device(Backend::cuda, device.threads, group == nullptr ? i : local % used);
  return list;
}

dcgan::OutputRequest output_request(GenerateRequest const& request) {
  dcgan::OutputRequest result;
  result.output = request.output;
  result.image = request.image;
  result.animation = request.animation;
  result.output_type = parse_data_type(request.output_type);
  if (request.walk != not_given) result.columns = request.walk;
  if (request.frames_per_second != not_given)
    result.frames_per_second = static_cast<int>(request.frames_per_second);
  return result;
}

void check_naive(GenerateRequest const& request, dcgan::GeneratorOptions const& options, Backend backend) {
  auto const& method = options.method;
  if (std::find(method.begin(), method.end(), dcgan::Method::naive) == method.end()) return;
  auto const& list = candidates<ConvolutionProblem>(backend);
  if (std::none_of(list.begin(), list.end(),
                   [](auto const& one) { return std::string_view(one.name) == "direct"; }))
    throw Error(ErrorCode::unavailable,
                fmt::format("--method {}: naive is the kernel 'direct', which the backend {} does not have; "
                            "valid values: auto, gradient, merged and zeros",
                            request.method, name_of(backend)));
}

dcgan::GeneratorOptions generator_options(GenerateRequest const& request, Backend backend) {
  Index const largest = request.batch != not_given ? request.batch : backend == Backend::cuda ? 1024 : 64;
  if (largest < 1 || largest > 16384)
    refuse(fmt::format("--batch {} is out of range; expected 1 to 16384", request.batch));
  dcgan::GeneratorOptions options;
  options.batch = largest;
  options.type = request.common.types.type_of("", DataType::f32);
  options.image_type = request.measure.empty() || request.measure == "files"
                           ? dcgan::image_type_for(output_request(request))
                           : parse_data_type(request.output_type);
  options.method = methods(request.method);
  check_naive(request, options, backend);
  options.plan = request.common.plan_options();
  return options;
}

// If false, the command writes only the weights.
bool draws_images(GenerateRequest const& request) {
  return !files(request).empty() || !request.measure.empty();
}

// The number of images per chunk, at most `largest`. For few images a GPU's chunks are smaller, so that
// several GPUs can share them; the number of devices is ignored, so that it does not change any byte.
Index batch_of(GenerateRequest const& request, Backend backend, Index count, Index largest) {
  bool const chosen = request.batch == not_given && backend == Backend::cuda;
  return dcgan::even_batch(count, chosen ? std::clamp<Index>((count + 15) / 16, 128, largest) : largest);
}

// Two runs with the same key produce the same bytes.
std::string key_of(GenerateRequest const& request, dcgan::GeneratorOptions const& options,
                   Device const& device, dcgan::Latents const& latents, std::vector<float> const& weights) {
  std::string text = fmt::format("2 {} {} {} {} {} {} {}", name_of(options.type), request.output_type,
                                 options.batch, request.method, name_of(device.backend), device.gpu.name,
                                 request.image.empty() && request.animation.empty());
  // The plan may depend on these options.
  PlanOptions const& plan = options.plan;
  text += fmt::format(" {} {} {} ", plan.max_workspace, plan.max_error.value_or(-1), plan.deterministic) +
          request.common.tuning;
  text += request.common.kernel + request.common.policy + request.output + request.image + request.animation;
  auto key = dcgan::fingerprint(text.data(), text.size(), latents.fingerprint());
  key = dcgan::fingerprint(weights.data(), weights.size() * sizeof(float), key);
  return fmt::format("{:016x}", key);
}

void draw_as_rank(GenerateRequest const& request, parallel::ProcessGroup& group) {
  auto const device = devices(request, &group).front();
  auto options = generator_options(request, device.backend);
  auto const settings = dcgan::receive_settings(group);
  options.batch = settings.batch;
  auto const output = dcgan::Output::join(output_request(request), settings.count, options.image_type,
                                          device.threads, settings.seal);
  dcgan::ranks_without_files(group, output != nullptr);
  dcgan::Pipeline pipeline(dcgan::FoldedWeights(dcgan::broadcast(group, nullptr)), device, options,
                           dcgan::slots_of(device));
  group.barrier();
  dcgan::generate_for_rank_0(group, pipeline, output.get());
  if (output) output->flush();
  group.barrier();
}

// Records the device in the report.
void add_device(GenerateReport& report, Device const& device, dcgan::GeneratorOptions const& options) {
  report.threads = device.threads;
  report.device = device.backend == Backend::cuda ? device.gpu.name : name_of(device.backend);
  report.backend = name_of(device.backend);
  report.type = name_of(options.type);
  report.batch = options.batch;
}

// Measures the cost of the files alone: writes the images of the first few chunks in place of all images, and
// removes the files. As while generating, there are too many for the processor's caches.
void measure_files(GenerateRequest const& request) {
  check_generate_files(request);
  auto const weights = dcgan::Weights::read(weights_file(request));
  auto const device = devices(request, nullptr).front();
  auto const z = latents(request);
  check_pictures(request, z.count());
  auto options = generator_options(request, device.backend);
  options.batch = batch_of(request, device.backend, z.count(), options.batch);
  dcgan::Output output(output_request(request), z.count(), options.image_type, "measured", device.threads);
  double const preparing = seconds_now();
  dcgan::Pipeline pipeline(dcgan::FoldedWeights(weights), device, options);
  std::vector<float> numbers(static_cast<std::size_t>(options.batch * dcgan::latent_size));
  std::vector<dcgan::Images> images;
  constexpr Index chunks = 6;
  for (Index first = 0; first < std::min(z.count(), chunks * options.batch); first += options.batch) {
    z.read(first, std::min(options.batch, z.count() - first), numbers.data());
    pipeline.begin(numbers.data(), options.batch);
    images.push_back(pipeline.front());
    pipeline.pop();
  }
  std::size_t next = 0;
  double const start = seconds_now();
  dcgan::Dealer dealer(0, z.count(), options.batch, 8, output.text_at());
  GenerateReport report;
  {
    dcgan::Writer writer(dealer, output, device.backend == Backend::cuda, [](Index) {});
    while (auto const chunk = dealer.take(true)) writer.deliver(*chunk, images[next++ % images.size()]);
    writer.write_rest();
    output.flush();
    report.writing = writer.busy();
  }
  report.total = report.generating = seconds_now() - start;
  output.discard();
  report.preparing = start - preparing;
  report.count = z.count();
  add_device(report, device, options);
  print_report(report, request.common.json);
}

void draw(GenerateRequest const& request, parallel::ProcessGroup* group) {
  check_generate_files(request);
  auto const weights = dcgan::Weights::read(weights_file(request));
  if (group != nullptr && !request.timeline.empty())
    refuse("--timeline shows the devices of one process; run it without mpirun");
  if (!request.save_weights.empty()) weights.write_safetensors(request.save_weights);
  if (!draws_images(request)) return;
  auto const list = devices(request, group);
  auto const z = latents(request);
  Index const count = z.count();
  check_pictures(request, count);
  auto options = generator_options(request, list.front().backend);
  options.batch = batch_of(request, list.front().backend, count, options.batch);
  dcgan::Output output(output_request(request), count, options.image_type,
                       key_of(request, options, list.front(), z, weights.all()), list.front().threads);
  GenerateReport report;
  std::vector<Lane> lanes;
  report.resumed = output.images();
  if (group != nullptr) {
    dcgan::send_settings(*group, {count, options.batch, output.seal()});
    auto const senders = dcgan::ranks_without_files(*group, true);
    if (!senders.empty() && !output.in_order())
      print_warning("these ranks cannot write the files and send their images to rank 0: " +
                    fmt::format("{}", fmt::join(senders, ", ")));
    dcgan::broadcast(*group, &weights);
  }
  double const preparing = seconds_now();
  dcgan::Workers workers(dcgan::FoldedWeights(weights), list, options, request.measure != "device",
                         [](std::string const& text) { print_warning(text); });
  if (group != nullptr) {
    auto const written = files(request);
    report_on_sigterm(written.empty() ? "" : printable_name(written.front()), count);
    sigterm_report_progress(output.images());
    group->barrier();
  }
  auto const drawers =
      static_cast<Index>(group == nullptr ? list.size() : static_cast<std::size_t>(group->size()));
  dcgan::Dealer dealer(output.images(), count, options.batch, 4 * drawers + 2, output.text_at());
  double const start = seconds_now();
  report.preparing = start - preparing;
  if (group != nullptr) dealer.join();  // waits for the other ranks
  {
    dcgan::Writer writer(dealer, output, list.front().backend == Backend::cuda, &sigterm_report_progress);
    try {
      workers.start(dealer, z, [&](dcgan::Chunk const& chunk, dcgan::Images images) {
        writer.deliver(chunk, std::move(images));
      });
      if (group != nullptr)
        dcgan::deal_to_ranks(*group, dealer, z, dcgan::bytes_of_image(options.image_type), writer,
                             output.text());
    } catch (...) {
      dealer.fail(std::current_exception());
    }
    workers.wait();
    report.generating = seconds_now() - start;
    writer.write_rest();
    double const finishing = seconds_now();
    if (group != nullptr) group->barrier();  // no rank writes any more
    output.finish();
    report.writing = writer.busy() + seconds_now() - finishing;
    lanes = lanes_of(workers.drawn(), writer.spans());
  }
  report.total = seconds_now() - start;
  report.count = count;
  report.devices = drawers;
  report.ranks = group == nullptr ? 1 : group->size();
  add_device(report, list.front(), options);
  report.files = join(files(request), ", ");
  if (!request.timeline.empty()) write_timeline(request.timeline, lanes, report);
  print_report(report, request.common.json);
}

}  // namespace

void generate_dcgan(GenerateRequest const& request) {
  if (request.explain) {
    for (std::string const& path : {request.output, request.image, request.animation, request.timeline,
                                    request.save_weights, request.input})
      if (!path.empty()) refuse("--explain generates nothing; remove " + path);
    if (!request.measure.empty()) refuse("--explain generates nothing; remove --measure");
    Device const device = request.common.device_to_plan_for();
    auto options = generator_options(request, device.backend);
    if (request.count != not_given) {
      check_count(request);
      options.batch = batch_of(request, device.backend, request.count, options.batch);
    }
    dcgan::Architecture const architecture = request.weights.empty()
                                                 ? dcgan::Architecture{}
                                                 : dcgan::Weights::read(request.weights).architecture();
    print_plan(dcgan::plan_generator(architecture, device, options), options.batch, request.common.json);
    return;
  }
  parallel::ProcessGroup* const group = parallel::process_group();
  if (request.measure == "files") {
    if (group != nullptr) refuse("--measure files supports only one process; run it without mpirun");
    return measure_files(request);
  }
  if (group == nullptr || group->rank() == 0)
    draw(request, group);
  else if (draws_images(request))
    draw_as_rank(request, *group);
  if (group != nullptr) group->finish();
}

}  // namespace cosmati::cli
