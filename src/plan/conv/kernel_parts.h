// Parts that a convolution's kernels have in addition to operands: the epilogue and the destination, as C++
// and as launch arguments. The emulator's kernels evaluate every epilogue, and store every type, on the host.
#pragma once
#include <algorithm>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include "cosmati/ops/convolution.h"
#include "src/plan/conv/launch.h"
#include "src/program/program.h"

namespace cosmati::plan {

// Returns the function of an expression of the epilogue language; empty if there is none.
std::string function_text(ConvolutionProblem const& problem, ConvolutionForm const& form);
// The types of the epilogue and of the destination. Adjacent elements of the destination are along n
// (Along::k) or along m (Along::mn).
std::string epilogue_text(ConvolutionForm const& form);
std::string destination_text(ConvolutionForm const& form, Along along = Along::k);

// Calls use(Arguments{}) with the type of epilogue arguments of the composed kernel.
template <class Use>
decltype(auto) with_epilogue_arguments(ConvolutionProblem const& problem, Use&& use) {
  auto const& expression = problem.epilogue.expression;
  if (expression == epilogue::Expression()) return use(NoEpilogueArguments{});
  return few_arguments_do(static_cast<int>(expression.operands().size()),
                          static_cast<int>(expression.stores().size()),
                          static_cast<int>(expression.scalars().size()))
             ? use(FewConvolutionArguments{})
             : use(ManyConvolutionArguments{});
}

struct HostEpilogueArguments {
  reference::ElementEpilogue const* expression = nullptr;
  ConvolutionForm const* form = nullptr;
};
struct HostDestinationArguments {
  DigitArguments digits;
  DataType type = DataType::f32;
};

// Calls use(epilogue, destination) with arguments of the types of the backend's kernels.
template <class Use>
decltype(auto) with_parts(Plan<ConvolutionProblem> const& plan, Use&& use) {
  if (plan.device.backend == Backend::emulator)
    return use(HostEpilogueArguments{}, HostDestinationArguments{});
  return with_epilogue_arguments(plan.problem,
                                 [&](auto epilogue) { return use(epilogue, DigitArguments{}); });
}

// `arguments` are those of the problem, or of a program's run.
template <class Epilogue, class Arguments>
void fill_epilogue(Epilogue& epilogue, ConvolutionForm const& form, Arguments const& arguments) {
  if constexpr (std::is_same_v<Epilogue, HostEpilogueArguments>) {
    epilogue = {arguments.epilogue, &form};
  } else if constexpr (!std::is_same_v<Epilogue, NoEpilogueArguments>) {
    for (std::size_t i = 0; i < form.operands.size(); ++i)
      epilogue.operands[i] = digit_arguments(form.operands[i], arguments.operands[i]);
    for (std::size_t i = 0; i < form.stores.size(); ++i)
      epilogue.stores[i] = digit_arguments(form.stores[i], arguments.stores[i]);
    std::size_t const room = std::size(epilogue.scalars);
    std::copy_n(arguments.scalars.begin(), std::min(room, arguments.scalars.size()), epilogue.scalars);
  }
}

inline void fill_destination(DigitArguments& to, DigitForm const& d, void* data) {
  to = digit_arguments(d, data);
}
inline void fill_destination(HostDestinationArguments& to, DigitForm const& d, void* data) {
  to = {digit_arguments(d, data), d.type};
}

}  // namespace cosmati::plan
