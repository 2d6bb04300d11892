// The DCGAN generator: against a scatter in f64, its text against printf, its pictures byte by byte.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "nets/dcgan/picture.h"
#include "nets/dcgan/pipeline.h"
#include "nets/dcgan/text.h"
#include "nets/random.h"
#include "src/io/safetensors.h"
#include "tests/nets/random_generator.h"
#include "tests/nets/random_latents.h"

namespace cosmati::dcgan {
namespace {

std::string temporary(std::string const& name) {
  return (std::filesystem::temp_directory_path() / ("cosmati_" + std::to_string(getpid()) + "_" + name))
      .string();
}

constexpr std::size_t weight_count = 5137283;

void write(std::string const& path, void const* data, std::size_t bytes) {
  std::ofstream(path, std::ios::binary)
      .write(static_cast<char const*>(data), static_cast<std::streamsize>(bytes));
}

// The network as the report describes it, in f64: scatter, then batch normalization, then activation.
std::vector<double> naive_image(Architecture const& a, std::vector<float> const& values, float const* z) {
  float const* next = values.data();
  auto const take = [&](Index count) { return next = next + count, next - count; };
  auto const batch_norm = [&](std::vector<double>& x, Index count) {
    float const *beta = take(count), *gamma = take(count), *mean = take(count), *variance = take(count);
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto const c = static_cast<Index>(i) % count;
      double const y =
          (x[i] - static_cast<double>(mean[c])) / std::sqrt(static_cast<double>(variance[c]) + 1e-5);
      x[i] = std::max(0.0, y * static_cast<double>(gamma[c]) + static_cast<double>(beta[c]));
    }
  };
  Index const projected = a.features();
  float const* const w = take(latent_size * projected);
  float const* const b = take(projected);
  std::vector<double> x(static_cast<std::size_t>(projected));
  for (Index j = 0; j < projected; ++j) {
    x[static_cast<std::size_t>(j)] = static_cast<double>(b[j]);
    for (Index i = 0; i < latent_size; ++i)
      x[static_cast<std::size_t>(j)] += static_cast<double>(z[i]) * static_cast<double>(w[i * projected + j]);
  }
  batch_norm(x, a.channel(0));
  for (int layer = 1; layer <= layer_count; ++layer) {
    Index const size = a.size(layer - 1), inputs = a.channel(layer - 1), outputs = a.channel(layer);
    float const* const filter = take(25 * outputs * inputs);
    float const* const bias = take(outputs);
    std::vector<double> y(static_cast<std::size_t>(4 * size * size * outputs));
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = static_cast<double>(bias[static_cast<Index>(i) % outputs]);
    for (Index i = 0; i < size; ++i)
      for (Index j = 0; j < size; ++j)
        for (Index r = 0; r < 5; ++r)
          for (Index s = 0; s < 5; ++s) {
            Index const h = 2 * i + r - 1, v = 2 * j + s - 1;
            if (h < 0 || v < 0 || h >= 2 * size || v >= 2 * size) continue;
            for (Index k = 0; k < outputs; ++k) {
              double sum = 0;
              for (Index c = 0; c < inputs; ++c)
                sum += x[static_cast<std::size_t>((i * size + j) * inputs + c)] *
                       static_cast<double>(filter[((r * 5 + s) * outputs + k) * inputs + c]);
              y[static_cast<std::size_t>((h * 2 * size + v) * outputs + k)] += sum;
            }
          }
    if (layer < layer_count)
      batch_norm(y, outputs);
    else
      for (double& value : y) value = std::tanh(value);
    x = std::move(y);
  }
  return x;
}

// Compares the third of three images, generated two at a time, with the description.
void compare_with_description(Weights const& weights, std::vector<float> const& values) {
  auto const z = random_latents(3, 5);
  auto const images = generate(FoldedWeights(weights), this_device(Backend::cpu, 2), z, 2);
  auto const truth = naive_image(weights.architecture(), values, z.data() + 2 * latent_size);
  double largest = 0, spread = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    double const error = std::abs(static_cast<double>(images[2 * truth.size() + i]) - truth[i]);
    if (!(error <= largest)) largest = error;
    spread = std::max(spread, std::abs(truth[i]));
  }
  EXPECT_LE(largest, 2e-5);
  EXPECT_GT(spread, 0.1);  // the picture is not uniformly gray
}

TEST(Dcgan, GeneratesWhatTheDescriptionSays) {
  auto const values = random_numbers({});
  ASSERT_EQ(values.size(), weight_count);
  std::string const path = temporary("network.bin"), copy = temporary("network.safetensors");
  write(path, values.data(), values.size() * sizeof(float));
  auto const weights = Weights::read(path);
  weights.write_safetensors(copy);
  compare_with_description(weights, values);
  EXPECT_EQ(values, weights.all());
  EXPECT_EQ(values, Weights::read(copy).all());
  std::filesystem::remove(path);
  std::filesystem::remove(copy);
}

