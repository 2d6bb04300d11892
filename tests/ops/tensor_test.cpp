// Tensors that own their memory.
#include "cosmati/ops/tensor.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cosmati/ops/activation.h"
#include "cosmati/ops/device.h"
#include "cosmati/ops/pooling.h"
#include "tests/sanitized.h"

namespace cosmati {
namespace {

template <class Call>
std::string error_of(Call&& call, ErrorCode code = ErrorCode::bad_request) {
  try {
    call();
  } catch (Error const& error) {
    EXPECT_EQ(static_cast<int>(error.code()), static_cast<int>(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

TEST(Tensor, PrintsItself) {
  EXPECT_EQ(to_string(Shape{}), "()");
  EXPECT_EQ(to_string(Shape(5)), "(5)");
  EXPECT_EQ(to_string(describe(DataType::f32, Shape(64, 1, 28, 28))), "f32 (64, 1, 28, 28)");
  EXPECT_EQ(to_string(describe(DataType::e4m3, column_major({2, 3}))), "e4m3 (2, 3) strides (1, 2)");
}

TEST(Tensor, NumberTypesByName) {
  for (int i = 0; i < data_type_count; ++i) {
    auto const type = static_cast<DataType>(i);
    EXPECT_EQ(parse_data_type(name_of(type)), type);
  }
  std::string const message = error_of([] { parse_data_type("float31"); });
  EXPECT_EQ(
      message,
      "unknown data type 'float31' (did you mean f32?); valid types: f64, f32, tf32, f16, bf16, e4m3, e5m2, "
      "s8, u8, s32");
}

TEST(Tensor, NumberTypesByAliases) {
  std::pair<char const*, DataType> const aliases[] = {
      {"float64", DataType::f64},        {"double", DataType::f64},       {"fp64", DataType::f64},
      {"float32", DataType::f32},        {"float", DataType::f32},        {"fp32", DataType::f32},
      {"float16", DataType::f16},        {"half", DataType::f16},         {"fp16", DataType::f16},
      {"bfloat16", DataType::bf16},      {"fp8", DataType::e4m3},         {"float8_e4m3", DataType::e4m3},
      {"float8_e4m3fn", DataType::e4m3}, {"float8-e5m2", DataType::e5m2}, {"int8", DataType::s8},
      {"uint8", DataType::u8},           {"int32", DataType::s32}};
  for (auto const& [alias, type] : aliases) EXPECT_EQ(parse_data_type(alias), type) << alias;
  EXPECT_EQ(parse_pooling_mode("avg"), PoolingMode::average);
  EXPECT_EQ(parse_activation_function("swish"), ActivationFunction::silu);
  EXPECT_EQ(
      error_of([] { parse_backend("gpu"); }),
      "unknown backend 'gpu' (did you mean cuda?); valid backends: auto, cuda, cpu, emulator, reference");
}

TEST(Tensor, CheckedSizeKnowsItsLimits) {
  Index const two_to_60 = Index{1} << 60;
  EXPECT_EQ(checked_size({3, 5}, DataType::f32), 15);
  EXPECT_EQ(checked_size({}, DataType::f32), 1);
  EXPECT_EQ(checked_size({3, 0}, DataType::f32), 0);
  EXPECT_EQ(checked_size({two_to_60}, DataType::f32), two_to_60);
  error_of([&] { checked_size({two_to_60 + 1}, DataType::f32); });
  error_of([&] { checked_size({two_to_60, 2}, DataType::f32); });
  error_of([&] { checked_size({Index{1} << 32, Index{1} << 32}, DataType::u8); });
  error_of([&] { checked_size({0, two_to_60, two_to_60}, DataType::u8); });
  EXPECT_EQ(error_of([&] {
              checked_size({2, -1}, DataType::u8);
            }),
            "extent -1 of dimension 1 of (2, -1) is negative");
}

TEST(Tensor, OwnsAlignedMemoryForItsSpan) {
  Tensor const strided(describe(DataType::f32, Layout{{3, 4}, {10, 2}}));
  EXPECT_EQ(strided.bytes(), (2 * 10 + 3 * 2 + 1) * 4u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(strided.data()) % 64, 0u);
  Tensor const empty(DataType::f64, {0, 4});
  EXPECT_EQ(empty.bytes(), 0u);
  EXPECT_NE(empty.data(), nullptr);
  Tensor const broadcast(describe(DataType::f32, Layout{{3, 4}, {0, 1}}));
  EXPECT_EQ(broadcast.bytes(), 16u);
}

TEST(Tensor, RefusesLayoutsThatOverflow) {
  Index const huge = Index{1} << 62;
  error_of([&] { Tensor(describe(DataType::f32, Layout{{2}, {huge}})); });
  error_of([&] { Tensor(describe(DataType::u8, Layout{{3, 3}, {huge / 2, huge / 2}})); });
  error_of([&] { Tensor(describe(DataType::u8, Layout{{huge}, {2}})); });
  EXPECT_EQ(error_of([&] {
              Tensor(describe(DataType::u8, Layout{{2, 2}, {2, -1}}));
            }),
            "stride -1 of dimension 1 of (2, 2) is negative");
}

TEST(Tensor, SaysWhenThereIsNoMemory) {
  if (test::sanitized) GTEST_SKIP() << "AddressSanitizer's allocator ends the program instead";
  std::string const message =
      error_of([] { Tensor(DataType::u8, {Index{1} << 61}); }, ErrorCode::out_of_memory);
  EXPECT_EQ(message, "no memory for u8 (2305843009213693952): 2305843009213693952 bytes");
}

TEST(Tensor, FillsElementsOnly) {
  Tensor tensor(describe(DataType::s8, Layout{{2, 2}, {4, 2}}));
  for (std::size_t i = 0; i < tensor.bytes(); ++i) tensor.as<s8>()[i] = 1;
  tensor.fill(-7);
  std::vector<int> const values(tensor.as<s8>(), tensor.as<s8>() + tensor.bytes());
  EXPECT_EQ(values, (std::vector<int>{-7, 1, -7, 1, -7, 1, -7}));
}

TEST(Tensor, CopiesBetweenAllTypesAndLayouts) {
  Shape const shape(2, 3, 5);
  for (int from = 0; from < data_type_count; ++from)
    for (int to = 0; to < data_type_count; ++to) {
      Tensor source(describe(static_cast<DataType>(from), column_major(shape)));
      for (Index i = 0; i < source.size(); ++i) source.set(i, static_cast<double>(i % 8));
      Tensor const result =
          copy(source, describe(static_cast<DataType>(to), row_major({5, 2, 3}).permuted(1, 2, 0)));
      for (Index i = 0; i < result.size(); ++i)
        ASSERT_EQ(result.get(i), static_cast<double>(i % 8)) << from << " " << to;
    }
}

TEST(Tensor, CopyRoundsAndSaturates) {
  Tensor source(DataType::f64, {3});
  source.set(0, 2.5);
  source.set(1, 1000);
  source.set(2, -1000);
  Tensor const result = copy(source, describe(DataType::s8, Shape(3)));
  EXPECT_EQ(result.get(0), 2);
  EXPECT_EQ(result.get(1), 127);
  EXPECT_EQ(result.get(2), -128);
}

TEST(Tensor, CopiesEmptyAndScalar) {
  EXPECT_EQ(copy(Tensor(DataType::f32, {3, 0}), describe(DataType::f64, Shape(3, 0))).size(), 0);
  Tensor scalar(DataType::f32, {});
  scalar.set(0, 4);
  EXPECT_EQ(copy(scalar, describe(DataType::s32, Shape{})).get(0), 4);
  EXPECT_EQ(error_of([&] {
              copy(Tensor(DataType::f32, {2, 3}), describe(DataType::f32, Shape(3, 2)));
            }),
            "cannot copy f32 (2, 3) into f32 (3, 2): the shapes differ");
}

}  // namespace
}  // namespace cosmati
