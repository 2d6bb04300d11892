// Text to latent vectors, strictly; images to text, fast.
#include "nets/dcgan/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
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

  // The next word, empty at the end of the text.
  std::string_view word() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    word_start_ = at_;
    while (at_ < text_.size() && !is_space(text_[at_])) ++at_;
    return text_.substr(word_start_, at_ - word_start_);
  }

  // The place of the last word.
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
      if (error == std::errc::result_out_of_range) {  // too large, or too small: that is 0
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

// Appends "%.4f " of value. value * 10000 is exact in double, so rounding it to even is what printf does.
char* append(char* out, float value) {
  constexpr double no_fraction = 0x1p52;  // from here on doubles are integers: adding it rounds, ties to even
  double const scaled = std::fabs(static_cast<double>(value)) * 10000.0;
  if (!(scaled < no_fraction)) return out + std::snprintf(out, 64, "%.4f ", static_cast<double>(value));
  if (std::signbit(value)) *out++ = '-';
  auto const rounded = static_cast<unsigned long long>(scaled + no_fraction - no_fraction);
  auto const whole = rounded / 10000;
  auto const fraction = static_cast<unsigned>(rounded % 10000);
  if (whole < 10)
    *out++ = static_cast<char>('0' + whole);
  else
    out = std::to_chars(out, out + 24, whole).ptr;
  unsigned const high = fraction / 100, low = fraction % 100;
  out[0] = '.';
  out[1] = static_cast<char>('0' + high / 10);
  out[2] = static_cast<char>('0' + high % 10);
  out[3] = static_cast<char>('0' + low / 10);
  out[4] = static_cast<char>('0' + low % 10);
  out[5] = ' ';
  return out + 6;
}

constexpr std::size_t longest_number = 48;  // the largest f32 has 39 digits before the point

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
    throw Error(ErrorCode::bad_file, name + ": says " + std::to_string(count) + " images, which need " +
                                         std::to_string(latent_size) + " numbers each, but holds " +
                                         std::to_string(found) + " numbers");
  return z;
}

std::vector<float> read_latents(std::string const& path) { return parse_latents(io::read_file(path), path); }

std::vector<std::string> images_to_text(float const* images, Index count, Index elements, int threads) {
  auto text = image_lines(images, count, elements, threads);
  text.insert(text.begin(), std::to_string(count) + "\n");
  return text;
}

std::vector<std::string> image_lines(float const* images, Index count, Index elements, int threads) {
  auto const format = [=](Index first, Index last) {
    std::string text;
    std::vector<char> line(static_cast<std::size_t>(elements) * longest_number + 1);
    for (Index i = first; i < last; ++i) {
      char* out = line.data();
      for (Index e = 0; e < elements; ++e) out = append(out, images[i * elements + e]);
      *out++ = '\n';
      text.append(line.data(), out);
    }
    return text;
  };
  auto const parts = static_cast<std::size_t>(std::clamp<Index>(threads, 1, std::max<Index>(count, 1)));
  std::vector<std::string> text(parts);
  std::vector<std::jthread> pool;
  for (std::size_t part = 0; part < parts; ++part) {
    auto const at = [=](std::size_t p) { return count * static_cast<Index>(p) / static_cast<Index>(parts); };
    pool.emplace_back([&, part, at] { text[part] = format(at(part), at(part + 1)); });
  }
  pool.clear();  // which waits for them
  return text;
}

}  // namespace cosmati::dcgan
