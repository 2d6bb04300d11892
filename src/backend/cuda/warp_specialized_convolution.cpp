// Composes the source of the kernel, encodes its tensor maps on the stack, and launches it.
#include "src/backend/cuda/warp_specialized_convolution.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "src/backend/cuda/driver/tensor_map.h"
#include "src/backend/cuda/gemm_source.h"
#include "src/backend/cuda/packing.h"
#include "src/jit/cache.h"
#include "src/plan/conv/kernel_parts.h"
#include "src/plan/conv/launch.h"
#include "src/plan/conv/tensor_windows.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/parameters.h"
#include "src/program/launch_tag.h"

namespace cosmati::cuda {
namespace {

using Problem = ConvolutionProblem;

class WindowProductKernel final : public Kernel<Problem> {
 public:
  WindowProductKernel(Plan<Problem> const& plan, Function function)
      : problem_(plan.problem),
        recipe_(plan.recipe.product),
        windows_(plan::window_products(plan.problem, plan.device.gpu, plan.recipe.packing)),
        gpu_(plan.device.gpu),
        scalars_(plan.problem.epilogue.expression.scalars().size()),
        shared_bytes_(plan::shared_storage_bytes(recipe_, windows_.parts.front().product)),
        function_(std::move(function)),
        packing_(plan) {
    GemmPolicy const& p = recipe_.policy;
    plan::CanonicalGemm const& front = windows_.parts.front().product;
    int const size = size_of(front.a.type);
    a_ = tensor_box(windows_.along_of_a, size, p.block_k, p.block_m, p.cluster_n);
    b_ = tensor_box(windows_.along_of_b, size, p.block_k, p.block_n, p.cluster_m);
    if (plan::run_together(plan.recipe, windows_)) places_ = plan::places_of(windows_, recipe_);
    if (!windows_.by_digits && plan::stores_by_engine(p, front)) store_ = plan::tensor_store_of(p, front);
    function_.allow_shared_bytes(shared_bytes_);
  }

  void enqueue(Problem::Arguments const& given, std::byte* workspace, Stream stream) const override {
    Current const current(gpu_.ordinal);
    Problem::Arguments const arguments = packing_.enqueue(given, workspace, stream);
    if (!places_.list.empty())
      plan::with_epilogue_arguments(problem_, [&]<class Epilogue>(Epilogue epilogue) {
        launch_together(epilogue, arguments, workspace, stream);
      });
    else
      for (plan::WindowProduct const& part : windows_.parts) launch(part, arguments, workspace, stream);
    packing_.finish(given, workspace, stream);
  }

 private:
  arch::TensorMap result_map(plan::CanonicalGemm const& form, void* data) const {
    return tensor_map(form.d, data, form.m, form.n, 1, true, store_->columns, tensor_store_rows);
  }

  void launch(plan::WindowProduct const& part, Problem::Arguments const& arguments, std::byte* workspace,
              Stream stream) const {
    void* const result = plan::pointers_of(problem_, part.form, arguments).d;
    if (windows_.by_digits)
      plan::with_epilogue_arguments(problem_, [&]<class Epilogue>(Epilogue epilogue) {
        plan::fill_epilogue(epilogue, part.form, arguments);
        launch(part, epilogue, plan::digit_arguments(part.form.d, result), arguments, workspace, stream);
      });
    else
      plan::with_epilogue_arguments(part.product, scalars_, [&]<class Epilogue>(Epilogue epilogue) {
        plan::fill_epilogue(epilogue, part.product, scalars_, arguments);
        if (store_)
          launch(part, epilogue, TensorArguments{result_map(part.product, result)}, arguments, workspace,
                 stream);
        else
          launch(part, epilogue, plan::matrix_arguments(part.product.d, result), arguments, workspace,
                 stream);
      });
  }

