// The launches of warp_specialized_kernel on a convolution, and its tensor maps.
#include "src/plan/conv/windows/window_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <type_traits>

#include "src/ops/number_types.h"
#include "src/plan/conv/windows/merged_phases.h"
#include "src/plan/conv/windows/packing.h"
#include "src/plan/conv/windows/tma_im2col.h"
#include "src/plan/conv/windows/window_maps.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/parameters.h"
#include "src/plan/gemm/program/product_kernel.h"
#include "src/plan/gemm/program/tensor_maps.h"
#include "src/program/launch_tag.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

struct Sources {
  std::string a, b;
};
Sources sources_of(DataType a, DataType b, WindowOperands const& operands) {
  auto const source = [&](bool is_a) {
    Along const along = is_a ? operands.along_of_a : operands.along_of_b;
    DataType const type = is_a ? a : b;
    bool const is_image = is_a == operands.image_is_a;
    if (!is_image && operands.filter_gradient) return SourceTraits{type, along, 1, true}.print();
    return fmt::format("{}<{}, Along::{}>", is_image ? "ImageSource" : "FilterSource", name_of(type),
                       along == Along::k ? "k" : "mn");
  };
  return {source(true), source(false)};
}

// The parameters that all launches share.
struct WindowLaunch {
  WindowProducts windows;
  GemmRecipe recipe;
  std::size_t scalars = 0;
  KernelOperand image, filter, result;  // for a filter gradient, filter is dy
  TensorBox a, b;
  std::optional<TensorStore> store;  // if TMA stores d
  TapMatrices dw;                    // of a filter gradient that TMA stores by taps

  void fill(ImageArguments& to, WindowProduct const& part, program::Run const& run) const {
    to = part.image_arguments;
    if (part.product.k > 0)  // otherwise nothing is loaded
      to.map = run.encode(
          windowed_tensor(part.image, part.product.a.type, image.of(run), windows.image_is_a ? a : b));
  }
  void fill(FilterArguments& to, WindowProduct const& part, program::Run const& run) const {
    to = part.filter_arguments;
    if (part.product.k > 0)
      to.map = run.encode(filter_tensor(part.filter, part.product.b.type, filter.of(run), b));
  }
  void fill(TensorArguments& to, WindowProduct const& part, program::Run const& run) const {
    CanonicalGemm const& form = part.product;
    if (form.k == 0) return;
    auto const map = [&](MatrixForm const& dy, Index filters, Along along, TensorBox const& box) {
      return run.encode(tiled_tensor(dy, filter.of(run), filters, form.k, 1, along, box));
    };
    to.map = windows.image_is_a ? map(form.b, form.n, windows.along_of_b, b)
                                : map(form.a, form.m, windows.along_of_a, a);
  }

  void fill_result(TensorArguments& to, WindowProduct const& part, program::Run const& run) const {
    CanonicalGemm const& form = part.product;
    to.map = run.encode(
        tiled_tensor(form.d, result.of(run), form.m, form.n, 1, true, store->columns, tensor_store_rows));
  }
  void fill_result(ResultArguments& to, WindowProduct const& part, program::Run const& run) const {
    DigitForm const& d = part.form.d;
    TensorBox const box{store->columns, tensor_store_rows, 1, true, tensor_store_rows, 1};
    to.map = run.encode(windowed_tensor(part.result, d.type, moved(result.of(run), d.base, d.type), box));
    to.pixels = {Divisor(part.result.extent[2]), Divisor(part.result.extent[1])};
  }
  void fill_result(TapArguments& to, WindowProduct const& part, program::Run const& run) const {
    to.map = run.encode(tiled_tensor(dw.of_tap, result.of(run), dw.filters, dw.channels, dw.taps, true,
                                     store->columns, tensor_store_rows));
    to.channels = Divisor(part.product.n / dw.taps);
  }
  void fill_result(MatrixArguments& to, WindowProduct const& part, program::Run const& run) const {
    to = matrix_arguments(part.product.d, result.of(run));
  }
  template <class Destination>
  void fill_result(Destination& to, WindowProduct const& part, program::Run const& run) const {
    fill_destination(to, part.form.d, result.of(run));
  }

