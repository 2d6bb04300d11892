// Parsing of NVRTC's log.
#include "src/jit/compiler_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <vector>

namespace cosmati::jit {
namespace {

constexpr std::size_t longest_log = 12000;  // a template error can fill screens

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    std::size_t const end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

bool is_statistics(std::string_view line) {
  return line.starts_with("ptxas info") || line.starts_with("ptxas         .");
}

// The log but for the assembler's statistics.
std::string messages_of(std::string_view log) {
  std::string text;
  for (std::string_view line : lines_of(log)) {
    if (is_statistics(line)) continue;
    text.append(line);
    text += '\n';
  }
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// The sum of the numbers n in "n WORD"; the number stands directly before the word.
int sum_before(std::string_view line, std::string_view word) {
  int sum = 0;
  for (std::size_t at = line.find(word); at != std::string_view::npos; at = line.find(word, at + 1)) {
    std::size_t first = at;
    while (first > 0 && line[first - 1] >= '0' && line[first - 1] <= '9') --first;
    int number = 0;
    std::from_chars(line.data() + first, line.data() + at, number);
    sum += number;
  }
  return sum;
}

// Adds the numbers n of "BEFOREn" + AFTER in `text`.
void add_line_numbers(std::string_view text, std::string const& before, std::string_view after,
                      std::set<std::size_t>& numbers) {
  for (std::size_t at = text.find(before); at != std::string_view::npos; at = text.find(before, at + 1)) {
    std::string_view const rest = text.substr(at + before.size());
    std::size_t number = 0;
    auto const [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error == std::errc() && rest.substr(static_cast<std::size_t>(end - rest.data())).starts_with(after))
      numbers.insert(number);
  }
}

}  // namespace

void read_resources(std::string_view log, Cubin& cubin) {
  bool ours = false;  // the lines after "Compiling entry function 'NAME'" are about it and what it calls
  std::string const beginning = fmt::format("Compiling entry function '{}'", cubin.lowered_name);
  for (std::string_view line : lines_of(log)) {
    if (!is_statistics(line)) continue;
    if (line.find("Compiling entry function") != std::string_view::npos)
      ours = line.find(beginning) != std::string_view::npos;
    if (!ours) continue;
    cubin.registers = std::max(cubin.registers, sum_before(line, " registers"));
    cubin.spill_bytes += sum_before(line, " bytes spill stores") + sum_before(line, " bytes spill loads");
    cubin.static_shared_bytes += sum_before(line, " bytes smem");
    cubin.constant_bytes += sum_before(line, " bytes cmem");
  }
  cubin.compiler_warnings = messages_of(log);
}

std::string explain_log(std::string_view log, std::string_view source) {
  std::string text = messages_of(log);
  std::set<std::size_t> named;
  add_line_numbers(text, fmt::format("{}(", composed_name), ")", named);
  add_line_numbers(text, "at line ", fmt::format(" of {}", composed_name), named);
  if (text.size() > longest_log) {
    text.resize(longest_log);
    text += "\n...";
  }
  std::vector<std::string_view> const lines = lines_of(source);
  for (std::size_t number : named)
    if (number >= 1 && number <= lines.size())
      text += fmt::format("\n{}({}) is: {}", composed_name, number, lines[number - 1]);
  return text;
}

}  // namespace cosmati::jit
