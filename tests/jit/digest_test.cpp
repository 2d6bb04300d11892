// Digests of kernels ignore what the compiler does not see, and nothing else.
#include "src/jit/digest.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace cosmati::jit {
namespace {

TEST(CodeOf, DropsCommentsAndBlanksAndNothingElse) {
  EXPECT_EQ(code_of("int x;  // five\nint y;"), "int x; int y;");
  EXPECT_EQ(code_of("int /* of\n both */ x;\n\n\tint y;\n"), "int x; int y;");
  EXPECT_EQ(code_of("a // b"), "a");
  EXPECT_EQ(code_of("a /* b"), "a");
  EXPECT_EQ(code_of("asm(\"// mov  a\"); b"), "asm(\"// mov  a\"); b");
  EXPECT_EQ(code_of("x = \"\\\"//\"; // y"), "x = \"\\\"//\";");
  EXPECT_EQ(code_of("'\"' // y"), "'\"'");
  EXPECT_EQ(code_of("1'000 + 2'000 // y"), "1'000 + 2'000");
  EXPECT_EQ(code_of("a / b"), "a / b");
  EXPECT_EQ(code_of(""), "");
  EXPECT_EQ(code_of("/"), "/");
  EXPECT_EQ(code_of("\"open"), "\"open");
}

TEST(DigestOf, ChangesWithTheCodeAndNotWithComments) {
  Source const base{.text = "#include \"cosmati/core/config.h\"\nvoid f();", .name_expression = "f"};
  auto const digest = [](Source const& source, std::string const& plan = "") {
    return digest_of(std::vector<Source>{source}, plan);
  };
  std::set<std::string> digests = {digest(base)};
  EXPECT_EQ(digests.begin()->size(), 24U);
  EXPECT_EQ(digests.begin()->find_first_not_of("0123456789abcdef"), std::string::npos);
  auto const changed = [&base](auto change) {
    Source source = base;
    change(source);
    return source;
  };
  for (Source const& other :
       {changed([](Source& s) { s.text += " // nothing"; }), changed([](Source& s) { s.text += "\n\n"; }),
        changed([](Source& s) { s.label = "relu(acc)"; })})
    EXPECT_EQ(digest(other), digest(base)) << other.text;
  for (Source const& other :
       {changed([](Source& s) { s.text += " int x;"; }), changed([](Source& s) { s.name_expression = "g"; }),
        changed([](Source& s) { s.options = {"-a"}; }), changed([](Source& s) { s.architecture = "sm_80"; }),
        changed([](Source& s) { s.text = "#include \"cosmati/core/shape.h\"\nvoid f();"; })})
    EXPECT_TRUE(digests.insert(digest(other)).second) << other.text;
  EXPECT_TRUE(digests.insert(digest(base, "2 splits")).second);
  EXPECT_TRUE(digests.insert(digest_of(std::vector<Source>{base, base}, "")).second);
}

}  // namespace
}  // namespace cosmati::jit
