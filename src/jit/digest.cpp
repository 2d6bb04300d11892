// Computes digests of kernels.
#include "src/jit/digest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "src/jit/embedded.h"
#include "src/jit/entry.h"

namespace cosmati::jit {
namespace {

bool is_in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

// The end of the token that begins at `at`: a quoted literal or a single character.
std::size_t end_of_token(std::string_view text, std::size_t at) {
  char const quote = text[at];
  bool const separates_digits = quote == '\'' && at > 0 && is_in_word(text[at - 1]);
  if ((quote != '"' && quote != '\'') || separates_digits) return at + 1;
  for (std::size_t end = at + 1; end < text.size(); ++end) {
    if (text[end] == '\\')
      ++end;
    else if (text[end] == quote)
      return end + 1;
  }
  return text.size();
}

// The end of the white space and comments that begin at `at`; `at` itself if there are none.
std::size_t end_of_blanks(std::string_view text, std::size_t at) {
  for (;;) {
    std::string_view const rest = text.substr(at);
    std::size_t length = 0;
    if (rest.starts_with("//"))
      length = rest.find('\n');
    else if (rest.starts_with("/*"))
      length = rest.find("*/", 2) == rest.npos ? rest.npos : rest.find("*/", 2) + 2;
    else if (!rest.empty() && is_blank(rest.front()))
      length = 1;
    else
      return at;
    at += std::min(length, rest.size());
  }
}

// A digest of the code of each header of the library, computed once.
std::map<Header const*, std::string> const& codes_of_headers() {
  static std::map<Header const*, std::string> const codes = [] {
    std::map<Header const*, std::string> all;
    for (Header const& header : embedded_headers()) all.emplace(&header, entry_name(code_of(header.text)));
    return all;
  }();
  return codes;
}

void append_field(std::string& all, std::string_view field) {
  all += fmt::format("{}\n{}\n", field.size(), field);
}

}  // namespace

std::string code_of(std::string_view text) {
  std::string code;
  for (std::size_t at = 0; at < text.size();) {
    if (std::size_t const end = end_of_blanks(text, at); end != at) {
      if (!code.empty() && end < text.size()) code += ' ';
      at = end;
    } else {
      std::size_t const next = end_of_token(text, at);
      code += text.substr(at, next - at);
      at = next;
    }
  }
  return code;
}

std::string digest_of(std::span<Source const> sources, std::string_view plan) {
  std::string all;
  append_field(all, plan);
  for (Source const& source : sources) {
    for (std::string const& option : compile_options(source)) append_field(all, option);
    append_field(all, source.name_expression);
    append_field(all, code_of(source.text));
    for (Header const* const header : reachable_headers(source.text)) {
      append_field(all, header->path);
      append_field(all, codes_of_headers().at(header));
    }
  }
  std::string const name = entry_name(all);
  return name.substr(0, name.find('.'));
}

}  // namespace cosmati::jit
