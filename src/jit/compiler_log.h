// What the run-time compiler says, made readable.
#pragma once
#include <string>
#include <string_view>

namespace cosmati::jit {

// The name that the composed text goes by in messages.
inline constexpr char const* composed_name = "composed.cu";

// The log, cut where it fills screens, then each line of `source` (the composed text) that it names.
std::string explain_log(std::string_view log, std::string_view source);

}  // namespace cosmati::jit
