// The real cuDNN plans from our descriptors for a described H200: planning needs only the library (9.14 or
// later), not a GPU. Checks that it accepts every attribute and offers plans.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "cli/bench/peers/cudnn_graph.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {
namespace {

constexpr char const* h200 =
    R"({"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
"multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560,
"warpSize": 32, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
"reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "pciDeviceId": 0, "maxCtasPerSM": 32,
"maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "isTccDriver": 0, "supportCoopLaunch": 1, "deviceVer": 900,
"driverVer": 13000, "cudaDeviceId": 0, "totalGlobalMem": 150754820096, "deviceName": "NVIDIA H200"})";

struct Shape4 {
  Index n, c, h, w, k, r, s, stride, pad_begin, pad_end, dilation, groups;
};

CudnnConvolution convolution_of(Shape4 const& shape, ConvolutionDirection direction, DataType type,
                                cudnn::Number number, cudnn::Format format) {
  CudnnConvolution one;
  one.direction = direction;
  one.type = type;
  one.number = number;
  one.format = format;
  one.groups = shape.groups;
  Index const p =
      convolution_extent(shape.h, shape.r, shape.stride, shape.pad_begin, shape.pad_end, shape.dilation);
  Index const q =
      convolution_extent(shape.w, shape.s, shape.stride, shape.pad_begin, shape.pad_end, shape.dilation);
  Index const x[] = {shape.n, shape.c, shape.h, shape.w}, y[] = {shape.n, shape.k, p, q},
              w[] = {shape.k, shape.c / shape.groups, shape.r, shape.s};
  for (int d = 0; d < 4; ++d) one.x[d] = x[d], one.w[d] = w[d], one.y[d] = y[d];
  for (int d = 0; d < 2; ++d) {
    one.stride[d] = shape.stride;
    one.dilation[d] = shape.dilation;
    one.pad_begin[d] = shape.pad_begin;
    one.pad_end[d] = shape.pad_end;
  }
  return one;
}

class CudnnPlans : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      (void)cudnn::library();
    } catch (Error const& error) {
      GTEST_SKIP() << error.what();
    }
    try {
      device_.emplace(cudnn::ObjectKind::device_properties);
      device_->set(cudnn::Attribute::device_json, cudnn::ElementKind::character,
                   static_cast<std::int64_t>(std::strlen(h200)), h200);
      device_->finalize();
    } catch (Error const& error) {
      GTEST_SKIP() << cudnn::version() << " plans for no described device: " << error.what();
    }
  }

  CudnnGraph::Plans plans(CudnnConvolution const& asked, std::size_t max_bytes = std::size_t{4} << 30) {
    return CudnnGraph(nullptr, 0, asked, 64, &*device_).plans(max_bytes, 48);
  }

  std::optional<CudnnObject> device_;
};

constexpr ConvolutionDirection directions[] = {ConvolutionDirection::forward, ConvolutionDirection::data,
                                               ConvolutionDirection::filter};
constexpr Shape4 square{64, 64, 56, 56, 64, 3, 3, 1, 1, 1, 1, 1};

TEST_F(CudnnPlans, AreThereForEveryTypeDirectionAndLayout) {
  struct Kind {
    DataType type;
    cudnn::Number number;
  };
  for (Kind const kind : {Kind{DataType::f32, cudnn::Number::f32},
                          {DataType::tf32, cudnn::Number::f32},
                          {DataType::f16, cudnn::Number::f16},
                          {DataType::bf16, cudnn::Number::bf16}})
    for (auto const direction : directions)
      for (auto const format : {cudnn::Format::nchw, cudnn::Format::nhwc}) {
        CudnnGraph::Plans const found =
            plans(convolution_of(square, direction, kind.type, kind.number, format));
        std::set<std::string> names;
        for (CudnnGraph::Plan const& plan : found.plans) {
          EXPECT_TRUE(names.insert(plan.engine).second) << plan.engine << " twice";
          EXPECT_LE(plan.workspace_bytes, std::size_t{4} << 30);
        }
        EXPECT_FALSE(found.plans.empty())
            << name_of(kind.type) << ' ' << static_cast<int>(direction) << ": " << found.reason();
        EXPECT_EQ(kind.type == DataType::f32, found.other_numerics > 0)
            << "plans on tensor cores are left out";
      }
}

TEST_F(CudnnPlans, AreThereForStridesDilationGroupsAndUnevenPadding) {
  Shape4 const shapes[] = {
      {64, 256, 56, 56, 512, 1, 1, 2, 0, 0, 1, 1},  {64, 64, 56, 56, 64, 3, 3, 1, 2, 2, 2, 1},
      {64, 96, 112, 112, 96, 3, 3, 2, 1, 1, 1, 96}, {64, 128, 28, 28, 128, 3, 3, 1, 1, 1, 1, 32},
      {64, 64, 56, 56, 64, 3, 3, 2, 0, 1, 1, 1},    {64, 3, 224, 224, 64, 7, 7, 2, 3, 3, 1, 1}};
  for (Shape4 const& shape : shapes)
    for (auto const direction : directions) {
      auto const found =
          plans(convolution_of(shape, direction, DataType::f16, cudnn::Number::f16, cudnn::Format::nhwc));
      EXPECT_FALSE(found.plans.empty())
          << "channels " << shape.c << ", groups " << shape.groups << ", direction "
          << static_cast<int>(direction) << ": " << found.reason();
    }
}

TEST_F(CudnnPlans, StayWithinTheWorkspaceThatTheyAreGiven) {
  auto const asked = convolution_of(square, ConvolutionDirection::filter, DataType::f16, cudnn::Number::f16,
                                    cudnn::Format::nhwc);
  auto const all = plans(asked), some = plans(asked, 1 << 20);
  EXPECT_GT(some.too_large, 0);
  EXPECT_LT(some.plans.size(), all.plans.size());
  for (CudnnGraph::Plan const& plan : some.plans) EXPECT_LE(plan.workspace_bytes, std::size_t{1} << 20);
}

TEST_F(CudnnPlans, RefuseExtentsThatDoNotBelongTogether) {
  auto asked = convolution_of(square, ConvolutionDirection::forward, DataType::f16, cudnn::Number::f16,
                              cudnn::Format::nhwc);
  asked.y[2] += 1;
  EXPECT_THROW(plans(asked), Error);
}

}  // namespace
}  // namespace cosmati::cli
