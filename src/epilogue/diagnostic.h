// Messages about an expression: a sentence, the expression, a caret.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cosmati::epilogue {

// Throws Error(bad_request). `column` is an offset in `text`; of a long text only the surroundings are shown.
// Characters other than printable ASCII are shown as '?', white space as a blank, so that the caret is under
// its column.
[[noreturn]] void fail(std::string_view sentence, std::string_view text, std::size_t column);

// `character` in quotes, or its hexadecimal code if it is not printable.
std::string quoted(char character);
inline std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

// "a", "a and b", "a, b and c"
std::string enumeration(std::vector<std::string> const& words);

}  // namespace cosmati::epilogue
