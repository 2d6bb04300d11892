// The functions named in plain_memory.h, compiled without instrumentation and with -fno-builtin, so that the
// compiler does not turn these loops into calls of the C library.
#include <cstddef>

extern "C" {
void* cosmati_plain_memmove(void* to, void const* from, std::size_t size) {
  auto* const target = static_cast<unsigned char*>(to);
  auto const* const source = static_cast<unsigned char const*>(from);
  if (target < source)
    for (std::size_t i = 0; i < size; ++i) target[i] = source[i];
  else
    for (std::size_t i = size; i > 0; --i) target[i - 1] = source[i - 1];
  return to;
}

void* cosmati_plain_memcpy(void* to, void const* from, std::size_t size) {
  return cosmati_plain_memmove(to, from, size);
}

void* cosmati_plain_memset(void* to, int value, std::size_t size) {
  for (std::size_t i = 0; i < size; ++i)
    static_cast<unsigned char*>(to)[i] = static_cast<unsigned char>(value);
  return to;
}
}
