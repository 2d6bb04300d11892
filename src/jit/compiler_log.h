// What the run-time compiler says, read for people and for plans.
#pragma once
#include <string>
#include <string_view>

#include "src/jit/compile.h"

namespace cosmati::jit {

// The name that the composed text goes by in messages.
inline constexpr char const* composed_name = "composed.cu";

// Sets registers, spill_bytes, static_shared_bytes, constant_bytes and compiler_warnings of `cubin` from the
// log of its compilation, by its lowered_name.
void read_resources(std::string_view log, Cubin& cubin);

// The log without the assembler's statistics, then each line of `source` (the composed text) that it names.
std::string explain_log(std::string_view log, std::string_view source);

}  // namespace cosmati::jit
