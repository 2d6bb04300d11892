// Tables for people: columns as wide as their widest cell, numbers to the right, bold heads on a terminal.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cosmati::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> heads) : heads_(std::move(heads)) {}
  void add(std::vector<std::string> cells);  // each of one line
  void print() const;                        // on stdout

 private:
  std::vector<std::string> heads_;
  std::vector<std::vector<std::string>> rows_;
};

// Everything that is printed goes through printable_text(): names and texts may come from files.
void print_line(std::string const& line);  // on stdout, with a line end
void print_text(std::string const& text);  // on stdout
// `path` will be written: where it is the pipe or file that stdout is (/dev/stdout), tables and lines go to
// stderr from here on.
void keep_stdout_for(std::string const& path);
void print_warning(std::string const& text);   // on stderr: "cosmati: warning: ..."
void print_failure(std::string const& text);   // on stderr: "cosmati: ..."
void print_progress(std::string const& text);  // on stderr if that is a terminal, over the last progress

std::string in_bytes(double bytes);      // "1.50 MiB"
std::string in_seconds(double seconds);  // "12.3 us"
std::string in_short(double number);     // four significant digits

}  // namespace cosmati::cli
