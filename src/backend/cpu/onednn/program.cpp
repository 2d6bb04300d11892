// Program: memory objects from a lock-free pool, and primitives executed in order.
#include "src/backend/cpu/onednn/program.h"

#include <string>

#include "src/backend/cpu/runtime/address_space.h"
#include "src/backend/cpu/runtime/omp_runtime.h"

namespace cosmati::cpu::onednn {

dnnl::engine const& engine() {
  static dnnl::engine const one(dnnl::engine::kind::cpu, 0);
  return one;
}

bool lacks_avx(Device const& device) {
  return !device.avx2 || dnnl::get_effective_cpu_isa() == dnnl::cpu_isa::sse41;
}

Kind kind_of(DataType type) {
  switch (type) {
    case DataType::f32: return Kind::f32;
    case DataType::bf16: return Kind::bf16;
    case DataType::s8: return Kind::s8;
    case DataType::u8: return Kind::u8;
    case DataType::s32: return Kind::s32;
    default: return Kind::undef;
  }
}

Descriptor descriptor(TensorDescription const& description) {
  dnnl::memory::dims extents, strides;
  for (int d = 0; d < description.layout.rank(); ++d) {
    extents.push_back(description.layout.extent(d));
    // The stride along an extent of 1 has no meaning, but oneDNN compares it.
    Index stride = description.layout.stride[d];
    if (description.layout.extent(d) == 1 && stride == 0) stride = 1;
    strides.push_back(stride);
  }
  return {extents, kind_of(description.type), strides};
}

Descriptor any_layout(Descriptor const& descriptor) {
  return {descriptor.dims(), descriptor.data_type(), Tag::any};
}

dnnl::primitive_attr user_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

std::unique_lock<std::recursive_mutex> one_maker_at_a_time() {
  static std::recursive_mutex making;
  return std::unique_lock(making);
}

void require_code_memory() {
  // A kernel has up to 256 KiB of code, and a primitive may have dozens of kernels: with 16 MiB left oneDNN
  // was seen to write through a null pointer, with 48 MiB never. A thread without its own malloc arena may
  // still allocate one (64 MiB) while the kernels are generated (tests/cli/check_limits.py).
  OmpRuntime const* const runtime = omp_runtime();
  bool const alone = runtime == nullptr || runtime->max_threads() == 1;
  std::size_t const enough = std::size_t{alone ? 48U : 48U + 64U} << 20;
  if (!address_space_has(enough))
    throw Error(
        ErrorCode::out_of_memory,
        "oneDNN needs up to " + std::to_string(enough >> 20) +
            " MiB of address space for its kernels; the limit of this process (ulimit -v) leaves less");
}

struct Program::Bound {
  dnnl::stream stream;
  std::vector<dnnl::memory> memories;                   // by slot
  std::vector<std::vector<dnnl_exec_arg_t>> arguments;  // by step

  explicit Bound(Program const& program) : stream(engine()) {
    for (Place const& place : program.slots_) memories.emplace_back(place.memory, engine(), nullptr);
    for (Step const& step : program.steps_) {
      auto& list = arguments.emplace_back();
      for (auto const& [argument, slot] : step.bindings)
        list.push_back({argument, memories[static_cast<std::size_t>(slot)].get()});
    }
  }
};

// A fixed number of slots, each empty or holding an idle Bound.
class Program::Pool {
 public:
  explicit Pool(Program const& program) { give(std::make_unique<Bound>(program)); }
  ~Pool() {
    for (auto& place : places_) delete place.load();
  }
  std::unique_ptr<Bound> take(Program const& program) {
    for (auto& place : places_)
      if (Bound* const bound = place.exchange(nullptr)) return std::unique_ptr<Bound>(bound);
    return std::make_unique<Bound>(program);
  }
  void give(std::unique_ptr<Bound> bound) {
    for (auto& place : places_) {
      Bound* empty = nullptr;
      if (place.compare_exchange_strong(empty, bound.get())) {
        static_cast<void>(bound.release());
        return;
      }
    }
  }

  std::atomic<bool> has_run = false;

 private:
  std::array<std::atomic<Bound*>, 64> places_{};
};

Program::Slot Program::argument(Descriptor const& memory) {
  slots_.push_back({memory, true, arguments_++});
  return static_cast<Slot>(slots_.size()) - 1;
}

Program::Slot Program::temporary(Descriptor const& memory) {
  slots_.push_back({memory, false, workspace_bytes_});
  workspace_bytes_ += (memory.get_size() + 63) / 64 * 64;
  return static_cast<Slot>(slots_.size()) - 1;
}

void Program::add(dnnl::primitive_desc_base const& primitive, std::vector<Binding> const& bindings) {
  Step step{primitive, bindings};
  Descriptor const scratchpad = primitive.query_md(dnnl::query::scratchpad_md);
  if (scratchpad.get_size() > 0) step.bindings.push_back({DNNL_ARG_SCRATCHPAD, temporary(scratchpad)});
  steps_.push_back(std::move(step));
}

Program::Slot Program::reordered(Slot from, Descriptor const& wanted) {
  if (memory(from) == wanted) return from;
  Slot const to = temporary(wanted);
  copy_back(from, to);
  return to;
}

Program::Slot Program::output(Slot to, Descriptor const& given) {
  return memory(to) == given ? to : temporary(given);
}

void Program::copy_back(Slot from, Slot to) {
  if (from == to) return;
  add(dnnl::reorder::primitive_desc(engine(), memory(from), engine(), memory(to), user_scratchpad()),
      {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
}

void Program::create() {
  require_code_memory();
  for (Step const& step : steps_) primitives_.emplace_back(step.description.get());
  pool_ = std::make_shared<Pool>(*this);
}

void Program::run(std::span<void* const> arguments, std::byte* workspace) const {
  auto const check = [](dnnl_status_t status, char const* what) {
    if (status != dnnl_success)
      throw Error(ErrorCode::system,
                  std::string("oneDNN could not ") + what + ": status " + std::to_string(status));
  };
  if (!pool_->has_run.load(std::memory_order_relaxed)) {  // primitives may still generate kernels
    require_code_memory();
    pool_->has_run.store(true, std::memory_order_relaxed);
  }
  std::unique_ptr<Bound> bound = pool_->take(*this);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    void* const data = slots_[i].is_argument ? arguments[slots_[i].offset] : workspace + slots_[i].offset;
    check(dnnl_memory_set_data_handle_v2(bound->memories[i].get(), data, bound->stream.get()),
          "take a pointer");
  }
  for (std::size_t i = 0; i < primitives_.size(); ++i)
    check(dnnl_primitive_execute(primitives_[i].get(), bound->stream.get(),
                                 static_cast<int>(bound->arguments[i].size()), bound->arguments[i].data()),
          "run a primitive");
  check(dnnl_stream_wait(bound->stream.get()), "finish");
  pool_->give(std::move(bound));
}

}  // namespace cosmati::cpu::onednn
