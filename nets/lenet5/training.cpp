// The training loop of LeNet-5 and its checkpoints.
#include "nets/lenet5/training.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

namespace cosmati::lenet5 {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string report_prefix(int epoch) { return "report." + std::to_string(epoch) + "."; }

int state_count(OptimizerKind kind) { return kind == OptimizerKind::adam ? 2 : 1; }

}  // namespace

Hyperparameters default_hyperparameters(Variant variant) {
  Hyperparameters result;
  result.variant = variant;
  result.schedule.kind = ScheduleKind::one_cycle;
  result.schedule.rate = 0.05;
  result.weight_decay = 5e-4;
  if (variant == Variant::chapter) {
    result.epochs = 20;
    result.optimizer = OptimizerKind::adam;
    result.schedule.rate = 0.005;
    result.weight_decay = 0;
  } else if (variant == Variant::lecun1998) {
    result.epochs = 20;
    result.schedule.rate = 0.01;
    result.weight_decay = 0;
  }
  return result;
}

DataType parse_factors(std::string const& name) {
  if (name == "f32") return DataType::f32;
  if (name == "tf32") return DataType::tf32;
  throw Error(ErrorCode::bad_request, "factors of LeNet-5's products are f32 or tf32, not " + name);
}

DataType parse_type(std::string const& name) {
  for (DataType const type : {DataType::f32, DataType::f16, DataType::bf16})
    if (name == cosmati::name_of(type)) return type;
  throw Error(ErrorCode::bad_request, "LeNet-5 is trained in f32, f16 or bf16, not in " + name);
}

Training::Training(Hyperparameters const& hyperparameters, nets::Dataset const& train,
                   nets::Dataset const& test, nets::Team const& team)
    : hyperparameters_(hyperparameters),
      train_(train),
      test_(test),
      team_(team),
      model_(std::make_unique<Model>(hyperparameters.variant, state_count(hyperparameters.optimizer))) {
  model_->initialize(hyperparameters_.seed);
  model_->statistics = nets::pixel_statistics(train_, team_.devices[0].threads);
  model_->classes = nets::class_names(train_.folder);
  prepare();
}

Training::Training(std::string const& checkpoint, nets::Dataset const& train, nets::Dataset const& test,
                   nets::Team const& team)
    : train_(train), test_(test), team_(team) {
  auto loaded = load(checkpoint, true);
  auto const real = [&](std::string const& key) { return nets::real(loaded.metadata, key, checkpoint); };
  auto const integer = [&](char const* key, long long low, long long high) {
    return nets::integer(loaded.metadata, key, checkpoint, low, high);
  };
  constexpr long long largest = 1LL << 62;
  model_ = std::move(loaded.model);
  Hyperparameters& h = hyperparameters_;
  h.variant = model_->variant();
  h.epochs = static_cast<int>(integer("epochs", 1, 1'000'000));
  h.batch = integer("batch", 1, 1 << 24);
  h.optimizer = static_cast<OptimizerKind>(integer("optimizer", 0, 1));
  h.schedule.kind = static_cast<ScheduleKind>(integer("schedule", 0, 4));
  h.schedule.rate = real("learning_rate");
  h.momentum = real("momentum");
  h.weight_decay = real("weight_decay");
  h.seed = static_cast<unsigned long long>(integer("seed", 0, largest));
  if (loaded.metadata.contains("factors")) h.factors = parse_factors(loaded.metadata["factors"]);
  if (loaded.metadata.contains("type")) h.type = parse_type(loaded.metadata["type"]);
  if (h.type == DataType::f16) {
    loss_scale_.scale = static_cast<float>(real("loss_scale"));
    loss_scale_.good_steps = static_cast<float>(real("loss_scale_good_steps"));
    if (!(loss_scale_.scale >= 1 && loss_scale_.good_steps >= 0))
      throw Error(ErrorCode::bad_file, checkpoint + ": its loss scale, " + loaded.metadata["loss_scale"] +
                                           ", is below 1, or its good steps below 0");
  }
  epoch_ = static_cast<int>(integer("epoch", 0, h.epochs));
  images_ = integer("images", 0, train.count());
  loss_sum_ = real("loss_sum");
  steps_ = integer("steps", 0, largest);
  for (int epoch = 1; epoch <= epoch_; ++epoch) {
    std::string const prefix = report_prefix(epoch);
    history_.push_back({epoch, real(prefix + "loss"), real(prefix + "train_accuracy"),
                        real(prefix + "test_accuracy"), real(prefix + "learning_rate")});
  }
  if (images_ % h.batch != 0)
    throw Error(ErrorCode::bad_file, checkpoint + ": records " + std::to_string(images_) +
                                         " images seen, not a multiple of the batch size, " +
                                         std::to_string(h.batch));
  if (model_->parameters().state_count() != state_count(h.optimizer))
    throw Error(ErrorCode::bad_file, checkpoint + ": holds no state of the optimizer; it cannot be resumed");
  if (integer("train_images", 0, largest) != train_.count())
    throw Error(ErrorCode::bad_file, checkpoint + ": was trained on " + loaded.metadata["train_images"] +
                                         " images; " + train_.folder + " holds " +
                                         std::to_string(train_.count()));
  prepare();
}

void Training::prepare() {
  Hyperparameters const& h = hyperparameters_;
  nets::Assignment assignment = model_->assignment(team_.devices.at(0));
  assignment.others.assign(team_.devices.begin() + 1, team_.devices.end());
  assignment.data = &train_;
  assignment.batch = h.batch;
  assignment.group = team_.group;
  assignment.one_kernel = team_.one_kernel;
  assignment.factors = h.factors;
  assignment.type = h.type;
  assignment.loss_scale = loss_scale_;
  assignment.optimizer.kind = h.optimizer;
  assignment.optimizer.momentum = h.momentum;
  assignment.optimizer.weight_decay = h.weight_decay;
  executor_ = nets::make_executor(assignment);
}

