// Files that describe a device: lines of the form key = value; # begins a comment.
#pragma once
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

namespace cosmati {

// One file. All errors are Error(bad_file) with the location.
class DescriptionFile {
 public:
  explicit DescriptionFile(std::string path) : path_(std::move(path)) {}
  static bool exists(std::string const& path);  // a file of any kind; read() reports what is wrong with it

  // Calls take(key, value) for each line.
  void read(std::function<void(std::string const& key, std::string_view value)> const& take);

  std::string const& path() const { return path_; }
  bool has(std::string const& key) const { return given_.contains(key); }
  void need(std::string const& key) const;
  [[noreturn]] void refuse(std::string const& what) const;

  void parse(std::string const& key, std::string_view value, double& number) const;  // positive
  void parse(std::string const& key, std::string_view value, int& number) const;     // positive
  void parse(std::string const& key, std::string_view value, long long& number) const;
  void parse(std::string const&, std::string_view value, std::string& text) const { text = value; }

 private:
  double whole_number(std::string const& key, std::string_view value, double limit) const;

  std::string path_;
  int line_ = 0;
  std::set<std::string> given_;
};

}  // namespace cosmati
