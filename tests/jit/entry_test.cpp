// Keys and files of the kernel cache.
#include "src/jit/entry.h"

#include <gtest/gtest.h>

#include <set>

#include "src/jit/embedded.h"
#include "tests/jit/testing.h"

namespace cosmati::jit {
namespace {

using namespace testing;

std::optional<Entry> parse(std::string const& file) {
  std::vector<std::byte> const bytes = io::testing::exact_copy(file);
  return parse_entry(bytes);
}

TEST(Key, ChangesWithEveryPartOfTheSource) {
  Source const base{
      .text = "#include \"cosmati/core/config.h\"\nvoid f();", .name_expression = "f", .options = {"-a"}};
  std::set<std::string> keys = {key_of(base)};
  auto const expect_new = [&](Source changed, auto change) {
    change(changed);
    EXPECT_TRUE(keys.insert(key_of(changed)).second) << key_of(changed);
  };
  expect_new(base, [](Source& s) { s.text += ' '; });
  expect_new(base, [](Source& s) { s.text = "#include \"cosmati/core/shape.h\"\nvoid f();"; });
  expect_new(base, [](Source& s) { s.name_expression = "g"; });
  expect_new(base, [](Source& s) { s.architecture = "sm_80"; });
  expect_new(base, [](Source& s) { s.options = {}; });
  expect_new(base, [](Source& s) { s.options = {"-b"}; });
  expect_new(base, [](Source& s) { s.options = {"-a", "-a"}; });
  expect_new(base, [](Source& s) {
    s.options = {"-a\noption 2\n-a"};
  });  // the end of one field cannot be taken for the beginning of the next
  std::set<std::string> names;
  for (std::string const& key : keys) names.insert(entry_name(key));
  EXPECT_EQ(names.size(), keys.size());
}

TEST(Key, HoldsTheDigestOfEveryHeaderThatIsReachedAndOfNoOther) {
  Source const source{.text = "#include \"cosmati/core/shape.h\"", .name_expression = "f"};
  std::string const key = key_of(source);
  std::vector<Header const*> const reached = reachable_headers(source.text);
  ASSERT_EQ(reached.size(), 3u);  // shape.h, its config.h, and cxx20.h
  for (Header const& header : embedded_headers()) {
    bool const here = std::find(reached.begin(), reached.end(), &header) != reached.end();
    EXPECT_EQ(contains(key, std::string(header.sha256)), here) << header.path;
  }
}

TEST(Key, DoesNotDependOnTheLabel) {
  Source source = numbered_source(1);
  std::string const key = key_of(source);
  source.label = "relu(acc)";
  EXPECT_EQ(key_of(source), key);
}

TEST(Entry, ReadsBackAsItWasWritten) {
  Cubin const cubin = expected_cubin(numbered_source(7));
  std::optional<Entry> const entry = parse(format_entry("the key", cubin));
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->key, "the key");
  expect_same(entry->cubin, cubin);
  EXPECT_FALSE(entry->cubin.from_cache);
}

TEST(Entry, EmptyFieldsAreFields) {
  std::optional<Entry> const entry = parse(format_entry("", Cubin{}));
  ASSERT_TRUE(entry);
  EXPECT_TRUE(entry->key.empty() && entry->cubin.image.empty());
}

TEST(Entry, EveryDamagedByteIsSeen) {
  std::string const file = format_entry("the key", expected_cubin(numbered_source(7)));
  for (std::size_t at = 0; at < file.size(); ++at)
    for (int change = 1; change < 256; ++change) {
      std::string damaged = file;
      damaged[at] = static_cast<char>(damaged[at] ^ change);
      ASSERT_FALSE(parse(damaged)) << "byte " << at << " of " << file.size();
    }
}

TEST(Entry, EveryCutAndEveryAdditionIsSeen) {
  std::string const file = format_entry("the key", expected_cubin(numbered_source(7)));
  for (std::size_t length = 0; length < file.size(); ++length) {
    EXPECT_FALSE(parse(file.substr(0, length))) << length;
    EXPECT_FALSE(parse(file.substr(0, length) + std::string(file.size() - length, '\0'))) << length;
  }
  EXPECT_FALSE(parse(file + '\0'));
  EXPECT_FALSE(parse(file + file));
}

TEST(Entry, NamesAreRecognized) {
  EXPECT_TRUE(is_entry_name(entry_name("some key")));
  for (char const* name :
       {"", ".", "a.kernel", "0123456789abcdef0123456.kernel", "0123456789abcdef0123456g.kernel",
        "0123456789abcdef01234567.kernels", "0123456789abcdef01234567-kernel"})
    EXPECT_FALSE(is_entry_name(name)) << name;
}

TEST(Embedded, HeadersIncludeOnlyEachOther) {
  ASSERT_GT(embedded_headers().size(), 2u);
  std::set<std::string_view> digests;
  for (Header const& header : embedded_headers()) {
    EXPECT_TRUE(header.path.starts_with("cosmati/") && header.path.ends_with(".h")) << header.path;
    EXPECT_TRUE(header.text.starts_with("//")) << header.path;
    EXPECT_EQ(header.text.data()[header.text.size()], '\0');
    EXPECT_EQ(header.path.data()[header.path.size()], '\0');
    EXPECT_EQ(header.sha256.size(), 64u);
    EXPECT_TRUE(digests.insert(header.sha256).second) << header.path;
    EXPECT_EQ(header.text.find("#include <"), std::string_view::npos) << header.path;
  }
}

TEST(Embedded, IncludesAreFoundWhereverTheyStand) {
  EXPECT_TRUE(reachable_headers("").empty());
  EXPECT_TRUE(reachable_headers("#include \"cosmati/core/nothing.h\"\n#include <string>").empty());
  EXPECT_TRUE(reachable_headers("// #include \"cosmati/core/config.h\"").empty());
  EXPECT_EQ(reachable_headers("#include \"cosmati/core/cxx20.h\"").size(), 1u);
  EXPECT_EQ(reachable_headers("int i;\n \t# \tinclude\t\"cosmati/core/cxx20.h\" // x\r\n").size(), 1u);
  EXPECT_EQ(reachable_headers("#include \"cosmati/core/cxx20.h\"\n#include \"cosmati/core/cxx20.h\"").size(),
            1u);
  EXPECT_EQ(reachable_headers("#include \"cosmati/core/config.h\"").size(), 2u);
  EXPECT_TRUE(reachable_headers("#include \"cosmati/core/cxx20.h").size() <= 1u);
}

}  // namespace
}  // namespace cosmati::jit
