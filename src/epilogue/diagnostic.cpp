// Three-line error messages: the text, a caret under the error, and a sentence.
#include "src/epilogue/diagnostic.h"

#include <algorithm>

#include "cosmati/ops/error.h"

namespace cosmati::epilogue {
namespace {

constexpr std::size_t window = 100;       // columns shown of a long text
constexpr std::size_t before_caret = 60;  // at most this many of them precede the caret

bool is_printable(char character) { return character >= ' ' && character <= '~'; }

}  // namespace

void fail(std::string_view sentence, std::string_view text, std::size_t column) {
  std::size_t begin = 0;
  std::size_t end = text.size();
  if (end > window) {
    begin = column > before_caret ? column - before_caret : 0;
    end = std::min(end, begin + window);
  }
  std::string shown = begin > 0 ? "..." : "";
  std::size_t const caret = shown.size() + column - begin;
  for (char const character : text.substr(begin, end - begin)) {
    bool const is_space = character == '\n' || character == '\t' || character == '\r';
    shown += is_printable(character) ? character : is_space ? ' ' : '?';
  }
  if (end < text.size()) shown += "...";
  throw Error(ErrorCode::bad_request,
              std::string(sentence) + "\n  " + shown + "\n  " + std::string(caret, ' ') + "^");
}

std::string quoted(char character) {
  if (is_printable(character)) return std::string("'") + character + "'";
  constexpr char digits[] = "0123456789abcdef";
  unsigned const code = static_cast<unsigned char>(character);
  return std::string("0x") + digits[code >> 4] + digits[code & 15];
}

std::string enumeration(std::vector<std::string> const& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

}  // namespace cosmati::epilogue
