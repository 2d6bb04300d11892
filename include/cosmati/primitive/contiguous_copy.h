// Copies of contiguous elements of a tensor to shared memory and back, by runs of 16 bytes. An element keeps
// its place within 16 bytes.
#pragma once
#include "cosmati/arch/bulk_copy.h"
#include "cosmati/primitive/traits.h"

namespace cosmati {

// Access: of the tensor. bulk: one thread copies all full runs by one instruction. The copy engine serves the
// blocks of a multiprocessor in turn, so that the first one begins to compute while the others wait for their
// data.
template <class Access, int width, int threads, bool bulk>
struct ContiguousCopy {
  using Run = typename Access::template Run<width>;
  using Element = typename Access::Element;

  // Calls each(i) for this thread's share of [0, count): four at a time, whose addresses differ by constants,
  // without conditions, since the compiler would compute the addresses again behind each of them.
  template <class Each>
  COSMATI_DEVICE static void for_each(int count, Each const& each) {
    int i = arch::thread();
    COSMATI_NO_UNROLL
    for (; i + 3 * threads < count; i += 4 * threads) {
      COSMATI_UNROLL
      for (int u = 0; u < 4; ++u) each(i + u * threads);
    }
    COSMATI_NO_UNROLL
    for (; i < count; i += threads) each(i);
  }

  // Loads `count` elements that begin at a multiple of 16 bytes to `to`, where the last run has room even if
  // it is incomplete, and waits for them, as all threads of the block do. `arrived`: a barrier for this copy
  // alone, if `bulk`.
  COSMATI_DEVICE static void load(PrimitiveTensor const& tensor, Index offset, int count, Run* to,
                                  arch::Barrier* arrived) {
    int const full = count / width;
    if constexpr (bulk) {
      if (arch::thread() == 0 && full > 0) {
        int const bytes = full * static_cast<int>(sizeof(Run));
        arch::init(*arrived, 1);
        arch::publish_barriers();
        arch::arrive_expecting(*arrived, bytes);
        arch::copy_bulk(to, static_cast<Element const*>(tensor.data) + offset, bytes, *arrived);
      }
    } else {
      for_each(full, [&](int i) { copy(tensor, offset + i * Index{width}, width, to + i); });
    }
    if (count % width > 0 && arch::thread() == full % threads)
      copy(tensor, offset + full * Index{width}, count % width, to + full);
    arch::commit_copies();
    arch::wait_copies<0>();
    arch::block_barrier();
    if constexpr (bulk)
      if (full > 0) arch::wait(*arrived, 0);
  }

  // Stores `count` elements, `from` at the same place within 16 bytes as element `offset` of the tensor. All
  // threads call it after a block barrier; before that, every thread calls publish() after its writes.
  // `Real`: the kernel's; shared memory has elements of this type only if the tensor has, or in the emulator.
  template <class Real>
  COSMATI_DEVICE static void store(PrimitiveTensor const& tensor, Index offset, Element const* from,
                                   int count) {
    int const until_run = static_cast<int>(-offset & (width - 1)),
              head = until_run < count ? until_run : count, tail = (count - head) % width,
              runs = (count - head) / width;
    bool const stores_runs = bulk && runs > 0 && arch::thread() == 0;
    if constexpr (bulk) {
      if (stores_runs) {
        arch::store_bulk(static_cast<Element*>(tensor.data) + offset + head, from + head,
                         runs * static_cast<int>(sizeof(Run)));
        arch::commit_stores();
      }
    } else {
      for_each(runs, [&](int i) {
        put<Real, width>(tensor, offset + head + i * Index{width}, from + head + i * width);
      });
    }
    // The elements outside complete runs, fewer than `width` at each end.
    int const e = arch::thread(), i = e < width ? e : count - tail + e - width;
    if (e < width ? e < head : e < width + tail) put<Real, 1>(tensor, offset + i, from + i);
    if constexpr (bulk)
      if (stores_runs) arch::wait_stores_read<0>();  // before shared memory is released
  }
  COSMATI_DEVICE static void publish() {
    if constexpr (bulk) arch::publish_to_async();
  }

 private:
  COSMATI_DEVICE static void copy(PrimitiveTensor const& tensor, Index offset, int count, Run* to) {
    Access::copy(*to, tensor, ContiguousRange{offset, count});
  }
  template <class Real, int many>
  COSMATI_DEVICE static void put(PrimitiveTensor const& tensor, Index offset, Element const* element) {
    auto const some = arch::load<Vector<Element, many>>(element);
    if constexpr (is_same<Element, Real>)
      Access::store(tensor, ContiguousRange{offset, many}, some.element);
    else
      arch::store_global(arch::as_global(static_cast<Element*>(tensor.data)) + offset, some);
  }
};

}  // namespace cosmati
