// An operand of a convolution as a source of tiles: the unrolled matrix exists only as addresses (Kirk and
// Hwu, chapter 16; Chetlur et al. 2014, "cuDNN: Efficient Primitives for Deep Learning").
#pragma once
#include "cosmati/conv/arguments.h"
#include "cosmati/core/number.h"
#include "cosmati/tile/run.h"

namespace cosmati {

// How depths are decomposed. `stepwise`: a step of the main loop covers one value of the first two digits
// (one tap of the filter) and block_k of the last (channels), which is padded to full steps; its position is
// computed once for all threads. `each`: every run computes its own position.
enum class DepthDigits : unsigned char { stepwise, each };

// An OperandSource (gemm/source.h). `windowed`: elements may lie outside the image. With width > 1 a run lies
// within the last digit of the index along it, and is entirely inside or outside the image.
template <class Element_, Along along_, int width_, DepthDigits depth_digits, bool windowed>
struct WindowSource {
  using Element = Element_;
  using Arguments = WindowArguments;
  static constexpr Along along = along_;
  static constexpr int width = width_;
  static constexpr bool stepwise = depth_digits == DepthDigits::stepwise;

  struct Row {
    Element const* address;
    int depth;  // far beyond all depths if the outer position does not exist
    int valid;  // existing outer positions of the run
    int down, right;
  };
  struct Step {
    Index offset;
    int depth, depth_left;  // first depth; number of depths from there to the end
    int down, right;
  };
  // The position of one depth, for a thread all of whose runs have it.
  struct DepthStep {
    Index offset;
    int depth_left;
    int down, right;
  };

  COSMATI_DEVICE WindowSource(Arguments const& arguments, Index batch, Index first_outer, Index outer_extent,
                              Index depth_extent)
      : arguments_(arguments),
        data_(static_cast<Element const*>(arguments.data) + batch * arguments.batch_stride),
        first_outer_(static_cast<int>(first_outer)),
        outer_extent_(static_cast<int>(outer_extent)),
        depth_extent_(static_cast<int>(depth_extent)) {}

  COSMATI_DEVICE Row row(int outer, int depth) const {
    constexpr int far = 1 << 30;
    int const left = outer_extent_ - first_outer_ - outer;
    IndexStrides const& steps = arguments_.outer;
    Digits const at = steps.extents.digits(left > 0 ? first_outer_ + outer : 0);
    Index const offset = steps.offset(at) + (stepwise ? depth * depth_stride() : 0);
    return {data_ + offset, left > 0 ? depth : far, between_0_and_width(left),
            arguments_.top + steps.down(at), arguments_.left + steps.right(at)};
  }

  COSMATI_DEVICE Step step(Index first_depth) const {
    int const first = static_cast<int>(first_depth);
    if constexpr (!stepwise) return {0, first, depth_extent_ - first, 0, 0};
    IndexStrides const& steps = arguments_.depth;
    Digits const at = steps.extents.digits(first < depth_extent_ ? first : 0);
    return {steps.offset(at), first, first < depth_extent_ ? arguments_.depth_extent - at.last : 0,
            steps.down(at), steps.right(at)};
  }

  // The position of depth first_depth + `depth`, found once for all runs of a thread.
  COSMATI_DEVICE DepthStep step(Index first_depth, int depth) const requires(!stepwise) {
    IndexStrides const& steps = arguments_.depth;
    int const own = static_cast<int>(first_depth) + depth, left = depth_extent_ - own;
    Digits const at = steps.extents.digits(left > 0 ? own : 0);
    return {steps.offset(at), left, steps.down(at), steps.right(at)};
  }

  template <bool whole>
  COSMATI_DEVICE Run<Element> run(Row const& row, DepthStep const& step, int) const {
    bool const exists = row.valid > 0 && is_inside(row.down + step.down, row.right + step.right);
    return {row.address + step.offset, exists ? between_0_and_width(step.depth_left) : 0};
  }
  template <bool whole>
  COSMATI_DEVICE Run<Element> run(Row const& row, Step const& step, int more) const {
    int const depth_left = step.depth_left - row.depth - more;
    Element const* address = row.address + step.offset + more * depth_stride();
    int down = row.down + step.down, right = row.right + step.right;
    if constexpr (!stepwise) {
      IndexStrides const& steps = arguments_.depth;
      Digits const at = steps.extents.digits(depth_left > 0 ? step.depth + row.depth + more : 0);
      address = row.address + steps.offset(at);
      down = row.down + steps.down(at), right = row.right + steps.right(at);
    }
    bool const inside = is_inside(down, right);
    if constexpr (along == Along::k) return {address, inside ? between_0_and_width(depth_left) : 0};
    return {address, inside && depth_left > 0 ? row.valid : 0};
  }

 private:
  COSMATI_DEVICE static int between_0_and_width(int count) {
    return count <= 0 ? 0 : count >= width ? width : count;
  }
  COSMATI_DEVICE bool is_inside(int down, int right) const {
    return !windowed || (static_cast<unsigned>(down) < static_cast<unsigned>(arguments_.height) &&
                         static_cast<unsigned>(right) < static_cast<unsigned>(arguments_.width));
  }
  COSMATI_DEVICE Index depth_stride() const {
    return width > 1 && along == Along::k ? 1 : arguments_.depth.last.stride;
  }

  Arguments const& arguments_;
  Element const* data_;
  int first_outer_, outer_extent_, depth_extent_;
};

}  // namespace cosmati
