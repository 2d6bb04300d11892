// Encodes tensor maps on the stack and launches as many clusters as can be resident.
#include "src/backend/cuda/warp_specialized_gemm.h"

#include <algorithm>
#include <array>
#include <optional>
#include <type_traits>

#include "cosmati/gemm/group_arguments.h"
#include "cosmati/gemm/tensor_source.h"
#include "src/backend/cuda/bind.h"
#include "src/backend/cuda/driver/tensor_map.h"
#include "src/backend/cuda/epilogue_arguments.h"
#include "src/backend/cuda/repack.h"
#include "src/plan/gemm/launch.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/repack.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/program/launch_tag.h"

namespace cosmati::cuda {
namespace {

class WarpSpecializedGemm final : public Kernel<GemmProblem> {
 public:
  WarpSpecializedGemm(Plan<GemmProblem> const& plan, Function function)
      : recipe_(plan.recipe),
        form_(plan::repacked(plan::canonical(plan.problem, plan.recipe.swapped), plan.recipe)),
        passes_(passes_of(plan)),
        scalars_(plan.problem.epilogue.expression.scalars().size()),
        ordinal_(plan.device.gpu.ordinal),
        shared_bytes_(plan::shared_storage_bytes(plan.recipe, form_)),
        function_(std::move(function)) {
    GemmPolicy const& p = recipe_.policy;
    int const size = size_of(form_.a.type);
    a_ = tensor_box(recipe_.a.along, size, p.block_k, p.block_m, p.cluster_n);
    b_ = tensor_box(recipe_.b.along, size, p.block_k, p.block_n, p.cluster_m);
    tiles_ = plan::tiles_of(p, form_) * recipe_.splits * p.cluster_k;
    places_ = plan::places_of_clusters(p, plan.device.gpu);
    if (plan::stores_by_engine(p, form_)) store_ = plan::tensor_store_of(p, form_);
    if (form_.by_pointers) make_models(plan.device.gpu);
    function_.allow_shared_bytes(shared_bytes_);
  }

  void enqueue(GemmProblem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    if (form_.m == 0 || form_.n == 0 || form_.batch == 0) return;
    Current const current(ordinal_);  // set once for all driver calls below
    plan::with_epilogue_arguments(form_, scalars_, [&]<class Epilogue>(Epilogue epilogue) {
      fill_epilogue(epilogue, form_, scalars_, arguments);
      if (form_.by_pointers)
        enqueue_by_pointers(epilogue, arguments, workspace, stream);
      else if (store_)
        enqueue(epilogue, TensorArguments{result_map(arguments.d)}, arguments, workspace, stream);
      else
        enqueue(epilogue, plan::matrix_arguments(form_.d, arguments.d), arguments, workspace, stream);
    });
  }

 private:
  // Each matrix has its own tensor map. Since the pointers are in device memory, a kernel writes the maps
  // into the workspace.
  template <class Epilogue>
  void enqueue_by_pointers(Epilogue const& epilogue, GemmProblem::Arguments const& arguments,
                           std::byte* workspace, Stream stream) const {
    MapParameters binding = models_;
    void const* const arrays[] = {form_.swapped ? arguments.b : arguments.a,
                                  form_.swapped ? arguments.a : arguments.b, arguments.d};
    auto* const maps = reinterpret_cast<arch::TensorMapOfDevice*>(workspace + recipe_.map_offset);
    for (int i = 0; i < most_mapped_operands; ++i) {
      binding.pointers[i] = static_cast<void* const*>(const_cast<void*>(arrays[i]));
      binding.maps[i] = maps + i * form_.batch;
    }
    bind_.launch(
        {static_cast<unsigned>((form_.batch + bind_threads - 1) / bind_threads), store_ ? 3u : 2u, 1},
        bind_threads, 0, binding, stream);
    auto const multiply = [&]<class Destination>(Destination const& d) {
      GemmParameters<TensorMapArray, TensorMapArray, Epilogue, Destination> parameters;
      parameters.a = {binding.maps[0]};
      parameters.b = {binding.maps[1]};
      parameters.d = d;
      parameters.epilogue = epilogue;
      launch(parameters, workspace, stream);
    };
    if (store_)
      multiply(TensorMapArray{binding.maps[2]});
    else
      multiply(plan::matrix_arguments(form_.d, arguments.d, true));
  }

  // Encodes template maps of one matrix with a placeholder address, which the kernel replaces.
  void make_models(Gpu const& gpu) {
    Current const current(ordinal_);  // the driver encodes tensor maps only in a context
    void* const any_address = reinterpret_cast<void*>(std::uintptr_t{1} << 20);
    models_.count = std::exchange(form_.batch, 1);
    if (form_.m > 0 && form_.n > 0 && form_.k > 0) {
      models_.model[0] = operand_map(form_.a, any_address, form_.m, recipe_.a, a_).map;
      models_.model[1] = operand_map(form_.b, any_address, form_.n, recipe_.b, b_).map;
    }
    if (store_) models_.model[2] = result_map(any_address);
    form_.batch = models_.count;
    bind_ = bind_function(Binding::maps, gpu);
  }

