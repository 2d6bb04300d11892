// Tables with columns as wide as their widest cell, right-aligned numbers, and bold headings on a terminal.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cosmati::cli {

class Table {
 public:
  explicit Table(std::vector<std::string> heads) : heads_(std::move(heads)) {}
  void add(std::vector<std::string> cells);  // single-line cells
  void print() const;                        // to stdout

 private:
  std::vector<std::string> heads_;
  std::vector<std::vector<std::string>> rows_;
};

// All printed text goes through printable_text(), since names and texts may come from files.
void print_line(std::string const& line);  // to stdout, followed by a newline
void print_text(std::string const& text);  // to stdout
// Call before `path` is written: if stdout refers to the same pipe or file (/dev/stdout), tables and messages
// go to stderr from now on.
void keep_stdout_for(std::string const& path);
void print_warning(std::string const& text);   // to stderr: "cosmati: warning: ..."
void print_failure(std::string const& text);   // to stderr: "cosmati: ..."
void print_progress(std::string const& text);  // to stderr if it is a terminal, over the last progress

std::string in_bytes(double bytes);      // "1.50 MiB"
std::string in_seconds(double seconds);  // "12.3 us"
std::string in_short(double number);     // four significant digits

}  // namespace cosmati::cli
