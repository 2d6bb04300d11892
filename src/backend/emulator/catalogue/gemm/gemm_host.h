// An epilogue and a destination that know their types only when they run: what the catalogue's kernels have
// in the place of composed ones.
#pragma once
#include <algorithm>

#include "cosmati/gemm/kernel.h"
#include "reference/elements.h"
#include "reference/epilogue.h"
#include "src/plan/gemm/launch.h"

namespace cosmati::emulator {

struct HostEpilogue {
  using Real = double;
  struct Arguments {
    reference::ElementEpilogue const* expression = nullptr;
    TensorDescription const* source = nullptr;  // of c; null: the expression has none
    void const* source_data = nullptr;          // or an array of pointers
    bool swapped = false;
    bool by_pointers = false;

    double source_at(reference::Position at) const {
      void const* data = source_data;
      if (by_pointers) {
        data = static_cast<void const* const*>(source_data)[at[0]];
        at[0] = 0;
      }
      return reference::Input(*source, data)(at);
    }
  };
  struct Tile {
    Arguments arguments;
    Index batch, first_m, first_n;
    Tile(Arguments const& all, Index at_batch, Index m, Index n)
        : arguments(all), batch(at_batch), first_m(m), first_n(n) {}
  };
  template <int count>
  static void apply(Tile const& tile, int m, int n, int valid, double (&value)[count]) {
    for (int i = 0; i < std::min(valid, count); ++i) {
      reference::Position at{tile.batch, tile.first_m + m, tile.first_n + n + i};
      if (tile.arguments.swapped) std::swap(at[1], at[2]);
      double const source = tile.arguments.source != nullptr ? tile.arguments.source_at(at) : 0;
      value[i] = (*tile.arguments.expression)(value[i], source, at);
    }
  }
};

struct HostDestination {
  static constexpr int width = 4;
  struct Arguments {
    MatrixArguments matrix;
    DataType type = DataType::f32;
  };
  class Tile {
   public:
    Tile(Arguments const& arguments, Index batch, Index first_m, Index first_n)
        : arguments_(arguments),
          data_(arguments.matrix.pointers != nullptr ? arguments.matrix.pointers[batch]
                                                     : arguments.matrix.data),
          first_(batch * arguments.matrix.batch_stride + first_m * arguments.matrix.row_stride +
                 first_n * arguments.matrix.column_stride) {}
    template <int count>
    void store(int m, int n, int valid, double const (&value)[count]) const {
      MatrixArguments const& matrix = arguments_.matrix;
      for (int i = 0; i < std::min(valid, count); ++i)
        cosmati::store(arguments_.type, data_,
                       first_ + m * matrix.row_stride + (n + i) * matrix.column_stride, value[i]);
    }

   private:
    Arguments arguments_;
    void* data_;
    Index first_;  // with pointers, the batch stride is 0
  };
};

// Where the result lies and what is stored there. `expression` is not copied.
template <class Parameters>
void fill_result(Parameters& parameters, GemmProblem const& problem, plan::CanonicalGemm const& form,
                 reference::ElementEpilogue const& expression, GemmProblem::Arguments const& arguments) {
  parameters.d = {plan::matrix_arguments(form.d, arguments.d, form.by_pointers), problem.d.type};
  parameters.epilogue = {&expression, form.c.present ? &problem.c : nullptr, arguments.c, form.swapped,
                         form.by_pointers};
}

using HostGemmParameters =
    GemmParameters<MatrixArguments, MatrixArguments, HostEpilogue::Arguments, HostDestination::Arguments>;

}  // namespace cosmati::emulator
