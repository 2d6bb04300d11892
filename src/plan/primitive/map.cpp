// Element-wise maps, and transposes for tensors whose contiguous dimensions differ.
#include <fmt/format.h>
#include <utility>

#include <algorithm>

#include "src/plan/primitive/builder.h"

namespace cosmati::plan {
namespace {

std::vector<StridedTensor const*> pointers_to(std::vector<StridedTensor> const& inputs,
                                              std::vector<StridedTensor> const& outputs) {
  std::vector<StridedTensor const*> list;
  for (StridedTensor const& tensor : inputs) list.push_back(&tensor);
  for (StridedTensor const& tensor : outputs) list.push_back(&tensor);
  return list;
}

// The inputs that are the same in all runs of a thread; the indices of its runs differ by multiples of the
// number of threads of a block.
unsigned fixed_inputs(PrimitivePass const& pass) {
  PrimitiveParameters const& p = pass.parameters;
  unsigned fixed = 0;
  for (std::size_t i = 0; i < pass.inputs.size(); ++i) {
    Index const* const stride = p.tensor[i].stride;
    bool const varies = pass.inputs[i].binding.mask ||
                        (stride[0] != 0 && (p.policy.kept == 1 ||
                                            static_cast<int>(primitive_threads) % p.axis[0].divisor != 0)) ||
                        std::any_of(stride + 1, stride + p.policy.kept, [](Index step) { return step != 0; });
    if (!varies) fixed |= 1u << i;
  }
  return fixed;
}

// The number of runs that a thread keeps in flight: about 64 bytes per thread. With a single input and runs
// of eight elements, more threads with one run each were faster (relu in f16: 0.93 of the copy rate instead
// of 0.86), unless other inputs are loaded once for all runs.
int unroll_for(PrimitivePass const& pass, PrimitiveTarget const& target) {
  if (target.emulated) return 2;
  PrimitivePolicy const& policy = pass.parameters.policy;
  int const width = policy.width;
  int bytes = 0;
  bool fixed_runs = false;
  for (std::size_t i = 0; i < pass.inputs.size(); ++i) {
    PassTensor const& input = pass.inputs[i];
    bool const fixed = (policy.fixed >> i & 1) != 0;
    if (!input.binding.mask && !fixed) bytes += width * size_of(input.type);
    fixed_runs = fixed_runs || (fixed && !input.same);
  }
  if (fixed_runs) return bytes <= 32 ? 4 : 2;
  return bytes >= 64 || bytes == 16 || width >= 8 ? 1 : bytes >= 32 ? 2 : 4;
}

bool is_transposition(CollapsedSpace const& space) {
  if (space.positions.size() < 2) return false;
  SpaceAxis const& inner = space.positions.front();  // contiguous in y
  if (inner.stride[1] != 1 || inner.stride[0] == 1 || inner.extent < 8) return false;
  for (SpaceAxis const& axis : space.positions)
    if (axis.stride[0] == 1 && axis.extent >= 8) return true;
  return false;
}

void add_transpose(PrimitiveProgram& program, CollapsedSpace space, std::vector<StridedTensor> const& inputs,
                   std::vector<StridedTensor> const& outputs, PrimitiveTarget const& target) {
  auto const neighbors =
      std::find_if(space.positions.begin(), space.positions.end(),
                   [](SpaceAxis const& axis) { return axis.stride[0] == 1 && axis.extent >= 8; });
  std::rotate(space.positions.begin() + 1, neighbors, neighbors + 1);
  PrimitivePass pass;
  pass.family = PrimitiveFamily::transpose;
  std::vector<StridedTensor> both = inputs;
  both.push_back(outputs[0]);
  // Elements whose type does not change are moved bit by bit.
  bool const moves = !target.emulated && inputs[0].description.type == outputs[0].description.type;
  pass.real = moves ? inputs[0].description.type : real_of(both);
  // Runs of up to 16 bytes if both sides are aligned to them: eight elements if one side fills tiles of 256,
  // otherwise four.
  StridedTensor const* const sides[] = {&inputs[0], &outputs[0]};
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
  if (target.emulated) width = width == 4 ? 4 : 1;
  fill_space(pass, space, inputs, outputs, 1, false);
  PrimitiveParameters& p = pass.parameters;
  p.policy.width = width;
  p.policy.whole = space.positions[0].extent % width == 0 && space.positions[1].extent % width == 0;
  // About 64 bytes in flight per thread, and at least as many cells as threads.
  bool const narrow = size_of(inputs[0].description.type) <= 2 && size_of(pass.real) <= 4;
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

void add_piece(PrimitiveProgram& program, Shape const& shape, Formula const& formula,
               std::vector<StridedTensor> const& inputs, std::vector<StridedTensor> const& outputs,
               PrimitiveTarget const& target, bool may_transpose) {
  auto const tensors = pointers_to(inputs, outputs);
  CollapsedSpace const space =
      collapse(shape, std::vector<bool>(static_cast<std::size_t>(shape.rank)), tensors, inputs.size());
  if (may_transpose && inputs.size() == 1 && is_transposition(space))
    return add_transpose(program, space, inputs, outputs, target);
  std::vector<std::string> input_names, output_names;
  for (StridedTensor const& tensor : inputs) input_names.push_back(tensor.name);
  for (StridedTensor const& tensor : outputs) output_names.push_back(tensor.name);
  std::vector<StridedTensor> all = inputs;
  all.insert(all.end(), outputs.begin(), outputs.end());
  PrimitivePass pass;
  pass.real = real_of(all);
  int const width = run_width(tensors, space, false, target);
  fill_space(pass, space, inputs, outputs, width, false);
  PrimitiveParameters& p = pass.parameters;
  p.policy.fixed = fixed_inputs(pass);
  p.policy.unroll = unroll_for(pass, target);
  p.policy.whole = p.run_extent % width == 0;
  pass.function = function_of(formula, input_names, output_names, p);
  unsigned const of_block = primitive_threads * static_cast<unsigned>(p.policy.unroll);
  pass.blocks = (p.positions + of_block - 1) / of_block;
  finish(pass, space);
  program.passes.push_back(std::move(pass));
}

}  // namespace

void add_map(PrimitiveProgram& program, Shape const& shape, Formula const& formula,
             std::vector<StridedTensor> inputs, std::vector<StridedTensor> const& outputs,
             PrimitiveTarget const& target, bool may_transpose) {
  if (shape.size() == 0) return;
  // Inputs that the formula does not use are not loaded, but a kernel needs at least one.
  auto const names = names_in(formula);
  auto const unused = [&](StridedTensor const& tensor) {
    return std::find(names.begin(), names.end(), tensor.name) == names.end();
  };
  StridedTensor const first_input = inputs.front();
  inputs.erase(std::remove_if(inputs.begin(), inputs.end(), unused), inputs.end());
  if (inputs.empty()) inputs.push_back(first_input);
  if (inputs.size() > primitive_inputs || outputs.size() > primitive_outputs) {
    program.refusal =
        fmt::format("reads {} tensors and writes {}; these kernels read at most {} and write at most {}",
                    inputs.size(), outputs.size(), primitive_inputs, primitive_outputs);
    return;
  }
  for (Piece const& piece : pieces_of(shape, std::vector<bool>(static_cast<std::size_t>(shape.rank))))
    add_piece(program, piece.shape, formula, piece.of(inputs), piece.of(outputs), target, may_transpose);
}

}  // namespace cosmati::plan
