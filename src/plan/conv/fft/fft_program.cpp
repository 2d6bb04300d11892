// The launches and transforms of the convolution by Fourier transforms, in chunks of planes.
#include "src/plan/conv/fft/fft_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "src/plan/conv/fft/fft.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

char const* name_of(FftDoubled doubled) {
  return doubled == FftDoubled::image ? "cosmati::FftDoubled::image" : "cosmati::FftDoubled::filter";
}

program::Workspace workspace_of(FftRecipe const& recipe, bool pointwise) {
  program::Workspace workspace;
  workspace.add("products", recipe.planes);
  workspace.add("planes", recipe.planes, recipe.work - recipe.planes);
  workspace.add("work area of the transforms", recipe.work, recipe.image - recipe.work);
  if (!pointwise) workspace.add("factor of the image", recipe.image, recipe.filter - recipe.image);
  workspace.add(pointwise ? "planes of the filter" : "factor of the filter", recipe.filter,
                recipe.sums - recipe.filter);
  if (!pointwise) workspace.add("sums", recipe.sums, recipe.end - recipe.sums);
  return workspace;
}

template <class Use>
void in_chunks(Index planes, int chunk, Use const& use) {
  for (Index first = 0; first < planes; first += chunk) use(first, std::min<Index>(chunk, planes - first));
}

class FftProgram {
 public:
  explicit FftProgram(Plan<Problem> const& plan)
      : plan_(plan),
        shape_(std::make_shared<Shape const>(
            Shape{fft_forms(plan.problem), std::get<FftRecipe>(plan.recipe.own)})),
        pointwise_(fft_pointwise(front())),
        made_(plan, workspace_of(recipe(), pointwise_)) {
    add_kernels();
    image_transform_ = add_transform(recipe().image_chunk, false);
    filter_transform_ = add_transform(recipe().filter_chunk, false);
    sums_transform_ = add_transform(recipe().sums_chunk, true);
    if (!pointwise_) product_ = made_.add_product(fft_product(plan));
    for (FftForm const& form : shape_->forms)
      if (form.form.rows() > 0 && form.form.columns() > 0) add_form(form);
  }

  program::Program finish() && { return std::move(made_).finish(); }

 private:
  // Data shared by the launches; the addresses of the forms do not change.
  struct Shape {
    std::vector<FftForm> forms;
    FftRecipe recipe;
  };
  FftRecipe const& recipe() const { return shape_->recipe; }
  FftForm const& front() const { return shape_->forms.front(); }

  // `numbers`: how many values of type `real` a block keeps per position of a tile.
  program::KernelSpec kernel(std::string entry, std::string traits, int numbers, char const* label,
                             bool is_composed = false) const {
    return {.headers = {"conv/fft/fft.h"},
            .entry = std::move(entry),
            .traits = std::move(traits),
            .is_composed = is_composed,
            .threads = fft_threads,
            .shared_bytes = static_cast<unsigned>(fft_shared_bytes(size_of(recipe().real), numbers)),
            .label = label};
  }

  std::size_t add_planes(FftPlanesParameters const& parameters, char const* label) {
    FftPlanesTraits const traits{{.across = fft_reads_across(parameters)},
                                 made_.is_emulated() ? "HostElements"
                                                     : fmt::format("cosmati::FftElements<cosmati::{}>",
                                                                   cosmati::name_of(parameters.type)),
                                 recipe().real};
    return made_.add_pass(kernel("fft_planes_kernel", traits.print(), 1, label));
  }
  std::size_t add_factor(FftDoubled which, char const* label) {
    FftFactorTraits const traits{
        {.twice = recipe().doubled == which, .doubled = recipe().doubled}, recipe().real, recipe().factor};
    return made_.add_pass(kernel("fft_factor_kernel", traits.print(), 2, label));
  }

