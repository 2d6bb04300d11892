// In which order places are computed, and what each has of the workspace.
#include "src/plan/conv/places.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/plan/conv/choice.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/partition.h"

namespace cosmati::plan {

Places places_of(std::vector<ConvolutionForm> const& forms, GemmRecipe const& product) {
  Places places;
  for (std::size_t i = 0; i < forms.size(); ++i)
    if (forms[i].rows() > 0 && forms[i].columns() > 0) places.list.push_back({i});
  std::stable_sort(places.list.begin(), places.list.end(), [&](Place const& x, Place const& y) {
    return forms[x.form].depth() > forms[y.form].depth();
  });
  GemmRecipe recipe = product;
  for (Place& place : places.list) {
    CanonicalGemm const view = gemm_view(forms[place.form]);
    divide(recipe, {product.policy.partition, product.splits}, view, 0);
    place.first_block = places.blocks;
    place.blocks = static_cast<int>(tiles_of(product.policy, view));
    place.flags = places.flag_bytes;
    place.partials = places.partial_bytes;
    places.blocks += place.blocks;
    places.flag_bytes += recipe.flag_bytes;
    places.partial_bytes += recipe.partial_bytes;
  }
  return places;
}

std::string together_violation(std::vector<ConvolutionForm> const& forms, std::size_t parameter_bytes) {
  constexpr std::size_t most_bytes = 32764;  // of a kernel's parameters, from compute capability 7.0 on
  if (forms.size() < 2) return "there is one product";
  if (forms.size() > most_places_of_launch)
    return fmt::format("{} places between the strides; a launch takes {}", forms.size(),
                       most_places_of_launch);
  if (forms.size() * parameter_bytes + sizeof(PlacesParameters<int, 1>) > most_bytes)
    return fmt::format("{} places with {} bytes of parameters each; a launch takes {}", forms.size(),
                       parameter_bytes, most_bytes);
  return {};
}

bool run_together(ConvolutionRecipe const& recipe, std::vector<ConvolutionForm> const& forms) {
  return recipe.algorithm == ConvolutionAlgorithm::implicit_gemm && recipe.launches == 1 && forms.size() > 1;
}

ScheduleArguments schedule_of(ScheduleArguments schedule, Place const& place) {
  schedule.flags += place.flags / sizeof(unsigned long long);
  schedule.partials = static_cast<std::byte*>(schedule.partials) + place.partials;
  return schedule;
}

}  // namespace cosmati::plan
