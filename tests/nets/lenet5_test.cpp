// LeNet-5: sizes, gradients through the whole network, the same bits from the same seed, checkpoints.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "nets/lenet5/codes.h"
#include "nets/lenet5/training.h"
#include "nets/random.h"
#include "nets/replicas.h"
#include "tests/nets/easy_images.h"

namespace cosmati::lenet5 {
namespace {

std::vector<Index> in_order(Index count) {
  std::vector<Index> order;
  for (Index i = 0; i < count; ++i) order.push_back(i);
  return order;
}

// The number of trainable weights of existing connections.
Index trainable_count(Model const& model) {
  Index count = 0;
  for (nets::Parameter const& parameter : model.parameters().list()) {
    if (!parameter.trainable) continue;
    Index const size = parameter.description.layout.size();
    auto const pairs = static_cast<Index>(parameter.connected.size());
    auto const connected = std::count(parameter.connected.begin(), parameter.connected.end(), true);
    count += pairs == 0 ? size : size / pairs * connected;
  }
  return count;
}

TEST(LeNet5, HasTheNumberOfParametersOfItsPaper) {
  EXPECT_EQ(trainable_count(Model(Variant::modern)), 61706);
  EXPECT_EQ(trainable_count(Model(Variant::chapter)), 156 + 2416 + 48120 + 10164 + 840);
  EXPECT_EQ(trainable_count(Model(Variant::lecun1998)), 60000);
}

TEST(LeNet5, C3SeesThreeFourOrSixMaps) {
  int pairs = 0;
  for (bool connected : c3_connections()) pairs += connected;
  EXPECT_EQ(pairs, 60);
  for (Index unit = 0; unit < code_rows * code_columns; ++unit) EXPECT_EQ(std::abs(code(3, unit)), 1.0F);
}

class EachVariant : public testing::TestWithParam<Variant> {};
INSTANTIATE_TEST_SUITE_P(LeNet5, EachVariant, testing::ValuesIn(variants),
                         [](auto const& each) { return std::string(name_of(each.param)); });

// The loss after moving the parameters along their gradient, against the change that the gradient predicts.
TEST_P(EachVariant, GradientsAgreeWithDifferences) {
  auto const data = easy_images(19, 1);  // a full micro-batch and a remainder
  Model model(GetParam());
  model.initialize(3);
  model.statistics = nets::pixel_statistics(data);
  nets::Replicas replicas(model.assignment(this_device(Backend::cpu, 2)), true);
  auto const order = in_order(data.count());
  auto const loss = [&] { return replicas.loss_and_gradients(data, order, 0, data.count()); };
  nets::Parameters& parameters = model.parameters();
  for (int p = 0; p < static_cast<int>(parameters.list().size()); ++p) {
    nets::Parameter const& parameter = parameters[p];
    if (!parameter.trainable) continue;
    Index const count = parameter.description.layout.size();
    double const middle = loss();
    std::vector<float> const gradient(replicas.gradients() + parameter.offset,
                                      replicas.gradients() + parameter.offset + count);
    std::vector<float> const value(parameters.value(p), parameters.value(p) + count);
    // The step is large enough that the difference exceeds the rounding errors of the f32 loss.
    double squares = 0;
    for (float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
    ASSERT_GT(squares, 0) << parameter.name;
    double const step = std::min(1e-3 * (1 + middle) / squares, 0.03 / std::sqrt(squares));
    double difference = 0;
    for (int sign : {1, -1}) {
      for (std::size_t i = 0; i < value.size(); ++i)
        parameters.value(p)[i] =
            value[i] + static_cast<float>(sign * step * static_cast<double>(gradient[i]));
      difference += sign * loss();
    }
    std::copy(value.begin(), value.end(), parameters.value(p));
    double const rounding = 3e-7 * (1 + middle) / (2 * step);  // rounding errors of two f32 losses
    EXPECT_NEAR(difference / (2 * step) / squares, 1, 0.03 + rounding / squares) << parameter.name;
  }
}

TEST_P(EachVariant, CpuAndReferenceAgree) {
  auto const data = easy_images(3, 5);
  Model model(GetParam());
  model.initialize(1);
  model.statistics = nets::pixel_statistics(data);
  auto const fast = nets::make_executor(model.assignment(this_device(Backend::cpu, 1)))->scores(data);
  auto const truth = nets::make_executor(model.assignment(this_device(Backend::reference, 1)))->scores(data);
  ASSERT_EQ(fast.size(), truth.size());
  for (std::size_t i = 0; i < fast.size(); ++i)
    EXPECT_NEAR(fast[i], truth[i], 1e-4 * (1 + std::abs(truth[i])));
}

TEST(LeNet5, LearnsWhatIsEasy) {
  auto const train = easy_images(2000, 1), test = easy_images(500, 2);
  Hyperparameters h = default_hyperparameters(Variant::modern);
  h.epochs = 3;
  Training training(h, train, test, this_device(Backend::cpu, 2));
  EXPECT_TRUE(training.run({}));
  EXPECT_GT(training.history().back().test_accuracy, 0.95);
}

TEST(LeNet5, SameSeedAndThreadsGiveTheSameBits) {
  auto const train = easy_images(330, 1), test = easy_images(20, 2);
  Hyperparameters h = default_hyperparameters(Variant::modern);
  h.epochs = 2;
  std::string const path[2] = {temporary("a.safetensors"), temporary("b.safetensors")};
  for (auto const& p : path) {
    Training training(h, train, test, this_device(Backend::cpu, 2));
    training.run({});
    training.save(p);
  }
  EXPECT_EQ(bytes_of(path[0]), bytes_of(path[1]));
  h.seed = 2;
  Training other(h, train, test, this_device(Backend::cpu, 2));
  other.run({});
  other.save(path[1]);
  EXPECT_NE(bytes_of(path[0]), bytes_of(path[1]));
  for (auto const& p : path) std::filesystem::remove(p);
}

// Stops after different numbers of steps, saves, loads and continues: the result must be bitwise the same.
TEST(LeNet5, ACheckpointContinuesToTheSameBits) {
  auto const train = easy_images(200, 1), test = easy_images(20, 2);
  for (OptimizerKind optimizer : {OptimizerKind::sgd, OptimizerKind::adam}) {
    Hyperparameters h = default_hyperparameters(Variant::modern);
    h.epochs = 2;
    h.optimizer = optimizer;
    h.schedule.rate = 0.01;
    std::string const whole = temporary("whole.safetensors"), parts = temporary("parts.safetensors");
    Training uninterrupted(h, train, test, this_device(Backend::cpu, 2));
    uninterrupted.run({});
    uninterrupted.save(whole);
    for (int stop_after : {1, 3, 4, 6}) {  // 4 steps per epoch
      std::atomic<bool> stop{false};
      int steps = 0;
      Training first(h, train, test, this_device(Backend::cpu, 2));
      EXPECT_FALSE(first.run({[&](Progress const&) { stop = ++steps >= stop_after; }, {}, &stop}));
      first.save(parts);
      Training second(parts, train, test, this_device(Backend::cpu, 2));
      EXPECT_TRUE(second.run({}));
      second.save(parts);
      EXPECT_EQ(bytes_of(whole), bytes_of(parts)) << "stopped after " << stop_after << " steps";
      EXPECT_EQ(second.history().size(), 2u);
    }
    std::filesystem::remove(whole);
    std::filesystem::remove(parts);
  }
}

TEST(LeNet5, RefusesAModelThatIsNotOurs) {
  std::string const path = temporary("bad.safetensors");
  std::ofstream(path) << "not a safetensors file";
  EXPECT_THROW(load(path, false), Error);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cosmati::lenet5