  arch::TensorMap result_map(void* data) const {
    bool const along_n = plan::direction_of_result(form_) == Along::depth;
    return tensor_map(form_.d, data, form_.m, form_.n, form_.batch, along_n,
                      along_n ? store_->columns : tensor_store_rows,
                      along_n ? tensor_store_rows : store_->columns);
  }
  TensorArguments operand_map(plan::MatrixForm const& operand, void const* data, Index outer,
                              OperandAccess const& access, TensorBox const& box) const {
    TensorArguments tensor;
    if (form_.k > 0)  // otherwise nothing is loaded
      tensor.map = tensor_map(operand, data, outer, form_.k, form_.batch, access.along == Along::depth,
                              box.row, box.slice_rows);
    return tensor;
  }

  template <class Epilogue, class Destination>
  void enqueue(Epilogue const& epilogue, Destination const& d, GemmProblem::Arguments const& arguments,
               std::byte* workspace, Stream stream) const {
    void const* const a = passes_[0].enqueue(form_.swapped ? arguments.b : arguments.a, workspace, stream);
    void const* const b = passes_[1].enqueue(form_.swapped ? arguments.a : arguments.b, workspace, stream);
    with_operand(form_.a, a, form_.m, recipe_.a, a_, [&]<class A>(A const& of_a) {
      with_operand(form_.b, b, form_.n, recipe_.b, b_, [&]<class B>(B const& of_b) {
        GemmParameters<A, B, Epilogue, Destination> parameters;
        parameters.a = of_a;
        parameters.b = of_b;
        parameters.d = d;
        parameters.epilogue = epilogue;
        launch(parameters, workspace, stream);
      });
    });
  }

  // Calls use() with the kernel's argument for an operand: a tensor map, or strides if threads copy the
  // operand.
  template <class Use>
  void with_operand(plan::MatrixForm const& operand, void const* data, Index outer,
                    OperandAccess const& access, TensorBox const& box, Use const& use) const {
    if (access.by_threads) return use(plan::matrix_arguments(operand, data));
    use(operand_map(operand, data, outer, access, box));
  }

  template <class Parameters>
  void launch(Parameters& parameters, std::byte* workspace, Stream stream) const {
    parameters.m = form_.m;
    parameters.n = form_.n;
    parameters.k = form_.k;
    ScheduleArguments& schedule = parameters.schedule;
    schedule = plan::schedule_of(recipe_, workspace);
    Index const most_batch = std::max<Index>(1, 0x7fffffff / tiles_);
    for (Index first = 0; first < form_.batch; first += most_batch) {
      schedule.first_batch = first;
      schedule.batch = std::min(most_batch, form_.batch - first);
      schedule.tag = fresh_launch_tag();
      Index const blocks = schedule.blocks > 0 ? schedule.blocks : std::min(tiles_ * schedule.batch, places_);
      function_.launch({static_cast<unsigned>(blocks), 1, 1}, static_cast<unsigned>(recipe_.policy.threads()),
                       static_cast<unsigned>(shared_bytes_), parameters, stream, Start::early);
    }
  }

  static std::array<RepackPass, 2> passes_of(Plan<GemmProblem> const& plan) {
    plan::CanonicalGemm const form = plan::canonical(plan.problem, plan.recipe.swapped);
    Gpu const& gpu = plan.device.gpu;
    return {RepackPass(gpu, form.a, plan.recipe.repack_a, form.m, form.k, form.batch),
            RepackPass(gpu, form.b, plan.recipe.repack_b, form.n, form.k, form.batch)};
  }

  GemmRecipe recipe_;
  plan::CanonicalGemm form_;          // after repacking
  std::array<RepackPass, 2> passes_;  // repacking of a and b
  std::size_t scalars_;               // number of scalars in the expression
  int ordinal_;
  int shared_bytes_;
  TensorBox a_, b_;
  std::optional<TensorStore> store_;  // if TMA stores D
  Index tiles_, places_;              // blocks with work for one matrix; resident blocks
  Function function_, bind_;
  MapParameters models_;  // template maps for matrices given by pointers
};

}  // namespace

std::unique_ptr<Kernel<GemmProblem>> warp_specialized_gemm(Plan<GemmProblem> const& plan, Function function) {
  return std::make_unique<WarpSpecializedGemm>(plan, std::move(function));
}

}  // namespace cosmati::cuda
