// From a plan of a convolution to the entry of the catalogue that computes it.
#include "src/backend/emulator/catalogue/entries.h"

#include <algorithm>

#include "cosmati/epilogue/parse.h"
#include "src/backend/emulator/catalogue/conv/convolution_catalogue.h"
#include "src/backend/emulator/catalogue/conv/unroll.h"
#include "src/backend/emulator/catalogue/conv/warp_specialized_convolution.h"
#include "src/backend/emulator/catalogue/gemm/gemm_repack.h"
#include "src/backend/emulator/contents.h"
#include "src/backend/launch_tag.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter_copy.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/places.h"
#include "src/plan/conv/tensor_windows.h"
#include "src/plan/gemm/model.h"

namespace cosmati::emulator {
namespace {

using Problem = ConvolutionProblem;

template <class Element, class Sum>
void launch_direct(Grid grid, ConvolutionHostPlaces const& places, int host_threads) {
  using Traits = DirectTraits<Element, Element, Sum, ConvolutionHostEpilogue, ConvolutionHostDestination>;
  launch_kernel<&direct_of_places_kernel<Traits, most_places_of_launch>>(grid, Traits::threads, 0, places,
                                                                         host_threads);
}

class EmulatedConvolution final : public Kernel<Problem> {
 public:
  explicit EmulatedConvolution(Plan<Problem> const& plan)
      : copy_(plan::filter_copy(plan.problem)),
        problem_(plan::with_filter_copied(plan.problem, plan::filter_repack(plan.recipe.product))),
        recipe_(plan.recipe),
        forms_(plan::planned_forms(plan.problem, plan.recipe)),
        threads_(plan.device.threads) {
    plan::ConvolutionForm const& form = forms_.front();
    type_ = kernel_type(form.a.type, form.b.type, recipe_);
    launch_ = recipe_.is_direct() ? direct() : product();
    for (plan::ConvolutionForm& each : forms_)
      each.a.type = each.b.type = each.unrolled.type = type_;  // as they will lie
  }

  void enqueue(Problem::Arguments const& given, std::byte* workspace, Stream) const override {
    RepackRecipe const& copied = plan::filter_repack(recipe_.product);
    Problem::Arguments arguments = given;
    if (copied.bytes > 0)
      arguments.w =
          repack(copy_.filter, copied, copy_.outer, copy_.depth, copy_.batch, given.w, workspace, threads_);
    reference::ElementEpilogue const expression(problem_.epilogue, epilogue::convolution_indices,
                                                arguments.operands, arguments.scalars, arguments.stores);
    plan::ConvolutionPointers pointers = plan::pointers_of(problem_, forms_.front(), arguments);
    auto const [a, b] = tensors();
    std::byte* free = workspace + std::max(recipe_.product_workspace(), copied.offset + copied.bytes);
    pointers.a = as_kernel_type(*a, pointers.a, free);
    pointers.b = as_kernel_type(*b, pointers.b, free);
    ConvolutionHostPlaces places;
    auto const add = [&](plan::ConvolutionForm const& form, plan::ConvolutionPointers const& from,
                         int blocks) {
      ConvolutionHostParameters& parameters = places.place[places.count];
      plan::fill_product(parameters, form, recipe_, from.a, from.b, workspace);
      parameters.d = {plan::digit_arguments(form.d, from.d), form.d.type};
      parameters.epilogue = {&expression, &form};
      places.first_block[places.count++] = blocks;
    };
    if (plan::run_together(recipe_, forms_)) {
      plan::Places const all = plan::places_of(forms_, recipe_);
      for (plan::Place const& place : all.list) {
        add(forms_[place.form], pointers, place.first_block);
        ScheduleArguments& schedule = places.place[places.count - 1].schedule;
        schedule = plan::schedule_of(schedule, place);
      }
      launch_groups(places, static_cast<int>(all.blocks), forms_.front().groups);
      return;
    }
    for (plan::ConvolutionForm const& form : forms_) {
      if (form.rows() == 0 || form.columns() == 0) continue;
      plan::ConvolutionPointers read = pointers;
      void const*& image = form.image_is_a ? read.a : read.b;
      if (recipe_.unroll.bytes > 0) image = unroll(form, recipe_.unroll, image, workspace, threads_);
      places.count = 0;
      add(form, read, 0);
      launch_groups(places, blocks(form), form.groups);
    }
  }

 private:
  void launch_groups(ConvolutionHostPlaces& places, int blocks, Index groups) const {
    constexpr Index most_groups = 65535;
    places.blocks = blocks;
    for (Index first = 0; first < groups; first += most_groups) {
      for (int i = 0; i < places.count; ++i) {
        places.place[i].schedule.tag = fresh_launch_tag();
        places.place[i].schedule.first_batch = first;
      }
      launch_({blocks, recipe_.product.splits, static_cast<int>(std::min(most_groups, groups - first))},
              places, threads_);
    }
  }
  LaunchConvolution direct() const {
    return type_ == DataType::f64   ? &launch_direct<f64, f64>
           : type_ == DataType::s32 ? &launch_direct<s32, s32>
                                    : &launch_direct<f32, f32>;
  }
  LaunchConvolution product() const {
    GemmRecipe const& product = recipe_.product;
    int const full = 16 / size_of(type_);
    bool const across = product.a.along == Along::outer && product.b.along == Along::outer;
    bool const deep = product.a.along == Along::depth && product.b.along == Along::depth;
    bool const wide = product.a.width >= full && product.b.width >= full;
    ConvolutionVariant const variant{
        wide && ((across && !recipe_.stepwise) || (deep && recipe_.stepwise)), across, recipe_.stepwise,
        across && recipe_.stepwise && product.a.width == 1 && product.b.width >= full};
    if (product.policy.multiply == Multiply::mma) return find_convolution_mma(type_, variant);
    return type_ == DataType::f32 ? find_convolution_f32(product.policy.main_loop, variant)
                                  : find_convolution_simple(type_, variant);
  }
  int blocks(plan::ConvolutionForm const& form) const {
    return static_cast<int>(plan::blocks_of(form, recipe_));
  }
  std::pair<TensorDescription const*, TensorDescription const*> tensors() const {
    bool const filter = problem_.direction == ConvolutionDirection::filter;
    bool const forward = problem_.direction == ConvolutionDirection::forward;
    TensorDescription const* a = forward ? &problem_.x : &problem_.y;
    TensorDescription const* b = filter ? &problem_.x : &problem_.w;
    if (forms_.front().swapped) std::swap(a, b);
    return {a, b};
  }
  void const* as_kernel_type(TensorDescription const& tensor, void const* data, std::byte*& free) const {
    if (tensor.type == type_) return data;
    void* const to = free;
    for (Index i = 0; i < tensor.layout.span(); ++i) store(type_, to, i, load(tensor.type, data, i));
    free += padded_bytes(tensor.layout.span() * size_of(type_));
    return to;
  }

  plan::FilterCopy copy_;  // how the filter lies before that
  Problem problem_;        // with the filter as the product finds it
  ConvolutionRecipe recipe_;
  std::vector<plan::ConvolutionForm> forms_;
  int threads_;
  DataType type_;
  LaunchConvolution launch_ = nullptr;
};

}  // namespace

std::unique_ptr<Kernel<Problem>> prepare_convolution(Plan<Problem> const& plan) {
  if (plan::is_window_product(plan.recipe)) return prepare_window_product(plan);
  return std::make_unique<EmulatedConvolution>(plan);
}

}  // namespace cosmati::emulator
