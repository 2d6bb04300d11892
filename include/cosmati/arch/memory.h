// Memory accesses that C++ does not provide: asynchronous copies, non-coherent loads, flags between blocks.
#pragma once
#include "cosmati/arch/vector.h"
#if !defined(__CUDACC__)
#include "cosmati/arch/emulator.h"
#endif

namespace cosmati::arch {

// Loads a vector from an aligned address.
template <class Vector>
COSMATI_DEVICE Vector load(void const* address) {
#if !defined(__CUDACC__)
  emulator::check_access(address, static_cast<int>(sizeof(Vector)));
#endif
  return *static_cast<Vector const*>(address);
}
template <class Vector>
COSMATI_DEVICE void store(void* address, Vector const& value) {
#if !defined(__CUDACC__)
  emulator::check_access(address, static_cast<int>(sizeof(Vector)));
#endif
  *static_cast<Vector*>(address) = value;
}

#if defined(__CUDACC__)

// Returns the same pointer, known to the compiler to point to global memory.
template <class T>
COSMATI_DEVICE T* as_global(T* pointer) {
  return static_cast<T*>(__cvta_global_to_generic(__cvta_generic_to_global(pointer)));
}

// Hides the value of the word from the compiler.
COSMATI_DEVICE void opaque(unsigned& word) { asm volatile("" : "+r"(word)); }

// Stores a vector to an aligned address of global memory by one instruction; the compiler may split a plain
// store into elements if it cannot prove the alignment.
template <class Vector>
COSMATI_DEVICE void store_global(void* address, Vector const& value) {
  constexpr int bytes = static_cast<int>(sizeof(Vector));
  if constexpr (bytes == 16) {
    struct Words {
      unsigned word[4];
    };
    Words const words = __builtin_bit_cast(Words, value);
    asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(address), "r"(words.word[0]),
                 "r"(words.word[1]), "r"(words.word[2]), "r"(words.word[3])
                 : "memory");
  } else if constexpr (bytes == 8) {
    asm volatile("st.global.u64 [%0], %1;" ::"l"(address), "l"(__builtin_bit_cast(unsigned long long, value))
                 : "memory");
  } else if constexpr (bytes == 4) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(address), "r"(__builtin_bit_cast(unsigned, value))
                 : "memory");
  } else {
    store(address, value);
  }
}

// Loads a vector from global memory that is not written while the kernel runs; the compiler may move the
// load.
template <class Vector>
COSMATI_DEVICE Vector load_constant(void const* address) {
  constexpr int bytes = static_cast<int>(sizeof(Vector));
  if constexpr (bytes == 16) {
    struct Words {
      unsigned word[4];
    } words;
    asm("ld.global.nc.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(words.word[0]), "=r"(words.word[1]), "=r"(words.word[2]), "=r"(words.word[3])
        : "l"(address));
    return __builtin_bit_cast(Vector, words);
  } else if constexpr (bytes == 8) {
    unsigned long long word;
    asm("ld.global.nc.u64 %0, [%1];" : "=l"(word) : "l"(address));
    return __builtin_bit_cast(Vector, word);
  } else if constexpr (bytes == 4) {
    unsigned word;
    asm("ld.global.nc.u32 %0, [%1];" : "=r"(word) : "l"(address));
    return __builtin_bit_cast(Vector, word);
  } else if constexpr (bytes == 2) {
    unsigned short word;
    asm("ld.global.nc.u16 %0, [%1];" : "=h"(word) : "l"(address));
    return __builtin_bit_cast(Vector, word);
  } else {
    unsigned short word;  // there are no 8-bit registers
    asm("ld.global.nc.u8 %0, [%1];" : "=h"(word) : "l"(address));
    return __builtin_bit_cast(Vector, static_cast<unsigned char>(word));
  }
}

// Copies `valid` of `bytes` (4, 8 or 16) from global to shared memory and fills the rest with zeros; both
// addresses are multiples of `bytes`. Reads nothing if `valid` is 0. Complete after wait_copies().
template <int bytes>
COSMATI_DEVICE void copy_async(void* shared, void const* global, int valid) {
  unsigned const to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (bytes == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(valid)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(bytes),
                 "r"(valid)
                 : "memory");
}
COSMATI_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int in_flight>
COSMATI_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(in_flight) : "memory");
}

// Prefetches the L2 cache line of an address in global memory.
COSMATI_DEVICE void prefetch(void const* address) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(address) : "memory");
}

// Flags in global memory between blocks. Writes of this thread, or visible to it through a barrier, become
// visible to the thread that takes the flag.
COSMATI_DEVICE void raise_flag(unsigned long long* flag, unsigned long long value) {
  asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
}
// Called by a single thread: waits until the flag has the value, then resets it to zero.
COSMATI_DEVICE void take_flag(unsigned long long* flag, unsigned long long value) {
  unsigned long long seen;
  do {
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(flag) : "memory");
  } while (seen != value);
  asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(flag), "l"(0ull) : "memory");
}

#else

template <class T>
COSMATI_DEVICE T* as_global(T* pointer) {
  return pointer;
}
COSMATI_DEVICE void opaque(unsigned&) {}
template <class Vector>
COSMATI_DEVICE Vector load_constant(void const* address) {
  return load<Vector>(address);
}

template <class Vector>
COSMATI_DEVICE void store_global(void* address, Vector const& value) {
  store(address, value);
}

template <int bytes>
COSMATI_DEVICE void copy_async(void* shared, void const* global, int valid) {
  emulator::copy_async(shared, global, bytes, valid);
}
COSMATI_DEVICE void commit_copies() { emulator::commit_copies(); }
template <int in_flight>
COSMATI_DEVICE void wait_copies() {
  emulator::wait_copies(in_flight);
}
COSMATI_DEVICE void prefetch(void const*) {}
COSMATI_DEVICE void raise_flag(unsigned long long* flag, unsigned long long value) {
  __atomic_store_n(flag, value, __ATOMIC_RELEASE);
}
COSMATI_DEVICE void take_flag(unsigned long long* flag, unsigned long long value) {
  struct Awaited {
    unsigned long long* flag;
    unsigned long long value;
  } awaited{flag, value};
  emulator::wait(
      "partial sums of another block",
      [](void* context) {
        Awaited const& it = *static_cast<Awaited*>(context);
        return __atomic_load_n(it.flag, __ATOMIC_ACQUIRE) == it.value;
      },
      &awaited);
  __atomic_store_n(flag, 0ull, __ATOMIC_RELAXED);
}

#endif

}  // namespace cosmati::arch
