// Maps between our vector levels and oneDNN's names of instruction sets.
#include "src/backend/cpu/runtime/onednn_isa.h"

#include <cstdlib>
#include <string>

#include "cosmati/epilogue/vector_level.h"

namespace cosmati::cpu {

OnednnLimit onednn_limit() {
  char const* value = std::getenv("ONEDNN_MAX_CPU_ISA");
  if (value == nullptr) value = std::getenv("DNNL_MAX_CPU_ISA");
  std::string name = value == nullptr ? "" : value;
  for (char& letter : name)
    if (letter >= 'a' && letter <= 'z') letter = static_cast<char>(letter - 'a' + 'A');
  if (name == "SSE41") return {false, false, false, false, false};
  if (name == "AVX" || name == "AVX2" || name == "AVX2_VNNI") return {true, false, false, false, false};
  if (name == "AVX512_CORE_VNNI") return {true, true, true, false, false};
  if (name == "AVX512_CORE_BF16") return {true, true, true, true, false};
  if (name.starts_with("AVX512") && name != "AVX512_CORE_AMX") return {true, true, false, false, false};
  return {};
}

char const* onednn_isa() {
  using epilogue::VectorLevel;
  auto const limit = epilogue::vector_level_limit();
  if (!limit) return nullptr;
  OnednnLimit const users = onednn_limit();
  switch (*limit) {
    case VectorLevel::baseline: return users.avx ? "SSE41" : nullptr;  // the lowest level it supports
    case VectorLevel::v3: return users.avx512 ? "AVX2" : nullptr;
    case VectorLevel::v4: break;
  }
  return users.amx ? "AVX512_CORE_BF16" : nullptr;
}

}  // namespace cosmati::cpu
