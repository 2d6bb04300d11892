// The body of `cosmati train dcgan`: settings from options, progress, files.
#include "cli/networks/train_dcgan.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "cli/networks/output_files.h"
#include "cli/networks/train_team.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "nets/dcgan/picture.h"
#include "nets/dcgan/training/training.h"

namespace cosmati::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr long long max_steps = 100'000'000;

void check_range(char const* option, long long given, long long low, long long high) {
  if (given < low || given > high)
    refuse(fmt::format("{} {} is out of range; expected {} to {}", option, given, low, high));
}

dcgan::Settings settings_of(TrainDcganRequest const& request) {
  dcgan::Settings settings;
  if (request.width != not_given) {
    check_range("--width", request.width, 1, 1024);
    settings.architecture = dcgan::architecture_of_width(request.width);
  }
  if (request.batch != not_given) settings.batch = request.batch;
  check_range("--batch", settings.batch, 2, 65536);
  if (request.steps != not_given) settings.steps = request.steps;
  if (request.learning_rate != no_number) settings.rate = request.learning_rate;
  if (!(settings.rate >= 0 && settings.rate <= 1))
    refuse(fmt::format("--learning-rate {} is out of range; expected 0 to 1", settings.rate));
  check_range("--seed", request.common.seed, 0, 1LL << 62);
  settings.seed = static_cast<unsigned long long>(request.common.seed);
  settings.compute = request.common.types.type_of("", DataType::f32);
  if (request.common.types.compute == "tf32")
    settings.compute = DataType::tf32;
  else if (!request.common.types.compute.empty())
    refuse("--compute " + request.common.types.compute + " is invalid; valid values: tf32");
  if (!request.statistics.empty())
    settings.statistics = one_of(request.statistics, {"batch", "device"}, "--statistics") == "batch"
                              ? dcgan::StatisticsOf::batch
                              : dcgan::StatisticsOf::device;
  return settings;
}

std::unique_ptr<dcgan::Training> make_training(TrainDcganRequest const& request,
                                               dcgan::Pictures const& pictures, nets::Team const& team) {
  if (request.resume.empty()) return std::make_unique<dcgan::Training>(settings_of(request), pictures, team);
  long long const steps = request.steps == not_given ? 0 : request.steps;
  auto training = std::make_unique<dcgan::Training>(request.resume, steps, pictures, team);
  auto const seed = training->settings().seed;
  if (request.common.seed != Common().seed && static_cast<unsigned long long>(request.common.seed) != seed)
    refuse(fmt::format("--seed {}: --resume continues with the seed of {}, {}; remove --seed",
                       request.common.seed, request.resume, seed));
  return training;
}

void print_report(dcgan::Report const& report, long long steps, Index batch, bool json) {
  if (json) {
    print_text(Record()
                   .add("event", "progress")
                   .add("step", report.step)
                   .add("epoch", report.epoch)
                   .add("discriminator_loss", report.discriminator)
                   .add("generator_loss", report.generator)
                   .add("images_per_second", report.images_per_second)
                   .json());
    return;
  }
  double const left =
      static_cast<double>(steps - report.step) * static_cast<double>(batch) / report.images_per_second;
  print_line(fmt::format(
      "step {:>6}/{}  epoch {:>3}  discriminator {:.4f}  generator {:.4f}  {:6.0f} images/s  {} left",
      report.step, steps, report.epoch, report.discriminator, report.generator, report.images_per_second,
      clock_time(left)));
  std::fflush(stdout);  // training takes long, and stdout may be a file
}

// "samples.png" after step 3 becomes samples-000003.png: a grid of images of fixed latent vectors, to show
// the progress of training.
std::string numbered(std::string const& path, long long step) {
  auto const dot = path.rfind('.');
  return fmt::format("{}-{:06}{}", path.substr(0, dot), step, path.substr(dot));
}

void check_request(TrainDcganRequest const& request) {
  if (request.data.empty())
    refuse(
        "missing required option --data PATH (a folder with the IDX files of MNIST or Fashion-MNIST, or with PNGs)");
  if (!request.resume.empty() && (request.batch != not_given || request.width != not_given ||
                                  request.learning_rate != no_number || !request.common.types.all.empty() ||
                                  !request.common.types.compute.empty() || !request.statistics.empty()))
    refuse("--resume continues with the settings of " + request.resume +
           "; remove --batch, --width, --learning-rate, --type, --compute and --statistics");
  if (request.steps != not_given) check_range("--steps", request.steps, 1, max_steps);
  check_range("--report", request.report, 1, max_steps);
  if (request.sample_every != not_given) {
    if (request.samples.empty()) refuse("--sample-every requires --samples FILE.png");
    check_range("--sample-every", request.sample_every, 1, max_steps);
  }
  if (!request.samples.empty() && !request.samples.ends_with(".png"))
    refuse("--samples " + request.samples + ": the name must end in .png");
  if (request.resume.empty()) settings_of(request);  // rejects invalid settings before any file is read
}

std::string checkpoint_of(TrainDcganRequest const& request) {
  if (!request.save.empty()) return request.save;
  return request.resume.empty() ? "dcgan.safetensors" : request.resume;
}

void check_paths(TrainDcganRequest const& request, std::string const& save) {
  auto inputs = data_files("--data", request.data);
  inputs.push_back({"--resume", request.resume});
  bool const continues = request.save.empty() && !request.resume.empty();
  check_files({{continues ? "--resume" : "--save", save, "--resume"},
               {"--generator", request.generator},
               {"--samples", request.samples.empty() ? "" : numbered(request.samples, 1)}},
              inputs);
}

