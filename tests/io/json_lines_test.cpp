// JSON Lines.
#include "src/io/json_lines.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "src/io/file.h"
#include "tests/io/testing.h"

namespace cosmati::io {
namespace {

using namespace testing;
using Json = nlohmann::json;

std::string refused(std::string const& text) {
  return error_of([&] { parse_json_lines(text, "x.jsonl", [](std::size_t, Json&&) {}); });
}

TEST(JsonLines, AppendsWholeLinesAndReadsThem) {
  TemporaryFolder const folder;
  append_line(folder / "x", json_line({{"epoch", 1}, {"text", "two\nlines"}}));
  append_line(folder / "x", json_line({1, 2.5, nullptr}));
  EXPECT_EQ(read_file(folder / "x"), "{\"epoch\":1,\"text\":\"two\\nlines\"}\n[1,2.5,null]\n");
  std::vector<Json> values;
  parse_json_lines(read_file(folder / "x"), "x",
                   [&](std::size_t, Json&& value) { values.push_back(std::move(value)); });
  ASSERT_EQ(values.size(), 2u);
  EXPECT_EQ(values[0]["text"], "two\nlines");
  EXPECT_EQ(values[1][1], 2.5);
}

TEST(JsonLines, BeginsANewLineAfterATornOne) {
  TemporaryFolder const folder;
  write_atomically(folder / "x", "{\"epoch\":");
  append_line(folder / "x", json_line(Json{{"epoch", 2}}));
  EXPECT_EQ(read_file(folder / "x"), "{\"epoch\":\n{\"epoch\":2}\n");
}

TEST(JsonLines, WritesBytesThatAreNotUtf8) { EXPECT_EQ(json_line("a\xff"), "\"a\xef\xbf\xbd\"\n"); }

TEST(JsonLines, SkipsEmptyLinesAndCountsThem) {
  std::vector<std::size_t> lines;
  parse_json_lines("1\n\n \r\n2\r\n3", "x", [&](std::size_t line, Json&&) { lines.push_back(line); });
  EXPECT_EQ(lines, (std::vector<std::size_t>{1, 4, 5}));
}

TEST(JsonLines, ErrorsNameTheLine) {
  EXPECT_EQ(refused("1\n{\"a\":}\n"), "x.jsonl, line 2: is not valid JSON at column 6");
  EXPECT_TRUE(contains(refused("1 2"), "line 1"));
  EXPECT_TRUE(contains(refused("\n1e999"), "line 2: holds a number that is too large"));
  EXPECT_TRUE(contains(refused("\"\xff\""), "line 1"));
}

TEST(JsonLines, RefusesDeepNesting) {
  EXPECT_TRUE(contains(refused(std::string(1'000'000, '[')), "nested deeper than 100"));
  std::string objects;
  for (int i = 0; i < 1000; ++i) objects += "{\"a\":";
  EXPECT_TRUE(contains(refused(objects), "nested deeper than 100"));
  int count = 0;
  parse_json_lines(std::string(100, '[') + std::string(100, ']'), "x", [&](std::size_t, Json&&) { ++count; });
  EXPECT_EQ(count, 1);
  EXPECT_TRUE(contains(refused(std::string(101, '[') + std::string(101, ']')), "nested deeper"));
}

}  // namespace
}  // namespace cosmati::io
