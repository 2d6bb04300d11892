// Tuning files: lines of words "key=value", values with blanks in quotes.
#include "cosmati/ops/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/plan/gemm/tuning.h"
#include "src/plan/measured_kernel.h"

namespace cosmati {
namespace {

using Words = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t longest_line = 4096;  // bytes

constexpr char const* head =
    "# Measured choices of kernels, one line for each class of problems and GPU, as cosmati tune and "
    "find write\n"
    "# them and --tuning reads them. Comments are not kept when lines are added.\n";

[[noreturn]] void refuse(std::string const& reason) { throw Error(ErrorCode::bad_file, reason); }

// "gemm m=64 gpu=\"NVIDIA H200\"": the first word, which has no value, has an empty key.
Words words_of(std::string_view line) {
  Words words;
  if (line.ends_with('\r')) line.remove_suffix(1);
  for (char const letter : line)
    if (static_cast<unsigned char>(letter) < ' ' && letter != '\t') refuse("it contains a control character");
  while (true) {
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.empty()) return words;
    std::size_t const equals = std::min(line.find_first_of("= \t"), line.size());
    bool const has_value = equals < line.size() && line[equals] == '=';
    if (!has_value) {
      words.emplace_back("", line.substr(0, equals));
      line.remove_prefix(equals);
      continue;
    }
    std::string const key(line.substr(0, equals));
    line.remove_prefix(equals + 1);
    bool const quoted = !line.empty() && line[0] == '"';
    if (quoted) line.remove_prefix(1);
    std::size_t const end = quoted ? line.find('"') : std::min(line.find_first_of(" \t"), line.size());
    if (end == std::string_view::npos) refuse(key + "=: the quotation mark is not closed");
    words.emplace_back(key, line.substr(0, end));
    line.remove_prefix(end + (quoted ? 1 : 0));
  }
}

double seconds_of(std::string const& key, std::string const& value) {
  double seconds = 0;
  auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), seconds);
  if (error != std::errc() || end != value.data() + value.size() || !(seconds > 0) || !std::isfinite(seconds))
    refuse(key + "=" + value + "; expected seconds, a positive number");
  return seconds;
}

std::string time_of(std::string const& value) {
  constexpr std::string_view form = "0000-00-00T00:00:00Z";
  bool matches = value.size() == form.size();
  for (std::size_t i = 0; matches && i < form.size(); ++i)
    matches = form[i] == '0' ? value[i] >= '0' && value[i] <= '9' : value[i] == form[i];
  if (!matches) refuse("time=" + value + "; expected a time such as 2026-01-31T23:59:59Z");
  return value;
}

std::string measured_of(std::string const& value) {
  if (value.find_first_not_of("0123456789x") != std::string::npos)
    refuse("measured=" + value + "; expected extents such as 4096x4096x4096x1");
  return value;
}

TuningLine line_of(std::string_view text) {
  TuningLine line;
  Words words = words_of(text), problem;
  std::string const subject = words.front().first.empty() ? words.front().second : words.front().first + '=';
  if (subject != "gemm" && subject != "conv")
    refuse("a line begins with its operation, gemm or conv, not '" + subject + "'");
  words.erase(words.begin());
  std::set<std::string> seen;
  for (auto const& [key, value] : words) {
    if (key.empty()) refuse("'" + value + "' is not of the form key=value");
    if (value.empty()) refuse(key + "= has no value");
    if (!seen.insert(key).second) refuse("the key " + key + " appears twice");
    if (key == "gpu")
      line.gpu = value;
    else if (key == "measured")
      line.measured = measured_of(value);
    else if (key == "seconds")
      line.seconds = seconds_of(key, value);
    else if (key == "planned")
      line.planned_seconds = seconds_of(key, value);
    else if (key == "driver")
      line.driver = value;
    else if (key == "version")
      line.version = value;
    else if (key == "time")
      line.time = time_of(value);
    else
      problem.emplace_back(key, value);
  }
  for (char const* const key : {"gpu", "measured", "seconds", "planned", "driver", "version", "time"})
    if (!seen.contains(key)) refuse(std::string("the key ") + key + " is missing");
  if (subject == "conv" || seen.contains("backend"))
    plan::parse_measured_words(subject, problem, line);
  else
    plan::parse_gemm_words(problem, line);
  return line;
}

// The value in a form that words_of() reads back, for any value.
std::string in_quotes(std::string value) {
  for (char& letter : value)
    if (letter == '"' || letter == '\n' || letter == '\r') letter = '\'';
  return '"' + (value.empty() ? "unknown" : value) + '"';
}

std::string key_of(std::string const& problems, std::string const& gpu) { return problems + '\n' + gpu; }

bool goes_before(TuningLine const& x, TuningLine const& y) {
  if (x.time != y.time) return x.time > y.time;
  if (x.seconds != y.seconds) return x.seconds < y.seconds;
  return to_string(x) < to_string(y);
}

}  // namespace

std::string tuning_name(Gpu const& gpu) {
  return fmt::format("{}, {}.{}, {} multiprocessors", gpu.name, gpu.major, gpu.minor, gpu.multiprocessors);
}

std::string to_string(TuningLine const& line) {
  std::string const how = line.policy.empty()
                              ? "recipe=" + (line.recipe.empty() ? "none" : in_quotes(line.recipe))
                              : fmt::format("policy={} splits={}", line.policy, line.splits);
  return fmt::format(
      "{} gpu={} kernel={} {} measured={} seconds={:.6g} planned={:.6g} driver={} version={} "
      "time={}",
      line.problems, in_quotes(line.gpu), line.kernel, how, line.measured, line.seconds, line.planned_seconds,
      in_quotes(line.driver), in_quotes(line.version), line.time);
}

TuningTable TuningTable::parse(std::string_view text, std::string const& name) {
  TuningTable table;
  for (int number = 1; !text.empty(); ++number) {
    std::size_t const end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::size_t const first = line.find_first_not_of(" \t\r");
    if (first == std::string_view::npos || line[first] == '#') continue;
    std::string const origin = name + ", line " + std::to_string(number);
    try {
      if (line.size() > longest_line)
        throw Error(ErrorCode::bad_file, "a line of " + std::to_string(line.size()) +
                                             " bytes; the limit is " + std::to_string(longest_line));
      TuningLine parsed = line_of(line);
      parsed.origin = origin;
      table.add(parsed);
    } catch (Error const& error) {
      throw Error(ErrorCode::bad_file, origin + ": " + error.what());
    }
  }
  return table;
}

void TuningTable::add(TuningLine const& line) {
  auto const [place, is_new] = lines_.try_emplace(key_of(line.problems, line.gpu), line);
  if (!is_new && goes_before(line, place->second)) place->second = line;
}

void TuningTable::add(TuningTable const& other) {
  for (auto const& entry : other.lines_) add(entry.second);
}

TuningLine const* TuningTable::find(std::string const& problems, std::string const& gpu) const {
  auto const found = lines_.find(key_of(problems, gpu));
  return found == lines_.end() ? nullptr : &found->second;
}

std::string TuningTable::text() const {
  std::string text = head;
  for (auto const& entry : lines_) text += to_string(entry.second) + '\n';
  return text;
}

}  // namespace cosmati
