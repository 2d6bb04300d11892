// Element-wise maps.
#include <fmt/format.h>
#include <utility>

#include <algorithm>

#include "src/plan/primitive/builder.h"
#include "src/plan/primitive/transpose.h"

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

void add_piece(PrimitiveProgram& program, Shape const& shape, Formula const& formula,
               std::vector<StridedTensor> const& inputs, std::vector<StridedTensor> const& outputs,
               PrimitiveTarget const& target, bool may_transpose) {
  auto const tensors = pointers_to(inputs, outputs);
  CollapsedSpace const space =
      collapse(shape, std::vector<bool>(static_cast<std::size_t>(shape.rank)), tensors, inputs.size());
  if (may_transpose && inputs.size() == 1 && is_transposition(space))
    return add_transpose(program, space, inputs[0], outputs[0], target);
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
