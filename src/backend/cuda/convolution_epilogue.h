// The epilogue of a composed convolution: its text, and the arguments that a launch hands to it.
#pragma once
#include <algorithm>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include "cosmati/ops/convolution.h"
#include "src/plan/conv/launch.h"

namespace cosmati::cuda {

// The function that an expression of the epilogue language becomes; empty if there is none.
std::string function_text(ConvolutionProblem const& problem, plan::ConvolutionForm const& form);
// The type of the epilogue.
std::string epilogue_text(plan::ConvolutionForm const& form);

// Calls use(Arguments{}) with the type of epilogue arguments that the composed kernel has.
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

template <class Epilogue>
void fill_epilogue(Epilogue& epilogue, plan::ConvolutionForm const& form,
                   ConvolutionProblem::Arguments const& arguments) {
  if constexpr (!std::is_same_v<Epilogue, NoEpilogueArguments>) {
    for (std::size_t i = 0; i < form.operands.size(); ++i)
      epilogue.operands[i] = plan::digit_arguments(form.operands[i], arguments.operands[i]);
    for (std::size_t i = 0; i < form.stores.size(); ++i)
      epilogue.stores[i] = plan::digit_arguments(form.stores[i], arguments.stores[i]);
    std::size_t const room = std::size(epilogue.scalars);
    std::copy_n(arguments.scalars.begin(), std::min(room, arguments.scalars.size()), epilogue.scalars);
  }
}

}  // namespace cosmati::cuda
