// Splits the text of an epilogue into tokens.
#pragma once
#include <string_view>

namespace cosmati::epilogue {

enum class TokenKind : unsigned char { end, name, number, symbol };

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;   // a part of the expression's text; empty at its end
  std::size_t column = 0;  // its offset
  double number = 0;
};

// Throws Error(bad_request) at a character that starts no token and at a number that a double cannot
// represent.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();

 private:
  Token number();
  Token symbol() const;

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace cosmati::epilogue
