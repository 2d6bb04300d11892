// Three-line messages and spelling suggestions.
#include "src/epilogue/diagnostic.h"

#include <algorithm>

#include "cosmati/ops/error.h"

namespace cosmati::epilogue {
namespace {

constexpr std::size_t window = 100;       // columns of a long text that are shown
constexpr std::size_t before_caret = 60;  // of them at most this many before the caret

bool is_printable(char character) { return character >= ' ' && character <= '~'; }

// The number of insertions, deletions, replacements and swaps of neighbours that make `b` of `a`.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> two_above(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    two_above = above;
    above = row;
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      std::size_t const replaced = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], two_above[j - 2] + 1);
    }
  }
  return row[b.size()];
}

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

std::string suggestion(std::string_view name, std::vector<std::string_view> const& candidates) {
  std::size_t nearest = std::min<std::size_t>(3, (name.size() + 1) / 2 + 1);  // distances below this are near
  std::string_view best;
  for (std::string_view candidate : candidates) {
    std::size_t const distance = edit_distance(name, candidate);
    if (distance >= nearest) continue;
    nearest = distance;
    best = candidate;
  }
  return best.empty() ? "" : "; did you mean " + quoted(best) + "?";
}

std::string enumeration(std::vector<std::string> const& words) {
  std::string text;
  for (std::size_t i = 0; i < words.size(); ++i)
    text += (i == 0 ? "" : i + 1 == words.size() ? " and " : ", ") + words[i];
  return text;
}

}  // namespace cosmati::epilogue
