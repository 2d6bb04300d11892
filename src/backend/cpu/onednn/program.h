// A short list of oneDNN primitives and the memory that they pass on; every kernel of this module runs one.
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
// True if the described processor lacks AVX, or a limit disables it: oneDNN then uses its kernels for SSE4.1.
bool lacks_avx(Device const& device);
Kind kind_of(DataType type);  // undef if oneDNN 2.6 does not compute with the type
Descriptor descriptor(TensorDescription const& description);
Descriptor any_layout(Descriptor const& descriptor);  // for oneDNN to choose
dnnl::primitive_attr user_scratchpad();

// A lock to hold while describing and creating primitives, from the first description on. oneDNN documents
// both as thread-safe; but if three threads describe bf16 convolutions, 2.6 creates one of fifty incorrectly
// (its errors are as large as its results) and keeps it in its cache for later requests.
[[nodiscard]] std::unique_lock<std::recursive_mutex> one_maker_at_a_time();

// oneDNN writes its kernels into memory without checking the allocation. Throws Error(out_of_memory) if a
// limit of this process leaves too little memory. Call it with the ThreadCount with which the kernels will
// run.
void require_code_memory();

// Usage: add arguments and steps (primitive descriptors only, cheap enough for planning); call create(),
// which creates the primitives; then run() may be called concurrently. Memory objects contain pointers, so
// each run takes a set of them from a pool, which grows to the maximum number of concurrent runs; after that
// a run allocates nothing (apart from oneDNN itself).
class Program {
 public:
  using Slot = int;

  // Memory of the caller: the i-th argument is the i-th pointer passed to run().
  Slot argument(Descriptor const& memory);
  // Memory in the workspace.
  Slot temporary(Descriptor const& memory);

  using Binding = std::pair<int, Slot>;  // DNNL_ARG_..., slot
  void add(dnnl::primitive_desc_base const& primitive, std::vector<Binding> const& bindings);

  // Returns the slot itself if its memory has the wanted layout, otherwise a temporary that a reorder fills
  // at this point.
  Slot reordered(Slot from, Descriptor const& wanted);
  // For an output: returns the slot itself, or a temporary; after the steps that fill it, call
  // copy_back(temporary, to).
  Slot output(Slot to, Descriptor const& given);
  void copy_back(Slot from, Slot to);

  Descriptor const& memory(Slot slot) const { return slots_[static_cast<std::size_t>(slot)].memory; }
  std::size_t workspace_bytes() const { return workspace_bytes_; }
  // The offset of a temporary in the workspace.
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
