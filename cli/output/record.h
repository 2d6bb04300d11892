// One result: named values in a fixed order, printed as a line of JSON or as a table row.
#pragma once
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace cosmati::cli {

// Values that are absent in a line (no peer, no bound) are null.
using Value = std::variant<std::monostate, bool, long long, double, std::string, std::vector<std::string>>;

class Record {
 public:
  Record& add(std::string key, Value value) {
    values_.emplace_back(std::move(key), std::move(value));
    return *this;
  }
  Record& add(std::string key, char const* text) { return add(std::move(key), Value(std::string(text))); }
  template <class Number>
  requires(std::is_arithmetic_v<Number> && !std::is_same_v<Number, bool>) Record& add(std::string key,
                                                                                      Number number) {
    if constexpr (std::is_floating_point_v<Number>)
      return add(std::move(key), Value(double{number}));
    else
      return add(std::move(key), Value(static_cast<long long>(number)));
  }

  std::string json() const;  // one line including its newline; non-finite numbers become null

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

}  // namespace cosmati::cli
