// Accesses, functions and traits whose types are determined at run time: the emulator's replacement of
// composed ones.
#pragma once
#include <algorithm>
#include <array>

#include "cosmati/arch/emulator_async.h"
#include "cosmati/epilogue/evaluate.h"
#include "cosmati/primitive/traits.h"
#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/emulated/primitive_instance.h"
#include "src/plan/primitive/program.h"

namespace cosmati::emulator {

struct HostElements {
  using Element = double;  // of the runs that a kernel keeps
  template <class Real, int width>
  static void load(PrimitiveParameters const& params, PrimitiveTensor const& tensor, ContiguousRange run,
                   Real (&to)[width]) {
    if (tensor.run_stride == -1) {
      KeptElements<>::Raw<width> kept;
      KeptElements<>::fetch(params, tensor, run, kept);
      return KeptElements<>::unpack(params, kept, to);
    }
    bool const there = tensor.data != nullptr && run.count > 0;
    if (there) check_run<width>(tensor, run);
    for (int i = 0; i < width; ++i)
      to[i] = there && i < run.count
                  ? cosmati::load(tensor.type, tensor.data, run.offset + i * tensor.run_stride)
                  : 0;
  }
  template <int width>
  struct Raw {
    double value[width];
    void clear() { std::fill_n(value, width, 0.0); }
  };
  template <int width>
  static void fetch(PrimitiveParameters const& params, PrimitiveTensor const& tensor, ContiguousRange run,
                    Raw<width>& to) {
    load(params, tensor, run, to.value);
  }
  template <int width>
  static void unpack(PrimitiveParameters const&, Raw<width> const& from, double (&to)[width]) {
    std::copy_n(from.value, width, to);
  }
  template <class Real, int width>
  static void store(PrimitiveTensor const& tensor, ContiguousRange run, Real const (&from)[width]) {
    if (tensor.data == nullptr) return;
    check_run<width>(tensor, run);
    for (int i = 0; i < std::min(width, run.count); ++i)
      cosmati::store(tensor.type, tensor.data, run.offset + i, from[i]);
  }
  template <int width>
  using Run = Vector<Element, width>;
  template <int width>
  static void copy(Vector<double, width>& to, PrimitiveTensor const& tensor, ContiguousRange run) {
    check_run<width>(tensor, run);
    for (int i = 0; i < width; ++i)
      to[i] = i < run.count ? cosmati::load(tensor.type, tensor.data, run.offset + i) : 0;
  }
  template <int width>
  static void unpack(Vector<double, width> const& from, double (&to)[width]) {
    std::copy_n(from.element, width, to);
  }

  struct Pair {
    double value[2];
    template <class Real>
    Real get(int which) const {
      return value[which];
    }
    Pair larger(Pair const& other) const {
      return {{cosmati::larger(value[0], other.value[0]), cosmati::larger(value[1], other.value[1])}};
    }
    void forget() {}
  };
  template <int pairs>
  static void load_pairs(PrimitiveTensor const& tensor, Index offset, Pair (&to)[pairs]) {
    check_run<2 * pairs>(tensor, {offset, 2 * pairs});
    for (int i = 0; i < 2 * pairs; ++i)
      to[i / 2].value[i % 2] = cosmati::load(tensor.type, tensor.data, offset + i);
  }
  static Pair pair_of(double value) { return {{value, value}}; }
  static int integer(PrimitiveTensor const& tensor, Index offset) {
    return static_cast<int>(cosmati::load(tensor.type, tensor.data, offset));
  }
  template <int width>
  static void load_integers(PrimitiveTensor const& tensor, ContiguousRange run, int (&to)[width]) {
    for (int i = 0; i < width && i < run.count; ++i)
      to[i] = integer(tensor, run.offset + i * tensor.run_stride);
  }
  template <int width>
  static void store_integers(PrimitiveTensor const& tensor, ContiguousRange run, int const (&from)[width]) {
    for (int i = 0; i < width && i < run.count; ++i)
      cosmati::store(tensor.type, tensor.data, run.offset + i * tensor.run_stride, from[i]);
  }

