// convert_elements: copies a tensor to another data type and layout.
#include <algorithm>
#include <string_view>

#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/loop_nest.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::cpu {
namespace {

constexpr Index conversion_chunk = 512;      // elements
constexpr Index tile = 32;                   // rows and columns of a transposed block
constexpr Index small_conversion = 1 << 14;  // number of elements converted in the time it takes to start a
                                             // second thread

// True if float represents every value of `type` exactly.
bool fits_float(DataType type) { return type != DataType::f64 && type != DataType::s32; }

template <class Real>
void convert_chunk(DataType from, void const* source, Index source_stride, DataType to, void* target,
                   Index target_stride, Index count) {
  Real buffer[conversion_chunk];
  for (Index first = 0; first < count; first += conversion_chunk) {
    Index const length = std::min(conversion_chunk, count - first);
    read_row(from, element(from, source, first * source_stride), source_stride, buffer, length);
    write_row(buffer, to, element(to, target, first * target_stride), target_stride, length);
  }
}

struct Copy {
  DataType from, to;
  void const* source;
  void* target;
  LoopNest<2> nest;  // target, source

  void row(Index target_offset, Index source_offset, Index target_stride, Index source_stride,
           Index count) const {
    void const* const in = element(from, source, source_offset);
    void* const out = element(to, target, target_offset);
    if (from == to) return copy_row(size_of(to), in, source_stride, out, target_stride, count);
    if (fits_float(from)) return convert_chunk<float>(from, in, source_stride, to, out, target_stride, count);
    convert_chunk<double>(from, in, source_stride, to, out, target_stride, count);
  }
};

// Divides the target's rows into pieces, so that a single long row is also spread over all threads.
void convert_rows(Copy const& copy, int threads) {
  auto const& nest = copy.nest;
  constexpr Index piece = 1 << 13;
  Index const pieces = (nest.inner() + piece - 1) / piece;
  parallel_parts(threads, [&](int part, int parts) {
    auto const [first, last] = share(nest.rows() * pieces, part, parts);
    for (Index i = first; i < last; ++i) {
      Index const begin = i % pieces * piece;
      Index const linear = i / pieces * nest.inner() + begin;
      copy.row(nest.offset(0, linear), nest.offset(1, linear), nest.inner_stride(0), nest.inner_stride(1),
               std::min(piece, nest.inner() - begin));
    }
  });
}

template <class Bits>
void transpose_tile(Bits const* in, Index in_row, Index in_column, Bits* out, Index out_row, Index out_column,
                    Index rows, Index columns) {
  for (Index c = 0; c < columns; ++c)
    for (Index r = 0; r < rows; ++r) out[c * out_column + r * out_row] = in[r * in_row + c * in_column];
}

// The source and the target are contiguous along different dimensions: copying square tiles keeps the cache
// lines of both in the cache.
void convert_transposed(Copy const& copy, int source_inner, int threads) {
  auto const& nest = copy.nest;
  auto const inner = static_cast<std::size_t>(nest.rank - 1);
  auto const cross = static_cast<std::size_t>(source_inner);
  Index const columns = (nest.extent[inner] + tile - 1) / tile;
  Index const rows = (nest.extent[cross] + tile - 1) / tile;
  LoopNest<2> outer = nest;  // the dimensions other than these two
  outer.extent[inner] = 1;
  outer.extent[cross] = 1;
  parallel_parts(threads, [&](int part, int parts) {
    alignas(64) std::byte buffer[tile * tile * 8];
    auto const [first, last] = share(outer.size() * rows * columns, part, parts);
    for (Index i = first; i < last; ++i) {
      Index const column = i % columns * tile;
      Index const row = i / columns % rows * tile;
      Index const width = std::min(tile, nest.extent[inner] - column);
      Index const height = std::min(tile, nest.extent[cross] - row);
      Index const to =
          outer.offset(0, i / columns / rows) + column * nest.stride[0][inner] + row * nest.stride[0][cross];
      Index const from =
          outer.offset(1, i / columns / rows) + column * nest.stride[1][inner] + row * nest.stride[1][cross];
      if (copy.from == copy.to) {
        auto const move = [&](auto bits) {
          using Bits = decltype(bits);
          transpose_tile(static_cast<Bits const*>(copy.source) + from, nest.stride[1][inner],
                         nest.stride[1][cross], static_cast<Bits*>(copy.target) + to, nest.stride[0][inner],
                         nest.stride[0][cross], width, height);
        };
        switch (size_of(copy.to)) {
          case 1: move(static_cast<unsigned char>(0)); break;
          case 2: move(static_cast<unsigned short>(0)); break;
          case 4: move(0u); break;
          default: move(0ull); break;
        }
        continue;
      }
      auto const through = [&](auto* wide) {
        for (Index w = 0; w < width; ++w)
          read_row(copy.from, element(copy.from, copy.source, from + w * nest.stride[1][inner]),
                   nest.stride[1][cross], wide + w * tile, height);
        decltype(+*wide) line[tile];
        for (Index h = 0; h < height; ++h) {
          for (Index w = 0; w < width; ++w) line[w] = wide[w * tile + h];
          write_row(line, copy.to, element(copy.to, copy.target, to + h * nest.stride[0][cross]),
                    nest.stride[0][inner], width);
        }
      };
      if (fits_float(copy.from))
        through(reinterpret_cast<float*>(buffer));
      else
        through(reinterpret_cast<double*>(buffer));
    }
  });
}

}  // namespace

TensorDescription converted_description(std::string_view name, Role role,
                                        TensorDescription const& description, Conversion conversion) {
  TensorDescription result = description;
  if (name != "labels" && name != "indices") result.type = conversion.type;
  Layout const& layout = description.layout;
  int order[max_rank] = {};  // by descending stride; the first `fixed` dimensions keep their positions
  int const fixed = conversion.order == Conversion::Order::row_major       ? layout.rank()
                    : conversion.order == Conversion::Order::first_slowest ? 1
                                                                           : 0;
  for (int d = 0; d < layout.rank(); ++d) {
    int at = d;
    int const lowest = std::min(d, fixed);
    for (; at > lowest && layout.stride[order[at - 1]] < layout.stride[d]; --at) order[at] = order[at - 1];
    order[at] = d;
  }
  Index step = 1;
  for (int i = layout.rank() - 1; i >= 0; --i) {
    int const d = order[i];
    if (role == Role::input && layout.stride[d] == 0 && layout.extent(d) > 1) continue;
    if (layout.extent(d) > 1) result.layout.stride[d] = step;
    step *= layout.extent(d);
  }
  return result;
}

void convert_elements(TensorDescription const& from, void const* source, TensorDescription const& to,
                      void* target, int threads) {
  Copy const copy{from.type, to.type, source, target, make_loop_nest<2>({to.layout, from.layout})};
  auto const& nest = copy.nest;
  if (nest.size() == 0) return;
  if (nest.size() < small_conversion) threads = 1;
  int source_inner = nest.rank - 1;
  for (int d = nest.rank - 1; d >= 0; --d)
    if (nest.stride[1][static_cast<std::size_t>(d)] < nest.stride[1][static_cast<std::size_t>(source_inner)])
      source_inner = d;
  if (source_inner != nest.rank - 1 && nest.inner_stride(1) > 4)
    convert_transposed(copy, source_inner, threads);
  else
    convert_rows(copy, threads);
}

}  // namespace cosmati::cpu