  template <class Parameters>
  void fill(Parameters& to, WindowProduct const& part, program::Run const& run) const {
    using Destination = decltype(to.d);
    to.m = part.product.m;
    to.n = part.product.n;
    to.k = part.product.k;
    fill(to.a, part, run);
    fill(to.b, part, run);
    fill_result(to.d, part, run);
    if constexpr (std::is_same_v<Destination, TensorArguments> ||
                  std::is_same_v<Destination, ResultArguments> || std::is_same_v<Destination, TapArguments> ||
                  std::is_same_v<Destination, MatrixArguments>)
      fill_epilogue(to.epilogue, part.product, scalars, run);
    else
      fill_epilogue(to.epilogue, part.form, run);
    to.schedule = schedule_of(recipe, run.workspace);
    to.schedule.tag = fresh_launch_tag();
  }
};

class WindowProgram {
 public:
  explicit WindowProgram(Plan<Problem> const& plan)
      : plan_(plan), packing_(std::get<PackRecipe>(plan.recipe.own)), made_(plan, workspace_of(plan)) {
    auto launch = std::make_shared<WindowLaunch>();
    launch->windows = window_products(plan.problem, plan.device.gpu, packing_, row_bytes());
    launch->recipe = plan.recipe.product;
    launch->scalars = plan.problem.epilogue.expression.scalars().size();
    WindowProducts const& windows = launch->windows;
    GemmPolicy const& p = launch->recipe.policy;
    CanonicalGemm const& front = windows.parts.front().product;
    int const size = size_of(front.a.type);
    launch->a = tensor_box(windows.along_of_a, size, p.block_k, p.block_m, p.cluster_n);
    launch->b = tensor_box(windows.along_of_b, size, p.block_k, p.block_n, p.cluster_m);
    by_digits_ = stores_by_digits(windows, p);
    if (!by_digits_ && stores_by_tma(p, front)) launch->store = tensor_store_of(p, front);
    if (packing_.by_taps) launch->dw = tap_matrices(plan.problem);
    launch_ = launch;
    with_parameters([&]<class Parameters>(Parameters const&) {
      std::size_t const main = made_.add_pass(kernel(sizeof(Parameters)));
      pack();
      launch->image = made_.image, launch->filter = made_.filter, launch->result = {2};
      bool const unpacks = unpacks_result(plan.problem, packing_);
      UnpackLaunch const last = unpacks ? unpack_launch(plan.problem, packing_) : UnpackLaunch{};
      if (unpacks) launch->result = {2, last.from, true};
      add_launches<Parameters>(main);
      if (unpacks)
        made_.launch<UnpackParameters>(
            made_.add_pass(unpack_kernel(size_of(plan.problem.w.type))), {last.blocks},
            [last, from = launch->result](program::Run const& run, UnpackParameters& to) {
              to = last.parameters;
              to.from = from.of(run), to.to = ConvolutionProgram::result(run);
            });
    });
  }

  program::Program finish() && { return std::move(made_).finish(); }

 private:
  static program::Workspace workspace_of(Plan<Problem> const& plan) {
    program::Workspace workspace;
    auto const& packing = std::get<PackRecipe>(plan.recipe.own);
    std::size_t const own = plan.recipe.product_workspace(), end = packing.end;
    workspace.add("flags and partial sums", own);
    std::size_t begin = own;
    if (packing.transposes) begin = packing.of_other + gradient_matrix(plan.problem).transposed().bytes;
    if (end > begin) workspace.add("operands and result, packed", begin, end - begin);
    return workspace;
  }

  int row_bytes() const {
    Problem const& p = plan_.problem;
    TensorDescription const& image = p.direction == ConvolutionDirection::data ? p.y : p.x;
    return plan_.recipe.product.policy.block_k * size_of(image.type);
  }
  bool merges() const { return plan_.recipe.algorithm == ConvolutionAlgorithm::dgrad_phases; }
  bool together() const { return run_together(plan_.recipe, launch_->windows); }

  // Calls use(Parameters{}) with the type of a product's parameters.
  template <class Use>
  void with_parameters(Use const& use) const {
    WindowProducts const& windows = launch_->windows;
    auto const by_operands = [&](auto const& of_operands) {
      if (!windows.filter_gradient)
        of_operands.template operator()<ImageArguments, FilterArguments>();
      else if (windows.image_is_a)
        of_operands.template operator()<ImageArguments, TensorArguments>();
      else
        of_operands.template operator()<TensorArguments, ImageArguments>();
    };
    auto const by_digits = [&]<class Epilogue, class Destination>(Epilogue, Destination) {
      by_operands([&]<class A, class B>() { use(GemmParameters<A, B, Epilogue, Destination>{}); });
    };
    auto const of_windows = [&]<class Parameters>(Parameters const& parameters) {
      if constexpr (!std::is_same_v<decltype(parameters.a), MatrixArguments>) use(parameters);
    };
    CanonicalGemm const& front = windows.parts.front().product;
    if (made_.is_emulated() || by_digits_)
      with_parts(plan_, by_digits);
    else
      by_operands([&]<class A, class B>() {
        if (windows.by_pixels)
          with_parameters_by<A, B, ResultArguments>(launch_->recipe, front, launch_->scalars, of_windows);
        else if (packing_.by_taps)
          with_parameters_by<A, B, TapArguments>(launch_->recipe, front, launch_->scalars, of_windows);
        else
          with_parameters_by<A, B, TensorArguments>(launch_->recipe, front, launch_->scalars, of_windows);
      });
  }

