// Records as JSON Lines.
#include "cli/output/record.h"

#include <nlohmann/json.hpp>

namespace cosmati::cli {

std::string Record::json() const {
  nlohmann::ordered_json line = nlohmann::ordered_json::object();
  for (auto const& [key, value] : values_) {
    auto& field = line[key];
    std::visit(
        [&field](auto const& held) {
          if constexpr (!std::is_same_v<std::decay_t<decltype(held)>, std::monostate>) field = held;
        },
        value);
  }
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + '\n';
}

}  // namespace cosmati::cli
