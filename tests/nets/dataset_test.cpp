// Data sets: rejected files, shuffling, and the conversion of bytes to a batch.
#include "nets/dataset.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace cosmati::nets {
namespace {

class DatasetTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("cosmati_dataset_" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static std::string extent(int value) {
    return {0, 0, static_cast<char>(value >> 8), static_cast<char>(value)};
  }
  void write(std::string const& name, std::string const& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
  }
  void write_images(int count, int size) {
    write("train-images-idx3-ubyte", std::string("\0\0\x08\x03", 4) + extent(count) + extent(size) +
                                         extent(size) +
                                         std::string(static_cast<std::size_t>(count * size * size), '\x7f'));
  }
  void write_labels(std::string const& labels) {
    write("train-labels-idx1-ubyte",
          std::string("\0\0\x08\x01", 4) + extent(static_cast<int>(labels.size())) + labels);
  }
  std::string message() {
    try {
      read_dataset(folder_.string(), Split::train, 10, 28);
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_file);
      return error.what();
    }
    return "";
  }

  std::filesystem::path folder_;
};

TEST_F(DatasetTest, ReadsImagesAndLabels) {
  write_images(3, 28);
  write_labels({1, 2, 9});
  auto const data = read_dataset(folder_.string(), Split::train, 10, 28);
  EXPECT_EQ(data.count(), 3);
  EXPECT_EQ(data.labels, (std::vector<int>{1, 2, 9}));
  EXPECT_EQ(*data.image(2), 0x7f);
}

TEST_F(DatasetTest, SaysWhatIsWrong) {
  EXPECT_NE(message().find("has neither train-images-idx3-ubyte nor"), std::string::npos);
  write_images(3, 28);
  write_labels({1, 2});
  EXPECT_NE(message().find("holds 2 labels"), std::string::npos);
  write_labels({1, 2, 10});
  EXPECT_NE(message().find("label 2 is 10"), std::string::npos);
  write_images(3, 27);
  EXPECT_NE(message().find("27x27; expected 28x28"), std::string::npos);
  write_images(0, 28);
  EXPECT_FALSE(message().empty());
}

TEST(Shuffled, IsAPermutationOfItsSeedAndEpoch) {
  auto order = shuffled(1000, 1, 0);
  EXPECT_EQ(order, shuffled(1000, 1, 0));
  EXPECT_NE(order, shuffled(1000, 1, 1));
  EXPECT_NE(order, shuffled(1000, 2, 0));
  std::sort(order.begin(), order.end());
  for (Index i = 0; i < 1000; ++i) EXPECT_EQ(order[static_cast<std::size_t>(i)], i);
}

TEST(Gather, NormalizesAndPads) {
  Dataset data;
  data.images = Tensor(DataType::u8, {3, 2, 2});
  for (Index i = 0; i < 12; ++i) data.images.set(i, static_cast<double>(i * 20));
  PixelStatistics const statistics{0.25, 0.5};
  for (TensorFormat format : {TensorFormat::nchw, TensorFormat::chwn}) {
    Tensor x(describe(DataType::f32, image_layout(format, 4, 1, 2, 2)));
    x.fill(99);
    gather(data, {2, 0, 1}, 1, statistics, x.description(), x.as<float>());
    EXPECT_NEAR(x.get(0), (0 / 255.0 - 0.25) / 0.5, 1e-6);
    EXPECT_NEAR(x.get(4 + 3), (140 / 255.0 - 0.25) / 0.5, 1e-6);
    EXPECT_EQ(x.get(8), 0);
    EXPECT_EQ(x.get(15), 0);
  }
}

TEST(PixelStatistics, AreOfAllPixels) {
  Dataset data;
  data.images = Tensor(DataType::u8, {2, 1, 2});
  for (Index i = 0; i < 4; ++i) data.images.set(i, i < 2 ? 0 : 255);
  auto const statistics = pixel_statistics(data);
  EXPECT_DOUBLE_EQ(statistics.mean, 0.5);
  EXPECT_DOUBLE_EQ(statistics.deviation, 0.5);

  data.images = Tensor(DataType::u8, {100, 28, 28});
  for (Index i = 0; i < data.images.size(); ++i) data.images.set(i, static_cast<double>(i * i % 251));
  auto const alone = pixel_statistics(data);
  for (int const threads : {2, 3, 7}) {
    EXPECT_EQ(pixel_statistics(data, threads).mean, alone.mean);
    EXPECT_EQ(pixel_statistics(data, threads).deviation, alone.deviation);
  }
}

}  // namespace
}  // namespace cosmati::nets
