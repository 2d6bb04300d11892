// The program of a product: passes over its operands, and launches, each for as many matrices as a grid
// supports.
#include "src/plan/gemm/program/program.h"

#include <optional>

#include "src/plan/emulated/contents.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/parameters.h"
#include "src/plan/gemm/pieces.h"
#include "src/plan/gemm/program/passes.h"
#include "src/plan/gemm/program/product_kernel.h"
#include "src/plan/gemm/program/sum_of_parts_launch.h"
#include "src/plan/gemm/program/tensor_maps.h"
#include "src/plan/gemm/repack.h"
#include "src/plan/gemm/small/gemv.h"
#include "src/plan/gemm/sum_of_parts.h"
#include "src/plan/integers.h"
#include "src/program/execute.h"
#include "src/program/launch_tag.h"

namespace cosmati::plan {
namespace {

using Problem = GemmProblem;

struct Operand {
  MatrixForm form;  // as the kernel reads it
  KernelOperand at;
  Index outer = 0;
  OperandAccess access;
  TensorBox box{};  // for warp_specialized
};

// The parameters that all launches of the main kernel share; each is for `batch` matrices starting at
// `first`.
struct ProductLaunch {
  CanonicalGemm form;
  GemmRecipe recipe;
  Operand a, b;
  std::optional<TensorStore> store;  // if TMA stores d
  TensorDescription source;          // c, if there is one
  DataType result = DataType::f32;
  std::size_t scalars = 0;  // in the expression

  void* c(program::Run const& run) const { return source.present() ? run.tensors[2] : nullptr; }
  void* d(program::Run const& run) const {
    return adds_parts(recipe) ? run.workspace : run.tensors[source.present() ? 3 : 2];
  }
  // The number of matrices that the kernel stores, including those of parts of k.
  Index results() const { return form.batch * (adds_parts(recipe) ? recipe.splits : 1); }

  program::TiledTensor tensor_of(Operand const& operand, void const* data, Index batch) const {
    return tiled_tensor(operand.form, data, operand.outer, form.k, batch, operand.access.along, operand.box);
  }
  program::TiledTensor tensor_of_result(void const* data, Index batch) const {
    bool const along_n = direction_of_result(form) == Along::k;
    return tiled_tensor(form.d, data, form.m, form.n, batch, along_n,
                        along_n ? store->columns : tensor_store_rows,
                        along_n ? tensor_store_rows : store->columns);
  }

  void fill(MatrixArguments& to, Operand const& operand, program::Run const& run) const {
    to = matrix_arguments(operand.form, operand.at.of(run), form.by_pointers);
  }
  void fill(TensorArguments& to, Operand const& operand, program::Run const& run) const {
    if (form.k > 0)  // otherwise nothing is loaded
      to.map = run.encode(tensor_of(operand, operand.at.of(run), form.batch));
  }
  void fill(AddressedTensors& to, Operand const& operand, program::Run const& run) const {
    if (form.k > 0) to.map = run.encode(address_space(tensor_of(operand, nullptr, 1)));
    to.pointers = static_cast<void* const*>(operand.at.of(run));
    to.extent = to_int(operand.outer);
  }

  void fill_result(MatrixArguments& to, program::Run const& run) const {
    to = matrix_arguments(form.d, d(run), form.by_pointers);
  }
  void fill_result(TensorArguments& to, program::Run const& run) const {
    to.map = run.encode(tensor_of_result(d(run), results()));
  }
  void fill_result(AddressedTensors& to, program::Run const& run) const {
    to.map = run.encode(address_space(tensor_of_result(nullptr, 1)));
    to.pointers = static_cast<void* const*>(d(run));
  }
  void fill_result(HostProductDestination& to, program::Run const& run) const {
    fill_result(to.matrix, run);
    to.type = result;
  }

