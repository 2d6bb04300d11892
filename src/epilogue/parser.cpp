// A recursive-descent parser for the grammar of parse.h; it passes nodes directly to the builder.
#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "cosmati/epilogue/functions.h"
#include "cosmati/epilogue/parse.h"
#include "src/epilogue/builder.h"
#include "src/epilogue/diagnostic.h"
#include "src/epilogue/lexer.h"
#include "src/epilogue/text.h"
#include "src/ops/names.h"

namespace cosmati::epilogue {
namespace {

bool is_reserved(std::string_view name) {
  return name == "acc" || name == "c" || name == "let" || name == "store" || find_function(name) != nullptr;
}

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (Function const& function : function_table()) names.emplace_back(function.name);
  return names;
}

// The function with this name or alias, such as swish; null if there is none.
Function const* called_function(std::string_view name) {
  if (auto const* function = find_function(name)) return function;
  int const index = find_name(name, function_names());
  return index < 0 ? nullptr : &function_table()[static_cast<std::size_t>(index)];
}

class Parser {
 public:
  Parser(std::string_view text, std::span<std::string_view const> indices)
      : text_(text), indices_(indices.begin(), indices.end()), lexer_(text) {
    contents_.text = text;
    advance();
  }

  Expression parse() {
    if (token_.kind == TokenKind::end) fail_here("the expression is empty; the simplest one is acc");
    while (token_.kind == TokenKind::name && (token_.text == "let" || token_.text == "store"))
      token_.text == "let" ? let() : store();
    if (token_.kind == TokenKind::end) fail_here("the final expression, the result, is missing");
    contents_.result = value();
    if (is_symbol(";"))
      fail_here("nothing may follow the final expression; ';' ends `let` and `store` statements only");
    if (token_.kind != TokenKind::end)
      fail_here("expected an operator or the end of the expression, found " + quoted(token_.text));
    return builder_.finish(std::move(contents_));
  }

 private:
  [[noreturn]] void fail_at(std::size_t column, std::string const& sentence) const {
    fail(sentence, text_, column);
  }
  [[noreturn]] void fail_here(std::string const& sentence) const { fail_at(token_.column, sentence); }
  std::string found() const { return token_.kind == TokenKind::end ? "the end" : quoted(token_.text); }

  void advance() {
    if (builder_.size() > max_nodes)
      fail_here("the expression has more than " + std::to_string(max_nodes) + " values and operations");
    token_ = lexer_.next();
    if (token_.kind == TokenKind::name && token_.text.size() > max_name_length)
      fail_here("a name has " + std::to_string(token_.text.size()) + " characters, at most " +
                std::to_string(max_name_length) + " are allowed");
  }

  bool is_symbol(std::string_view symbol) const {
    return token_.kind == TokenKind::symbol && token_.text == symbol;
  }

  void expect(std::string_view symbol, char const* where) {
    if (!is_symbol(symbol)) fail_here("expected " + quoted(symbol) + " " + where + ", found " + found());
    advance();
  }

  // Parses the name that a statement defines.
  Token new_name(std::string const& statement) {
    Token const name = token_;
    if (name.kind != TokenKind::name) fail_here("expected a name after " + statement + ", found " + found());
    if (is_reserved(name.text)) fail_here(quoted(name.text) + " is reserved and cannot be redefined");
    advance();
    return name;
  }

  void let() {
    advance();
    Token const name = new_name("let");
    std::string const key(name.text);
    if (lets_.count(key) != 0) fail_at(name.column, quoted(key) + " is defined by `let` already");
    if (scalars_.count(key) + operands_.count(key) != 0)
      fail_at(name.column, quoted(key) + " is used above as an input and cannot be defined by `let` here");
    expect("=", "after the name");
    int const node = value();
    expect(";", "after the value of `let`");
    lets_[key] = node;
  }