double Training::learning_rate(long long step) const {
  Index const steps_an_epoch = (train_.count() + hyperparameters_.batch - 1) / hyperparameters_.batch;
  return hyperparameters_.schedule.rate_at(step, steps_an_epoch * hyperparameters_.epochs);
}

// Describes the rest of epoch `epoch` after its first `images` images; `steps` counts from the beginning of
// the training.
nets::Epoch Training::epoch_from(int epoch, Index images, double loss_sum, long long steps) const {
  nets::Epoch result;
  result.order = std::make_shared<std::vector<Index> const>(
      nets::shuffled(train_.count(), hyperparameters_.seed, epoch));
  result.first = images;
  result.loss_sum = loss_sum;
  result.steps_done = steps;
  Index const batch = hyperparameters_.batch, count = (train_.count() - images + batch - 1) / batch;
  for (Index step = 0; step < count; ++step) result.rates.push_back(learning_rate(steps + step));
  return result;
}

void Training::begin_epoch() {
  if (!next_epoch_) next_epoch_ = epoch_from(epoch_, images_, loss_sum_, steps_);
  executor_->begin(std::move(*next_epoch_));
  next_epoch_.reset();
}

// Prepares the next epoch on the host while the device works, because more devices do not make this part
// faster.
void Training::prepare_next_epoch() {
  if (epoch_ + 1 == hyperparameters_.epochs) return;
  next_epoch_ = epoch_from(epoch_ + 1, 0, 0, steps_);
  executor_->prepare_epoch(*next_epoch_);
}

void Training::take_loss() {
  loss_sum_ = executor_->loss_sum();
  if (!std::isfinite(loss_sum_))
    throw Error(ErrorCode::system, "the losses are no longer finite at step " + std::to_string(steps_) +
                                       ", in epoch " + std::to_string(epoch_ + 1));
}

bool Training::run(Callbacks const& callbacks) {
  Index const count = train_.count();
  while (epoch_ < hyperparameters_.epochs) {
    double const start = seconds_now();
    begin_epoch();
    double shown = start;
    Index const images_before = images_;
    while (images_ < count) {
      Index const steps = executor_->advance();
      images_ = std::min(count, images_ + steps * hyperparameters_.batch);
      steps_ += steps;
      if (callbacks.progress && seconds_now() - shown >= callbacks.progress_seconds) {
        take_loss();
        callbacks.progress({epoch_ + 1, images_, count, loss_sum_ / static_cast<double>(images_)});
        shown = seconds_now();
      }
      if (callbacks.stop != nullptr && images_ < count && executor_->any(*callbacks.stop)) {
        take_loss();
        return false;
      }
    }
    prepare_next_epoch();
    take_loss();
    double const trained = seconds_now();
    EpochReport report;
    report.epoch = epoch_ + 1;
    report.loss = loss_sum_ / static_cast<double>(count);
    report.train_accuracy = evaluate(*executor_, train_).accuracy;
    report.test_accuracy = evaluate(*executor_, test_).accuracy;
    report.learning_rate = learning_rate(steps_ - 1);
    report.images_per_second = static_cast<double>(count - images_before) / (trained - start);
    report.seconds = seconds_now() - start;
    history_.push_back(report);
    ++epoch_, images_ = 0, loss_sum_ = 0;  // before the callback, which may save a checkpoint
    if (callbacks.epoch) callbacks.epoch(report);
    if (callbacks.stop != nullptr && epoch_ < hyperparameters_.epochs && executor_->any(*callbacks.stop))
      return false;
  }
  return true;
}

void Training::save(std::string const& path) {
  executor_->fetch_parameters();
  Hyperparameters const& h = hyperparameters_;
  nets::Metadata metadata = {{"epochs", std::to_string(h.epochs)},
                             {"batch", std::to_string(h.batch)},
                             {"optimizer", std::to_string(static_cast<int>(h.optimizer))},
                             {"schedule", std::to_string(static_cast<int>(h.schedule.kind))},
                             {"learning_rate", nets::exact(h.schedule.rate)},
                             {"momentum", nets::exact(h.momentum)},
                             {"weight_decay", nets::exact(h.weight_decay)},
                             {"seed", std::to_string(h.seed)},
                             {"factors", cosmati::name_of(h.factors)},
                             {"type", cosmati::name_of(h.type)},
                             {"epoch", std::to_string(epoch_)},
                             {"images", std::to_string(images_)},
                             {"loss_sum", nets::exact(loss_sum_)},
                             {"steps", std::to_string(steps_)},
                             {"train_images", std::to_string(train_.count())}};
  if (h.type == DataType::f16) {
    nets::LossScale const now = executor_->loss_scale();
    metadata["loss_scale"] = nets::exact(static_cast<double>(now.scale));
    metadata["loss_scale_good_steps"] = nets::exact(static_cast<double>(now.good_steps));
  }
  for (EpochReport const& report : history_) {
    std::string const prefix = report_prefix(report.epoch);
    metadata[prefix + "loss"] = nets::exact(report.loss);
    metadata[prefix + "train_accuracy"] = nets::exact(report.train_accuracy);
    metadata[prefix + "test_accuracy"] = nets::exact(report.test_accuracy);
    metadata[prefix + "learning_rate"] = nets::exact(report.learning_rate);
  }
  lenet5::save(*model_, path, metadata);
}

}  // namespace cosmati::lenet5
