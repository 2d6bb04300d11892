// The kernel that runs before a grouped product: it copies the pointers to the matrices into the records that
// the product's kernel reads, and into tensor maps.
#pragma once
#include "cosmati/arch/memory.h"
#include "cosmati/arch/thread.h"
#include "cosmati/gemm/group_arguments.h"

namespace cosmati {

// Called by one thread, so that its release covers its own writes.
COSMATI_DEVICE void bind_map(arch::TensorMap const& model, void* address, arch::TensorMap& to) {
  COSMATI_UNROLL
  for (int word = 0; word < 16; ++word) to.word[word] = model.word[word];
  arch::replace_address(to, address);
  arch::release_maps();
}

// Copies records and inserts the pointers of the launch. Grid: records; block: bind_threads.
template <bool with_maps>
COSMATI_KERNEL(bind_threads, 1)
bind_kernel(COSMATI_PARAMETER BindParameters params) {
  using Word = unsigned long long;
  constexpr int word_bytes = static_cast<int>(sizeof(Word));
  int const record = arch::block_x(), thread = arch::thread();
  Index const first = Index{record} * params.record_bytes;
  auto const* const image = arch::as_global(static_cast<unsigned char const*>(params.image)) + first;
  auto* const to = arch::as_global(static_cast<unsigned char*>(params.to)) + first;
  for (int at = thread * word_bytes; at < params.record_bytes; at += bind_threads * word_bytes)
    arch::store_global(to + at, arch::load_constant<Word>(image + at));
  arch::block_barrier();
  for (int slot = thread; slot < params.slots; slot += bind_threads) {
    Word const value = params.value[record * params.slots + slot];
    int const offset = params.offset[slot];
    if (with_maps && slot < params.maps) {
      if constexpr (with_maps)
        if (value != 0)  // a null pointer has no map to modify
          bind_map(*reinterpret_cast<arch::TensorMap const*>(image + offset), reinterpret_cast<void*>(value),
                   *reinterpret_cast<arch::TensorMap*>(to + offset));
    } else {
      arch::store_global(to + offset, value);
    }
  }
}

}  // namespace cosmati
