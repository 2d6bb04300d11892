// Barriers in shared memory that count arrivals and the bytes of asynchronous copies (PTX: mbarrier), and the
// numbered barriers of a block. A barrier's phases have parities 0, 1, 0, ...; the first one is 0.
#pragma once
#include "cosmati/arch/config.h"
#if !defined(__CUDACC__)
#include "cosmati/arch/emulator_async.h"
#endif

namespace cosmati::arch {

struct alignas(8) Barrier {
  unsigned long long bits;
};

#if defined(__CUDACC__)

// The address in the shared-memory window, as used in descriptors.
COSMATI_DEVICE unsigned shared_address(void const* shared) {
  return static_cast<unsigned>(__cvta_generic_to_shared(shared));
}

// Called by one thread: each phase completes after `arrivals` arrivals and all expected bytes.
COSMATI_DEVICE void init(Barrier& barrier, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(&barrier)), "r"(arrivals)
               : "memory");
}
// Called by the thread that initialized barriers, before a block or cluster barrier.
COSMATI_DEVICE void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

COSMATI_DEVICE void arrive(Barrier& barrier) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(&barrier)) : "memory");
}
// Arrives at the barrier at the same offset in another block of the cluster, or in this one. It orders reads
// of operands, but its scope, .cta, does not release this thread's own writes: ptxas would turn any larger
// scope into a GPU-wide fence.
COSMATI_DEVICE void arrive_at(Barrier& barrier, int block_of_cluster) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(shared_address(&barrier)),
      "r"(block_of_cluster)
      : "memory");
}
// The same, but also releases this thread's writes to other blocks' shared memory, and those made visible by
// a warp barrier, to threads that acquire the phase.
COSMATI_DEVICE void release_to(Barrier& barrier, int block_of_cluster) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(shared_address(&barrier)),
      "r"(block_of_cluster)
      : "memory");
}
// Arrives; the phase then also waits for `bytes` bytes of asynchronous copies.
COSMATI_DEVICE void arrive_expecting(Barrier& barrier, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}
// Arrives when all of this thread's copy_async() copies are complete.
COSMATI_DEVICE void arrive_after_copies(Barrier& barrier) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(shared_address(&barrier))
               : "memory");
}

// Stores 4 or 8 bytes at the same offset in another block of the cluster, or in this one, without waiting;
// the phase of the barrier there counts them, and threads that acquire it see them. Needs no fence, but no
// block may send before a cluster barrier after the barrier's publish_barriers(), or exit before it has
// received.
template <class T>
COSMATI_DEVICE void send(T& to, T value, Barrier& barrier, int block_of_cluster) {
  if constexpr (sizeof(T) == 4)
    asm volatile(
        "{\n.reg .b32 there, barrier;\n"
        "mapa.shared::cluster.u32 there, %0, %3;\n"
        "mapa.shared::cluster.u32 barrier, %2, %3;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [there], %1, [barrier];\n}" ::"r"(
            shared_address(&to)),
        "r"(__builtin_bit_cast(unsigned, value)), "r"(shared_address(&barrier)), "r"(block_of_cluster)
        : "memory");
  else
    asm volatile(
        "{\n.reg .b32 there, barrier;\n"
        "mapa.shared::cluster.u32 there, %0, %3;\n"
        "mapa.shared::cluster.u32 barrier, %2, %3;\n"
        "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [there], %1, [barrier];\n}" ::"r"(
            shared_address(&to)),
        "l"(__builtin_bit_cast(unsigned long long, value)), "r"(shared_address(&barrier)),
        "r"(block_of_cluster)
        : "memory");
}

// Returns when the phase of this parity is complete; immediately if it precedes the current one.
COSMATI_DEVICE void wait(Barrier& barrier, int parity) {
  asm volatile(
      "{\n.reg .pred over;\nagain:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra again;\n}" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}
// The same, after which this thread sees what other blocks of the cluster released to the barrier.
COSMATI_DEVICE void acquire(Barrier& barrier, int parity) {
  asm volatile(
      "{\n.reg .pred over;\nagain:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 over, [%0], %1;\n"
      "@!over bra again;\n}" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}

// Named barrier `id`, 1 to 15, for `threads` threads (complete warps); arriving does not wait.
COSMATI_DEVICE void named_barrier(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
COSMATI_DEVICE void named_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

#else

COSMATI_DEVICE unsigned shared_address(void const* shared) { return emulator::shared_address(shared); }
COSMATI_DEVICE void init(Barrier& barrier, int arrivals) { emulator::init_barrier(&barrier, arrivals); }
COSMATI_DEVICE void publish_barriers() { emulator::publish_barriers(); }
COSMATI_DEVICE void arrive(Barrier& barrier) { emulator::arrive_at_barrier(&barrier, -1, 0); }
COSMATI_DEVICE void arrive_at(Barrier& barrier, int block_of_cluster) {
  emulator::arrive_at_barrier(&barrier, block_of_cluster, 0);
}
COSMATI_DEVICE void release_to(Barrier& barrier, int block_of_cluster) {
  emulator::arrive_at_barrier(&barrier, block_of_cluster, 0);
}
COSMATI_DEVICE void arrive_expecting(Barrier& barrier, int bytes) {
  emulator::arrive_at_barrier(&barrier, -1, bytes);
}
COSMATI_DEVICE void arrive_after_copies(Barrier& barrier) { emulator::arrive_after_copies(&barrier); }
template <class T>
COSMATI_DEVICE void send(T& to, T value, Barrier& barrier, int block_of_cluster) {
  emulator::send_to_block(&to, &value, static_cast<int>(sizeof value), &barrier, block_of_cluster);
}
COSMATI_DEVICE void wait(Barrier& barrier, int parity) { emulator::wait_for_barrier(&barrier, parity); }
COSMATI_DEVICE void acquire(Barrier& barrier, int parity) { emulator::wait_for_barrier(&barrier, parity); }
COSMATI_DEVICE void named_barrier(int id, int threads) { emulator::named_barrier(id, threads, true); }
COSMATI_DEVICE void named_arrive(int id, int threads) { emulator::named_barrier(id, threads, false); }

#endif

}  // namespace cosmati::arch