TEST(Dcgan, GeneratesWithAnyHiddenChannels) {
  std::string const path = temporary("narrow.safetensors");
  for (Architecture const& architecture :
       {architecture_of_width(1), architecture_of_width(8), architecture_of_width(16),
        architecture_of_width(48), Architecture{latent_size, {7, 30, 5, 11, image_channels}}}) {
    SCOPED_TRACE(architecture.channel(3));
    auto const values = random_numbers(architecture);
    ASSERT_EQ(values.size(), Weights::number_count(architecture));
    Weights::from(architecture, values).write_safetensors(path);
    auto const weights = Weights::read(path);
    EXPECT_EQ(weights.architecture(), architecture);
    EXPECT_EQ(weights.all(), values);
    compare_with_description(weights, values);
  }
  std::filesystem::remove(path);
}

// Each tensor in turn has one channel too many, or is missing: the message names it.
TEST(Dcgan, RefusesSafetensorsThatDisagree) {
  std::string const path = temporary("bad.safetensors");
  struct Case {
    char const* name;
    Shape shape;  // replaces the tensor's shape; rank 0: missing
    char const* said;
  };
  for (Case const& one :
       {Case{"proj_w", {100, 129}, "tensor proj_w is f32 (100, 129); expected f32 or f16 (100, 128)"},
        Case{"tconv2_w", {5, 5, 3, 4}, "tensor tconv2_b is f32 (2); expected f32 or f16 (3)"},
        Case{"tconv3_w",
             {5, 5, 1, 3},
             "tensor tconv3_w is f32 (5, 5, 1, 3); expected f32 or f16 (5, 5, 1, 2)"},
        Case{"tconv4_w",
             {5, 5, 4, 1},
             "tensor tconv4_w is f32 (5, 5, 4, 1); expected f32 or f16 (5, 5, 3, 1)"},
        Case{"bn3_var", {2}, "tensor bn3_var is f32 (2); expected f32 or f16 (1)"},
        Case{"tconv4_b", {}, "tconv4_b"}}) {
    Architecture const architecture = architecture_of_width(1);
    std::vector<float> const zeros(1 << 16);
    std::vector<io::NamedTensor> tensors;
    auto const add = [&](std::string const& name, Shape shape) {
      if (name == one.name) shape = one.shape;
      if (shape.rank > 0) tensors.push_back({name, describe(DataType::f32, shape), zeros.data()});
    };
    add("proj_w", {100, 128}), add("proj_b", {128});
    for (int i = 0; i <= layer_count; ++i) {
      Index const channels = architecture.channel(i);
      std::string const number = std::to_string(i);
      if (i > 0) add("tconv" + number + "_w", {5, 5, channels, architecture.channel(i - 1)});
      if (i > 0) add("tconv" + number + "_b", {channels});
      if (i < layer_count)
        for (char const* part : {"_beta", "_gamma", "_mean", "_var"}) add("bn" + number + part, {channels});
    }
    io::write_safetensors(path, tensors);
    std::string said;
    try {
      Weights::read(path);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      said = error.what();
    }
    EXPECT_NE(said.find(one.said), std::string::npos) << one.name << ": " << said;
  }
  std::filesystem::remove(path);
}

