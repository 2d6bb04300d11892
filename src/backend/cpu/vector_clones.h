// Compiles a function once for each instruction set; the dynamic linker picks one when the program starts.
// A cloned function must not be a template; what it calls is inlined into each of its clones.
#pragma once

#if defined(__x86_64__) && !defined(COSMATI_NO_TARGET_CLONES)
#define COSMATI_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define COSMATI_CLONES
#endif
#define COSMATI_ALWAYS_INLINE inline __attribute__((always_inline))

// Before a loop whose iterations touch different elements. (clang++ checks for overlap when it runs.)
#if defined(__clang__)
#define COSMATI_INDEPENDENT
#else
#define COSMATI_INDEPENDENT _Pragma("GCC ivdep")
#endif
