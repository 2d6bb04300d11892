// A short list of oneDNN primitives with the memory that they pass on: what every kernel of this module runs.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "cosmati/ops/device.h"
#include "cosmati/ops/tensor.h"
#include "dnnl.hpp"

#if DNNL_VERSION_MAJOR != 2 || DNNL_VERSION_MINOR < 6
#error "Cosmati's oneDNN module needs the headers of oneDNN 2.6 or 2.7; without them set DNNL_LIBRARY=OFF"
#endif

namespace cosmati::cpu::onednn {

using Descriptor = dnnl::memory::desc;
using Tag = dnnl::memory::format_tag;
using Kind = dnnl::memory::data_type;

dnnl::engine const& engine();
// True where the described processor lacks AVX, or a limit keeps oneDNN from it: its kernels are for SSE4.1.
bool lacks_avx(Device const& device);
Kind kind_of(DataType type);  // undef where oneDNN 2.6 does not compute with the type
Descriptor descriptor(TensorDescription const& description);
Descriptor any_layout(Descriptor const& descriptor);  // oneDNN may choose
dnnl::primitive_attr user_scratchpad();

// Held by who describes and creates primitives, from the first description on. oneDNN says that threads may
// do so at once; but where three threads describe bf16 convolutions, 2.6 makes one of fifty wrong (its
// results are as far off as they are large) and keeps it in its cache for all that ask later.
[[nodiscard]] std::unique_lock<std::recursive_mutex> one_maker_at_a_time();

// oneDNN writes its kernels into memory without looking whether it got any. Throws Error(out_of_memory) where
// a limit of this process leaves too little. To be called with the ThreadCount that the kernels will run
// with.
void require_code_memory();

// First arguments and steps are added (primitive descriptors only: cheap enough for a plan); then create()
// makes the primitives; then run() may be called by many threads at once. Memory objects hold pointers, so
// each run takes a set of them from a pool, which grows to the largest number of concurrent runs; from then
// on a run allocates nothing (beyond what oneDNN does inside).
class Program {
 public:
  using Slot = int;

  // Memory of the caller: the i-th argument is the i-th pointer that run() is given.
  Slot argument(Descriptor const& memory);
  // Memory in the workspace.
  Slot temporary(Descriptor const& memory);

  using Binding = std::pair<int, Slot>;  // DNNL_ARG_..., slot
  void add(dnnl::primitive_desc_base const& primitive, std::vector<Binding> const& bindings);

  // The slot itself if its memory is already as wanted, else a temporary that a reorder fills, now.
  Slot reordered(Slot from, Descriptor const& wanted);
  // For an output: the slot itself, or a temporary; then, after the steps that fill it, copy_back(temporary,
  // to).
  Slot output(Slot to, Descriptor const& given);
  void copy_back(Slot from, Slot to);

  Descriptor const& memory(Slot slot) const { return slots_[static_cast<std::size_t>(slot)].memory; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // Where a temporary lies in the workspace.
  std::size_t offset(Slot slot) const { return slots_[static_cast<std::size_t>(slot)].offset; }

  void create();
  void run(std::span<void* const> arguments, std::byte* workspace) const;

 private:
  struct Place {
    Descriptor memory;
    bool is_argument;
    std::size_t offset;  // index of the argument, or bytes in the workspace
  };
  struct Step {
    dnnl::primitive_desc_base description;
    std::vector<Binding> bindings;
  };
  struct Bound;  // memory objects and a stream for one run at a time
  class Pool;

  std::vector<Place> slots_;
  std::vector<Step> steps_;
  std::vector<dnnl::primitive> primitives_;
  std::size_t arguments_ = 0;
  std::size_t workspace_bytes_ = 0;
  std::shared_ptr<Pool> pool_;
};

}  // namespace cosmati::cpu::onednn