  template <class Epilogue>
  void launch_together(Epilogue& epilogue, Problem::Arguments const& arguments, std::byte* workspace,
                       Stream stream) const {
    using Parameters = GemmParameters<ImageArguments, FilterArguments, Epilogue, DigitArguments>;
    PlacesParameters<Parameters, most_places_of_launch> places;
    places.blocks = static_cast<int>(places_.blocks);
    for (plan::Place const& place : places_.list) {
      plan::WindowProduct const& part = windows_.parts[place.form];
      Parameters& parameters = places.place[places.count];
      plan::fill_epilogue(epilogue, part.form, arguments);
      plan::ConvolutionPointers const pointers = plan::pointers_of(problem_, part.form, arguments);
      fill_operands(parameters, part, pointers);
      fill(parameters, part.product, epilogue, plan::digit_arguments(part.form.d, pointers.d), workspace);
      parameters.schedule = plan::schedule_of(parameters.schedule, place);
      places.first_block[places.count++] = place.first_block;
    }
    // Passes only as many entries of the parameter array as the plan has phases.
    std::size_t const bytes =
        sizeof(places) - (most_places_of_launch - windows_.parts.size()) * sizeof(Parameters);
    GemmPolicy const& p = recipe_.policy;
    Index const blocks =
        std::min(places_.blocks * p.cluster_m * p.cluster_n * p.cluster_k, plan::places_of_clusters(p, gpu_));
    function_.launch({static_cast<unsigned>(blocks), 1, 1}, static_cast<unsigned>(p.threads()),
                     static_cast<unsigned>(shared_bytes_), &places, bytes, alignof(Parameters), stream,
                     Start::early);
  }

  // If K is 0, nothing is loaded and no map is needed.
  template <class Epilogue, class Destination>
  void fill_operands(GemmParameters<ImageArguments, FilterArguments, Epilogue, Destination>& parameters,
                     plan::WindowProduct const& part, plan::ConvolutionPointers const& pointers) const {
    plan::CanonicalGemm const& form = part.product;
    parameters.a = part.image_arguments;
    parameters.b = part.filter_arguments;
    if (form.k == 0) return;
    parameters.a.map = image_map(part.image, form.a.type, pointers.a, a_.row, a_.rows);
    parameters.b.map = filter_map(part.filter, form.b.type, pointers.b, b_.row, b_.slice_rows);
  }