  void store() {
    advance();
    expect("(", "after store");
    Token const name = new_name("store(");
    std::string const key(name.text);
    if (!stores_.insert(key).second) fail_at(name.column, quoted(key) + " is stored already");
    if (scalars_.count(key) + operands_.count(key) != 0)
      fail_at(name.column, quoted(key) + " is used above as an input and cannot be an output");
    expect(",", "after the name of the output");
    contents_.stores.push_back({key, value(), name.column});
    expect(")", "after the value of store");
    expect(";", "after store(...)");
  }

  int value() {
    int const left = sum();
    static constexpr std::pair<std::string_view, Op> comparisons[] = {
        {"<", Op::less},           {"<=", Op::less_equal}, {">", Op::greater},
        {">=", Op::greater_equal}, {"==", Op::equal},      {"!=", Op::not_equal}};
    auto const comparison = [this] {
      return std::find_if(std::begin(comparisons), std::end(comparisons),
                          [this](auto const& candidate) { return is_symbol(candidate.first); });
    };
    auto const found_comparison = comparison();
    if (found_comparison == std::end(comparisons)) {
      if (is_symbol("=")) fail_here("'=' belongs to `let` statements; the comparison is '=='");
      return left;
    }
    advance();
    int const right = sum();
    if (comparison() != std::end(comparisons))
      fail_here("comparisons cannot be chained; write (a < b) * (b < c)");
    return builder_.make(found_comparison->second, {left, right, -1});
  }

  int sum() {
    int left = product();
    while (is_symbol("+") || is_symbol("-")) {
      Op const op = is_symbol("+") ? Op::add : Op::subtract;
      advance();
      int const right = product();
      left = builder_.make(op, {left, right, -1});
    }
    return left;
  }

  int product() {
    int left = unary();
    while (is_symbol("*") || is_symbol("/")) {
      Op const op = is_symbol("*") ? Op::multiply : Op::divide;
      advance();
      int const right = unary();
      left = builder_.make(op, {left, right, -1});
    }
    return left;
  }

  int unary() {
    if (nesting_ == max_nesting)
      fail_here("the expression is nested more than " + std::to_string(max_nesting) + " deep");
    ++nesting_;
    int node = 0;
    if (is_symbol("-")) {
      advance();
      node = builder_.make(Op::negate, {unary(), -1, -1});
    } else {
      node = primary();
    }
    --nesting_;
    return node;
  }

  int primary() {
    Token const token = token_;
    if (token.kind == TokenKind::number) {
      advance();
      return builder_.constant(token.number);
    }
    if (is_symbol("(")) {
      advance();
      int const node = value();
      expect(")", "here");
      return node;
    }
    if (token.kind != TokenKind::name) fail_here("expected a value, found " + found());
    advance();
    return is_symbol("(") ? call(token) : named(token);
  }

  int call(Token const& name) {
    Function const* const function = called_function(name.text);
    if (function == nullptr) fail_unknown_function(name);
    advance();
    std::vector<int> arguments;
    while (!is_symbol(")")) {
      if (!arguments.empty()) expect(",", "or ')' here");
      arguments.push_back(value());
    }
    advance();
    int const needed = arity(function->op);
    if (static_cast<int>(arguments.size()) != needed)
      fail_at(name.column, std::string(name.text) + "(" + std::string(function->parameters) + ") takes " +
                               std::to_string(needed) + (needed == 1 ? " argument" : " arguments") +
                               ", not " + std::to_string(arguments.size()));
    arguments.resize(3, -1);
    return builder_.make(function->op, {arguments[0], arguments[1], arguments[2]});
  }

  [[noreturn]] void fail_unknown_function(Token const& name) const {
    if (name.text == "let" || name.text == "store")
      fail_at(name.column, quoted(name.text) + " is a statement; it must precede the final expression");
    if (name.text == "acc" || name.text == "c" || lets_.count(std::string(name.text)) != 0)
      fail_at(name.column, quoted(name.text) + " is a value, not a function");
    fail_at(name.column, unknown_name("function", name.text, function_names(), "valid functions"));
  }

