// Chooses how the threads of a kernel load an operand of a convolution.
#include "src/plan/conv/operand_access.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace cosmati::plan {
namespace {

// The distance in elements between adjacent values of an index; digits with a single value have no stride.
Index neighbor_stride(IndexStrides const& steps) {
  for (IndexStride const* digit : {&steps.last, &steps.middle, &steps.first})
    if (digit->stride != 0) return std::abs(digit->stride);
  return 0;
}

// Removes the strides of digits that have a single value.
IndexStrides used_strides(ProductIndex const& index, IndexStrides steps) {
  if (index[0].extent <= 1) steps.first = {};
  if (index[1].extent <= 1) steps.middle = {};
  if (index[2].extent <= 1) steps.last = {};
  return steps;
}

}  // namespace

int width_along(ProductIndex const& index, IndexStrides const& along, IndexStrides const& across, Index base,
                Index batch_stride, DataType type, int alignment) {
  if (along.last.stride != 1) return 1;
  int const size = size_of(type);
  auto const fits = [&](int width) {
    auto const whole = [width](Index value) { return value % width == 0; };
    Index const others[] = {along.first.stride,   along.middle.stride, across.first.stride,
                            across.middle.stride, across.last.stride,  base,
                            batch_stride};
    bool const extent = whole(index[2].extent) || (index[0].extent == 1 && index[1].extent == 1);
    return alignment % (width * size) == 0 && extent &&
           std::all_of(std::begin(others), std::end(others), whole);
  };
  int width = 1;
  while (2 * width * size <= 16 && fits(2 * width)) width *= 2;
  return width;
}

void set_access(WindowForm& form, ProductIndex const& outer, ProductIndex const& depth) {
  IndexStrides const o = used_strides(outer, form.arguments.outer),
                     d = used_strides(depth, form.arguments.depth);
  // If a run might lie partly outside the image, runs have a single element.
  auto const width_of = [&](ProductIndex const& index, IndexStrides const& along, IndexStrides const& other) {
    if (form.windowed && (along.last.down != 0 || along.last.right != 0)) return 1;
    return width_along(index, along, other, form.base, form.arguments.batch_stride, form.type,
                       form.alignment);
  };
  int const deep = width_of(depth, d, o), across = width_of(outer, o, d);
  // With single-element accesses, adjacent lanes should read elements that are near each other. Kernels for
  // smaller elements pack them along the depth.
  Index const near = neighbor_stride(o), far = neighbor_stride(d);
  bool const lanes_across = across == 1 && deep == 1 && size_of(form.type) >= 4 &&
                            form.type != DataType::tf32 && near != 0 && near < far;
  bool const along_outer = across > deep || lanes_across;
  form.access = along_outer ? OperandAccess{Along::mn, across} : OperandAccess{Along::k, deep};
  form.lane_stride = along_outer ? near : far;
}

void merge_digits(WindowForm& operand, Index outer, Index depth) {
  auto const merge = [](IndexStrides& steps, Index extent) {
    Index extents[3] = {extent / (Index{steps.extents.middle.divisor} * steps.extents.last.divisor),
                        steps.extents.middle.divisor, steps.extents.last.divisor};
    IndexStride each[3] = {steps.first, steps.middle, steps.last};
    for (IndexStride& digit : each) digit = {digit.stride};  // does not move in an image
    // Merges digits with a common stride, from the last to the first.
    int low = 2;
    for (int high = 1; high >= 0; --high) {
      if (extents[low] == 1) std::swap(each[low], each[high]), std::swap(extents[low], extents[high]);
      if (extents[high] == 1) continue;
      if (each[high].stride == each[low].stride * extents[low]) {
        extents[low] *= extents[high];
        extents[high] = 1;
      } else if (--low != high) {
        std::swap(each[low], each[high]), std::swap(extents[low], extents[high]);
      }
    }
    steps = {{Divisor(std::max<Index>(1, extents[1])), Divisor(std::max<Index>(1, extents[2]))},
             each[0],
             each[1],
             each[2]};
    return ProductIndex{{{'1', extents[0]}, {'1', extents[1]}, {'1', extents[2]}}};
  };
  WindowArguments& arguments = operand.arguments;
  ProductIndex const outers = merge(arguments.outer, outer), depths = merge(arguments.depth, depth);
  set_access(operand, outers, depths);
}

}  // namespace cosmati::plan
