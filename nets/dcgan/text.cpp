// Parses latent vectors strictly, and formats images fast.
#include "nets/dcgan/text.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <type_traits>

#include "cosmati/ops/error.h"
#include "nets/dcgan/architecture.h"
#include "src/io/file.h"

namespace cosmati::dcgan {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\v' || c == '\f'; }

class Reader {
 public:
  Reader(std::string_view text, std::string const& name) : text_(text), name_(name) {}

  // Returns the next word; empty at the end of the text.
  std::string_view word() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    word_start_ = at_;
    while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    return text_.substr(word_start_, at_ - word_start_);
  }

  // Throws Error with the position of the last word.
  [[noreturn]] void refuse(std::string_view word, std::string const& expected) const {
    auto const before = text_.substr(0, word_start_);
    auto const line = 1 + std::count(before.begin(), before.end(), '\n');
    auto const line_start = before.rfind('\n');
    auto const column = word_start_ - (line_start == std::string_view::npos ? 0 : line_start + 1) + 1;
    std::string shown(word.substr(0, 40));
    for (char& c : shown)
      if (c < ' ' || c > '~') c = '?';
    throw Error(ErrorCode::bad_file, name_ + ": line " + std::to_string(line) + ", column " +
                                         std::to_string(column) + ": '" + shown + "' is not " + expected);
  }

  template <class Number>
  bool parse(std::string_view word, Number& value) const {
    if (word.size() > 1 && word.front() == '+' && word[1] != '-') word.remove_prefix(1);
    auto const [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (end != word.data() + word.size()) return false;
    if constexpr (std::is_floating_point_v<Number>)
      if (error == std::errc::result_out_of_range) {  // overflow is an error; underflow gives 0
        value = static_cast<Number>(std::strtod(std::string(word).c_str(), nullptr));
        return std::isfinite(value);
      }
    return error == std::errc();
  }

 private:
  std::string_view text_;
  std::string const& name_;
  std::size_t at_ = 0, word_start_ = 0;
};

// Numbers below this limit take the 7 bytes "d.dddd " after an optional sign: images are in [-1, 1].
constexpr float short_below = 9.5F;

bool is_short(float value) { return std::fabs(value) < short_below; }

// "dddd" for 0 to 9999.
using Digits = std::array<std::array<char, 4>, 10000>;
Digits const& digits() {
  static Digits const table = [] {
    Digits made{};
    for (unsigned i = 0; i < made.size(); ++i)
      made[i] = {static_cast<char>('0' + i / 1000), static_cast<char>('0' + i / 100 % 10),
                 static_cast<char>('0' + i / 10 % 10), static_cast<char>('0' + i % 10)};
    return made;
  }();
  return table;
}

// |value| * 10000 is exact in f64, so rounding it to nearest even agrees with printf: adding 2^52 rounds and
// leaves the integer in the low bits.
std::uint64_t ten_thousandths(float value) {
  constexpr double no_fraction = 0x1p52;
  double const sum = std::fabs(static_cast<double>(value)) * 10000.0 + no_fraction;
  return std::bit_cast<std::uint64_t>(sum) & ((std::uint64_t{1} << 52) - 1);
}

// Writes 7 bytes, or 8 with a sign, and returns their end.
char* append_short(char* out, float value, Digits const& table) {
  *out = '-';
  out += std::bit_cast<std::uint32_t>(value) >> 31;
  auto const rounded = static_cast<std::uint32_t>(ten_thousandths(value));
  std::uint32_t const whole = rounded / 10000;
  out[0] = static_cast<char>('0' + whole);
  out[1] = '.';
  std::memcpy(out + 2, table[rounded - whole * 10000].data(), 4);
  out[6] = ' ';
  return out + 7;
}

char* append(char* out, float value) {
  constexpr float no_fraction = 0x1p38F;  // times 10000 it is still below 2^52
  if (!(std::fabs(value) < no_fraction))
    return out + std::snprintf(out, 64, "%.4f ", static_cast<double>(value));
  if (std::signbit(value)) *out++ = '-';
  std::uint64_t const rounded = ten_thousandths(value);
  out = std::to_chars(out, out + 24, rounded / 10000).ptr;
  *out++ = '.';
  std::memcpy(out, digits()[rounded % 10000].data(), 4);
  out[4] = ' ';
  return out + 5;
}

}  // namespace

std::vector<float> parse_latents(std::string_view text, std::string const& name) {
  Reader reader(text, name);
  std::string_view word = reader.word();
  if (word.empty())
    throw Error(ErrorCode::bad_file, name + ": is empty; expected a count, then 100 numbers for each image");
  long long count = 0;
  if (!reader.parse(word, count) || count < 1)
    reader.refuse(word, "a count of images (an integer of at least 1)");
  std::vector<float> z;
  z.reserve(text.size() / 9);
  while (!(word = reader.word()).empty()) {
    double value = 0;
    if (!reader.parse(word, value) || !std::isfinite(static_cast<float>(value)))
      reader.refuse(word, "a finite number");
    z.push_back(static_cast<float>(value));
  }
  auto const found = static_cast<long long>(z.size());
  if (found % latent_size != 0 || found / latent_size != count)
    throw Error(ErrorCode::bad_file, name + ": declares " + std::to_string(count) +
                                         " images, which require " + std::to_string(latent_size) +
                                         " numbers each, but holds " + std::to_string(found) + " numbers");
  return z;
}

std::vector<float> read_latents(std::string const& path) { return parse_latents(io::read_file(path), path); }

Index text_bytes(float const* numbers, Index count) {
  Index bytes = 0;
  constexpr Index block =
      1024;  // small enough that 32-bit counters of signs do not overflow, so that the loop vectorizes
  for (Index first = 0; first < count; first += block) {
    float const* const x = numbers + first;
    Index const here = std::min(block, count - first);
    std::uint32_t signs = 0, others = 0;
    for (Index i = 0; i < here; ++i) {
      auto const bits = std::bit_cast<std::uint32_t>(x[i]);
      signs += bits >> 31;
      others |= static_cast<std::uint32_t>((bits & 0x7fffffffU) >= std::bit_cast<std::uint32_t>(short_below));
    }
    bytes += 7 * here + static_cast<Index>(signs);
    if (others == 0) continue;
    char text[64];
    for (Index i = 0; i < here; ++i)
      if (!is_short(x[i]))
        bytes += append(text, x[i]) - text - 7 - static_cast<Index>(std::bit_cast<std::uint32_t>(x[i]) >> 31);
  }
  return bytes;
}

char* to_text(float const* numbers, Index count, char* to) {
  Digits const& table = digits();
  for (Index i = 0; i < count; ++i)
    to = is_short(numbers[i]) ? append_short(to, numbers[i], table) : append(to, numbers[i]);
  return to;
}

}  // namespace cosmati::dcgan
