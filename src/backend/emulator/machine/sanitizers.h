// Notifications of the sanitizers about fibers. Their entry points are weak symbols: absent, and then not
// called, if the program runs without sanitizers; so one object file of the emulator serves every build.
#pragma once
#include <cstddef>

namespace cosmati::emulator::sanitizers {

extern "C" {
// AddressSanitizer: change of stacks.
[[gnu::weak]] void cosmati_asan_start_switch(void** fake_stack, void const* bottom,
                                             std::size_t size) __asm__("__sanitizer_start_switch_fiber");
[[gnu::weak]] void cosmati_asan_finish_switch(void* fake_stack, void const** bottom,
                                              std::size_t* size) __asm__("__sanitizer_finish_switch_fiber");
[[gnu::weak]] void cosmati_asan_unpoison(void const volatile* bytes,
                                         std::size_t size) __asm__("__asan_unpoison_memory_region");
// ThreadSanitizer: each emulated thread is a separate thread; switching does not synchronize (flag 1).
[[gnu::weak]] void* cosmati_tsan_current() __asm__("__tsan_get_current_fiber");
[[gnu::weak]] void* cosmati_tsan_create(unsigned flags) __asm__("__tsan_create_fiber");
[[gnu::weak]] void cosmati_tsan_destroy(void* fiber) __asm__("__tsan_destroy_fiber");
[[gnu::weak]] void cosmati_tsan_switch(void* fiber, unsigned flags) __asm__("__tsan_switch_to_fiber");
[[gnu::weak]] void cosmati_tsan_name(void* fiber, char const* name) __asm__("__tsan_set_fiber_name");
[[gnu::weak]] void cosmati_tsan_acquire(void* address) __asm__("__tsan_acquire");
[[gnu::weak]] void cosmati_tsan_release(void* address) __asm__("__tsan_release");
[[gnu::weak]] void cosmati_tsan_read(void const* bytes, std::size_t size,
                                     void const* caller) __asm__("__tsan_read_range_pc");
[[gnu::weak]] void cosmati_tsan_write(void* bytes, std::size_t size,
                                      void const* caller) __asm__("__tsan_write_range_pc");
}

inline bool tells_races() { return cosmati_tsan_create != nullptr; }

// Everything before release(address) happened before what follows a later acquire(address).
inline void acquire(void* address) {
  if (tells_races()) cosmati_tsan_acquire(address);
}
inline void release(void* address) {
  if (tells_races()) cosmati_tsan_release(address);
}

// Reports accesses of the running thread that the compiler did not instrument; `caller` is the program
// location to report.
inline void reads(void const* bytes, int size, void const* caller) {
  if (tells_races()) cosmati_tsan_read(bytes, static_cast<std::size_t>(size), caller);
}
inline void writes(void* bytes, int size, void const* caller) {
  if (tells_races()) cosmati_tsan_write(bytes, static_cast<std::size_t>(size), caller);
}

}  // namespace cosmati::emulator::sanitizers