  program::KernelSpec kernel(std::size_t parameter_bytes) const {
    WindowProducts const& windows = launch_->windows;
    WindowProduct const& front = windows.parts.front();
    if (made_.is_emulated())
      return merges() ? emulated_merged_kernel(front.product.a.type, windows.along_of_b)
                      : emulated_window_kernel(front.product.a.type, windows);
    ConvolutionForm const& form = front.form;
    Sources const sources = sources_of(front.product.a.type, front.product.b.type, windows);
    ProductParts parts{.headers = {"conv/tma_im2col.h"},
                       .a = sources.a,
                       .b = sources.b,
                       .epilogue = epilogue_text(front.product),
                       .destination = destination_text(front.product, launch_->recipe,
                                                       windows.by_pixels  ? "ResultArguments"
                                                       : packing_.by_taps ? "TapArguments"
                                                                          : ""),
                       .parameter_bytes = parameter_bytes};
    if (merges()) {
      parts.headers.push_back("conv/merged_phases.h");
      parts.traits = "MergedPhasesTraits";
      parts.scheduler = "cosmati::MergedPhases<cosmati::ComposedTraits>";
      parts.shared_bytes = merged_shared_bytes(launch_->recipe.policy, front.product);
    } else if (together()) {
      parts.headers.push_back("conv/phase_scheduler.h");
      parts.scheduler =
          fmt::format("cosmati::PhaseScheduler<cosmati::ComposedTraits, {}>", windows.parts.size());
    }
    if (by_digits_) {
      parts.headers.push_back("conv/conv_destination.h");
      parts.epilogue = epilogue_text(form);
      parts.destination = destination_text(form, windows.along_m ? Along::mn : Along::k);
    }
    return product_kernel(front.product, launch_->recipe, plan_.problem.epilogue.expression, parts);
  }

  void pack() {
    if (packing_.transposes) {
      GradientMatrix const dy = gradient_matrix(plan_.problem);
      made_.repack_filter(dy.from, dy.transposed(packing_), dy.filters, dy.pixels, 1, "dy, transposed");
    }
    std::optional<std::size_t> kernel;
    for (PackLaunch const& launch : pack_launches(plan_.problem, packing_)) {
      if (!kernel) kernel = made_.add_pass(pack_kernel(launch.element_bytes));
      KernelOperand& operand = launch.is_image ? made_.image : made_.filter;
      KernelOperand const from = std::exchange(operand, KernelOperand{operand.tensor, launch.to, true});
      made_.launch<PackParameters>(
          *kernel, {launch.blocks, launch.blocks_of_runs},
          [launch, from, to = operand](program::Run const& run, PackParameters& all) {
            all = launch.parameters;
            all.from = from.of(run), all.to = to.of(run);
          });
    }
  }

  // The grid for `tiles` parts of the result's tiles.
  Index blocks_of(Index tiles) const {
    GemmPolicy const& p = launch_->recipe.policy;
    return std::min(tiles, made_.is_emulated() ? Index{emulator::emulated_resident_blocks}
                                               : resident_clusters(p, plan_.device.gpu));
  }