  template <class Parameters>
  void fill(Parameters& to, program::Run const& run, Index first, Index batch) const {
    to.m = form.m;
    to.n = form.n;
    to.k = form.k;
    fill(to.a, a, run);
    fill(to.b, b, run);
    fill_result(to.d, run);
    if constexpr (std::is_same_v<decltype(to.epilogue), HostProductEpilogue>)
      to.epilogue = {adds_parts(recipe) ? nullptr : run.epilogue, form.c.present ? &source : nullptr, c(run),
                     form.swapped, form.by_pointers};
    else
      fill_epilogue(to.epilogue, form, scalars, run, c(run));
    to.schedule = schedule_of(recipe, run.workspace);
    to.schedule.tag = fresh_launch_tag();
    to.schedule.first_batch = first;
    to.schedule.batch = batch;
  }
};

class ProductProgram {
 public:
  // `whole` is the f32 problem, if the plan is for the product of its pieces.
  explicit ProductProgram(Plan<Problem> const& plan, Problem const* whole = nullptr)
      : plan_(plan),
        whole_(whole),
        recipe_(plan.recipe),
        given_(canonical(plan.problem, recipe_.swapped)),
        form_(kernel_form(given_, recipe_.policy.partition)),
        emulated_(plan.device.backend == Backend::emulator),
        specialized_(recipe_.policy.main_loop == MainLoop::warp_specialized) {}

  program::Program make() && {
    program_.workspace.add("flags and partial sums", recipe_.flag_bytes + recipe_.partial_bytes);
    ProductLaunch launch;
    launch.a = {form_.a, {form_.swapped ? 1u : 0u}, form_.m, recipe_.a, {}};
    launch.b = {form_.b, {form_.swapped ? 0u : 1u}, form_.n, recipe_.b, {}};
    if (emulated_) widen(launch);
    if (adds_parts(recipe_)) recipe_.result_width = form_.d.width;
    if (whole_ != nullptr) {
      SplitOperands const pieces = split(program_, *whole_, plan_.workspace_bytes);
      launch.a.at = form_.swapped ? pieces.b : pieces.a;
      launch.b.at = form_.swapped ? pieces.a : pieces.b;
    }
    launch.recipe = recipe_;
    launch.scalars = scalars();
    launch.source = plan_.problem.c;
    launch.result = form_.d.type;
    copy_operands(launch);
    if (specialized_) specialize(launch);
    launch.form = form_;
    program_.main = add_kernel(program_, kernel());
    if (form_.m > 0 && form_.n > 0 && form_.batch > 0) {
      add_launches(std::move(launch));
      if (adds_parts(recipe_)) append_sum_of_parts(program_, plan_, given_);
    }
    return std::move(program_);
  }

 private:
  void widen(ProductLaunch& launch) {
    types_ = emulator::kernel_types(form_.a.type, form_.b.type, recipe_.sum, recipe_.policy.multiply);
    bool const swapped = form_.swapped;
    Operand &first = swapped ? launch.b : launch.a, &second = swapped ? launch.a : launch.b;
    first.at = widened(program_, first.at, plan_.problem.a, swapped ? types_.b : types_.a, "a, converted");
    second.at = widened(program_, second.at, plan_.problem.b, swapped ? types_.a : types_.b, "b, converted");
  }

  void copy_operands(ProductLaunch& launch) {
    CanonicalGemm const given = std::exchange(form_, repacked(form_, recipe_));
    launch.a.at = repacked(program_, launch.a.at, given.a, recipe_.repack_a, form_.m, form_.k,
                           matrices_of(given.a, given), "a, copied", emulated_);
    launch.b.at = repacked(program_, launch.b.at, given.b, recipe_.repack_b, form_.n, form_.k,
                           matrices_of(given.b, given), "b, copied", emulated_);
    launch.a.form = form_.a;
    launch.b.form = form_.b;
  }

  void specialize(ProductLaunch& launch) {
    GemmPolicy const& p = recipe_.policy;
    int const size = size_of(form_.a.type);
    launch.a.box = tensor_box(recipe_.a.along, size, p.block_k, p.block_m, p.cluster_n);
    launch.b.box = tensor_box(recipe_.b.along, size, p.block_k, p.block_n, p.cluster_m);
    if (!emulated_ && stores_by_tma(p, form_)) launch.store = tensor_store_of(p, form_);
  }

