// Parses the text of an epilogue into an Expression.
//   program    := { "let" name "=" value ";" | "store" "(" name "," value ")" ";" } value
//   value      := sum [ ("<" | "<=" | ">" | ">=" | "==" | "!=") sum ]
//   sum        := product { ("+" | "-") product }        product := unary { ("*" | "/") unary }
//   unary      := "-" unary | number | "acc" | "c" | name | name "[" index { "," index } "]"
//               | function "(" value { "," value } ")" | "(" value ")"
#pragma once
#include <span>
#include <string_view>

#include "cosmati/epilogue/expression.h"

namespace cosmati::epilogue {

// The valid index letters in brackets: element (batch, m, n) of a matrix product, (n, k, p, q) of a
// convolution.
inline constexpr std::string_view gemm_indices[] = {"batch", "m", "n"};
inline constexpr std::string_view convolution_indices[] = {"n", "k", "p", "q"};

inline constexpr std::size_t max_text_length = 16384;
inline constexpr int max_nesting = 128;         // of parentheses, calls and unary minus
inline constexpr std::size_t max_nodes = 1024;  // values and operations
inline constexpr std::size_t max_name_length = 64;

// Any name other than a function, `let` or `store` denotes a scalar, or an array if followed by brackets;
// check() compares them with the provided arguments. Functions may be called by an alias, e.g. swish(x). `0 *
// c` is 0 and does not read c, as in BLAS; x * 1, x / 1, x + 0 and x - 0 are x. Throws Error(bad_request): a
// sentence, the text, and a caret under the column, in three lines.
Expression parse(std::string_view text, std::span<std::string_view const> indices = gemm_indices);

}  // namespace cosmati::epilogue
