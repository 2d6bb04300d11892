// Options as text: entries "key=value" separated by ';'.
#pragma once
#include <cstddef>
#include <initializer_list>
#include <string>
#include <vector>

namespace cosmati::c_api {

// Every function throws Error(bad_request) with the entry and the valid values.
class Options {
 public:
  // `text` may be null; `legal` are the keys, each of which may be given once.
  Options(char const* text, std::initializer_list<char const*> legal);

  std::string const* find(char const* key) const;  // null: not given
  std::size_t whole(char const* key, std::size_t otherwise, std::size_t largest) const;
  double positive(char const* key, double otherwise) const;
  bool yes(char const* key, bool otherwise) const;  // "yes" or "no"

 private:
  struct Entry {
    std::string key, value;
  };
  std::vector<Entry> entries_;
};

}  // namespace cosmati::c_api
