// A parser for the subset of Python literals that a .npy header may contain.
#include "src/io/npy_header.h"

#include <fmt/format.h>

#include <iterator>

#include "src/io/bad_file.h"

namespace cosmati::io {
namespace {

class Parser {
 public:
  Parser(std::string_view text, std::string const& file) : text_(text), file_(file) {}

  NpyHeader parse() {
    NpyHeader header;
    bool has_type = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      std::string_view const key = string();
      expect(':');
      if (key == "descr" && !has_type) {
        has_type = true;
        parse_type(header);
      } else if (key == "fortran_order" && !has_order) {
        has_order = true;
        header.fortran_order = boolean();
      } else if (key == "shape" && !has_shape) {
        has_shape = true;
        header.shape = parse_shape();
      } else {
        bad_file(file_, fmt::format("its header has the key {} {}", in_quotes(key),
                                    key == "descr" || key == "fortran_order" || key == "shape"
                                        ? "twice"
                                        : "in addition to descr, fortran_order and shape"));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_spaces();
    if (at_ != text_.size()) fail("nothing but spaces");
    if (!has_type || !has_order || !has_shape)
      bad_file(file_, fmt::format("its header lacks the key '{}'", !has_type    ? "descr"
                                                                   : !has_order ? "fortran_order"
                                                                                : "shape"));
    return header;
  }

 private:
  [[noreturn]] void fail(std::string_view expected) const {
    bad_file(file_, fmt::format("its header has {} at column {}, where {} was expected",
                                at_ < text_.size() ? in_quotes(text_.substr(at_, 1)) : "its end", at_ + 1,
                                expected));
  }
  void skip_spaces() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t' || text_[at_] == '\r'))
      ++at_;
  }
  bool accept(char character) {
    skip_spaces();
    if (at_ == text_.size() || text_[at_] != character) return false;
    ++at_;
    return true;
  }
  void expect(char character) {
    if (!accept(character)) fail(fmt::format("'{}'", character));
  }
  // Parses a string without escapes, which no valid value contains.
  std::string_view string() {
    skip_spaces();
    if (at_ == text_.size() || (text_[at_] != '\'' && text_[at_] != '"')) fail("a string in quotes");
    std::size_t const end = text_.find(text_[at_], at_ + 1);
    if (end == std::string_view::npos) fail("a terminated string");
    std::string_view const value = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return value;
  }
  bool boolean() {
    skip_spaces();
    for (bool const value : {true, false}) {
      std::string_view const word = value ? "True" : "False";
      if (text_.substr(at_, word.size()) == word) {
        at_ += word.size();
        return value;
      }
    }
    fail("True or False");
  }
  Index extent() {
    skip_spaces();
    std::size_t const start = at_;
    Index value = 0;
    for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
      if (value > ((Index{1} << 62) - 9) / 10)
        bad_file(file_, fmt::format("its shape has an extent above 2^62: {}...",
                                    in_quotes(text_.substr(start, at_ - start))));
      value = value * 10 + (text_[at_] - '0');
    }
    if (at_ == start) fail("an extent, a non-negative integer");
    if (at_ < text_.size() && text_[at_] == 'L') ++at_;  // written by Python 2
    return value;
  }
  Shape parse_shape() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      if (shape.rank == max_rank)
        bad_file(file_, fmt::format("its shape has more than {} dimensions", max_rank));
      shape.extent[shape.rank++] = extent();
      if (accept(',')) continue;
      if (shape.rank == 1) fail("the comma of a tuple");  // in Python (5) is an integer, (5,) a tuple
      expect(')');
      break;
    }
    return shape;
  }
  void parse_type(NpyHeader& header) {
    skip_spaces();
    if (at_ < text_.size() && text_[at_] == '[')
      bad_file(file_, "its elements are records, not plain numbers");
    std::string_view const type = string();
    for (std::size_t i = std::size(element_kinds); i-- > 0;) {  // the canonical kind of a type is last
      ElementFacts const& known = element_kinds[i];
      if (type.size() != 3 || type.substr(1) != known.numpy + 1) continue;
      bool const single = known.bytes == 1;
      if (type[0] != '<' && type[0] != '>' && type[0] != '=' && !(type[0] == '|' && single)) break;
      header.kind = known.kind;
      header.big_endian = type[0] == '>';
      return;
    }
    bad_file(file_,
             fmt::format("the element type {} is not supported; valid values: b1, i1 to i8, u1 to u8, f2, f4 "
                         "and f8 after '<', '>' or '|', as in '<f4'",
                         in_quotes(type)));
  }

  std::string_view text_;
  std::string const& file_;
  std::size_t at_ = 0;
};

}  // namespace

NpyHeader parse_npy_header(std::string_view text, std::string const& file) {
  return Parser(text, file).parse();
}

std::string print_npy_header(TensorDescription const& description) {
  std::string shape;
  for (int d = 0; d < description.layout.rank(); ++d)
    shape += fmt::format("{}{}", d == 0 ? "" : ", ", description.extent(d));
  if (description.layout.rank() == 1) shape += ",";
  return fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
                     number_type(description.type).numpy, shape);
}

}  // namespace cosmati::io
