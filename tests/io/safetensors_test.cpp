// safetensors files: reading, validation, writing.
#include "src/io/safetensors.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>

#include "src/io/file.h"
#include "tests/io/testing.h"

namespace cosmati::io {
namespace {

using namespace testing;

std::string with_header(std::string const& header, std::string const& data = "") {
  std::string file;
  for (std::size_t i = 0; i < 8; ++i) file += static_cast<char>(header.size() >> 8 * i & 0xff);
  return file + header + data;
}

std::string entry(std::string const& name, std::string const& dtype, std::string const& shape,
                  std::string const& offsets) {
  return "\"" + name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets +
         "}";
}

SafetensorsFile parsed(std::string const& file) { return SafetensorsFile::parse(bytes_of(file), "x.st"); }

std::string refused(std::string const& header, std::string const& data = "") {
  std::string const file = with_header(header, data);
  std::string const message = error_of([&] { parsed(file); });
  EXPECT_EQ(message.substr(0, 4), "x.st") << message;
  return message;
}

TEST(Safetensors, ReadsTensorsAndMetadata) {
  std::string const file = with_header(
      "{" + entry("b", "U8", "[2,2]", "[4,8]") + ",\"__metadata__\":{\"epoch\":\"3\"}," +
          entry("a", "F32", "[1]", "[0,4]") + "," + entry("none", "F16", "[0,7]", "[4,4]") + "}  ",
      std::string("\x00\x00\xc0\xbf", 4) + "wxyz");
  SafetensorsFile const model = parsed(file);
  EXPECT_EQ(model.tensors().size(), 3u);
  EXPECT_EQ(model.metadata().at("epoch"), "3");
  EXPECT_EQ(model.tensor("a").get(0), -1.5);
  EXPECT_EQ(model.tensor("b").shape(), Shape(2, 2));
  EXPECT_EQ(model.tensor("b").get(3), 'z');
  EXPECT_EQ(model.tensor("none").size(), 0);
  EXPECT_TRUE(model.contains("b"));
  EXPECT_FALSE(model.contains("c"));
  std::string const message = error_of([&] { model.at("c"); });
  EXPECT_TRUE(contains(message, "no tensor 'c'; it has 'a', 'b', 'none'")) << message;
}

TEST(Safetensors, ReadsEveryType) {
  struct Case {
    char const* dtype;
    int bytes;
    std::optional<DataType> type;
  };
  for (Case const& one : std::vector<Case>{{"F64", 8, DataType::f64},
                                           {"F32", 4, DataType::f32},
                                           {"F16", 2, DataType::f16},
                                           {"BF16", 2, DataType::bf16},
                                           {"F8_E4M3", 1, DataType::e4m3},
                                           {"F8_E5M2", 1, DataType::e5m2},
                                           {"I8", 1, DataType::s8},
                                           {"U8", 1, DataType::u8},
                                           {"BOOL", 1, DataType::u8},
                                           {"I32", 4, DataType::s32},
                                           {"I16", 2, std::nullopt},
                                           {"U16", 2, std::nullopt},
                                           {"U32", 4, std::nullopt},
                                           {"I64", 8, std::nullopt},
                                           {"U64", 8, std::nullopt}}) {
    std::string const bytes = std::to_string(one.bytes);
    std::string const file = with_header("{" + entry("a", one.dtype, "[]", "[0," + bytes + "]") + "}",
                                         std::string(static_cast<std::size_t>(one.bytes), '\0'));
    SafetensorsFile const model = parsed(file);
    EXPECT_EQ(model.at("a").bytes.size(), static_cast<std::size_t>(one.bytes));
    if (one.type) {
      EXPECT_EQ(model.tensor("a").type(), *one.type) << one.dtype;
    } else {
      EXPECT_TRUE(contains(error_of([&] { model.tensor("a"); }), "tensor 'a'")) << one.dtype;
      EXPECT_EQ(model.tensor("a", DataType::s32).get(0), 0);
    }
  }
}

TEST(Safetensors, RefusesLengthsThatLie) {
  EXPECT_TRUE(contains(error_of([] { parsed("abc"); }), "3 bytes"));
  EXPECT_TRUE(contains(error_of([] { parsed(std::string(8, '\xff')); }), "18446744073709551615"));
  EXPECT_TRUE(contains(error_of([] { parsed(std::string("\x01\xe1\xf5\x05\0\0\0\0", 8)); }), "100000001"));
  EXPECT_TRUE(
      contains(error_of([] { parsed(std::string("\x00\xe1\xf5\x05\0\0\0\0{}", 10)); }), "only 2 follow"));
}

TEST(Safetensors, RefusesHeadersThatAreNotTheJsonItAsksFor) {
  EXPECT_TRUE(contains(refused(""), "'{'"));
  EXPECT_TRUE(contains(refused(" {}"), "'{'"));
  EXPECT_TRUE(contains(refused("[]"), "'{'"));
  EXPECT_TRUE(contains(refused("{} x"), "not valid JSON at byte"));
  EXPECT_TRUE(contains(refused("{\"a\":"), "not valid JSON"));
  EXPECT_TRUE(contains(refused("{\"a\xff\":{}}"), "not valid JSON"));
  EXPECT_TRUE(contains(refused("{\"a\":1}"), "number 1 where an object"));
  EXPECT_TRUE(contains(refused("{\"a\":[]}"), "an array where an object"));
  EXPECT_TRUE(contains(refused("{\"a\":null}"), "null where an object"));
  EXPECT_TRUE(contains(refused("{\"a\":{}}"), "'a' lacks dtype"));
  EXPECT_TRUE(contains(refused("{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}"), "'a' lacks data_offsets"));
  EXPECT_TRUE(contains(refused("{\"a\":{\"dtype\":\"U8\",\"more\":1}}"), "the field 'more'"));
  EXPECT_TRUE(contains(refused("{\"a\":{\"dtype\":8}}"), "the dtype of tensor 'a' has the number 8"));
  EXPECT_TRUE(contains(refused("{\"a\":{\"shape\":\"x\"}}"), "the string 'x' where an array"));
  EXPECT_TRUE(contains(refused("{\"a\":{\"shape\":[{}]}}"), "an object where a non-negative integer"));
  EXPECT_TRUE(contains(refused("{" + entry("a", "F4", "[]", "[0,0]") + "}"), "unknown dtype 'F4'"));
  EXPECT_TRUE(contains(refused("{" + entry("a", "U8", "[-1]", "[0,0]") + "}"), "number -1"));
  EXPECT_TRUE(contains(refused("{" + entry("a", "U8", "[1.0]", "[0,1]") + "}", "x"), "number '1.0'"));
  EXPECT_TRUE(
      contains(refused("{" + entry("a", "U8", "[1,1,1,1,1,1,1]", "[0,1]") + "}", "x"), "more than 6"));
  EXPECT_TRUE(contains(refused("{" + entry("a", "U8", "[1]", "[0]") + "}", "x"), "two data_offsets"));
  EXPECT_TRUE(contains(refused("{" + entry("a", "U8", "[1]", "[0,1,1]") + "}", "x"), "two data_offsets"));
  EXPECT_TRUE(contains(refused("{\"__metadata__\":{\"a\":1}}"), "__metadata__ at 'a' has the number 1"));
  EXPECT_TRUE(contains(refused("{\"__metadata__\":\"a\"}"), "the string 'a'"));
}

TEST(Safetensors, RefusesNamesThatAppearTwice) {
  std::string const a = entry("a", "U8", "[1]", "[0,1]");
  EXPECT_TRUE(
      contains(refused("{" + a + "," + entry("a", "U8", "[1]", "[1,2]") + "}", "xy"), "'a' appears twice"));
  EXPECT_TRUE(contains(refused("{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}"), "'k' appears twice"));
  EXPECT_TRUE(contains(refused("{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}"), "'dtype' appears twice"));
}

TEST(Safetensors, RefusesOffsetsThatLie) {
  auto const one = [](std::string const& shape, std::string const& offsets) {
    return refused("{" + entry("a", "U8", shape, offsets) + "}", "wxyz");
  };
  EXPECT_TRUE(contains(one("[5]", "[0,5]"), "not within the 4 bytes"));
  EXPECT_TRUE(contains(one("[1]", "[1,0]"), "not within"));
  EXPECT_TRUE(contains(one("[1]", "[18446744073709551615,0]"), "not within"));
  EXPECT_TRUE(contains(one("[3]", "[0,4]"), "implies 3 bytes, but its data_offsets span 4"));
  EXPECT_TRUE(contains(one("[4294967296,4294967296]", "[0,4]"), "2^62"));
  EXPECT_TRUE(contains(one("[18446744073709551615]", "[0,4]"), "2^62"));
  EXPECT_TRUE(contains(one("[3]", "[0,3]"), "take 3 bytes, but 4 follow"));
  EXPECT_TRUE(contains(one("[3]", "[1,4]"), "begins at byte 1"));
  EXPECT_TRUE(contains(refused("{}", "wxyz"), "take 0 bytes, but 4 follow"));
  auto const two = [](std::string const& first, std::string const& second) {
    return refused("{" + entry("a", "U8", "[2]", first) + "," + entry("b", "U8", "[2]", second) + "}",
                   "wxyz");
  };
  EXPECT_TRUE(contains(two("[0,2]", "[1,3]"), "'b' begins at byte 1 of the data, overlapping"));
  EXPECT_TRUE(contains(two("[0,2]", "[0,2]"), "overlapping"));
}

TEST(Safetensors, RefusesGaps) {
  std::string const message =
      refused("{" + entry("a", "U8", "[1]", "[0,1]") + "," + entry("b", "U8", "[2]", "[2,4]") + "}", "wxyz");
  EXPECT_TRUE(contains(message, "leaving a gap")) << message;
}

TEST(Safetensors, DeepNestingIsRefusedWithoutRecursion) {
  std::size_t const depth = 5'000'000;
  EXPECT_TRUE(contains(refused("{\"a\":" + std::string(depth, '[')), "an array where an object"));
  std::string objects = "{";
  for (int i = 0; i < 100'000; ++i) objects += "\"a\":{";
  EXPECT_TRUE(contains(refused(objects), "tensor 'a'"));
}

TEST(Safetensors, CutOrAlteredFilesNeverCrash) {
  auto const parse = [](std::span<std::byte const> file) {
    SafetensorsFile const model = SafetensorsFile::parse(file, "x.st");
    for (auto const& tensor : model.tensors()) to_tensor(tensor.second, DataType::f64);
  };
  std::string const file =
      with_header("{\"__metadata__\":{\"k\":\"v\"}," + entry("a", "I16", "[2]", "[0,4]") + "," +
                      entry("b", "U8", "[1,2]", "[4,6]") + "}",
                  "abcdef");
  expect_refused_when_cut(file, parse);
  expect_no_crash_when_altered(file, parse);
}

TEST(Safetensors, WritesWhatItReads) {
  TemporaryFolder const folder;
  std::vector<Tensor> tensors;
  std::vector<NamedTensor> list;
  for (int i = 0; i < data_type_count; ++i) {
    tensors.emplace_back(describe(static_cast<DataType>(i), column_major({3, i + 1})));
    for (Index k = 0; k < tensors.back().size(); ++k) tensors.back().set(k, static_cast<double>(k));
  }
  for (Tensor const& tensor : tensors) list.push_back(named(name_of(tensor.type()), tensor));
  write_safetensors(folder / "x.st", list, {{"format", "pt"}, {"text", "\"\n\xc3\xa9"}});
  std::string const first = read_file(folder / "x.st");
  EXPECT_EQ(static_cast<unsigned char>(first[0]) % 8, 0);

  SafetensorsFile const model = SafetensorsFile::open(folder / "x.st");
  EXPECT_EQ(model.metadata().at("text"), "\"\n\xc3\xa9");
  EXPECT_EQ(model.tensors().size(), tensors.size());
  for (Tensor const& tensor : tensors) {
    DataType const type = tensor.type() == DataType::tf32 ? DataType::f32 : tensor.type();
    RawArray const& raw = model.at(name_of(tensor.type()));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(raw.bytes.data()) % static_cast<unsigned>(size_of(type)), 0u);
    Tensor const read = model.tensor(name_of(tensor.type()));
    EXPECT_EQ(read.type(), type);
    ASSERT_EQ(read.shape(), tensor.shape());
    for (Index k = 0; k < read.size(); ++k) EXPECT_EQ(read.get(k), tensor.get(k));
  }
  std::swap(list[0], list[3]);
  write_safetensors(folder / "x.st", list, {{"format", "pt"}, {"text", "\"\n\xc3\xa9"}});
  EXPECT_EQ(read_file(folder / "x.st"), first);
}

TEST(Safetensors, TensorsOutliveTheirFile) {
  TemporaryFolder const folder;
  Tensor tensor(DataType::f32, {4});
  tensor.fill(7);
  write_safetensors(folder / "x.st", {named("a", tensor)});
  RawArray const raw = SafetensorsFile::open(folder / "x.st").at("a");
  EXPECT_EQ(to_tensor(raw).get(3), 7);
}

TEST(Safetensors, RefusesNamesThatCannotBeWritten) {
  TemporaryFolder const folder;
  Tensor const tensor(DataType::f32, {4});
  auto const write = [&](std::vector<NamedTensor> list) {
    return error_of([&] { write_safetensors(folder / "x.st", list); }, ErrorCode::bad_request);
  };
  EXPECT_TRUE(contains(write({named("a", tensor), named("a", tensor)}), "taken"));
  EXPECT_TRUE(contains(write({named("__metadata__", tensor)}), "reserved"));
  EXPECT_TRUE(contains(write({named("", tensor)}), "empty"));
  EXPECT_TRUE(contains(write({named("\xff", tensor)}), "UTF-8"));
  EXPECT_TRUE(folder.names().empty());
}

}  // namespace
}  // namespace cosmati::io