// Sample pictures in the folder of the training data would be read as data by the next run.
void check_samples_folder(TrainDcganRequest const& request, dcgan::Pictures const& pictures) {
  if (request.samples.empty() || pictures.channels != 3) return;
  std::error_code failed;
  auto const folder = std::filesystem::path(request.samples).parent_path();
  if (std::filesystem::equivalent(folder.empty() ? "." : folder, request.data, failed))
    refuse("--samples " + request.samples + ": its images would be read as training data of --data " +
           request.data + "; choose another folder");
}

std::string continuation(TrainDcganRequest const& request, std::string const& save) {
  return continuation_of(
      "dcgan",
      {{"--data", request.data},
       {"--resume", save},
       {"--samples", request.samples},
       {"--sample-every", request.sample_every == not_given ? "" : std::to_string(request.sample_every)},
       {"--generator", request.generator},
       {"--report", request.report == TrainDcganRequest().report ? "" : std::to_string(request.report)}},
      request.common, request.gpus);
}

void print_start(dcgan::Settings const& s, dcgan::Pictures const& pictures, nets::Team const& team) {
  Device const& device = team.devices[0];
  print_line(fmt::format(
      "DCGAN, {} to {} channels, {} pictures{}, batch {}, {} steps, Adam with rate {:g}, {}, seed {}; {} "
      "backend{}{}",
      s.architecture.channel(0), s.architecture.channel(3), pictures.count,
      pictures.channels == 1 ? ", tinted" : "", s.batch, s.steps, s.rate, name_of(s.compute), s.seed,
      name_of(device.backend),
      device.backend == Backend::cuda ? "" : fmt::format(", {} threads", device.threads), team_text(team)));
}

// The work of the process that writes the files during training.
void add_callbacks(dcgan::Callbacks& callbacks, TrainDcganRequest const& request, dcgan::Training& training,
                   std::string const& save) {
  constexpr Index sample_count = 64;
  dcgan::Settings const& s = training.settings();
  callbacks.report = [&s, json = request.common.json](dcgan::Report const& report) {
    print_report(report, s.steps, s.batch, json);
  };
  if (!request.samples.empty())
    callbacks.sample = [&request, &training](long long step) {
      io::write_png(numbered(request.samples, step),
                    dcgan::picture(training.sample(sample_count).data(), sample_count));
    };
  // A checkpoint may be 100 MB, so at most one per minute is saved.
  callbacks.epoch = [&training, &s, save, saved = Clock::now() - std::chrono::minutes(1)](long long) mutable {
    bool const last = training.steps_done() == s.steps;
    if (!last && Clock::now() - saved < std::chrono::minutes(1)) return;
    training.save(save);
    saved = Clock::now();
  };
}

void save_generator(TrainDcganRequest const& request, dcgan::Training& training, Device const& device) {
  dcgan::Settings const& s = training.settings();
  training.save_generator(
      request.generator,
      {{"command", fmt::format("cosmati train dcgan --data {} --steps {} --batch {} --seed {} --type {}",
                               request.data, s.steps, s.batch, s.seed, name_of(s.compute))},
       {"backend", name_of(device.backend)},
       {"device", device.backend == Backend::cuda ? device.gpu.name : "cpu"}});
}

void print_result(TrainDcganRequest const& request, dcgan::Training& training, std::string const& save,
                  double seconds) {
  if (request.common.json) {
    print_text(Record()
                   .add("event", "result")
                   .add("steps", training.steps_done())
                   .add("seconds", seconds)
                   .add("model", save)
                   .add("generator", request.generator)
                   .json());
    return;
  }
  print_line(
      fmt::format("\n{} steps in {}; checkpoint {}", training.steps_done(), clock_time(seconds), save));
  if (!request.generator.empty()) print_line("generator " + request.generator);
}

}  // namespace

bool train_dcgan(TrainDcganRequest const& request, std::atomic<bool> const& interrupted) {
  check_request(request);
  std::string const save = checkpoint_of(request);
  parallel::ProcessGroup* const group = parallel::process_group();
  bool const speaks = group == nullptr || group->rank() == 0;  // also writes the files
  if (speaks) check_paths(request, save);
  nets::Team const team = team_of(request.common, request.gpus, group);
  Device const& device = team.devices[0];
  dcgan::Pictures const pictures = dcgan::read_pictures(request.data, dcgan::image_size, device.threads);
  if (speaks) check_samples_folder(request, pictures);
  auto const training = make_training(request, pictures, team);
  if (speaks) warn_of_tf32(training->settings().compute, team);
  if (speaks && !request.common.json) print_start(training->settings(), pictures, team);
  std::string const resume_command = continuation(request, save);
  if (team.size() > 1 && speaks) training->save(save);  // so that a checkpoint exists, whatever happens later
  if (group != nullptr)
    when_lost(speaks ? "cosmati: a process was lost, or mpirun was terminated; " + resume_command + "\n"
                     : "");

  auto const start = Clock::now();
  dcgan::Callbacks callbacks;
  callbacks.report_every = request.report;
  callbacks.stop = &interrupted;
  if (request.sample_every != not_given) callbacks.sample_every = request.sample_every;
  if (speaks) add_callbacks(callbacks, request, *training, save);
  bool const done = run_or_tell(team, resume_command, [&] { return training->run(callbacks); });
  if (!done && speaks) {
    training->save(save);
    print_failure(fmt::format("interrupted after {} steps; {}", training->steps_done(), resume_command));
  }
  if (group != nullptr) group->finish();
  if (!done || !speaks) return done;
  if (!request.generator.empty()) save_generator(request, *training, device);
  print_result(request, *training, save, std::chrono::duration<double>(Clock::now() - start).count());
  return true;
}

}  // namespace cosmati::cli
