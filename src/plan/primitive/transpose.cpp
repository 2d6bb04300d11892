// Transposes: tiles through shared memory, or the planes of some channels.
#include "src/plan/primitive/transpose.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "src/ops/architecture.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

constexpr Index least_extent = 8;  // of the contiguous axes; shorter ones are copied element by element

}  // namespace

bool is_transposition(CollapsedSpace const& space) {
  if (space.positions.size() < 2) return false;
  SpaceAxis const& inner = space.positions.front();  // contiguous in y
  if (inner.stride[1] != 1 || inner.stride[0] == 1 || inner.extent < least_extent) return false;
  for (SpaceAxis const& axis : space.positions)
    if (axis.stride[0] == 1 && axis.extent >= least_extent) return true;
  return false;
}

namespace {

// The axes of a transpose between images with contiguous planes and contiguous channels.
struct PlaneAxes {
  SpaceAxis pixels, channels;
  bool to_planes = false;
};

// Axes 0 and 1 of the space are contiguous in y and in x. Returns nothing unless the planes of adjacent
// channels follow each other in y (to_planes) or in x, without being multiples of a run, and the runs of the
// other image's pixels are aligned.
std::optional<PlaneAxes> plane_axes(CollapsedSpace const& space, bool to_planes, Index width) {
  std::size_t const planes = to_planes ? 1 : 0, other = 1 - planes;  // tensors
  PlaneAxes const axes{space.positions[other], space.positions[planes], to_planes};
  if (axes.channels.stride[planes] != axes.pixels.extent || axes.pixels.extent % width == 0 ||
      axes.channels.extent < width)
    return {};
  for (SpaceAxis const& axis : space.positions)
    if (axis.stride[other] % width != 0 && &axis != &space.positions[planes]) return {};
  return axes;
}

// Shared memory for so many elements that begin anywhere in a run, and a barrier.
Index bytes_of_planes(Index elements, int size, int width) { return (elements / width + 3) * width * size; }

constexpr Index least_resident = 3;  // blocks, whose phases differ
Index resident_blocks(Index planes, Index plane, int size, Gpu const& gpu) {
  Index const bytes = bytes_of_planes(planes * plane, size, 16 / size);
  return bytes > gpu.shared_bytes_per_block ? 0 : gpu.shared_bytes_per_multiprocessor / (bytes + 1024);
}

// The channels of a block, a power of two: as many as give a multiprocessor several blocks, but rows of 64
// bytes if possible. At least 16, which keeps_planes() has checked.
Index planes_of_block(Index plane, Index channels, Index images, int size, Gpu const& gpu) {
  Index most = 16;
  while (most < 128 && most < channels) most *= 2;
  for (Index planes = most; planes > 16; planes /= 2) {
    Index const resident = resident_blocks(planes, plane, size, gpu);
    bool const many = ceiling_divide(channels, planes) * images >= 3 * gpu.multiprocessors;
    if (planes * size <= 64 ? resident >= least_resident : resident >= 12 && many) return planes;
  }
  return 16;
}

// Adds a pass whose blocks keep the planes of some channels in shared memory (primitive/transpose_planes.h);
// returns false if that is not possible.
bool add_plane_transpose(PrimitiveProgram& program, CollapsedSpace const& space, StridedTensor const& x,
                         StridedTensor const& y, PrimitiveTarget const& target) {
  int const size = size_of(x.description.type), width = 16 / size;
  if (x.description.type != y.description.type || (size != 2 && size != 4)) return false;
  for (StridedTensor const* tensor : {&x, &y})
    if (tensor->description.alignment < 16 || tensor->binding.first % width != 0) return false;
  std::optional<PlaneAxes> axes = plane_axes(space, true, width);
  if (!axes) axes = plane_axes(space, false, width);
  if (!axes) return false;
  SpaceAxis const &pixels = axes->pixels, &channels = axes->channels;
  if (target.emulated ? pixels.extent > 320 : !keeps_planes(pixels.extent, size, target.gpu)) return false;
  bool const to_planes = axes->to_planes;
  CollapsedSpace blocks = space;
  blocks.positions.erase(blocks.positions.begin() + (to_planes ? 0 : 1));

  Index images = 1;
  for (std::size_t d = 1; d < blocks.positions.size(); ++d) images *= blocks.positions[d].extent;
  Index const planes =
      target.emulated ? 16 : planes_of_block(pixels.extent, channels.extent, images, size, target.gpu);

  PrimitivePass pass;
  pass.family = PrimitiveFamily::transpose;
  pass.real = target.emulated ? real_of({x, y}) : x.description.type;
  divide(blocks.positions[0], planes);
  fill_space(pass, blocks, {x}, {y}, 1, false);
  PrimitiveParameters& p = pass.parameters;
  p.run_extent = pixels.extent;
  p.classes = static_cast<int>(channels.extent);
  p.window[0].tap_step = pixels.stride[to_planes ? 0 : 1];
  p.tensor[0].run_stride = p.tensor[primitive_inputs].run_stride = 1;
  p.policy.width = width;
  p.policy.bulk = !target.emulated && features_of(target.gpu).bulk_copy;
  p.policy.whole = channels.extent % width == 0;
  p.policy.unroll = 4;
  p.policy.window.columns = static_cast<int>(planes);
  p.policy.window.runs_of_columns = to_planes;
  if (!target.emulated) {
    // Lanes that access runs of `along` channels and the pixels between them have different banks.
    Index const conflict_free = pixels.extent % 2 != 0 ? 8 : pixels.extent % 4 != 0 ? 4 : 2;
    p.policy.along = static_cast<int>(std::min(conflict_free, planes / width));
    // Enough loads in flight also where a multiprocessor has one block.
    auto const multiprocessors = static_cast<unsigned>(target.gpu.multiprocessors);
    p.policy.threads = p.positions < 2 * multiprocessors   ? 512
                       : p.positions < 4 * multiprocessors ? 256
                                                           : 128;
  }
  pass.blocks = p.positions;
  pass.shared_bytes =
      static_cast<int>(bytes_of_planes(planes * pixels.extent, target.emulated ? 8 : size, width));
  finish(pass, space);
  program.passes.push_back(std::move(pass));
  return true;
}

}  // namespace

