// Formats the messages of the run-time compiler.
#pragma once
#include <string>
#include <string_view>

namespace cosmati::jit {

// The name of the composed text in messages.
inline constexpr char const* composed_name = "composed.cu";

// Returns the log, shortened if it is long, followed by each line of `source` (the composed text) that it
// names.
std::string explain_log(std::string_view log, std::string_view source);

}  // namespace cosmati::jit