  // The node that a name without parentheses refers to.
  int named(Token const& name) {
    std::string const key(name.text);
    if (auto const* function = find_function(name.text))
      fail_at(name.column,
              quoted(key) + " is a function; write " + key + "(" + std::string(function->parameters) + ")");
    if (key == "let" || key == "store")
      fail_at(name.column, quoted(key) + " is a statement; it must precede the final expression");
    auto const let = lets_.find(key);
    if (is_symbol("[")) {
      if (key == "acc" || key == "c")
        fail_here(quoted(key) + " cannot be indexed; it denotes the element being computed");
      if (let != lets_.end()) fail_here(quoted(key) + " is defined by `let` and cannot be indexed");
      return operand(name);
    }
    if (let != lets_.end()) return let->second;
    if (key == "acc") return builder_.leaf(Op::accumulator);
    if (key == "c") {
      if (!source_seen_) contents_.source_column = name.column;
      source_seen_ = true;
      return builder_.leaf(Op::source);
    }
    if (auto const other = operands_.find(key); other != operands_.end())
      fail_at(name.column, quoted(key) + " is an array above, " + key + text_of(indices_of(other->second)) +
                               ", and a scalar here");
    fail_if_stored(name);
    auto const [entry, is_new] = scalars_.try_emplace(key, static_cast<int>(contents_.scalars.size()));
    if (is_new) contents_.scalars.push_back({key, name.column});
    return builder_.leaf(Op::scalar, entry->second);
  }

  int operand(Token const& name) {
    std::string const key(name.text);
    if (scalars_.count(key) != 0) fail_at(name.column, quoted(key) + " is a scalar above and an array here");
    fail_if_stored(name);
    std::vector<std::string> const indices = index_list();
    auto const [entry, is_new] = operands_.try_emplace(key, static_cast<int>(contents_.operands.size()));
    if (is_new) contents_.operands.push_back({key, indices, name.column});
    if (indices_of(entry->second) != indices)
      fail_at(name.column, quoted(key) + " is " + key + text_of(indices_of(entry->second)) + " above and " +
                               key + text_of(indices) + " here");
    return builder_.leaf(Op::operand, entry->second);
  }

  std::vector<std::string> index_list() {
    std::vector<std::string> indices;
    advance();
    while (true) {
      std::string const letter(token_.text);
      bool const is_name = token_.kind == TokenKind::name;
      if (!is_name || std::find(indices_.begin(), indices_.end(), letter) == indices_.end())
        fail_here((is_name ? "unknown index " + quoted(letter) : "expected an index, found " + found()) +
                  "; the indices here are " + enumeration(indices_));
      if (std::find(indices.begin(), indices.end(), letter) != indices.end())
        fail_here("the index " + quoted(letter) + " occurs twice");
      indices.push_back(letter);
      advance();
      if (is_symbol("]")) break;
      expect(",", "or ']' after an index");
    }
    advance();
    return indices;
  }

  std::vector<std::string> const& indices_of(int slot) const {
    return contents_.operands[static_cast<std::size_t>(slot)].indices;
  }

  void fail_if_stored(Token const& name) const {
    if (stores_.count(std::string(name.text)) != 0)
      fail_at(name.column, quoted(name.text) + " is the name of an output and cannot be an input");
  }

  std::string_view text_;
  std::vector<std::string> indices_;
  Lexer lexer_;
  Token token_;
  Builder builder_;
  Expression::Contents contents_;
  std::map<std::string, int> lets_;     // their nodes by name
  std::map<std::string, int> scalars_;  // their slots in contents_ by name
  std::map<std::string, int> operands_;
  std::set<std::string> stores_;
  bool source_seen_ = false;
  int nesting_ = 0;
};

}  // namespace

Expression parse(std::string_view text, std::span<std::string_view const> indices) {
  if (text.size() > max_text_length)
    fail("the expression has " + std::to_string(text.size()) + " characters, at most " +
             std::to_string(max_text_length) + " are allowed",
         text, max_text_length);
  return Parser(text, indices).parse();
}

}  // namespace cosmati::epilogue
