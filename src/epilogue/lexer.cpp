// Splits text into tokens: names, decimal numbers, symbols of one or two characters.
#include "src/epilogue/lexer.h"

#include <charconv>
#include <string>

#include "src/epilogue/diagnostic.h"

namespace cosmati::epilogue {
namespace {

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

}  // namespace

Token Lexer::next() {
  while (at_ < text_.size() && is_space(text_[at_])) ++at_;
  if (at_ == text_.size()) return {TokenKind::end, {}, at_, 0};
  char const first = text_[at_];
  bool const starts_fraction = first == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]);
  if (is_digit(first) || starts_fraction) return number();
  Token token;
  if (is_letter(first)) {
    std::size_t end = at_;
    while (end < text_.size() && (is_letter(text_[end]) || is_digit(text_[end]))) ++end;
    token = {TokenKind::name, text_.substr(at_, end - at_), at_, 0};
  } else {
    token = symbol();
  }
  at_ += token.text.size();
  return token;
}

Token Lexer::number() {
  double value = 0;
  char const* const begin = text_.data() + at_;
  auto const [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
  auto const length = static_cast<std::size_t>(end - begin);
  std::string_view const text = text_.substr(at_, length);
  if (error != std::errc())
    fail("the number " + std::string(text.substr(0, 40)) + " is outside the range of a double", text_, at_);
  Token const token{TokenKind::number, text, at_, value};
  at_ += length;
  if (at_ < text_.size() && (is_letter(text_[at_]) || text_[at_] == '.'))
    fail("unexpected " + quoted(text_[at_]) + " after the number " + std::string(text.substr(0, 40)) +
             "; numbers look like 2, 0.5 or 1e-3",
         text_, at_);
  return token;
}

Token Lexer::symbol() const {
  std::string_view const two = text_.substr(at_, 2);
  for (std::string_view known : {"<=", ">=", "==", "!="})
    if (two == known) return {TokenKind::symbol, two, at_, 0};
  char const first = text_[at_];
  constexpr std::string_view known = "+-*/<>=(),;[]";
  if (known.find(first) == std::string_view::npos) {
    if (first == '?') fail("'?:' is not supported; use select(condition, a, b)", text_, at_);
    if (first == '^') fail("'^' is not supported; use pow(x, y)", text_, at_);
    fail("unexpected character " + quoted(first), text_, at_);
  }
  return {TokenKind::symbol, text_.substr(at_, 1), at_, 0};
}

}  // namespace cosmati::epilogue