bool keeps_planes(Index plane, int size, Gpu const& gpu) {
  return features_of(gpu).async_copy && plane >= least_extent && (size == 2 || size == 4) &&
         resident_blocks(16, plane, size, gpu) >= least_resident;
}

void add_transpose(PrimitiveProgram& program, CollapsedSpace space, StridedTensor const& x,
                   StridedTensor const& y, PrimitiveTarget const& target) {
  auto const neighbors =
      std::find_if(space.positions.begin(), space.positions.end(),
                   [](SpaceAxis const& axis) { return axis.stride[0] == 1 && axis.extent >= least_extent; });
  std::rotate(space.positions.begin() + 1, neighbors, neighbors + 1);
  PrimitivePass pass;
  pass.family = PrimitiveFamily::transpose;
  // Elements whose type does not change are moved bit by bit.
  bool const moves = !target.emulated && x.description.type == y.description.type;
  pass.real = moves ? x.description.type : real_of({x, y});
  // Runs of up to 16 bytes if both sides are aligned to them: eight elements if one side fills tiles of 256,
  // otherwise four.
  StridedTensor const* const sides[] = {&x, &y};
  auto const fills = [&space](std::size_t d) {
    Index const extent = space.positions[d].extent;
    return (extent + 255) / 256 * 256 <= extent * 9 / 8;
  };
  int width = moves && size_of(pass.real) <= 2 && (fills(0) || fills(1)) ? 8 : 4;
  for (std::size_t i = 0; i < 2; ++i) {
    int const size = size_of(sides[i]->description.type);
    auto const fits = [&](int elements) {
      if (elements * size > 16 || std::max(sides[i]->description.alignment, size) % (elements * size) != 0)
        return false;
      for (std::size_t d = 0; d < space.positions.size(); ++d)  // axis 0 is contiguous in y, axis 1 in x
        if (d != 1 - i && space.positions[d].stride[i] % elements != 0) return false;
      return true;
    };
    while (width > 1 && !fits(width)) width /= 2;
  }
  if (width < 16 / size_of(x.description.type) && add_plane_transpose(program, space, x, y, target)) return;
  if (target.emulated) width = width == 4 ? 4 : 1;
  fill_space(pass, space, {x}, {y}, 1, false);
  PrimitiveParameters& p = pass.parameters;
  p.policy.width = width;
  p.policy.whole = space.positions[0].extent % width == 0 && space.positions[1].extent % width == 0;
  // About 64 bytes in flight per thread, and at least as many cells as threads.
  bool const narrow = size_of(x.description.type) <= 2 && size_of(pass.real) <= 4;
  p.policy.unroll = width == 8 ? (fills(0) ? 4 : 1) : target.emulated || narrow ? 2 : 1;
  p.policy.along = width == 8 && !fills(0) ? 4 : 1;
  Index const along_x = 64 * p.policy.along, along_y = 64 * p.policy.unroll;
  double blocks = 1;
  for (std::size_t d = 0; d < space.positions.size(); ++d) {
    Index extent = space.positions[d].extent;
    if (d < 2) {
      p.window[d].image = static_cast<int>(extent);
      Index const side = d == 0 ? along_y : along_x;
      extent = (extent + side - 1) / side;
      p.axis[d] = Divisor(extent);
    }
    blocks *= static_cast<double>(extent);
  }
  pass.blocks = static_cast<unsigned>(blocks);
  pass.shared_bytes = static_cast<int>(along_x * along_y) * (target.emulated ? 8 : size_of(pass.real));
  finish(pass, space);
  program.passes.push_back(std::move(pass));
}

}  // namespace cosmati::plan