  template <class Parameters>
  void add_launches(std::size_t kernel) {
    constexpr bool on_host = std::is_same_v<decltype(Parameters::epilogue), HostEpilogueArguments>;
    constexpr bool has_phases = std::is_same_v<decltype(Parameters::a), ImageArguments> &&
                                std::is_same_v<decltype(Parameters::b), FilterArguments> &&
                                (on_host || std::is_same_v<decltype(Parameters::d), DigitArguments> ||
                                 std::is_same_v<decltype(Parameters::d), ResultArguments>);
    GemmRecipe const& recipe = launch_->recipe;
    GemmPolicy const& p = recipe.policy;
    if constexpr (has_phases) {
      if (merges()) return add_merged<Parameters>(kernel);
      if (together()) {
        Phases const phases = phases_of(launch_->windows, recipe);
        add_phases<Parameters>(kernel, phases, blocks_of(phases.blocks * p.cluster()));
        return;
      }
    }
    for (std::size_t i = 0; i < launch_->windows.parts.size(); ++i) {
      Index const tiles = tiles_of(p, launch_->windows.parts[i].product) * recipe.splits;
      if constexpr (on_host && has_phases) {  // the emulator has only the kernel for several phases
        Phases one;
        one.list.push_back({i});
        one.blocks = tiles / p.cluster();
        add_phases<Parameters>(kernel, one, blocks_of(tiles));
      } else {
        Index const fixed = on_host ? 0 : recipe.stream_blocks;
        made_.launch<Parameters>(kernel,
                                 {fixed > 0 ? fixed : blocks_of(on_host ? tiles : tiles * p.cluster_k)},
                                 [launch = launch_, i](program::Run const& run, Parameters& to) {
                                   launch->fill(to, launch->windows.parts[i], run);
                                 });
      }
    }
  }

  template <class Parameters>
  void add_phases(std::size_t kernel, Phases const& phases, Index blocks) {
    using All = PhasesParameters<Parameters, max_phases_of_launch>;
    // Passes only as many entries of the parameter array as the plan has phases.
    std::size_t const absent = made_.is_emulated() ? 0 : max_phases_of_launch - phases.list.size();
    made_.launch<All>(
        kernel, {blocks},
        [launch = launch_, phases](program::Run const& run, All& to) {
          to.blocks = static_cast<int>(phases.blocks);
          for (Phase const& phase : phases.list) {
            Parameters& own = to.phase[to.count];
            launch->fill(own, launch->windows.parts[phase.form], run);
            own.schedule = schedule_of_phase(own.schedule, phase);
            to.first_block[to.count++] = phase.first_block;
          }
        },
        sizeof(All) - absent * sizeof(Parameters));
  }

  template <class Parameters>
  void add_merged(std::size_t kernel) {
    MergedForm const form = merged_form(launch_->windows);
    Index const tiles = tiles_of(launch_->recipe.policy, launch_->windows.parts.front().product);
    made_.launch<MergedPhasesParameters<Parameters>>(
        kernel, {blocks_of(tiles)},
        [launch = launch_, form](program::Run const& run, MergedPhasesParameters<Parameters>& to) {
          to.rows = form.rows, to.columns = form.columns;
          for (std::size_t p = 0; p < form.part.size(); ++p)
            launch->fill(to.phase[p], launch->windows.parts[form.part[p]], run);
        });
  }

  Plan<Problem> const& plan_;
  PackRecipe packing_;
  bool by_digits_ = false;
  ConvolutionProgram made_;
  std::shared_ptr<WindowLaunch const> launch_;
};

}  // namespace

program::KernelSpec emulated_window_kernel(DataType type, WindowOperands const& operands) {
  Sources const sources = sources_of(type, type, operands);
  GemmPolicy policy = emulator::emulated_window_policy(size_of(type), operands.filter_gradient);
  policy.block_k = operands.row_bytes / size_of(type);
  return {.entry = "warp_specialized_kernel",
          .traits =
              ProductKernelTraits{policy, sources.a, sources.b, is_int8(type) ? DataType::s32 : DataType::f32,
                                  "HostEpilogue", "HostDestination"}
                  .print(),
          .scheduler = operands.filter_gradient ? "" : "PhaseScheduler",
          .threads = static_cast<unsigned>(policy.threads())};
}

program::KernelSpec emulated_merged_kernel(DataType type, Along along_of_filter) {
  Sources const sources = sources_of(type, type, {.along_of_b = along_of_filter});
  GemmPolicy const policy =
      emulator::emulated_policy(MainLoop::warp_specialized, Multiply::wgmma, size_of(type), Partition::tiles);
  return {.entry = "warp_specialized_kernel",
          .traits = ProductKernelTraits{policy, sources.a, sources.b, DataType::f32, "HostEpilogue",
                                        "HostDestination", "MergedPhasesTraits"}
                        .print(),
          .scheduler = "MergedPhases",
          .threads = static_cast<unsigned>(policy.threads())};
}

program::Program window_program(Plan<Problem> const& plan) { return WindowProgram(plan).finish(); }

}  // namespace cosmati::plan