  void add_kernels() {
    FftForm const& form = front();
    KernelTypes const types = made_.types_of(form.form);
    FftResultTraits const of_result{{.across = fft_writes_across(form), .image_is_a = form.form.image_is_a},
                                    recipe().real,
                                    types.epilogue,
                                    types.destination};
    with_parts(plan_, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
      result_ = made_.add_kernel<FftResultParameters<Epilogue, Destination>>(
          kernel("fft_result_kernel", of_result.print(), 1, "planes to results", true), form.form);
    });
    image_planes_ = add_planes(fft_image_planes(form, recipe(), nullptr, 0, recipe().slice, 0, 0, nullptr),
                               "image to planes");
    filter_planes_ = add_planes(fft_filter_planes(form, recipe(), nullptr, 0, 0, nullptr),
                                form.gradient ? "gradient to planes" : "filters to planes");
    if (pointwise_) {
      multiply_ = made_.add_pass(
          kernel("fft_product_kernel", FftProductTraits{recipe().real}.print(), 0, "planes multiplied"));
      return;
    }
    image_factor_ = add_factor(FftDoubled::image, "image to a factor");
    filter_factor_ =
        add_factor(FftDoubled::filter, form.gradient ? "gradient to a factor" : "filters to a factor");
    sums_ = made_.add_pass(kernel("fft_sums_kernel",
                                  FftSumsTraits{{.doubled = recipe().doubled}, recipe().real}.print(), 2,
                                  "sums to planes"));
  }

  std::size_t add_transform(int count, bool inverse) {
    return made_.add_transform(
        {recipe().rows, recipe().columns, count, recipe().real, inverse, recipe().work_bytes});
  }
  void transform(std::size_t transform, std::size_t planes) {
    made_.call(program::LibraryCall{transform, planes, recipe().work});
  }

  // parameters_of(run) also gives the extents of the grid if there are no pointers yet.
  template <class Make>
  void launch(std::size_t kernel, Make const& parameters_of) {
    using Parameters = decltype(parameters_of(program::Run{}));
    made_.launch<Parameters>(
        kernel, {fft_blocks(parameters_of(program::Run{}).chunk)},
        [parameters_of](program::Run const& run, Parameters& to) { to = parameters_of(run); });
  }

  void add_form(FftForm const& form) {
    transform_filter(form);
    for (Index outer = 0; outer < form.outers; outer += recipe().slice)
      add_slice(form, outer, std::min(recipe().slice, form.outers - outer));
  }

  void transform_filter(FftForm const& form) {
    FftExtents const e = fft_extents(form, recipe(), recipe().slice);
    in_chunks(e.groups * e.filter_lines * e.depths, recipe().filter_chunk, [&](Index first, Index count) {
      launch(filter_planes_,
             [s = shape_, f = &form, from = made_.filter, first, count](program::Run const& run) {
               return fft_filter_planes(*f, s->recipe, from.of(run), first, count, run.workspace);
             });
      transform(filter_transform_,
                pointwise_ ? recipe().filter + static_cast<std::size_t>(first * fft_plane_bytes(recipe()))
                           : recipe().planes);
      if (!pointwise_)
        launch(filter_factor_, [s = shape_, f = &form, first, count](program::Run const& run) {
          return fft_filter_factor(*f, s->recipe, first, count, run.workspace);
        });
    });
  }

  void add_slice(FftForm const& form, Index outer, Index outers) {
    FftExtents const e = fft_extents(form, recipe(), outers);
    in_chunks(e.groups * e.image_lines * e.depths, recipe().image_chunk, [&](Index first, Index count) {
      launch(image_planes_, [s = shape_, f = &form, from = made_.image, outer, outers, first,
                             count](program::Run const& run) {
        return fft_image_planes(*f, s->recipe, from.of(run), outer, outers, first, count, run.workspace);
      });
      transform(image_transform_, recipe().planes);
      launch_with(form, outers, first, count);
      if (pointwise_) store(form, outer, outers, first, count);
    });
    if (pointwise_) return;
    // Computes a full slice; results past its end are not read.
    made_.call(program::ProductCall{product_, recipe().image, recipe().filter, recipe().sums});
    in_chunks(e.groups * e.image_lines * e.filter_lines, recipe().sums_chunk, [&](Index first, Index count) {
      launch(sums_, [s = shape_, f = &form, outers, first, count](program::Run const& run) {
        return fft_sums(*f, s->recipe, outers, first, count, run.workspace);
      });
      store(form, outer, outers, first, count);
    });
  }

  // The steps that process a chunk of the image's frequencies.
  void launch_with(FftForm const& form, Index outers, Index first, Index count) {
    if (pointwise_)
      launch(multiply_, [s = shape_, f = &form, outers, first, count](program::Run const& run) {
        return fft_products(*f, s->recipe, outers, first, count, run.workspace);
      });
    else
      launch(image_factor_, [s = shape_, f = &form, outers, first, count](program::Run const& run) {
        return fft_image_factor(*f, s->recipe, outers, first, count, run.workspace);
      });
  }

  void store(FftForm const& form, Index outer, Index outers, Index first, Index count) {
    transform(sums_transform_, recipe().planes);
    Index const blocks = fft_blocks(fft_crop(form, recipe(), outer, outers, first, count, nullptr).chunk);
    with_parts(plan_, [&]<class Epilogue, class Destination>(Epilogue, Destination) {
      using Parameters = FftResultParameters<Epilogue, Destination>;
      made_.launch<Parameters>(
          result_, {blocks},
          [s = shape_, f = &form, outer, outers, first, count](program::Run const& run, Parameters& to) {
            fill_fft_result(to, *f, fft_crop(*f, s->recipe, outer, outers, first, count, run.workspace));
            fill_destination(to.d, f->form.d, ConvolutionProgram::result(run));
            fill_epilogue(to.epilogue, f->form, run);
          });
    });
  }

  Plan<Problem> const& plan_;
  std::shared_ptr<Shape const> shape_;
  bool pointwise_;
  ConvolutionProgram made_;
  std::size_t result_ = 0, image_planes_ = 0, filter_planes_ = 0, image_factor_ = 0, filter_factor_ = 0,
              multiply_ = 0, sums_ = 0;  // kernels
  std::size_t image_transform_ = 0, filter_transform_ = 0, sums_transform_ = 0, product_ = 0;
};

}  // namespace

