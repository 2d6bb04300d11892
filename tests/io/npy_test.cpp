// .npy files: what is read, what is refused, what is written.
#include "src/io/npy.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "src/io/file.h"
#include "tests/io/testing.h"

namespace cosmati::io {
namespace {

using namespace testing;

std::string with_header(std::string const& header, std::string const& data, int version = 1) {
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  std::size_t const length_bytes = version == 1 ? 2 : 4;
  for (std::size_t i = 0; i < length_bytes; ++i) file += static_cast<char>(header.size() >> 8 * i & 0xff);
  return file + header + data;
}

std::string header_of(std::string const& descr, std::string const& shape, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") +
         ", 'shape': " + shape + ", }\n";
}

template <class Number>
std::string raw(std::vector<Number> const& values, bool big_endian = false) {
  std::string bytes;
  for (Number const value : values) {
    char element[sizeof(Number)];
    std::memcpy(element, &value, sizeof(Number));
    if (big_endian) std::reverse(element, element + sizeof(Number));
    bytes.append(element, sizeof(Number));
  }
  return bytes;
}

Tensor parsed(std::string const& file, std::optional<DataType> as = std::nullopt) {
  return to_tensor(parse_npy(bytes_of(file), "x.npy"), as);
}

std::string refused(std::string const& file) {
  std::string const message = error_of([&] { parse_npy(bytes_of(file), "x.npy"); });
  EXPECT_TRUE(contains(message, "x.npy: ")) << message;
  return message;
}

std::vector<double> values_of(Tensor const& tensor) {
  std::vector<double> values;
  for (Index i = 0; i < tensor.size(); ++i) values.push_back(tensor.get(i));
  return values;
}

template <class Number>
void expect_read(std::string const& code, DataType type, std::vector<Number> const& values) {
  std::string const shape = "(" + std::to_string(values.size()) + ",)";
  std::vector<double> const expected(values.begin(), values.end());
  for (bool const big : {false, true}) {
    Tensor const tensor = parsed(with_header(header_of((big ? ">" : "<") + code, shape), raw(values, big)));
    EXPECT_EQ(tensor.type(), type) << code;
    EXPECT_EQ(values_of(tensor), expected) << code << big;
  }
}

TEST(Npy, ReadsPlainTypesInEitherByteOrder) {
  expect_read<double>("f8", DataType::f64, {1.5, -2.25, 1e300});
  expect_read<float>("f4", DataType::f32, {1.5f, -2.25f, 1e30f});
  expect_read<std::int32_t>("i4", DataType::s32, {1, -2, 2147483647});
  expect_read<signed char>("i1", DataType::s8, {1, -128, 127});
  expect_read<unsigned char>("u1", DataType::u8, {1, 0, 255});
  Tensor const half = parsed(with_header(header_of(">f2", "(2,)"), std::string("\x3c\x00\xc0\x00", 4)));
  EXPECT_EQ(half.type(), DataType::f16);
  EXPECT_EQ(values_of(half), (std::vector<double>{1, -2}));
  Tensor const truth = parsed(with_header(header_of("|b1", "(3,)"), std::string("\x00\x01\x05", 3)));
  EXPECT_EQ(truth.type(), DataType::u8);
  EXPECT_EQ(values_of(truth), (std::vector<double>{0, 1, 1}));
}

template <class Number>
void expect_integers(std::string const& code, std::vector<Number> const& fitting, Number too_large) {
  std::string const fits = with_header(header_of(code, "(2,)"), raw(fitting, code[0] == '>'));
  EXPECT_TRUE(contains(error_of([&] { parsed(fits); }), "s32")) << code;
  EXPECT_EQ(values_of(parsed(fits, DataType::s32)), std::vector<double>(fitting.begin(), fitting.end()));
  EXPECT_EQ(values_of(parsed(fits, DataType::f64)), std::vector<double>(fitting.begin(), fitting.end()));
  std::string const message = error_of([&] {
    parsed(with_header(header_of(code, "(1, 2)"), raw(std::vector<Number>{1, too_large}, code[0] == '>')),
           DataType::u8);
  });
  EXPECT_TRUE(contains(message, std::to_string(too_large) + " at (0, 1)")) << message;
}

TEST(Npy, OtherIntegersNeedATypeThatHoldsThem) {
  expect_integers<std::int64_t>("<i8", {7, -9}, 300);
  expect_integers<std::int64_t>(">i8", {7, -9}, std::numeric_limits<std::int64_t>::max());
  expect_integers<std::int64_t>("<i8", {7, -9}, std::numeric_limits<std::int64_t>::min());
  expect_integers<std::uint64_t>("<u8", {7, 9}, std::numeric_limits<std::uint64_t>::max());
  expect_integers<std::uint64_t>(">u8", {7, 9}, (1ULL << 53) + 1);
  expect_integers<std::uint32_t>("<u4", {7, 9}, 4294967295u);
  expect_integers<std::uint16_t>(">u2", {7, 9}, 256);
  expect_integers<std::int16_t>("<i2", {7, -9}, -1);
}

TEST(Npy, RefusesAnIntegerThatTheWiderTypeRounds) {
  std::int64_t const odd = (1LL << 53) + 1;
  std::string const message =
      error_of([&] { parsed(with_header(header_of("<i8", "(1,)"), raw(std::vector{odd})), DataType::f64); });
  EXPECT_TRUE(contains(message, "9007199254740993")) << message;
  EXPECT_EQ(parsed(with_header(header_of("<i8", "(1,)"), raw(std::vector{odd - 1})), DataType::f64).get(0),
            0x1p53);
}

TEST(Npy, BitPatternsTravelAsUnsignedIntegers) {
  std::string const u2 = with_header(header_of("<u2", "(2,)"), std::string("\x80\x3f\x00\xc0", 4));
  EXPECT_EQ(values_of(parsed(u2, DataType::bf16)), (std::vector<double>{1, -2}));
  EXPECT_EQ(parsed(u2, DataType::f16).as<f16>()[0].bits, 0x3f80);
  std::string const u1 = with_header(header_of("|u1", "(2,)"), std::string("\x38\xbc", 2));
  EXPECT_EQ(values_of(parsed(u1, DataType::e4m3)), (std::vector<double>{1, -1.5}));
  EXPECT_EQ(values_of(parsed(u1, DataType::e5m2)), (std::vector<double>{0.5, -1}));
}

TEST(Npy, FloatingPointIsRoundedOnceWhenAskedFor) {
  std::string const file = with_header(header_of("<f8", "(3,)"), raw<double>({1.0 / 3, 1e300, -1.0}));
  Tensor const tensor = parsed(file, DataType::f32);
  EXPECT_EQ(tensor.as<float>()[0], 1.0f / 3);
  EXPECT_TRUE(std::isinf(tensor.as<float>()[1]));
  EXPECT_TRUE(contains(error_of([&] { parsed(file, DataType::s32); }), "0.3333333333333333 at (0)"));
  std::string const nan = with_header(header_of("<f4", "(1,)"), raw<float>({NAN}));
  EXPECT_TRUE(contains(error_of([&] { parsed(nan, DataType::s32); }), "nan"));
}

TEST(Npy, FortranOrderKeepsItsStrides) {
  std::string const file =
      with_header(header_of("<f4", "(2, 3)", true), raw<float>({11, 21, 12, 22, 13, 23}));
  Tensor const tensor = parsed(file);
  EXPECT_EQ(tensor.layout(), column_major({2, 3}));
  EXPECT_EQ(values_of(tensor), (std::vector<double>{11, 12, 13, 21, 22, 23}));
  EXPECT_EQ(tensor.as<float>()[1], 21);
  std::string const wrong = with_header(header_of("<i4", "(2, 3)", true), raw<int>({0, 0, 0, 0, 0, 300}));
  EXPECT_TRUE(contains(error_of([&] { parsed(wrong, DataType::u8); }), "300 at (1, 2)"));
}

TEST(Npy, AnyRankUpToSix) {
  EXPECT_EQ(parse_npy(bytes_of(with_header(header_of("<f4", "()"), raw<float>({5}))), "x.npy").layout.rank(),
            0);
  Tensor const scalar = parsed(with_header(header_of("<f4", "()"), raw<float>({5})));
  EXPECT_EQ(scalar.shape(), Shape(1));
  EXPECT_EQ(scalar.get(0), 5);
  EXPECT_EQ(parsed(with_header(header_of("|u1", "(1, 2, 1, 1, 2, 1)"), "abcd")).shape(),
            Shape(1, 2, 1, 1, 2, 1));
  EXPECT_EQ(parsed(with_header(header_of("|u1", "(3, 0)"), "")).size(), 0);
  EXPECT_TRUE(contains(refused(with_header(header_of("|u1", "(1, 1, 1, 1, 1, 1, 1)"), "a")), "more than 6"));
}

TEST(Npy, VersionsOneToThree) {
  std::string const header = header_of("|u1", "(4,)");
  for (int const version : {1, 2, 3}) EXPECT_EQ(parsed(with_header(header, "abcd", version)).get(3), 'd');
  EXPECT_TRUE(contains(refused(with_header(header, "abcd", 4)), "version 4.0"));
}

TEST(Npy, KeysInAnyOrderAndEitherQuotes) {
  std::string const file = with_header("{ \"shape\":(2 ,2),'fortran_order' :False ,\n'descr':\"<i4\"}   \n",
                                       raw<int>({1, 2, 3, 4}));
  EXPECT_EQ(values_of(parsed(file)), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(parsed(with_header(header_of("|u1", "(2L, 1L)"), "ab")).shape(), Shape(2, 1));
}

TEST(Npy, RefusesHeadersThatAreNotOne) {
  auto const header = [](std::string const& text) { return refused(with_header(text, "")); };
  EXPECT_TRUE(contains(refused("PK\x03\x04 something"), "not a .npy file"));
  EXPECT_TRUE(contains(refused(""), "not a .npy file"));
  EXPECT_TRUE(contains(header(""), "its end at column 1"));
  EXPECT_TRUE(contains(header("{'descr': '<f4', 'fortran_order': False, }"), "lacks the key 'shape'"));
  EXPECT_TRUE(contains(header("{'descr': '<f4', 'descr': '<f4', }"), "'descr' twice"));
  EXPECT_TRUE(contains(header("{'descr': '<f4', 'x': 1, }"), "'x' in addition to"));
  EXPECT_TRUE(contains(header(header_of("<c8", "(1,)")), "'<c8'"));
  EXPECT_TRUE(contains(header(header_of("|O", "(1,)")), "'|O'"));
  EXPECT_TRUE(contains(header(header_of("|f4", "(1,)")), "'|f4'"));
  EXPECT_TRUE(contains(header(header_of("<U5", "(1,)")), "'<U5'"));
  EXPECT_TRUE(
      contains(header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }"), "records"));
  EXPECT_TRUE(contains(header("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,), }"), "True or False"));
  EXPECT_TRUE(contains(header(header_of("<f4", "(5)")), "comma"));
  EXPECT_TRUE(contains(header(header_of("<f4", "5")), "'('"));
  EXPECT_TRUE(contains(header(header_of("<f4", "(-1,)")), "extent"));
  EXPECT_TRUE(contains(header(header_of("<f4", "(1,,)")), "extent"));
  EXPECT_TRUE(contains(header(header_of("<f4", "(1,)") + "x"), "nothing but spaces"));
  EXPECT_TRUE(contains(header(header_of("\xff\n'", "(1,)")), "\\xff\\x0a"));
}

TEST(Npy, RefusesShapesThatLie) {
  EXPECT_TRUE(contains(refused(with_header(header_of("<f4", "(1000000, 1000000)"), "abcd")),
                       "implies 4000000000000 bytes of data, but 4 follow"));
  EXPECT_TRUE(
      contains(refused(with_header(header_of("<f4", "(2,)"), "abcd")), "8 bytes of data, but 4 follow"));
  EXPECT_TRUE(contains(refused(with_header(header_of("<f4", "(2,)"), "abcdefghi")), "but 9 follow"));
  EXPECT_TRUE(contains(refused(with_header(header_of("<f8", "(4294967296, 4294967296)"), "")), "2^62"));
  EXPECT_TRUE(contains(refused(with_header(header_of("<f8", "(0, 4611686018427387904, 4)"), "")), "2^62"));
  EXPECT_TRUE(contains(refused(with_header(header_of("|u1", "(99999999999999999999,)"), "")), "2^62"));
  EXPECT_TRUE(contains(refused(with_header(header_of("|u1", "(18446744073709551617,)"), "a")), "2^62"));
  std::string huge = with_header(header_of("|u1", "(1,)"), "a", 2);
  huge[11] = '\x7f';
  EXPECT_TRUE(contains(refused(huge), "declares a header of 21"));
}

TEST(Npy, CutOrAlteredFilesNeverCrash) {
  auto const parse = [](std::span<std::byte const> file) {
    to_tensor(parse_npy(file, "x.npy"), DataType::f64);
  };
  for (int const version : {1, 2}) {
    std::string const file = with_header(header_of("<f4", "(2, 1)", true), raw<float>({1, 2}), version);
    expect_refused_when_cut(file, parse);
    expect_no_crash_when_altered(file, parse);
  }
}

TEST(Npy, WritesWhatItReads) {
  TemporaryFolder const folder;
  for (int i = 0; i < data_type_count; ++i) {
    auto const type = static_cast<DataType>(i);
    Tensor tensor(describe(type, column_major({3, 5, 2})));
    for (Index k = 0; k < tensor.size(); ++k) tensor.set(k, static_cast<double>(k) * 0.5);
    write_npy(folder / "x.npy", tensor);
    EXPECT_EQ(read_file(folder / "x.npy"), npy_bytes(tensor));
    RawArray const array = read_npy(folder / "x.npy");
    EXPECT_EQ(array.layout, row_major({3, 5, 2}));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(array.bytes.data()) % 64, 0u);
    EXPECT_EQ(values_of(to_tensor(array, type)), values_of(tensor)) << name_of(type);
  }
}

TEST(Npy, WritesTheHeaderThatNumPyWrites) {
  Tensor vector(DataType::f32, {3});
  vector.fill(0);
  std::string const file = npy_bytes(vector);
  EXPECT_EQ(file.substr(0, 10), std::string("\x93NUMPY\x01\x00\x76\x00", 10));
  EXPECT_EQ(file.substr(10, 60), "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }   ");
  EXPECT_EQ(file[127], '\n');
  EXPECT_EQ(file.size(), 128u + 12);
  EXPECT_TRUE(contains(npy_bytes(Tensor(DataType::bf16, {1})), "'<u2'"));
  EXPECT_TRUE(contains(npy_bytes(Tensor(DataType::e4m3, {1})), "'|u1'"));
}

TEST(Npy, WritesLargeStridedTensorsInOrder) {
  Tensor tensor(describe(DataType::s32, Layout{{3, 10000}, {1, 4}}));
  for (Index i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>(i));
  Tensor const back = parsed(npy_bytes(tensor));
  for (Index i = 0; i < back.size(); ++i) ASSERT_EQ(back.as<s32>()[i], i);
}

}  // namespace
}  // namespace cosmati::io
