// Training of DCGAN: gradients against differences of the loss, backends against each other, checkpoints,
// pictures.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <sstream>

#include "nets/dcgan/generator.h"
#include "nets/dcgan/pipeline.h"
#include "nets/dcgan/training/training.h"
#include "nets/random.h"
#include "src/io/image/image.h"
#include "tests/nets/random_latents.h"

namespace cosmati::dcgan {
namespace {

namespace files = std::filesystem;

Architecture const tiny{5, {6, 4, 3}};  // 16x16 images

class Folder {
 public:
  Folder() : path_(files::temp_directory_path() / ("cosmati_gan_" + std::to_string(getpid()))) {
    files::create_directories(path_);
  }
  ~Folder() { files::remove_all(path_); }
  Folder(Folder const&) = delete;
  Folder& operator=(Folder const&) = delete;
  std::string file(std::string const& name) const { return (path_ / name).string(); }

 private:
  files::path path_;
};

std::string contents(std::string const& path) {
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// Discs at random positions on black images, in gray.
Pictures discs(Index count, Index size) {
  Pictures pictures{count, size, 1, "discs", {}};
  nets::Random random(3, 0);
  for (Index i = 0; i < count; ++i) {
    double const x = random.uniform(0.3, 0.7), y = random.uniform(0.3, 0.7);
    for (Index p = 0; p < size * size; ++p) {
      double const dx = static_cast<double>(p % size) / static_cast<double>(size) - x;
      double const dy = static_cast<double>(p / size) / static_cast<double>(size) - y;
      pictures.pixels.push_back(std::hypot(dx, dy) < 0.25 ? 230 : 0);
    }
  }
  return pictures;
}

Settings tiny_settings(long long steps, DataType compute = DataType::f32) {
  Settings settings;
  settings.architecture = tiny;
  settings.batch = 4;
  settings.steps = steps;
  settings.rate = 2e-3;
  settings.compute = compute;
  return settings;
}

// Both networks with weights large enough to give large gradients, and a batch of latent vectors.
struct Pair {
  Device device = this_device(Backend::cpu, 1);
  Network generator_values, discriminator_values;
  GeneratorTraining generator{generator_values, tiny, 3, device, {}, true, nullptr};
  Discriminator discriminator{discriminator_values, tiny, 3, device, {}, nullptr};
  DeviceMemory z{device, 15 * sizeof(float)}, loss{device, sizeof(float)};

  Pair() {
    unsigned long long stream = 0;
    for (Network* network : {&generator_values, &discriminator_values}) {
      network->allocate(device, {});
      std::vector<float> values = download(network->values);
      nets::Random random(11, stream++);
      for (float& value : values) value = static_cast<float>(0.3 * random.normal());
      upload(network->values, values);
    }
    std::vector<float> latents(15);
    nets::Random random(12, 0);
    for (float& value : latents) value = static_cast<float>(random.uniform(-1, 1));
    upload(z, latents);
  }

  double loss_of(double target) {
    loss.fill(0);
    generator.forward(z.data());
    discriminator.forward(generator.images());
    discriminator.loss(target, loss.data());
    return static_cast<double>(download(loss)[0]);
  }
};

// Along the gradient, the loss must change at a rate equal to the gradient's length, for each variable.
void check_gradients(Pair& pair, Network& network, double target) {
  std::vector<float> const gradients = download(network.gradient[0]), values = download(network.values);
  for (Variable const& variable : network.variables.list()) {
    auto const first = static_cast<std::size_t>(variable.offset);
    auto const last = first + static_cast<std::size_t>(variable.shape.size());
    double squares = 0;
    for (std::size_t i = first; i < last; ++i)
      squares += static_cast<double>(gradients[i]) * static_cast<double>(gradients[i]);
    double const length = std::sqrt(squares), step = 1e-3;
    ASSERT_GT(length, 1e-4) << variable.name;
    double losses[2];
    for (int side : {0, 1}) {
      std::vector<float> moved = values;
      for (std::size_t i = first; i < last; ++i)
        moved[i] +=
            static_cast<float>((side == 0 ? -step : step) * static_cast<double>(gradients[i]) / length);
      upload(network.values, moved);
      losses[side] = pair.loss_of(target);
    }
    EXPECT_NEAR((losses[1] - losses[0]) / (2 * step), length, 0.02 * length + 2e-4) << variable.name;
  }
  upload(network.values, values);
}

TEST(DcganTraining, GradientsOfTheDiscriminatorAreDifferencesOfTheLoss) {
  Pair pair;
  pair.loss_of(0);
  pair.discriminator.backward(pair.generator.images(), 0);
  check_gradients(pair, pair.discriminator_values, 0);
}

TEST(DcganTraining, GradientsOfTheGeneratorAreDifferencesOfTheLoss) {
  Pair pair;
  pair.loss_of(1);
  pair.generator.backward(pair.z.data(), pair.discriminator.image_gradient());
  check_gradients(pair, pair.generator_values, 1);
}

TEST(DcganTraining, LossIsFiniteForAnyLogit) {
  Pair pair;
  std::vector<float> values = download(pair.discriminator_values.values);
  for (float& value : values) value *= 1e4F;  // logits of 1e8 and larger
  upload(pair.discriminator_values.values, values);
  for (double target : {0.0, 1.0}) EXPECT_TRUE(std::isfinite(pair.loss_of(target)));
}

TEST(DcganTraining, LossOfTheDiscriminatorFalls) {
  Pictures const pictures = discs(16, tiny.image_size());
  Training training(tiny_settings(60), pictures, this_device(Backend::cpu, 1));
  std::vector<Report> reports;
  Callbacks callbacks;
  callbacks.report_every = 10;
  callbacks.report = [&](Report const& report) { reports.push_back(report); };
  EXPECT_TRUE(training.run(callbacks));
  ASSERT_EQ(reports.size(), 6U);
  EXPECT_NEAR(reports.front().discriminator, 2 * std::log(2.0), 0.3);  // it starts by guessing
  EXPECT_LT(reports.back().discriminator, 0.7 * reports.front().discriminator);
  EXPECT_EQ(reports.back().epoch, 15);
}

// The difference of gradients after one step, relative to the largest gradient.
double difference(Network const& a, Network const& b) {
  std::vector<float> const x = download(a.gradient[0]), y = download(b.gradient[0]);
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    worst = std::max(worst, static_cast<double>(std::abs(x[i] - y[i])));
    largest = std::max(largest, static_cast<double>(std::abs(x[i])));
  }
  return worst / largest;
}

struct Differences {
  double of_discriminator, of_generator;
};

struct Configuration {
  Backend backend;
  DataType compute;
};

Differences differences_after_a_step(Configuration const& first, Configuration const& second) {
  Pictures const pictures = discs(4, tiny.image_size());
  Training a(tiny_settings(1, first.compute), pictures, this_device(first.backend, 1));
  Training b(tiny_settings(1, second.compute), pictures, this_device(second.backend, 1));
  a.run({});
  b.run({});
  return {difference(a.discriminator_network(), b.discriminator_network()),
          difference(a.generator_network(), b.generator_network())};
}

TEST(DcganTraining, BackendsAgree) {
  struct Case {
    Configuration run;
    double bound;
  };
  for (Case const& c :
       {Case{{Backend::cpu, DataType::f32}, 1e-4}, Case{{Backend::emulator, DataType::f32}, 1e-4},
        Case{{Backend::emulator, DataType::bf16}, 5e-3}}) {
    auto const found = differences_after_a_step({Backend::reference, c.run.compute}, c.run);
    std::string const what = std::string(name_of(c.run.backend)) + " " + name_of(c.run.compute);
    EXPECT_LT(found.of_discriminator, c.bound) << what;
    EXPECT_LT(found.of_generator, c.bound) << what;
  }
}

// In tf32, tensor cores ignore the lower bits of gradients, on average 2^-11 of a value: a quarter of the
// largest change by rounding to bf16. How much networks amplify this depends on their values, so the bound is
// a quarter of the change by bf16. The reference does not round to tf32.
TEST(DcganTraining, Tf32IsAsExactAsItsBits) {
  Configuration const exact{Backend::reference, DataType::f32};
  auto const bf16 = differences_after_a_step(exact, {Backend::reference, DataType::bf16});
  auto const tf32 = differences_after_a_step(exact, {Backend::emulator, DataType::tf32});
  EXPECT_LT(tf32.of_discriminator, bf16.of_discriminator / 4);
  EXPECT_LT(tf32.of_generator, bf16.of_generator / 4);
}

std::string message(std::function<void()> const& act) {
  try {
    act();
  } catch (Error const& error) {
    return error.what();
  }
  return "nothing was thrown";
}

// Unequal shares of the batch; the statistics of batch normalization are those of the complete batch.
TEST(DcganTraining, DevicesTogetherLearnWhatOneLearns) {
  Folder const folder;
  Pictures const pictures = discs(9, tiny.image_size());
  for (auto const [backend, compute] :
       {Configuration{Backend::cpu, DataType::f32}, Configuration{Backend::cpu, DataType::bf16},
        Configuration{Backend::emulator, DataType::f32}}) {
    Device const device = this_device(backend, 1);
    Training one(tiny_settings(1, compute), pictures, device);
    Training three(tiny_settings(1, compute), pictures, nets::Team({device, device, device}, nullptr));
    std::vector<Report> reports;
    Callbacks callbacks;
    callbacks.report = [&](Report const& report) { reports.push_back(report); };
    EXPECT_TRUE(one.run(callbacks));
    EXPECT_TRUE(three.run(callbacks));
    ASSERT_EQ(reports.size(), 2U);
    double const bound = compute == DataType::f32 ? 1e-4 : 2e-2;
    EXPECT_NEAR(reports[0].discriminator, reports[1].discriminator, bound);
    EXPECT_NEAR(reports[0].generator, reports[1].generator, bound);
    EXPECT_LT(difference(one.discriminator_network(), three.discriminator_network()), bound)
        << name_of(compute);
    EXPECT_LT(difference(one.generator_network(), three.generator_network()), bound) << name_of(compute);
    std::vector<float> const expected = download(one.generator_network().running),
                             found = download(three.generator_network().running);
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_NEAR(found[i], expected[i], bound * (1 + std::abs(expected[i])));
    auto const drawn = one.sample(2), drawn_by_three = three.sample(2);
    for (std::size_t i = 0; i < drawn.size(); ++i) ASSERT_NEAR(drawn_by_three[i], drawn[i], bound) << i;
    three.save(folder.file("three"));  // any number of devices can continue
    Training resumed(folder.file("three"), 2, pictures, nets::Team({device, device}, nullptr));
    EXPECT_EQ(resumed.steps_done(), 1);
    EXPECT_TRUE(resumed.run({}));
  }
  EXPECT_NE(message([&] {
              Device const device = this_device(Backend::cpu, 1);
              Training(tiny_settings(1), pictures, nets::Team(std::vector<Device>(5, device), nullptr));
            }).find("at least one for each"),
            std::string::npos);
}

// The same for the second step, when the biases are no longer 0, so that activations depend on them.
TEST(DcganTraining, DevicesTogetherActivateAfterTheBias) {
  Pictures const pictures = discs(9, tiny.image_size());
  Settings settings = tiny_settings(2);
  settings.rate = 0.1;
  for (Backend const backend : {Backend::cpu, Backend::emulator}) {
    Device const device = this_device(backend, 1);
    Training expected(settings, pictures, this_device(Backend::reference, 1)),
        one(settings, pictures, device),
        three(settings, pictures, nets::Team({device, device, device}, nullptr));
    for (Training* const training : {&expected, &one, &three}) training->run({});
    for (Training* const training : {&one, &three}) {
      EXPECT_LT(difference(expected.discriminator_network(), training->discriminator_network()), 1e-3);
      EXPECT_LT(difference(expected.generator_network(), training->generator_network()), 1e-3);
    }
  }
}

TEST(DcganTraining, ResumesToTheSameBits) {
  Folder const folder;
  Pictures const pictures =
      discs(9, tiny.image_size());  // an epoch has two batches, and one picture is left over
  Device const device = this_device(Backend::cpu, 1);
  for (DataType compute : {DataType::f32, DataType::bf16}) {
    Training whole(tiny_settings(7, compute), pictures, device),
        again(tiny_settings(7, compute), pictures, device);
    whole.run({});
    again.run({});
    whole.save(folder.file("whole"));
    again.save(folder.file("again"));
    EXPECT_TRUE(contents(folder.file("whole")) == contents(folder.file("again")));

    Training part(tiny_settings(3, compute), pictures, device);
    part.run({});
    part.save(folder.file("part"));
    Training resumed(folder.file("part"), 7, pictures, device);
    EXPECT_EQ(resumed.steps_done(), 3);
    resumed.run({});
    resumed.save(folder.file("resumed"));
    EXPECT_TRUE(contents(folder.file("whole")) == contents(folder.file("resumed")));
    EXPECT_FALSE(contents(folder.file("whole")) == contents(folder.file("part")));
    EXPECT_EQ(whole.sample(3), resumed.sample(3));
  }
}

// Statistics of each device's share: the first normalization has the same inputs as with those of the batch,
// so the shares' means have the batch's as their mean, and the shares' variances are smaller on average.
TEST(DcganTraining, DevicesMayHaveStatisticsOfTheirOwn) {
  Folder const folder;
  Pictures const pictures = discs(9, tiny.image_size());
  Device const device = this_device(Backend::cpu, 1);
  struct Outcome {
    std::vector<float> running;  // the generator's statistics
    std::string checkpoint;
  };
  auto const train = [&](StatisticsOf statistics, nets::Team const& team, long long first, long long steps) {
    Settings settings = tiny_settings(first);
    settings.statistics = statistics;
    Training training(settings, pictures, team);
    training.run({});
    training.save(folder.file("checkpoint"));
    if (steps > first) {
      Training resumed(folder.file("checkpoint"), steps, pictures, team);
      EXPECT_EQ(resumed.settings().statistics, statistics);
      resumed.run({});
      resumed.save(folder.file("checkpoint"));
    }
    return Outcome{download(training.generator_network().running), contents(folder.file("checkpoint"))};
  };
  nets::Team const alone(device), three({device, device, device}, nullptr);
  EXPECT_EQ(train(StatisticsOf::batch, alone, 1, 1).running,
            train(StatisticsOf::device, alone, 1, 1).running);
  auto const of_batch = train(StatisticsOf::batch, three, 1, 1).running;
  auto const of_devices = train(StatisticsOf::device, three, 1, 1).running;
  Training any(tiny_settings(1), pictures, alone);
  Variables const& layout = any.generator_network().statistics;
  Index const channels = tiny.channel(0);
  for (Index c = 0; c < channels; ++c) {
    auto const mean = static_cast<std::size_t>(layout[0].offset + c),
               variance = static_cast<std::size_t>(layout[1].offset + c);
    EXPECT_NEAR(of_devices[mean], of_batch[mean], 1e-6);
    EXPECT_LT(of_devices[variance], of_batch[variance]);
  }
  EXPECT_EQ(train(StatisticsOf::device, three, 5, 5).checkpoint,
            train(StatisticsOf::device, three, 2, 5).checkpoint);
}

// The steps of the second block, whose pictures and latent vectors are prepared during the first block, are
// compared with the same steps without such preparation.
TEST(DcganTraining, ABlockDrawnAheadIsThatOfItsSteps) {
  Folder const folder;
  Pictures const pictures = discs(9, tiny.image_size());
  Device const device = this_device(Backend::cpu, 1);
  for (nets::Team const& team : {nets::Team(device), nets::Team({device, device}, nullptr)}) {
    Training whole(tiny_settings(70), pictures, team), part(tiny_settings(66), pictures, team);
    whole.run({});
    whole.save(folder.file("whole"));
    part.run({});
    part.save(folder.file("part"));
    Training resumed(folder.file("part"), 70, pictures, team);
    resumed.run({});
    resumed.save(folder.file("resumed"));
    EXPECT_TRUE(contents(folder.file("whole")) == contents(folder.file("resumed")));
  }
}

TEST(DcganTraining, SamplesAreDueByStepsAlone) {
  auto const due = [](long long every, long long first, long long steps) {
    std::vector<long long> found;
    for (long long step = first; step <= steps; ++step)
      if (sample_is_due(step, steps, every, 6)) found.push_back(step);
    return found;
  };
  EXPECT_EQ(due(0, 1, 20), (std::vector<long long>{1, 2, 4, 6, 8, 12, 16, 18, 20}));
  EXPECT_EQ(due(0, 7, 20), (std::vector<long long>{8, 12, 16, 18, 20}));
  EXPECT_EQ(due(5, 1, 13), (std::vector<long long>{5, 10, 13}));
  EXPECT_EQ(due(100, 1, 7), (std::vector<long long>{7}));
}

// The exported generator gives the images of the training, apart from its rounding to f16.
TEST(DcganTraining, TheGeneratorAloneDrawsTheSame) {
  Folder const folder;
  Pictures const pictures = discs(2, image_size);
  Settings settings;
  settings.batch = 2;
  settings.steps = 1;
  settings.seed = 5;
  Device const device = this_device(Backend::cpu);
  Training training(settings, pictures, device);
  training.run({});
  training.save_generator(folder.file("generator"), {{"command", "none"}});
  EXPECT_LE(files::file_size(folder.file("generator")), 11'000'000U);
  auto const drawn = training.sample(2);
  auto const images =
      generate(FoldedWeights(Weights::read(folder.file("generator"))), device, random_latents(2, 5));
  ASSERT_EQ(drawn.size(), images.size());
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    worst = std::max(worst, static_cast<double>(std::abs(drawn[i] - images[i])));
    largest = std::max(largest, static_cast<double>(std::abs(drawn[i])));
  }
  EXPECT_GT(largest, 0.01);
  EXPECT_LT(worst, 0.01 * largest);
}

TEST(DcganTraining, SaysWhatIsWrong) {
  Folder const folder;
  Device const device = this_device(Backend::cpu, 1);
  Pictures const few = discs(3, tiny.image_size()), many = discs(8, tiny.image_size());
  EXPECT_NE(message([&] { Training(tiny_settings(1), few, device); }).find("3 pictures"), std::string::npos);
  EXPECT_NE(
      message([&] { Training(tiny_settings(1, DataType::f16), many, device); }).find("f32, tf32 or bf16"),
      std::string::npos);
  Training training(tiny_settings(2), many, device);
  training.run({});
  training.save(folder.file("model"));
  EXPECT_NE(message([&] { Training(folder.file("model"), 0, few, device); }).find("trained on 8 pictures"),
            std::string::npos);
  EXPECT_NE(message([&] { Training(folder.file("model"), 1, many, device); }).find("already done 2 steps"),
            std::string::npos);
  training.save_generator(folder.file("generator"), {});
  EXPECT_NE(message([&] { Training(folder.file("generator"), 0, many, device); }).find("dcgan-generator"),
            std::string::npos);
}

TEST(DcganPictures, AreTintedByTheirNumber) {
  Pictures pictures{2, 1, 1, "", {100, 200}};
  unsigned char pixel[3];
  pictures.draw(0, pixel);  // hue 0: red
  EXPECT_EQ(std::vector<int>(pixel, pixel + 3), (std::vector<int>{100, 39, 39}));
  pictures.draw(1, pixel);  // hue 0.618: blue, with some green
  EXPECT_EQ(pixel[2], 200);
  EXPECT_GT(pixel[1], pixel[0]);
  double sum[3] = {};
  for (Index i = 0; i < 1000; ++i) {
    Tint const tint = tint_of(i);
    sum[0] += tint.red, sum[1] += tint.green, sum[2] += tint.blue;
  }
  for (double total : sum) EXPECT_NEAR(total / 1000, 0.7, 0.01);  // 0.4 + 0.6 / 2: no color is preferred
}

TEST(DcganPictures, AreReadFromPngsInTheOrderOfTheirNames) {
  Folder const folder;
  for (int i : {2, 1}) {
    io::Image image = io::make_image(6, 4, 3);  // the central square has one color
    for (int y = 0; y < 4; ++y)
      for (int x = 1; x < 5; ++x) image.pixels[image.offset(x, y) + static_cast<std::size_t>(i)] = 200;
    io::write_png(folder.file(std::to_string(i) + ".png"), image);
  }
  io::Image gray = io::make_image(8, 8, 1);
  std::fill(gray.pixels.begin(), gray.pixels.end(), static_cast<unsigned char>(7));
  io::write_png(folder.file("3.png"), gray);
  Pictures const pictures = read_pictures(folder.file(""), 8, 2);
  ASSERT_EQ(pictures.count, 3);
  for (Index i = 0; i < 3; ++i) {
    unsigned char pixels[8 * 8 * 3];
    pictures.draw(i, pixels);
    int const expected[3][3] = {{0, 200, 0}, {0, 0, 200}, {7, 7, 7}};
    for (int p : {0, 27, 63})
      for (int c = 0; c < 3; ++c) EXPECT_EQ(pixels[3 * p + c], expected[i][c]) << i << " " << p << " " << c;
  }
  EXPECT_NE(message([&] { read_pictures(folder.file("none"), 8, 1); }).find("neither a folder"),
            std::string::npos);
}

}  // namespace
}  // namespace cosmati::dcgan