  program::KernelSpec kernel() const {
    std::string const maps = specialized_ && form_.by_pointers ? "AddressedTensors" : "";
    if (emulated_) return emulated_product_kernel(recipe_, types_.a, types_.b, maps);
    bool const streams = recipe_.policy.main_loop == MainLoop::gemv;
    auto const source = [&](MatrixForm const& operand, OperandAccess const& access, bool is_a) {
      bool const by_tma = specialized_ && !access.by_threads;
      return SourceTraits{operand.type,
                          access.along,
                          access.width,
                          by_tma,
                          maps,
                          access.transposed,
                          streams && gemv_shifts(operand, is_a, is_a ? form_.m : form_.n)}
          .print();
    };
    program::KernelSpec kernel =
        product_kernel(form_, recipe_, plan_.problem.epilogue.expression,
                       {.a = source(form_.a, recipe_.a, true),
                        .b = source(form_.b, recipe_.b, false),
                        .epilogue = epilogue_text(form_),
                        .destination = destination_text(form_, recipe_, maps),
                        .parameter_bytes = with_product_parameters(
                            false, recipe_, form_, scalars(),
                            []<class Parameters>(Parameters const&) { return sizeof(Parameters); })});
    kernel.keeps_roundings = plan_.batch_invariant;
    return kernel;
  }

  // The grid for `batch` matrices.
  program::Grid grid_of(Index batch) const {
    if (!specialized_) {
      GemmGrid const grid = plan::grid_of(recipe_, form_);
      return {grid.tiles, grid.splits, grid.z(batch)};
    }
    if (recipe_.stream_blocks > 0) return {recipe_.stream_blocks};
    Index const resident =
        emulated_ ? emulator::emulated_resident_blocks : resident_clusters(recipe_.policy, plan_.device.gpu);
    return {std::min(blocks_of_matrix() * batch, resident)};
  }
  Index blocks_of_matrix() const {
    return tiles_of(recipe_.policy, form_) * recipe_.splits * recipe_.policy.cluster_k;
  }

  void add_launches(ProductLaunch launch) {
    Index const maximum = specialized_ ? std::max<Index>(1, max_int / blocks_of_matrix())
                                       : Index{plan::grid_of(recipe_, form_).max_batch};
    std::size_t const scalars = launch.scalars;
    auto const shared = std::make_shared<ProductLaunch const>(std::move(launch));
    with_product_parameters(emulated_, recipe_, form_, scalars, [&]<class Parameters>(Parameters const&) {
      for (Index first = 0; first < form_.batch; first += maximum) {
        Index const batch = std::min(maximum, form_.batch - first);
        program_.steps.push_back(program::launch_of<Parameters>(
            program_.main, grid_of(batch), [shared, first, batch](program::Run const& run, Parameters& to) {
              shared->fill(to, run, first, batch);
            }));
      }
    });
  }

  std::size_t scalars() const { return plan_.problem.epilogue.expression.scalars().size(); }

  Plan<Problem> const& plan_;
  Problem const* whole_;
  GemmRecipe recipe_;
  CanonicalGemm given_;
  CanonicalGemm form_;  // of the main kernel, after copies
  bool emulated_, specialized_;
  emulator::KernelTypes types_{};  // of the emulator's kernel
  program::Program program_;
};

}  // namespace

program::Program program_of(Plan<Problem> const& plan) {
  if (!multiplies_pieces(plan.problem, plan.recipe)) return ProductProgram(plan).make();
  Plan<Problem> of_pieces = plan;
  of_pieces.problem = product_of_pieces(plan.problem);
  return ProductProgram(of_pieces, &plan.problem).make();
}

std::unique_ptr<Kernel<Problem>> prepare_program(Plan<Problem> const& plan) {
  return program::prepare(plan, program_of(plan));
}

}  // namespace cosmati::plan
