// Devices of one process that fail, at the beginning or in between: the others compute their chunks.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <utility>

#include "nets/dcgan/output.h"
#include "nets/dcgan/walk.h"
#include "nets/dcgan/workers.h"
#include "nets/dcgan/writer.h"
#include "tests/nets/random_generator.h"
#include "tests/nets/random_latents.h"

namespace cosmati::dcgan {
namespace {

constexpr Index image_count = 11, batch = 1;  // one chunk per image

GeneratorOptions options() {
  GeneratorOptions result;
  result.batch = batch;
  result.image_type = DataType::u8;
  return result;
}

enum class When { never, at_once, when_begun, when_fetched };

// Computes some chunks, then fails: when the next one is begun, or when its result is due, with more chunks
// queued. A pipeline that never fails waits with its second chunk until `to_fail` others have failed, so that
// they get that far.
class Failing final : public Pipeline {
 public:
  Failing(When when, int chunks, std::atomic<int>& to_fail)
      : Pipeline(random_generator(), this_device(Backend::cpu, 1), options()),
        when_(when),
        left_(chunks),
        to_fail_(to_fail) {}
  void begin(float const* z, Index count) override {
    ++begun_;
    if (when_ == When::when_begun && begun_ > left_) fail("no more uploads");
    while (when_ == When::never && begun_ > 1 && to_fail_ > 0) std::this_thread::yield();
    Pipeline::begin(z, count);
  }
  Images front() override {
    if (when_ == When::when_fetched && fetched_++ >= left_) fail("lost the device");
    return Pipeline::front();
  }

 private:
  [[noreturn]] void fail(char const* why) {
    --to_fail_;
    throw std::runtime_error(why);
  }

