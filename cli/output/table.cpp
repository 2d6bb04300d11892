// Prints tables and sentences.
#include "cli/output/table.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

#include "cli/output/text.h"

namespace cosmati::cli {
namespace {

bool is_terminal(FILE* stream) { return isatty(fileno(stream)) != 0; }

bool is_numeric(std::string const& cell) {
  return cell.empty() || cell == "-" || (cell[0] >= '0' && cell[0] <= '9') ||
         (cell.size() > 1 && cell[0] == '-' && cell[1] >= '0' && cell[1] <= '9');
}

void print_row(std::vector<std::string> const& cells, std::vector<std::size_t> const& widths,
               std::vector<bool> const& numeric) {
  std::string line;
  for (std::size_t i = 0; i < cells.size(); ++i) {
    bool const last = i + 1 == cells.size();
    line += numeric[i] ? fmt::format("{:>{}}", cells[i], widths[i])
            : last     ? cells[i]
                       : fmt::format("{:<{}}", cells[i], widths[i]);
    if (!last) line += "  ";
  }
  print_line(line);
}

bool progress_shown = false;
bool stdout_is_a_file = false;  // a file of results, to which nothing else may be printed

void clear_progress() {
  if (progress_shown) std::fputs("\r\033[K", stderr);
  progress_shown = false;
}

void write_to_stdout(std::string const& bytes) {
  clear_progress();
  std::fwrite(bytes.data(), 1, bytes.size(), stdout_is_a_file ? stderr : stdout);
}

void print_sentence(char const* head, std::string const& text) {
  clear_progress();
  std::string const line = head + printable_text(text) + (text.ends_with('\n') ? "" : "\n");
  std::fflush(stdout);
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void Table::add(std::vector<std::string> cells) {
  for (std::string& cell : cells) cell = printable_name(cell);
  rows_.push_back(std::move(cells));
}

void Table::print() const {
  std::vector<std::size_t> widths(heads_.size());
  std::vector<bool> numeric(heads_.size(), !rows_.empty());
  for (std::size_t i = 0; i < heads_.size(); ++i) {
    widths[i] = heads_[i].size();
    for (auto const& row : rows_) {
      widths[i] = std::max(widths[i], row[i].size());
      if (!is_numeric(row[i])) numeric[i] = false;
    }
  }
  bool const bold = is_terminal(stdout) && std::getenv("NO_COLOR") == nullptr;
  if (bold) write_to_stdout("\033[1m");
  print_row(heads_, widths, numeric);
  if (bold) write_to_stdout("\033[0m");
  for (auto const& row : rows_) print_row(row, widths, numeric);
}

void print_text(std::string const& text) { write_to_stdout(printable_text(text)); }
void keep_stdout_for(std::string const& path) {
  struct stat named {
  }, open{};
  if (::stat(path.c_str(), &named) != 0 || ::fstat(STDOUT_FILENO, &open) != 0 || S_ISCHR(open.st_mode))
    return;
  if (named.st_dev == open.st_dev && named.st_ino == open.st_ino) stdout_is_a_file = true;
}
void print_line(std::string const& line) { print_text(line + '\n'); }
void print_warning(std::string const& text) { print_sentence("cosmati: warning: ", text); }
void print_failure(std::string const& text) { print_sentence("cosmati: ", text); }

void print_progress(std::string const& text) {
  if (!is_terminal(stderr)) return;
  clear_progress();
  std::string const shown = printable_text(text);
  std::fwrite(shown.data(), 1, shown.size(), stderr);
  progress_shown = true;
}

std::string in_bytes(double bytes) {
  constexpr std::array units{"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; bytes >= 1024 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return unit == 0 ? fmt::format("{:.0f} bytes", bytes) : fmt::format("{:.2f} {}", bytes, units[unit]);
}

std::string in_seconds(double seconds) {
  if (seconds < 1e-6) return fmt::format("{:.0f} ns", seconds * 1e9);
  if (seconds < 1e-3) return fmt::format("{:.2f} us", seconds * 1e6);
  if (seconds < 1) return fmt::format("{:.3f} ms", seconds * 1e3);
  return fmt::format("{:.3f} s", seconds);
}

std::string in_short(double number) { return fmt::format("{:.4g}", number); }

}  // namespace cosmati::cli