std::string FftPlanesTraits::print() const {
  return fmt::format("cosmati::FftPlanesTraits<cosmati::FftPlanesPolicy{{.across = {}}}, {}, cosmati::{}>",
                     policy.across, from, cosmati::name_of(real));
}

std::string FftFactorTraits::print() const {
  return fmt::format(
      "cosmati::FftFactorTraits<cosmati::FftFactorPolicy{{.twice = {}, .doubled = {}}}, cosmati::{}, "
      "cosmati::{}>",
      policy.twice, name_of(policy.doubled), cosmati::name_of(real), cosmati::name_of(factor));
}

std::string FftSumsTraits::print() const {
  return fmt::format("cosmati::FftSumsTraits<cosmati::FftSumsPolicy{{.doubled = {}}}, cosmati::{}>",
                     name_of(policy.doubled), cosmati::name_of(real));
}

std::string FftProductTraits::print() const {
  return fmt::format("cosmati::FftProductTraits<cosmati::{}>", cosmati::name_of(real));
}

std::string FftResultTraits::print() const {
  return fmt::format("FftResultTraits<FftResultPolicy{{.across = {}, .image_is_a = {}}}, {},\n{},\n{}>",
                     policy.across, policy.image_is_a, cosmati::name_of(real), epilogue, destination);
}

program::Program fft_program(Plan<Problem> const& plan) { return FftProgram(plan).finish(); }

}  // namespace cosmati::plan
