// Compiles a function for each instruction set level; the first call selects the best one that this processor
// and COSMATI_MAX_CPU_ISA allow.
#pragma once
#include "cosmati/epilogue/vector_level.h"

#if defined(__x86_64__) && !defined(COSMATI_NO_TARGET_CLONES)
#define COSMATI_HAS_CLONES 1
#define COSMATI_TARGET(level) __attribute__((target("arch=x86-64-" level)))
#else
#define COSMATI_HAS_CLONES 0
#define COSMATI_TARGET(level)
#endif
#define COSMATI_ALWAYS_INLINE inline __attribute__((always_inline))

// Precedes a loop whose iterations access different elements. (clang++ checks for overlap at run time.)
#if defined(__clang__)
#define COSMATI_INDEPENDENT
#else
#define COSMATI_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace cosmati::cpu {

inline constexpr bool has_clones = COSMATI_HAS_CLONES == 1;

// Clones<body>::call is `body`, which must be COSMATI_ALWAYS_INLINE, as must the functions that it calls: it
// is inlined into each clone. (With the attribute target_clones, the dynamic linker would choose, which
// ignores the limit.)
template <auto body>
struct Clones;

template <class Result, class... Arguments, Result (*body)(Arguments...)>
struct Clones<body> {
  static Result call(Arguments... arguments) {
    static auto* const best = clone_for(epilogue::best_vector_level());
    return best(arguments...);
  }

  static auto clone_for(epilogue::VectorLevel level) -> Result (*)(Arguments...) {
    switch (level) {
      case epilogue::VectorLevel::v4: return v4;
      case epilogue::VectorLevel::v3: return v3;
      case epilogue::VectorLevel::baseline: break;
    }
    return baseline;
  }

 private:
  static Result baseline(Arguments... arguments) { return body(arguments...); }
  COSMATI_TARGET("v3") static Result v3(Arguments... arguments) { return body(arguments...); }
  COSMATI_TARGET("v4") static Result v4(Arguments... arguments) { return body(arguments...); }
};

}  // namespace cosmati::cpu
