// The facts of data types agree with the types themselves.
#include "src/ops/number_types.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "src/io/element_kind.h"
#include "src/ops/names.h"

namespace cosmati {
namespace {

DataType type_at(int i) { return static_cast<DataType>(i); }

// 1 plus the unit roundoff is a tie, which rounds to 1; anything larger rounds to the next number.
TEST(NumberTypes, UnitRoundoffIsHalfTheDistanceFromOne) {
  for (int i = 0; i < data_type_count; ++i) {
    DataType const type = type_at(i);
    SCOPED_TRACE(name_of(type));
    double const u = unit_roundoff(type);
    if (is_integer(type)) {
      EXPECT_EQ(u, 0);
      continue;
    }
    alignas(8) unsigned char memory[8];
    auto const rounded = [&](double value) {
      store(type, memory, 0, value);
      return load(type, memory, 0);
    };
    EXPECT_EQ(rounded(1 + u), 1);
    EXPECT_EQ(rounded(1 + 2 * u), 1 + 2 * u);
    EXPECT_NE(2 * u, 0);
  }
}

TEST(NumberTypes, FilesHoldAsManyBytes) {
  for (int i = 0; i < data_type_count; ++i) {
    NumberType const& facts = number_type(type_at(i));
    SCOPED_TRACE(name_of(facts.type));
    ASSERT_EQ(std::strlen(facts.numpy), 3u);
    EXPECT_EQ(facts.numpy[2] - '0', size_of(facts.type));
    EXPECT_EQ(facts.numpy[0], size_of(facts.type) == 1 ? '|' : '<');
    EXPECT_EQ(is_int8(facts.type) || is_float8(facts.type), size_of(facts.type) == 1);
    auto const natural = io::natural_type(io::kind_of(facts.type));
    EXPECT_EQ(natural, facts.type == DataType::tf32 ? DataType::f32 : facts.type);
  }
}

TEST(NumberTypes, AliasesAreFound) {
  std::vector<std::string> names;
  for (int i = 0; i < data_type_count; ++i) names.emplace_back(name_of(type_at(i)));
  for (TypeAlias const& alias : type_aliases)
    EXPECT_EQ(find_name(alias.name, names), static_cast<int>(alias.type)) << alias.name;
  EXPECT_EQ(aliases_of("bf16"), (std::vector<std::string>{"bfloat16", "bfloat"}));
}

TEST(NumberTypes, EveryKindOfElementHasOneRow) {
  std::set<std::string> names, safetensors;
  for (io::ElementFacts const& row : io::element_kinds) {
    EXPECT_EQ(&io::facts_of(row.kind), &row);
    names.insert(row.name);
    safetensors.insert(row.safetensors);
    EXPECT_EQ(row.numpy[2] - '0', row.bytes);
  }
  EXPECT_EQ(names.size(), 15u);
  EXPECT_EQ(safetensors.size(), 15u);
  EXPECT_TRUE(io::is_pattern(io::ElementKind::u16, DataType::bf16));
  EXPECT_TRUE(io::is_pattern(io::ElementKind::u8, DataType::e5m2));
  EXPECT_FALSE(io::is_pattern(io::ElementKind::u8, DataType::s8));
  EXPECT_FALSE(io::is_pattern(io::ElementKind::u16, DataType::f32));
}

}  // namespace
}  // namespace cosmati