  When when_;
  int left_, begun_ = 0, fetched_ = 0;
  std::atomic<int>& to_fail_;
};

struct Result {
  std::string bytes;                  // content of the file
  std::vector<std::string> warnings;  // warnings of the workers
  std::vector<std::size_t> drawn;     // number of chunks of each device
};

struct TemporaryFolder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("cosmati-workers-" + std::to_string(::getpid()));
  TemporaryFolder() { std::filesystem::create_directory(path); }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
};

// The images of devices that fail as given, each after `chunks` chunks.
Result drawn_by(std::vector<When> const& devices, int chunks) {
  auto const path =
      std::filesystem::temp_directory_path() / ("cosmati-" + std::to_string(::getpid()) + ".npy");
  Result result;
  std::mutex lock;
  std::atomic<int> to_fail(static_cast<int>(std::count_if(devices.begin(), devices.end(), [](When when) {
    return when == When::when_begun || when == When::when_fetched;
  })));
  {
    OutputRequest request;
    request.output = path.string();
    request.output_type = DataType::u8;
    Output output(request, image_count, DataType::u8, "key", 1);
    Workers workers(
        devices.size(),
        [&](std::size_t i) -> std::unique_ptr<Pipeline> {
          if (devices[i] == When::at_once) throw std::runtime_error("has no memory");
          return std::make_unique<Failing>(devices[i], chunks, to_fail);
        },
        [&](std::string const& text) {
          std::lock_guard const guard(lock);
          result.warnings.push_back(text);
        });
    Latents const latents(image_count, 8);
    Dealer dealer(0, image_count, batch, 8);
    {
      Writer writer(dealer, output, true, [](Index) {});
      workers.start(dealer, latents,
                    [&](Chunk const& chunk, Images images) { writer.deliver(chunk, std::move(images)); });
      workers.wait();
      writer.write_rest();
    }
    output.finish();
    for (auto const& chunks_of_device : workers.drawn()) result.drawn.push_back(chunks_of_device.size());
  }
  std::ifstream file(path, std::ios::binary);
  result.bytes.assign(std::istreambuf_iterator<char>(file), {});
  return result;
}

TEST(DcganWorkers, ADeviceThatFailsHandsItsChunksToTheOthers) {
  Result const one = drawn_by({When::never}, 0);
  ASSERT_GT(one.bytes.size(), static_cast<std::size_t>(image_count * image_elements));
  std::size_t const last = one.bytes.size() - static_cast<std::size_t>(image_elements);
  EXPECT_NE(one.bytes.substr(last), one.bytes.substr(last - image_elements, image_elements));
  for (When const when : {When::when_begun, When::when_fetched})
    for (int const chunks : {0, 2}) {
      Result const two = drawn_by({when, When::never}, chunks);
      EXPECT_EQ(two.bytes, one.bytes);
      ASSERT_EQ(two.warnings.size(), 1);
      EXPECT_NE(two.warnings[0].find("device 0 failed"), std::string::npos) << two.warnings[0];
      EXPECT_LE(two.drawn[0], static_cast<std::size_t>(chunks));
      EXPECT_EQ(two.drawn[0] + two.drawn[1], 11U);
    }
}

TEST(DcganWorkers, TwoOfThreeDevicesMayFail) {
  Result const one = drawn_by({When::never}, 0);
  Result const three = drawn_by({When::when_fetched, When::never, When::at_once}, 1);
  EXPECT_EQ(three.bytes, one.bytes);
  ASSERT_EQ(three.warnings.size(), 2);
  EXPECT_EQ(three.warnings[0], "device 2 does not take part: has no memory");
}

TEST(DcganWorkers, WhenAllHaveFailedTheRunSaysWhy) {
  EXPECT_THROW(drawn_by({When::when_fetched, When::when_begun}, 1), std::runtime_error);
  EXPECT_THROW(drawn_by({When::at_once, When::at_once}, 0), std::runtime_error);
}

TEST(DcganWorkers, TimesOfAChunkAreInOrder) {
  Pipeline pipeline(random_generator(), this_device(Backend::cpu, 1), options());
  std::vector<float> const z(batch * latent_size, 0.5F);
  pipeline.begin(z.data(), batch);
  pipeline.begin(z.data(), batch);
  double last = 0;
  for (int i = 0; i < 2; ++i) {
    pipeline.front();
    auto const times = pipeline.times_of_front();
    for (double const now : {times.upload_begin, times.upload_end, times.compute_begin, times.compute_end,
                             times.download_begin, times.download_end}) {
      EXPECT_GE(now, last);
      last = now;
    }
    EXPECT_GT(times.compute_end, times.compute_begin);
    pipeline.pop();
  }
}

double length(float const* z) {
  double sum = 0;
  for (Index i = 0; i < latent_size; ++i) sum += static_cast<double>(z[i]) * static_cast<double>(z[i]);
  return std::sqrt(sum);
}

double distance(float const* a, float const* b) {
  std::vector<float> difference(latent_size);
  for (std::size_t i = 0; i < difference.size(); ++i) difference[i] = a[i] - b[i];
  return length(difference.data());
}

TEST(DcganWalk, GoesFromStopToStopAndBackInEqualSteps) {
  auto stops = random_latents(3, 7);
  for (Index s = 0; s < 3; ++s) {  // vectors of equal length, so that the paths are arcs of a circle
    float* const stop = &stops[static_cast<std::size_t>(s * latent_size)];
    auto const scale = static_cast<float>(2 / length(stop));
    for (Index i = 0; i < latent_size; ++i) stop[i] *= scale;
  }
  auto const z = walk(stops, 12);
  ASSERT_EQ(z.size(), 12U * latent_size);
  auto const frame = [&](Index i) { return &z[static_cast<std::size_t>(i % 12 * latent_size)]; };
  for (Index s = 0; s < 3; ++s) {
    EXPECT_LT(distance(frame(4 * s), &stops[static_cast<std::size_t>(s * latent_size)]), 1e-5);
    double const step = distance(frame(4 * s), frame(4 * s + 1));
    EXPECT_GT(step, 0.1);
    for (Index i = 4 * s; i < 4 * s + 4; ++i) {
      EXPECT_NEAR(length(frame(i)), 2, 1e-5);
      EXPECT_NEAR(distance(frame(i), frame(i + 1)), step, 1e-5);
    }
  }
}

TEST(DcganWalk, StraightWhereThereIsNoArc) {
  std::vector<float> stops(2 * latent_size, 1.0F);
  std::fill(stops.begin() + latent_size, stops.end(),
            -1.0F);  // the opposite direction: the path leads through the origin
  auto const z = walk(stops, 4);
  EXPECT_EQ(z[latent_size], 0.0F);
  EXPECT_EQ(z[2 * latent_size], -1.0F);
  auto const nowhere = walk(std::vector<float>(2 * latent_size, 0.0F), 3);
  for (float const value : nowhere) EXPECT_EQ(value, 0.0F);
}

}  // namespace
}  // namespace cosmati::dcgan