TEST(Dcgan, RefusesBadNetworks) {
  std::string const path = temporary("bad.bin");
  std::vector<float> values(weight_count, 0.5F);
  auto const message = [&](std::size_t bytes) -> std::string {
    write(path, values.data(), bytes);
    try {
      Weights::read(path);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(message(weight_count * 4), "");
  EXPECT_NE(message(weight_count * 4 - 1).find("20549131 bytes"), std::string::npos);
  values.push_back(0);
  EXPECT_NE(message(weight_count * 4 + 4).find("20549136 bytes"), std::string::npos);
  values.pop_back();
  values[819200 + 3] = NAN;
  EXPECT_NE(message(weight_count * 4).find("element 3 of proj_b is nan"), std::string::npos);
  std::filesystem::remove(path);
}

// The output of to_text(), whose length text_bytes() has computed.
std::string text_of(std::vector<float> const& values) {
  auto const count = static_cast<Index>(values.size());
  auto const bytes = static_cast<std::size_t>(text_bytes(values.data(), count));
  std::string text(bytes + static_cast<std::size_t>(text_slack), '#');
  EXPECT_EQ(to_text(values.data(), count, text.data()) - text.data(), static_cast<std::ptrdiff_t>(bytes));
  text.resize(bytes);
  return text;
}

void expect_printf_text(std::vector<float> const& values) {
  std::string expected;
  char number[64];
  for (float value : values) {
    std::snprintf(number, sizeof number, "%.4f ", static_cast<double>(value));
    expected += number;
  }
  EXPECT_TRUE(text_of(values) == expected) << values.size() << " numbers from " << values[0] << " on";
}

float of_bits(unsigned bits) {
  float value = 0;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

TEST(Dcgan, TextIsWhatPrintfGives) {
  expect_printf_text({0.0F,      -0.0F,    1.0F,       -1.0F,    0.00005F,   -0.00005F, 0.00015F, 0.99995F,
                      -0.99996F, 1e-9F,    -1e-9F,     9.99995F, 12345.678F, 3e9F,      -4e11F,   3.4e38F,
                      0.03125F,  0.09375F, 0.00025F,   9.5F,     -9.5F,      9.9999F,   9.99994F, 10.0F,
                      -9.49999F, 0x1p38F,  -0x1.8p38F, 0x1p39F,  INFINITY,   -INFINITY, NAN,      -NAN});
  nets::Random random(1, 0);
  std::vector<float> values;
  for (int i = 0; i < 500000; ++i) values.push_back(static_cast<float>(random.uniform(-1, 1)));
  expect_printf_text(values);
  values.clear();
  for (int i = 0; i < 500000; ++i) values.push_back(of_bits(static_cast<unsigned>(random.bits())));
  expect_printf_text(values);
}

TEST(Dcgan, TextIsRoundedAsPrintfDoesAroundEveryTie) {
  std::vector<float> values;
  for (int i = 0; i < 110000;
       ++i) {  // odd multiples of 1/20000 and adjacent numbers; multiples of 1/16 are ties
    float const near_tie = static_cast<float>((2 * i + 1) / 20000.0);
    for (float value : {near_tie, std::nextafter(near_tie, 0.0F), std::nextafter(near_tie, 99.0F)}) {
      values.push_back(value);
      values.push_back(-value);
    }
  }
  for (int i = 0; i < 3200; ++i) values.push_back(static_cast<float>(i) / 32);
  expect_printf_text(values);
}

TEST(Dcgan, TextOfTheSmallestNumbersIsWhatPrintfGives) {
  std::vector<float> values;
  for (unsigned i = 0; i < 200000; ++i) {  // subnormals, and numbers next to each power of two
    values.push_back(of_bits(i * 42));
    values.push_back(of_bits((i % 256 << 23) + i / 256 - 300));
  }
  expect_printf_text(values);
}

std::string numbers(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += "0.25 ";
  return text;
}

TEST(Dcgan, ReadsLatentsAsTheyAreMeant) {
  EXPECT_EQ(parse_latents("2\n" + numbers(100) + "\n" + numbers(100) + "\n", "t").size(), 200u);
  EXPECT_EQ(parse_latents("1\r\n" + numbers(99) + "-1e-3", "t").back(),
            -1e-3F);  // CRLF line ends, no newline at the end
  EXPECT_EQ(parse_latents("1 " + numbers(99) + "+.5", "t").back(), 0.5F);
}

TEST(Dcgan, RefusesBadLatents) {
  auto const message = [](std::string const& text) -> std::string {
    try {
      parse_latents(text, "in.txt");
    } catch (Error const& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message("").find("empty"), std::string::npos);
  EXPECT_NE(message("two\n").find("line 1, column 1: 'two' is not a count"), std::string::npos);
  EXPECT_NE(message("1\n" + numbers(99)).find("holds 99 numbers"), std::string::npos);
  EXPECT_NE(message("1\n" + numbers(101)).find("holds 101 numbers"), std::string::npos);
  EXPECT_NE(message("1\n0.5 x7\n" + numbers(98)).find("line 2, column 5: 'x7' is not a finite number"),
            std::string::npos);
  EXPECT_NE(message("1\nnan " + numbers(99)).find("'nan' is not"), std::string::npos);
  EXPECT_NE(message("99999999999\n0.5").find("99999999999 images"), std::string::npos);
  EXPECT_NE(message("-1\n").find("'-1' is not a count"), std::string::npos);
}

TEST(Dcgan, PicturesAreSquareGrids) {
  std::vector<float> images(static_cast<std::size_t>(5 * image_elements), -1.0F);
  images[static_cast<std::size_t>(4 * image_elements)] = 1.0F;      // image 4, top left, red
  images[static_cast<std::size_t>(4 * image_elements) + 1] = 0.0F;  // green: (int)127.5
  auto const grid = picture(images.data(), 5);
  EXPECT_EQ(grid.width, 192);
  EXPECT_EQ(grid.height, 192);
  std::size_t const at = grid.offset(64, 64);
  EXPECT_EQ(grid.pixels[at], 255);
  EXPECT_EQ(grid.pixels[at + 1], 127);
  EXPECT_EQ(grid.pixels[at + 2], 0);
  EXPECT_EQ(grid.pixels[grid.offset(191, 191)], 0);
  EXPECT_EQ(picture(images.data(), 4).width, 128);
  EXPECT_EQ(picture(images.data(), 1).width, 64);
}

}  // namespace
}  // namespace cosmati::dcgan
