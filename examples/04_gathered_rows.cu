// An operand that is not a matrix: rows gathered by an index, as for an embedding or for the tokens that a
// router sends to an expert. A source maps indices to addresses; loaders, main loops and epilogues are
// unchanged.
#include "cosmati/gemm/launch.h"
#include "cosmati/gemm/order.h"
#include "cosmati/gemm/policies.h"
#include "examples/support.h"

using namespace cosmati;

// a(m, k) = table[index[m]][k]; rows of the table begin at multiples of 16 bytes.
struct GatheredRows {
  using Element = float;
  static constexpr Along along = Along::k;
  static constexpr int width = 4;  // elements per run

  struct Arguments {  // passed by a launch
    float const* table;
    Index leading_dimension;
    int const* index;
  };
  struct Row {  // computed once per tile
    float const* address;
    int depth;
    bool exists;
  };
  struct Step {  // computed once per step of k, for all threads
    Index offset, left;
  };

  COSMATI_DEVICE GatheredRows(Arguments const& arguments, Index /*batch*/, Index first_outer,
                              Index outer_extent, Index depth_extent)
      : arguments_(arguments), first_(first_outer), rows_(outer_extent), depth_extent_(depth_extent) {}

  COSMATI_DEVICE Row row(int outer, int depth) const {
    bool const exists = first_ + outer < rows_;
    Index const at = exists ? arguments_.index[first_ + outer] : 0;
    return {arguments_.table + at * arguments_.leading_dimension + depth, depth, exists};
  }
  COSMATI_DEVICE Step step(Index first_depth) const { return {first_depth, depth_extent_ - first_depth}; }

  // `width` contiguous elements, the first `valid` of which exist.
  template <bool whole>
  COSMATI_DEVICE Run<float> run(Row const& row, Step const& step, int more) const {
    int const left = clamp_to_int(step.left - row.depth - more);
    return {row.address + step.offset + more, whole ? width : row.exists ? imin(left, width) : 0};
  }

 private:
  Arguments arguments_;
  Index first_, rows_, depth_extent_;
};

using Gemm = GemmTraits<named_policy(PolicyName::small, MainLoop::multistage, Multiply::fma, DataType::f32),
                        GatheredRows, StridedSource<float, along_of_b(Order::row_major), 4>, float,
                        IdentityEpilogue<float>, StridedDestination<float, 4>>;

int main() {
  if (example::no_gpu()) return example::skipped;
  int const m = 200, n = 64, k = 44, table_rows = 1000;
  example::Memory<float> table(table_rows * k), b(k * n), d(m * n);
  example::Memory<int> index(m);
  example::fill(table, table_rows * k, 1);
  example::fill(b, k * n, 2);
  for (int i = 0; i < m; ++i) index[i] = i * 37 % table_rows;

  Gemm::Params params;
  params.m = m, params.n = n, params.k = k;
  params.a = {table.data(), k, index.data()};
  params.b = matrix_b(Order::row_major, b.data(), n);
  params.d = matrix_d(Order::row_major, d.data(), n);
  example::check(launch_gemm<Gemm>(params));
  example::wait();

  return example::verdict(
      m, n, [&](int i, int j) { return d[i * n + j]; },
      [&](int i, int j) {
        float sum = 0;
        for (int l = 0; l < k; ++l) sum += table[index[i] * k + l] * b[l * n + j];
        return sum;
      });
}
