// The processor's x86-64 level, and the user's limit on it.
#include "cosmati/epilogue/vector_level.h"

#include <algorithm>
#include <cstdlib>
#include <string>

#include "cosmati/ops/error.h"

namespace cosmati::epilogue {
namespace {

constexpr char const* limit_variable = "COSMATI_MAX_CPU_ISA";

VectorLevel processor_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  bool const v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                  __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
  bool const v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl");
  if (v3) return v4 ? VectorLevel::v4 : VectorLevel::v3;
#endif
  return VectorLevel::baseline;
}

std::optional<VectorLevel> read_limit() {
  char const* const value = std::getenv(limit_variable);
  if (value == nullptr || *value == '\0') return {};
  for (VectorLevel level : {VectorLevel::baseline, VectorLevel::v3, VectorLevel::v4})
    if (name_of(level) == std::string(value)) return level;
  throw Error(ErrorCode::bad_request,
              std::string(limit_variable) + " is '" + value + "'; valid values: SSE2, AVX2 and AVX512");
}

}  // namespace

char const* name_of(VectorLevel level) {
  switch (level) {
    case VectorLevel::v3: return "AVX2";
    case VectorLevel::v4: return "AVX512";
    case VectorLevel::baseline: break;
  }
  return "SSE2";
}

std::optional<VectorLevel> vector_level_limit() {
  static std::optional<VectorLevel> const limit = read_limit();
  return limit;
}

VectorLevel best_vector_level() {
  static VectorLevel const level =
      std::min(processor_level(), vector_level_limit().value_or(VectorLevel::v4));
  return level;
}

}  // namespace cosmati::epilogue
