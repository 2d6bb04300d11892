// The body of `cosmati train lenet5`: settings from options, progress, epoch lines, files.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <memory>
#include <vector>

#include "cli/networks/lenet5_picture.h"
#include "cli/networks/lenet5_report.h"
#include "cli/networks/output_files.h"
#include "cli/networks/train_team.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "nets/lenet5/training.h"

namespace cosmati::cli {
namespace {

using Clock = std::chrono::steady_clock;

OptimizerKind parse_optimizer(std::string const& name) {
  return one_of(name, {"sgd", "adam"}, "--optimizer") == "sgd" ? OptimizerKind::sgd : OptimizerKind::adam;
}

constexpr long long largest_seed = 1LL << 62;  // largest seed accepted in a checkpoint

lenet5::Hyperparameters hyperparameters_of(TrainRequest const& request) {
  auto const variant =
      request.variant.empty() ? lenet5::Variant::modern : lenet5::parse_variant(request.variant);
  lenet5::Hyperparameters h = lenet5::default_hyperparameters(variant);
  if (request.epochs != not_given) {
    if (request.epochs < 1 || request.epochs > 1'000'000)
      refuse(fmt::format("--epochs {} is out of range; expected 1 to 1000000", request.epochs));
    h.epochs = static_cast<int>(request.epochs);
  }
  if (request.batch != not_given) {
    if (request.batch < 1 || request.batch > 1 << 20)
      refuse(fmt::format("--batch {} is out of range; expected 1 to {}", request.batch, 1 << 20));
    h.batch = request.batch;
  }
  auto const set = [](char const* option, double given, double& value, double limit) {
    if (given == no_number) return;
    if (!(given >= 0 && given <= limit))
      refuse(fmt::format("{} {} is out of range; expected 0 to {}", option, given, limit));
    value = given;
  };
  set("--learning-rate", request.learning_rate, h.schedule.rate, 1000);
  set("--momentum", request.momentum, h.momentum, 1);
  set("--weight-decay", request.weight_decay, h.weight_decay, 1000);
  if (!request.optimizer.empty()) h.optimizer = parse_optimizer(request.optimizer);
  if (h.optimizer == OptimizerKind::adam && request.momentum != no_number)
    refuse(fmt::format("--momentum {} applies to --optimizer sgd; {} trains with adam", request.momentum,
                       request.optimizer.empty() ? std::string("--variant ") + lenet5::name_of(h.variant)
                                                 : "--optimizer adam"));
  if (!request.schedule.empty()) h.schedule.kind = parse_schedule_kind(request.schedule);
  if (request.common.seed < 0 || request.common.seed > largest_seed)
    refuse(fmt::format("--seed {} is out of range; expected 0 to {}", request.common.seed, largest_seed));
  h.seed = static_cast<unsigned long long>(request.common.seed);
  if (!request.common.types.compute.empty()) h.factors = lenet5::parse_factors(request.common.types.compute);
  if (!request.common.types.all.empty()) h.type = lenet5::parse_type(request.common.types.all);
  if (h.type != DataType::f32 && h.factors != DataType::f32)
    refuse("--compute " + request.common.types.compute + " requires --type f32");
  return h;
}

std::string describe(lenet5::Hyperparameters const& h, Device const& device) {
  return fmt::format(
      "LeNet-5 {}, batch {}, {} epochs, {} with {} rate {:g}, weight decay {:g}, seed {}; {} backend, {} "
      "threads",
      lenet5::name_of(h.variant), h.batch, h.epochs, h.optimizer == OptimizerKind::sgd ? "sgd" : "adam",
      cosmati::name_of(h.schedule.kind), h.schedule.rate, h.weight_decay, h.seed, name_of(device.backend),
      device.threads);
}

// Shows the progress of an epoch at most ten times a second, only on a terminal.
class Bar {
 public:
  void show(lenet5::Progress const& progress, int epochs) {
    constexpr int width = 32;
    auto const filled = static_cast<int>(progress.images * width / std::max<Index>(progress.total, 1));
    print_progress(fmt::format("epoch {}/{} [{}{}] {}/{}  loss {:.4f}", progress.epoch, epochs,
                               std::string(static_cast<std::size_t>(filled), '#'),
                               std::string(static_cast<std::size_t>(width - filled), '.'), progress.images,
                               progress.total, progress.loss));
  }
  static void clear() { print_progress(""); }
};

void print_epoch(lenet5::EpochReport const& report, int epochs, double seconds_left, bool json) {
  if (json) {
    print_text(Record()
                   .add("event", "epoch")
                   .add("epoch", report.epoch)
                   .add("loss", report.loss)
                   .add("train_accuracy", report.train_accuracy)
                   .add("test_accuracy", report.test_accuracy)
                   .add("learning_rate", report.learning_rate)
                   .add("images_per_second", report.images_per_second)
                   .add("seconds", report.seconds)
                   .json());
    return;
  }
  print_line(
      fmt::format("epoch {:>3}/{}  loss {:.4f}  train {:6.2f}%  test {:6.2f}%  {:7.0f} images/s  {} left",
                  report.epoch, epochs, report.loss, report.train_accuracy * 100, report.test_accuracy * 100,
                  report.images_per_second, clock_time(seconds_left)));
}

std::unique_ptr<lenet5::Training> make_training(TrainRequest const& request, nets::Dataset const& train,
                                                nets::Dataset const& test, nets::Team const& team) {
  if (request.resume.empty())
    return std::make_unique<lenet5::Training>(hyperparameters_of(request), train, test, team);
  auto training = std::make_unique<lenet5::Training>(request.resume, train, test, team);
  auto const seed = training->hyperparameters().seed;
  if (request.common.seed != Common().seed && static_cast<unsigned long long>(request.common.seed) != seed)
    refuse(fmt::format("--seed {}: --resume continues with the seed of {}, {}; remove --seed",
                       request.common.seed, request.resume, seed));
  return training;
}

// Rejects whatever can be rejected before any file is read.
void check_settings(TrainRequest const& request) {
  if (!request.picture.empty() && !request.picture.ends_with(".png"))
    refuse("--picture " + request.picture + ": the name must end in .png");
  if (request.resume.empty()) {
    hyperparameters_of(request);
    return;
  }
  if (!request.variant.empty() || request.epochs != not_given || request.batch != not_given ||
      !request.optimizer.empty() || !request.schedule.empty() || request.learning_rate != no_number ||
      request.momentum != no_number || request.weight_decay != no_number ||
      !request.common.types.all.empty() || !request.common.types.compute.empty())
    refuse("--resume continues with the hyperparameters of " + request.resume +
           "; remove --variant, --epochs, --batch, --optimizer, --schedule, --learning-rate, "
           "--momentum, --weight-decay, --type and --compute");
}

std::string continuation(TrainRequest const& request, std::string const& file) {
  return continuation_of("lenet5",
                         {{"--data", request.data}, {"--resume", file}, {"--picture", request.picture}},
                         request.common, request.gpus);
}

void report_result(TrainRequest const& request, lenet5::Training& training, nets::Dataset const& test,
                   lenet5::Evaluation const& evaluation, std::string const& save) {
  if (!request.picture.empty())
    io::write_png(request.picture,
                  lenet5_picture(test, evaluation.predictions, training.model().classes, training.history()));
  if (request.common.json) {
    print_text(Record()
                   .add("event", "result")
                   .add("accuracy", evaluation.accuracy)
                   .add("model", save)
                   .add("picture", request.picture)
                   .json());
    return;
  }
  print_text("\n" + confusion_text(evaluation.confusion, training.model().classes));
  print_line(fmt::format("\ntest accuracy {:.2f}%", evaluation.accuracy * 100));
  print_line("model    " + save);
  if (!request.picture.empty()) print_line("picture  " + request.picture);
}

}  // namespace

bool train_lenet5(TrainRequest const& request, std::atomic<bool> const& interrupted) {
  if (request.explain) {
    if (!request.save.empty() || !request.resume.empty() || !request.picture.empty())
      refuse("--explain trains nothing; remove --save, --resume and --picture");
    auto const h = hyperparameters_of(request);
    lenet5::Model model(h.variant);
    nets::Assignment assignment = model.assignment(request.common.device_to_plan_for());
    assignment.batch = h.batch;
    assignment.factors = h.factors;
    assignment.type = h.type;
    print_text(nets::explain(assignment));
    return true;
  }
  if (request.data.empty())
    refuse("missing required option --data FOLDER (the four IDX files of MNIST or Fashion-MNIST)");
  std::string const save = !request.save.empty()     ? request.save
                           : !request.resume.empty() ? request.resume
                                                     : "lenet5.safetensors";
  check_settings(request);
  bool const json = request.common.json;
  parallel::ProcessGroup* const group = parallel::process_group();
  bool const speaks = group == nullptr || group->rank() == 0;  // also writes the files
  if (speaks) {
    auto inputs = data_files("--data", request.data);
    inputs.push_back({"--resume", request.resume});
    bool const continues = request.save.empty() && !request.resume.empty();
    check_files({{continues ? "--resume" : "--save", save, "--resume"}, {"--picture", request.picture}},
                inputs);
  }
  // The data are read while the driver starts and opens the devices.
  auto const read = [&request](nets::Split split) {
    return std::async(std::launch::async, [&request, split] {
      return nets::read_dataset(request.data, split, lenet5::class_count, lenet5::image_size);
    });
  };
  auto reading = read(nets::Split::train), reading_test = read(nets::Split::test);
  nets::Team team = team_of(request.common, request.gpus, group);
  team.one_kernel = !request.layered;
  bool const shared = team.size() > 1;
  // A failure to open a device will recur where the device is used.
  std::vector<std::future<DeviceMemory>> opened;
  for (Device const& device : team.devices)
    opened.push_back(std::async(std::launch::async, [&device] { return DeviceMemory(device, 1); }));
  auto const train = reading.get(), test = reading_test.get();
  auto const training = make_training(request, train, test, team);
  auto const& h = training->hyperparameters();
  if (speaks) warn_of_tf32(h.factors, team);
  if (!json && speaks) print_line(describe(h, team.devices[0]) + team_text(team));
  if (shared && speaks) training->save(save);  // so that a checkpoint exists, whatever happens later
  if (group != nullptr)
    when_lost(speaks ? "cosmati: a process was lost, or mpirun was terminated; " +
                           continuation(request, save) + "\n"
                     : "");

  Bar bar;
  int const first_epoch = training->epochs_done();
  auto const start = Clock::now();
  auto saved = start;
  int saved_epoch = -1;  // complete epochs in the file; -1: none saved yet
  lenet5::Callbacks callbacks;
  callbacks.stop = &interrupted;
  callbacks.progress_seconds = 0.1;
  if (speaks)
    callbacks.progress = [&](lenet5::Progress const& progress) {
      bar.show(progress, h.epochs);
      if (!shared || progress.images == progress.total || Clock::now() - saved < std::chrono::seconds(5))
        return;
      training->save(save);
      saved = Clock::now();
    };
  callbacks.epoch = [&](lenet5::EpochReport const& report) {
    if (!speaks) return;
    Bar::clear();
    double const elapsed = std::chrono::duration<double>(Clock::now() - start).count();
    print_epoch(report, h.epochs, elapsed / (report.epoch - first_epoch) * (h.epochs - report.epoch), json);
    training->save(save);
    saved_epoch = report.epoch;
  };
  bool const done = run_or_tell(team, continuation(request, save), [&] { return training->run(callbacks); });
  if (speaks) {
    Bar::clear();
    if (!done || saved_epoch != training->epochs_done()) training->save(save);
  }
  if (!done && speaks)
    print_failure(fmt::format("interrupted in epoch {} after {} images; {}", training->epochs_done() + 1,
                              training->images_done(), continuation(request, save)));
  auto const evaluation = done ? training->evaluate_test() : lenet5::Evaluation();
  if (group != nullptr) group->finish();
  if (done && speaks) report_result(request, *training, test, evaluation, save);
  return done;
}

}  // namespace cosmati::cli