 private:
  // A GPU moves complete runs by accesses of up to 16 bytes, which must be aligned to their size.
  template <int width>
  static void check_run(PrimitiveTensor const& tensor, ContiguousRange run) {
    if (width == 1 || run.count < width || tensor.run_stride != 1) return;
    int const bytes = width * size_of(tensor.type);
    for (int at = 0; at < bytes; at += 16)
      check_access(static_cast<std::byte const*>(tensor.data) + run.offset * size_of(tensor.type) + at,
                   std::min(bytes, 16));
  }
};

// `is_last`: from the reduced terms to the outputs.
template <bool is_last, int max_inputs, int max_outputs>
struct HostFunction {
  using Real = double;
  using Labels = HostElements;
  using Indices = HostElements;
  static constexpr int inputs = max_inputs, outputs = max_outputs;
  static void apply(PrimitiveParameters const& params, double const (&in)[inputs], double (&out)[outputs]) {
    auto const& pass = *static_cast<plan::PrimitivePass const*>(params.functions);
    plan::PrimitiveFunction const& f = is_last ? pass.last : pass.function;
    std::array<double, primitive_inputs> operands{};
    std::array<double, primitive_scalars> scalars{};
    std::array<double, primitive_outputs> stores{};
    for (std::size_t i = 0; i < f.operands.size(); ++i) operands[i] = in[f.operands[i]];
    for (std::size_t i = 0; i < f.scalars.size(); ++i) scalars[i] = params.scalar[f.scalars[i]];
    out[f.result] = epilogue::evaluate(f.expression, {in[f.accumulator], 0, scalars, operands, stores});
    for (std::size_t i = 0; i < f.stores.size(); ++i) out[f.stores[i]] = stores[i];
  }
};

}  // namespace cosmati::emulator

namespace cosmati {

// Any number of tensors, all of the same access type.
struct HostTensors {
  static constexpr int size = primitive_inputs;
};
template <int i>
struct AccessAt<i, HostTensors> {
  using type = emulator::HostElements;
};

namespace emulator {

template <int width_, bool runs_of_terms_, int cached_, class Function_, class Final_, int cluster_ = 1,
          WindowPolicy window_ = WindowPolicy{}, bool packed_ = false>
struct HostTraits {
  using Function = Function_;
  using Final = Final_;
  using Real = double;
  using Inputs = HostTensors;
  using Outputs = HostTensors;
  static constexpr int threads = 256, width = width_, unroll = 2, cached = cached_, cluster = cluster_,
                       along = 1;
  static constexpr bool runs_of_terms = runs_of_terms_, packed = packed_, bulk = false;
  static constexpr WindowPolicy window = window_;
  static constexpr int inputs = Function::inputs, outputs = Final::outputs;
  static PrimitivePolicy const& policy(PrimitiveParameters const& params) { return params.policy; }
};

template <class Traits>
program::KernelSpec spec_of(char const* entry) {
  plan::PrimitiveInstance const instance{Traits::width,       Traits::runs_of_terms, Traits::cached > 0,
                                         Traits::cluster > 1, Traits::packed,        Traits::window};
  return {.entry = entry, .traits = instance.print()};
}

template <auto kernel, class Traits, class Parameters = PrimitiveParameters>
void add_pass(KernelTable& table, char const* entry) {
  add_kernel<kernel, Parameters>(table, entry, spec_of<Traits>(entry).traits);
}

template <auto kernel, class Traits>
void add_clusters(KernelTable& table, char const* entry) {
  table[spec_of<Traits>(entry).key()] = [](Grid grid, int threads, unsigned shared_bytes,
                                           void const* parameters, int host_threads) {
    auto const& params = *static_cast<PrimitiveParameters const*>(parameters);
    launch_kernel_clusters<kernel>(grid, {params.policy.cluster, 1, 1}, threads, shared_bytes, params,
                                   host_threads);
  };
}

}  // namespace emulator
}  // namespace cosmati
