// Numbers that the grids of several devices send each other while they run at the same time.
#pragma once
#include "cosmati/arch/thread.h"
#include "cosmati/core/delivery.h"

namespace cosmati::arch {

// deliver() stores to the memory of any device that this one can access, and does not wait; two deliveries,
// the first at an even index, are stored together, which halves the traffic between devices. look() returns
// what has arrived so far; take(from, look(from), number) waits for the delivery with that number. If it does
// not arrive within a minute, the sender's device has failed, and the kernel ends with an error.
#if defined(__CUDACC__)
COSMATI_DEVICE void deliver(Delivery* to, Delivery what) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(to),
               "l"(__builtin_bit_cast(unsigned long long, what))
               : "memory");
}
COSMATI_DEVICE void deliver(Delivery* to, Delivery first, Delivery second) {
  asm volatile("st.relaxed.sys.global.v2.u64 [%0], {%1, %2};" ::"l"(to),
               "l"(__builtin_bit_cast(unsigned long long, first)),
               "l"(__builtin_bit_cast(unsigned long long, second))
               : "memory");
}
COSMATI_DEVICE Delivery look(Delivery const* from) {
  unsigned long long found;
  asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(found) : "l"(from) : "memory");
  return __builtin_bit_cast(Delivery, found);
}
COSMATI_DEVICE unsigned long long nanoseconds() {
  unsigned long long now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
COSMATI_DEVICE float take(Delivery const* from, Delivery now, unsigned number) {
  if (now.number == number) return now.value;
  constexpr unsigned long long patience = 60'000'000'000;
  unsigned long long const start = nanoseconds();
  for (int polls = 1; (now = look(from)).number != number; ++polls)
    if (polls % 1024 == 0 && nanoseconds() - start > patience) asm volatile("trap;");
  return now.value;
}
#else
COSMATI_DEVICE void deliver(Delivery* to, Delivery what) { __atomic_store(to, &what, __ATOMIC_RELAXED); }
COSMATI_DEVICE void deliver(Delivery* to, Delivery first, Delivery second) {
  emulator::check_access(to, 2 * sizeof(Delivery));
  deliver(to, first);
  deliver(to + 1, second);
}
COSMATI_DEVICE Delivery look(Delivery const* from) {
  Delivery found;
  __atomic_load(from, &found, __ATOMIC_RELAXED);
  return found;
}
COSMATI_DEVICE float take(Delivery const* from, Delivery now, unsigned number) {
  struct Awaited {
    Delivery const* from;
    unsigned number;
  } awaited{from, number};
  if (now.number != number)
    emulator::wait_for_launch(
        "a number from another device",
        [](void* context) {
          Awaited const& it = *static_cast<Awaited*>(context);
          return look(it.from).number == it.number;
        },
        &awaited);
  return look(from).value;
}
#endif

}  // namespace cosmati::arch
