// What tests omit under AddressSanitizer, where planning and emulation take thirty times as long.
#pragma once

namespace cosmati::test {

#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool sanitized = true;
#elif defined(__has_feature)
inline constexpr bool sanitized = __has_feature(address_sanitizer);
#else
inline constexpr bool sanitized = false;
#endif

// Under AddressSanitizer, selects one of `step` similar cases of a test; otherwise all.
class Sample {
 public:
  explicit Sample(int step) : step_(step) {}
  bool skips() { return sanitized && number_++ % step_ != 0; }

 private:
  int const step_;
  int number_ = 0;
};

}  // namespace cosmati::test