  template <class Epilogue, class Destination>
  void launch(plan::WindowProduct const& part, Epilogue const& epilogue, Destination const& d,
              Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const {
    plan::CanonicalGemm const& form = part.product;
    plan::ConvolutionPointers const pointers = plan::pointers_of(problem_, part.form, arguments);
    if (windows_.image_is_a) {
      GemmParameters<ImageArguments, FilterArguments, Epilogue, Destination> parameters;
      fill_operands(parameters, part, pointers);
      launch(form, parameters, epilogue, d, workspace, stream);
    } else {
      GemmParameters<TensorArguments, ImageArguments, Epilogue, Destination> parameters;
      parameters.b = part.image_arguments;
      if (form.k > 0) {
        parameters.a.map = tensor_map(form.a, pointers.a, form.m, form.k, 1, false, a_.row, a_.slice_rows);
        parameters.b.map = image_map(part.image, form.b.type, pointers.b, b_.row, b_.rows);
      }
      launch(form, parameters, epilogue, d, workspace, stream);
    }
  }

  template <class Parameters, class Epilogue, class Destination>
  void fill(Parameters& parameters, plan::CanonicalGemm const& form, Epilogue const& epilogue,
            Destination const& d, std::byte* workspace) const {
    parameters.m = form.m;
    parameters.n = form.n;
    parameters.k = form.k;
    parameters.d = d;
    parameters.epilogue = epilogue;
    parameters.schedule = plan::schedule_of(recipe_, workspace);
    parameters.schedule.tag = fresh_launch_tag();
  }

  template <class Parameters, class Epilogue, class Destination>
  void launch(plan::CanonicalGemm const& form, Parameters& parameters, Epilogue const& epilogue,
              Destination const& d, std::byte* workspace, Stream stream) const {
    fill(parameters, form, epilogue, d, workspace);
    ScheduleArguments const& schedule = parameters.schedule;
    GemmPolicy const& p = recipe_.policy;
    Index const blocks = schedule.blocks > 0
                             ? schedule.blocks
                             : std::min(plan::tiles_of(p, form) * recipe_.splits * p.cluster_k,
                                        plan::places_of_clusters(p, gpu_));
    function_.launch({static_cast<unsigned>(blocks), 1, 1}, static_cast<unsigned>(p.threads()),
                     static_cast<unsigned>(shared_bytes_), parameters, stream, Start::early);
  }

  Problem problem_;
  GemmRecipe recipe_;
  plan::WindowProducts windows_;
  plan::Places places_;  // empty: one launch per part
  Gpu gpu_;
  std::size_t scalars_;
  int shared_bytes_;
  TensorBox a_, b_;
  std::optional<TensorStore> store_;  // if TMA stores D
  Function function_;
  PackPasses packing_;
};

}  // namespace

jit::Source window_product_source(Plan<Problem> const& plan) {
  plan::WindowProducts const windows =
      plan::window_products(plan.problem, plan.device.gpu, plan.recipe.packing);
  plan::WindowProduct const& front = windows.parts.front();
  GemmRecipe const& recipe = plan.recipe.product;
  epilogue::Expression const& expression = plan.problem.epilogue.expression;
  auto const along = [](Along of) { return of == Along::depth ? "depth" : "outer"; };
  std::string const image = fmt::format("ImageSource<{}, Along::{}>",
                                        name_of((windows.image_is_a ? front.form.a : front.form.b).type),
                                        along(windows.image_is_a ? windows.along_of_a : windows.along_of_b));
  plan::ProductParts texts{.headers = {"conv/tensor_windows.h"}};
  texts.a = windows.image_is_a ? image
                               : fmt::format("TensorSource<{}, Along::outer>", name_of(front.product.a.type));
  texts.b = windows.image_is_a ? fmt::format("FilterSource<{}, Along::{}>", name_of(front.product.b.type),
                                             along(windows.along_of_b))
                               : image;
  if (plan::run_together(plan.recipe, windows)) {
    texts.headers.push_back("conv/places_walk.h");
    texts.walk = fmt::format("cosmati::WalkOfPlaces<cosmati::ComposedTraits, {}>", windows.parts.size());
  }
  if (windows.by_digits) {
    texts.headers.push_back("conv/digit_destination.h");
    texts.epilogue = epilogue_text(front.form);
    texts.destination = fmt::format("DigitDestination<{}, {}, Along::{}>", name_of(front.form.d.type),
                                    front.form.d.width, windows.along_m ? "outer" : "depth");
    texts.parameter_bytes = plan::with_epilogue_arguments(plan.problem, [&]<class Epilogue>(Epilogue const&) {
      return windows.image_is_a
                 ? sizeof(GemmParameters<ImageArguments, FilterArguments, Epilogue, DigitArguments>)
                 : sizeof(GemmParameters<TensorArguments, ImageArguments, Epilogue, DigitArguments>);
    });
  } else {
    auto const size = []<class Parameters>(Parameters const&) { return sizeof(Parameters); };
    std::size_t const scalars = expression.scalars().size();
    texts.parameter_bytes = windows.image_is_a
                                ? plan::with_parameters_by<ImageArguments, FilterArguments, TensorArguments>(
                                      recipe, front.product, scalars, size)
                                : plan::with_parameters_by<TensorArguments, ImageArguments, TensorArguments>(
                                      recipe, front.product, scalars, size);
  }
  return gemm_source(front.product, recipe, expression, plan.device.gpu, texts);
}

std::unique_ptr<Kernel<Problem>> prepare_window_product(Plan<Problem> const& plan) {
  jit::Cubin const cubin = jit::kernel_cache().get(window_product_source(plan));
  Module const module(plan.device.gpu.ordinal, cubin.image.data());
  return std::make_unique<WindowProductKernel>(plan, module.function(cubin.lowered_name));
}

}  // namespace cosmati::cuda
