// Messages about a text: a sentence, the text, a caret; and the nearest name to a misspelt one.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace cosmati::epilogue {

// Throws Error(bad_request). `column` is an offset in `text`; of a long text the surroundings are shown. What
// is not printable ASCII is shown as '?', white space as a blank, so that the caret stands under its column.
[[noreturn]] void fail(std::string_view sentence, std::string_view text, std::size_t column);

// `character` in quotes, or its hexadecimal code if it is not printable.
std::string quoted(char character);
inline std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

// "; did you mean 'relu'?" for the candidate nearest to `name`, or nothing if none is near.
std::string suggestion(std::string_view name, std::vector<std::string_view> const& candidates);

// "a", "a and b", "a, b and c"
std::string enumeration(std::vector<std::string> const& words);

}  // namespace cosmati::epilogue
