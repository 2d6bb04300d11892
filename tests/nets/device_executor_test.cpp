// Training on a device with all data in its memory gives the losses, parameters and files of training on host
// threads, for every variant, optimizer and remainder of the batches.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <functional>

#include "nets/lenet5/training.h"
#include "tests/nets/easy_images.h"
#include "tests/sanitized.h"

namespace cosmati::lenet5 {
namespace {

struct Outcome {
  std::vector<float> start, values, scores;
  std::vector<nets::Parameter> parameters;
  double loss = 0;
  nets::LossScale scale;
};

// Trains one epoch with the executor of kind `make`.
Outcome train(Variant variant, OptimizerKind kind, Device const& device, nets::Dataset const& data,
              Index batch, std::function<std::unique_ptr<nets::Executor>(nets::Assignment const&)> make) {
  Model model(variant, kind == OptimizerKind::adam ? 2 : 1);
  model.initialize(3);
  model.statistics = nets::pixel_statistics(data);
  nets::Assignment assignment = model.assignment(device);
  assignment.data = &data;
  assignment.batch = batch;
  assignment.optimizer.kind = kind;
  assignment.optimizer.momentum = 0.9;
  assignment.optimizer.weight_decay = 1e-3;
  auto const executor = make(assignment);
  Outcome outcome;
  nets::Parameters const& parameters = model.parameters();
  auto const values = [&] {
    return std::vector<float>(parameters.values(),
                              parameters.values() + parameters.value_bytes() / sizeof(float));
  };
  outcome.start = values();
  nets::Epoch epoch;
  epoch.order = std::make_shared<std::vector<Index> const>(nets::shuffled(data.count(), 1, 0));
  for (Index i = 0; i < data.count(); i += batch) epoch.rates.push_back(0.01 / static_cast<double>(1 + i));
  executor->begin(epoch);
  while (executor->advance() > 0) continue;
  outcome.loss = executor->loss_sum();
  outcome.scores = executor->scores(data);
  executor->fetch_parameters();
  outcome.scale = executor->loss_scale();
  outcome.values = values();
  outcome.parameters = parameters.list();
  return outcome;
}

// Adam's step has the sign of even a tiny gradient, so few parameters may differ by as much as the rate.
void expect_close(Outcome const& one, Outcome const& other, OptimizerKind kind) {
  EXPECT_NEAR(one.loss, other.loss, 1e-4 * std::abs(other.loss));
  ASSERT_EQ(one.values.size(), other.values.size());
  std::size_t far = 0;
  for (std::size_t i = 0; i < one.values.size(); ++i) {
    ASSERT_NEAR(one.values[i], other.values[i], kind == OptimizerKind::adam ? 5e-3 : 2e-5)
        << "parameter " << i;
    far += std::abs(one.values[i] - other.values[i]) > 2e-5F;
  }
  EXPECT_LE(far, one.values.size() / 500);
  ASSERT_EQ(one.scores.size(), other.scores.size());
  if (kind == OptimizerKind::adam) return;
  for (std::size_t i = 0; i < one.scores.size(); ++i)
    ASSERT_NEAR(one.scores[i], other.scores[i], 1e-3 + 1e-4 * std::abs(other.scores[i])) << "score " << i;
}

class EachVariantOnADevice : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(LeNet5, EachVariantOnADevice, testing::ValuesIn(variants),
                         [](auto const& each) { return std::string(name_of(each.param)); });

// Two steps and a remainder, by the code for GPUs but with the CPU's kernels.
TEST_P(EachVariantOnADevice, EqualsHostThreads) {
  auto const data = easy_images(37, 1);
  Device const cpu = this_device(Backend::cpu, 2);
  for (OptimizerKind const kind : {OptimizerKind::sgd, OptimizerKind::adam})
    expect_close(train(GetParam(), kind, cpu, data, 16, &nets::make_device_executor),
                 train(GetParam(), kind, cpu, data, 16, &nets::make_host_executor), kind);
}

// One step and a remainder with a GPU's kernels: by a single kernel, if the variant allows it, or by layers.
TEST_P(EachVariantOnADevice, EmulatorEqualsHostThreads) {
  auto const data = easy_images(3, 1);
  Device const emulator = this_device(Backend::emulator, 2), cpu = this_device(Backend::cpu, 2);
  for (OptimizerKind const kind : {OptimizerKind::sgd, OptimizerKind::adam}) {
    Outcome const expected = train(GetParam(), kind, cpu, data, 2, &nets::make_executor);
    Outcome found[2];
    for (bool const one_kernel : {false, true}) {
      found[one_kernel] = train(GetParam(), kind, emulator, data, 2, [&](nets::Assignment assignment) {
        assignment.one_kernel = one_kernel;
        return nets::make_executor(assignment);
      });
      expect_close(found[one_kernel], expected, kind);
    }
    EXPECT_EQ(found[false].values == found[true].values, GetParam() == Variant::lecun1998);
  }
}

TEST(LeNet5OnADevice, OneKernelGivesTheSameBitsAgain) {
  auto const data = easy_images(21, 1);  // blocks with several passes, and a remainder
  auto const on = [&](Backend backend, int threads) {
    return train(Variant::modern, OptimizerKind::sgd, this_device(backend, threads), data, 18,
                 &nets::make_executor);
  };
  Outcome const one = on(Backend::emulator, 1), four = on(Backend::emulator, 4);
  EXPECT_EQ(one.values, four.values);
  EXPECT_EQ(one.scores, four.scores);
  expect_close(one, on(Backend::cpu, 2), OptimizerKind::sgd);
}

// Convolutions by tensor cores: every parameter changes as in f32, except for the rounding of factors. Blocks
// have one pass or several, and images may or may not fill a block.
TEST(LeNet5OnADevice, OneKernelRoundsFactorsOfConvolutionsToTf32) {
  Device const emulator = this_device(Backend::emulator, 2);
  for (Variant const variant : {Variant::modern, Variant::chapter})
    for (Index const batch : {2, 11}) {
      auto const data = easy_images(batch == 2 ? 3 : 11, 1);
      auto const of = [&](DataType factors) {
        return train(variant, OptimizerKind::sgd, emulator, data, batch, [&](nets::Assignment assignment) {
          assignment.factors = factors;
          return nets::make_executor(assignment);
        });
      };
      Outcome const truth = of(DataType::f32), found = of(DataType::tf32);
      EXPECT_NEAR(found.loss, truth.loss, 1e-3 * std::abs(truth.loss));
      for (nets::Parameter const& parameter : truth.parameters) {
        double change = 0, difference = 0;
        auto const first = static_cast<std::size_t>(parameter.offset);
        auto const count = static_cast<std::size_t>(parameter.description.shape().size());
        for (std::size_t i = first; i < first + count; ++i) {
          change += std::pow(truth.values[i] - truth.start[i], 2);
          difference += std::pow(truth.values[i] - found.values[i], 2);
        }
        // With max pooling, rounding also moves some gradients to another element of their window.
        double const bound = variant == Variant::modern ? 0.1 : 1e-3;
        EXPECT_LT(std::sqrt(difference), bound * std::sqrt(change)) << parameter.name << ", batch " << batch;
      }
    }
}

// Devices that train together by one kernel each exchange their gradients while the kernels run. Shares of
// different sizes, several steps, and a remainder that is smaller than the team, which is trained by layers.
TEST(LeNet5OnADevice, KernelsOfSeveralDevicesTrainTogether) {
  auto const data = easy_images(12, 1);
  Device const emulator = this_device(Backend::emulator, 1), cpu = this_device(Backend::cpu, 2);
  test::Sample sample(3);  // sgd with 5 images, adam with 11
  for (OptimizerKind const kind : {OptimizerKind::sgd, OptimizerKind::adam})
    for (Index const batch : {5, 11}) {
      if (sample.skips()) continue;
      auto const together = [&](int others, bool one_kernel) {
        return train(Variant::modern, kind, emulator, data, batch, [&](nets::Assignment assignment) {
          assignment.others.assign(static_cast<std::size_t>(others), emulator);
          assignment.one_kernel = one_kernel;
          return nets::make_executor(assignment);
        });
      };
      Outcome const alone = together(0, true), three = together(2, true), layers = together(2, false);
      expect_close(three, train(Variant::modern, kind, cpu, data, batch, &nets::make_executor), kind);
      EXPECT_NE(three.values, alone.values);
      EXPECT_NE(three.values, layers.values);
      EXPECT_EQ(three.values, together(2, true).values);
    }
}

// Three steps, so that the two buffers for gradients are reused, by members with different numbers of blocks.
TEST(LeNet5OnADevice, KernelsOfUnequalMembersTrainForManySteps) {
  auto const data = easy_images(22, 1);
  Device const emulator = this_device(Backend::emulator, 1), cpu = this_device(Backend::cpu, 2);
  auto const three =
      train(Variant::modern, OptimizerKind::sgd, emulator, data, 7, [&](nets::Assignment assignment) {
        assignment.others.assign(2, emulator);
        return nets::make_executor(assignment);
      });
  expect_close(three, train(Variant::modern, OptimizerKind::sgd, cpu, data, 7, &nets::make_executor),
               OptimizerKind::sgd);
}

// 16-bit data between the layers: GPU and CPU kernels agree approximately with f32. A loss scale that is too
// large skips a step and is halved; otherwise gradients are as without it.
TEST_P(EachVariantOnADevice, SixteenBitsLearnTheSame) {
  auto const data = easy_images(6, 1);
  Device const emulator = this_device(Backend::emulator, 2), cpu = this_device(Backend::cpu, 2);
  auto const of = [&](DataType type, float scale, Device const& device) {
    return train(GetParam(), OptimizerKind::sgd, device, data, 2, [&](nets::Assignment assignment) {
      assignment.type = type;
      assignment.loss_scale.scale = scale;
      return nets::make_executor(assignment);
    });
  };
  Outcome const truth = of(DataType::f32, 1, cpu), none = of(DataType::f16, 1 << 24, emulator);
  for (DataType const type : {DataType::f16, DataType::bf16})
    for (Device const& device : {emulator, cpu}) {
      Outcome const found = of(type, 1024, device);
      double const bound = type == DataType::f16 ? 2e-3 : 2e-2;
      EXPECT_NEAR(found.loss, truth.loss, bound * std::abs(truth.loss)) << name_of(type);
      double worst = 0;
      for (std::size_t i = 0; i < truth.values.size(); ++i)
        worst = std::max(worst, static_cast<double>(std::abs(found.values[i] - truth.values[i])));
      EXPECT_LT(worst, bound) << name_of(type) << " " << name_of(device.backend);
      EXPECT_EQ(found.scale.scale, 1024);
      EXPECT_EQ(found.scale.good_steps, type == DataType::f16 ? 3 : 0);
    }
  EXPECT_LT(none.scale.scale, 1 << 24);
  for (float const value : none.values) ASSERT_TRUE(std::isfinite(value));
}

// Devices that share each batch unequally, and a remainder too small for one of them.
TEST_P(EachVariantOnADevice, ThreeTogetherEqualOne) {
  auto const data = easy_images(18, 1);
  Device const cpu = this_device(Backend::cpu, 1);
  auto const three = [](nets::Assignment assignment) {
    assignment.others.assign(2, assignment.device);
    return nets::make_executor(assignment);
  };
  for (OptimizerKind const kind : {OptimizerKind::sgd, OptimizerKind::adam})
    expect_close(train(GetParam(), kind, cpu, data, 16, three),
                 train(GetParam(), kind, cpu, data, 16, &nets::make_host_executor), kind);
}

// Two epochs: the second one is prepared during the first, or not, or another epoch is prepared instead.
TEST(LeNet5OnADevice, AnEpochPreparedAheadIsTheSame) {
  auto const data = easy_images(37, 1);
  Index const batch = 16, steps = 3;
  Device const cpu = this_device(Backend::cpu, 1);
  auto const values_after = [&](std::vector<int> const& prepared, bool team) {
    Model model(Variant::modern, 1);
    model.initialize(3);
    model.statistics = nets::pixel_statistics(data);
    nets::Assignment assignment = model.assignment(cpu);
    if (team) assignment.others = {cpu};
    assignment.data = &data;
    assignment.batch = batch;
    auto const executor =
        team ? nets::make_team_executor(assignment) : nets::make_device_executor(assignment);
    auto const epoch_of = [&](int number) {
      nets::Epoch epoch;
      epoch.order = std::make_shared<std::vector<Index> const>(nets::shuffled(data.count(), 1, number));
      epoch.rates.assign(static_cast<std::size_t>(steps), 0.01 / (1 + number));
      epoch.steps_done = number * steps;
      return epoch;
    };
    for (int const epoch : {0, 1}) {
      executor->begin(epoch_of(epoch));
      while (executor->advance() > 0) continue;
      if (epoch == 0)
        for (int const next : prepared) executor->prepare_epoch(epoch_of(next));
      executor->loss_sum();
      executor->scores(data);
    }
    executor->fetch_parameters();
    float const* const values = model.parameters().values();
    return std::vector<float>(values, values + model.parameters().value_bytes() / sizeof(float));
  };
  for (bool const team : {false, true}) {
    auto const expected = values_after({}, team);
    EXPECT_EQ(values_after({1}, team), expected);
    EXPECT_EQ(values_after({2}, team), expected);
    EXPECT_EQ(values_after({2, 1}, team), expected);
  }
}

// One backend continues the checkpoint of another; accuracies belong to its parameters.
TEST(LeNet5OnADevice, ContinuesACheckpointOfTheCpu) {
  auto const train_set = easy_images(12, 1), test_set = easy_images(4, 2);
  Device const emulator = this_device(Backend::emulator, 2), cpu = this_device(Backend::cpu, 2);
  Hyperparameters h = default_hyperparameters(Variant::modern);
  h.epochs = 1;
  h.batch = 4;
  std::string const path = temporary("half.safetensors");
  Training whole(h, train_set, test_set, cpu);
  EXPECT_TRUE(whole.run({}));
  whole.save(path);
  auto const truth = load(path, true);
  std::atomic<bool> stop{false};
  Training first(h, train_set, test_set, cpu);
  EXPECT_FALSE(first.run({[&](Progress const&) { stop = true; }, {}, &stop}));
  first.save(path);
  Training second(path, train_set, test_set, emulator);
  EXPECT_EQ(second.images_done(), 4);
  EXPECT_TRUE(second.run({}));
  second.save(path);
  auto const found = load(path, true);
  EXPECT_NEAR(second.history()[0].loss, whole.history()[0].loss, 1e-4);
  for (int p = 0; p < static_cast<int>(found.model->parameters().list().size()); ++p) {
    Index const size = found.model->parameters()[p].description.layout.size();
    for (Index i = 0; i < size; ++i) {
      ASSERT_NEAR(found.model->parameters().value(p)[i], truth.model->parameters().value(p)[i], 2e-5);
      ASSERT_NEAR(found.model->parameters().state(0, p)[i], truth.model->parameters().state(0, p)[i], 2e-4);
    }
  }
  std::filesystem::remove(path);
}

// With a loss scale that starts too large; on one device or two.
TEST(LeNet5OnADevice, ContinuesInF16ToTheSameBits) {
  auto const train_set = easy_images(12, 1), test_set = easy_images(4, 2);
  Device const cpu = this_device(Backend::cpu, 1);
  Hyperparameters h = default_hyperparameters(Variant::modern);
  h.epochs = 1;
  h.batch = 4;
  h.type = DataType::f16;
  std::string const path = temporary("f16.safetensors"), parts = temporary("parts.safetensors");
  for (std::size_t const devices : {std::size_t{1}, std::size_t{2}}) {
    nets::Team const team(std::vector<Device>(devices, cpu), nullptr);
    Training whole(h, train_set, test_set, team);
    EXPECT_TRUE(whole.run({}));
    whole.save(path);
    std::atomic<bool> stop{false};
    Training first(h, train_set, test_set, team);
    EXPECT_FALSE(first.run({[&](Progress const&) { stop = true; }, {}, &stop}));
    first.save(parts);
    Training second(parts, train_set, test_set, team);
    EXPECT_EQ(second.hyperparameters().type, DataType::f16);
    EXPECT_TRUE(second.run({}));
    second.save(parts);
    EXPECT_TRUE(bytes_of(path) == bytes_of(parts)) << devices << " devices";
  }
  std::filesystem::remove(path);
  std::filesystem::remove(parts);
}

// Adam's step in f16 reads the most tensors: parameter, gradient, two moments, three scalars, scale and sum.
TEST(LeNet5OnADevice, AdamTrainsInF16) {
  auto const train_set = easy_images(12, 1), test_set = easy_images(4, 2);
  Hyperparameters h = default_hyperparameters(Variant::modern);
  h.optimizer = OptimizerKind::adam;
  h.schedule.rate = 1e-3;
  h.epochs = 1;
  h.batch = 4;
  h.type = DataType::f16;
  Training emulated(h, train_set, test_set, this_device(Backend::emulator, 2));
  Training truth(h, train_set, test_set, this_device(Backend::cpu, 2));
  EXPECT_TRUE(emulated.run({}));
  EXPECT_TRUE(truth.run({}));
  EXPECT_NEAR(emulated.history()[0].loss, truth.history()[0].loss, 2e-3);
}

// One memory without overlaps, in the order of the layers; activations share the memory of their products.
TEST(LeNet5OnADevice, ExplainsItsMemory) {
  Model model(Variant::modern);
  nets::Assignment assignment = model.assignment(this_device(Backend::emulator, 1));
  assignment.batch = 8;
  std::string const text = nets::explain(assignment);
  EXPECT_NE(text.find("c1 convolution, relu"), std::string::npos) << text;
  EXPECT_NE(text.find("f6 fully connected, relu"), std::string::npos) << text;
  EXPECT_EQ(text.find("\nrelu"), std::string::npos) << text;
}

}  // namespace
}  // namespace cosmati::lenet5
