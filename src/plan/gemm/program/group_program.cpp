// The program of a group: launches that copy the records of its problems to the workspace and bind pointers
// in them, then one launch for all products. Except for pointers, the records are constants of the program.
#include <cstring>
#include <optional>

#include "cosmati/gemm/group_arguments.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/parameters.h"
#include "src/plan/gemm/program/passes.h"
#include "src/plan/gemm/program/product_kernel.h"
#include "src/plan/gemm/program/program.h"
#include "src/plan/gemm/program/tensor_maps.h"
#include "src/program/execute.h"

namespace cosmati::plan {
namespace {

bool is_specialized(GemmRecipe const& recipe) {
  return recipe.policy.main_loop == MainLoop::warp_specialized;
}
std::size_t scalars_of(GroupedGemmProblem const& problem) {
  return problem.members.front().epilogue.expression.scalars().size();
}

// The offsets in a record at which a run stores pointers and scalars.
struct BoundPlaces {
  int maps = 0;                        // the first of them are tensor maps
  std::vector<unsigned short> offset;  // offset of each bound value
};

// Collects the offsets of a record's values, in the order of BindParameters.
class SlotCollector {
 public:
  SlotCollector(BoundPlaces& image, void const* record)
      : image_(image), record_(static_cast<std::byte const*>(record)) {}
  void add(MatrixArguments const& matrix) { add_place(&matrix.data); }
  void add(TensorMapOfProblem const& map) {
    add_place(&map.bound.map);
    ++image_.maps;
  }
  void add_place(void const* place) {
    image_.offset.push_back(static_cast<unsigned short>(static_cast<std::byte const*>(place) - record_));
  }

 private:
  BoundPlaces& image_;
  std::byte const* record_;
};

// Pointers and scalars of one record, in order.
class BoundValues {
 public:
  explicit BoundValues(unsigned long long* to) : to_(to) {}
  void add(void const* pointer) { *to_++ = reinterpret_cast<std::uintptr_t>(pointer); }
  void add(double scalar) {
    static_assert(sizeof(double) == sizeof(unsigned long long));
    std::memcpy(to_++, &scalar, sizeof(double));
  }
  // A problem with K = 0 reads nothing.
  void add_product(CanonicalGemm const& form, GemmProblem::Arguments const& arguments) {
    bool const reads = form.k > 0;
    add(reads ? form.swapped ? arguments.b : arguments.a : nullptr);
    add(reads ? form.swapped ? arguments.a : arguments.b : nullptr);
    add(arguments.d);
  }

 private:
  unsigned long long* to_;
};

// The contents of a record of this type, and their offsets.
struct GroupRecords {
  GroupedGemmProblem problem;  // records of the emulator's kernels point to its members
  GemmRecipe recipe;
  GroupForm group = group_form(problem);
  std::size_t scalars = scalars_of(problem);
  TensorBox box_a{}, box_b{};
  std::optional<TensorStore> store;
  BoundPlaces places;

  GroupRecords(Plan<GroupedGemmProblem> const& plan) : problem(plan.problem), recipe(plan.recipe) {
    if (!is_specialized(recipe)) return;
    GemmPolicy const& p = recipe.policy;
    int const size = size_of(group.common.a.type);
    box_a = tensor_box(recipe.a.along, size, p.block_k, p.block_m, p.cluster_n);
    box_b = tensor_box(recipe.b.along, size, p.block_k, p.block_n, p.cluster_m);
    if (stores_by_tma(p, group.common)) store = tensor_store_of(p, group.common);
  }

  // Encoding a tensor map needs an address; it is replaced at run time.
  static void const* any_address() { return reinterpret_cast<void const*>(std::uintptr_t{1} << 20); }

  using Encoder = program::TensorMapEncoder;
  void fill(MatrixArguments& to, MatrixForm const& form, Index, Index, Along, TensorBox const&,
            Encoder const&) const {
    to = matrix_arguments(form, nullptr);
  }
  void fill(TensorMapOfProblem& to, MatrixForm const& form, Index outer, Index depth, Along along,
            TensorBox const& box, Encoder const& encode) const {
    if (depth > 0)  // otherwise nothing is loaded
      to.bound.map = encode(
          tiled_tensor(form, any_address(), outer, depth, 1, along == Along::k, box.row, box.slice_rows));
  }
  void fill_result(MatrixArguments& to, CanonicalGemm const& form, Encoder const&) const {
    to = matrix_arguments(form.d, nullptr);
  }
  void fill_result(TensorMapOfProblem& to, CanonicalGemm const& form, Encoder const& encode) const {
    to.bound.map = encode(
        tiled_tensor(form.d, any_address(), form.m, form.n, 1, true, store->columns, tensor_store_rows));
  }
  void fill_result(HostProductDestination& to, CanonicalGemm const& form, Encoder const&) const {
    to = {matrix_arguments(form.d, nullptr), form.d.type};
  }

  // The parts that do not depend on pointers.
  template <class Record>
  void fill(Record& record, std::size_t number, Encoder const& encode) const {
    CanonicalGemm const& form = group.problems[number];
    record.m = form.m;
    record.n = form.n;
    record.k = form.k;
    fill(record.a, form.a, form.m, form.k, recipe.a.along, box_a, encode);
    fill(record.b, form.b, form.n, form.k, recipe.b.along, box_b, encode);
    fill_result(record.d, form, encode);
    if constexpr (std::is_same_v<decltype(record.epilogue), HostProductEpilogue>) {
      TensorDescription const& c = problem.members[group.member[number]].c;
      record.epilogue = {nullptr, form.c.present ? &c : nullptr, nullptr, form.swapped, false};
    } else if constexpr (!std::is_same_v<decltype(record.epilogue), NoEpilogueArguments>) {
      if (form.c.present) record.epilogue.source = matrix_arguments(form.c, nullptr);
      for (std::size_t i = 0; i < form.operands.size(); ++i)
        record.epilogue.operands[i] = matrix_arguments(form.operands[i], nullptr);
      for (std::size_t i = 0; i < form.stores.size(); ++i)
        record.epilogue.stores[i] = matrix_arguments(form.stores[i], nullptr);
    }
  }

  // The offsets and values that a run binds, in the same order.
  template <class Record>
  void collect(SlotCollector& slots, Record const& record) const {
    slots.add(record.a);
    slots.add(record.b);
    if constexpr (std::is_same_v<decltype(record.epilogue), HostProductEpilogue>) {
      slots.add(record.d.matrix);
      slots.add_place(&record.epilogue.expression);
      slots.add_place(&record.epilogue.source_data);
    } else {
      slots.add(record.d);
      if constexpr (!std::is_same_v<decltype(record.epilogue), NoEpilogueArguments>) {
        if (group.common.c.present) slots.add(record.epilogue.source);
        for (std::size_t i = 0; i < group.common.operands.size(); ++i) slots.add(record.epilogue.operands[i]);
        for (std::size_t i = 0; i < group.common.stores.size(); ++i) slots.add(record.epilogue.stores[i]);
        for (std::size_t i = 0; i < scalars; ++i) slots.add_place(&record.epilogue.scalars[i]);
      }
    }
  }
  template <class Record>
  void add_values(BoundValues& values, std::size_t number, program::Run const& run) const {
    CanonicalGemm const& form = group.problems[number];
    GemmProblem::Arguments const& own = run.members[group.member[number]];
    values.add_product(form, own);
    if constexpr (std::is_same_v<decltype(Record::epilogue), HostProductEpilogue>) {
      values.add(run.member_epilogues[group.member[number]]);
      values.add(own.c);
    } else if (!form.identity) {
      if (form.c.present) values.add(own.c);
      for (std::size_t i = 0; i < form.operands.size(); ++i) values.add(own.operands[i]);
      for (std::size_t i = 0; i < form.stores.size(); ++i) values.add(own.stores[i]);
      for (std::size_t i = 0; i < scalars; ++i) values.add(own.scalars[i]);
    }
  }
};

// Records are aligned like tensor maps, which is twice the alignment of the emulator's workspace.
constexpr std::size_t record_alignment = alignof(arch::TensorMapOfDevice);
std::byte* records_at(std::byte* workspace) {
  auto const address = reinterpret_cast<std::uintptr_t>(workspace);
  return workspace + (record_alignment - address % record_alignment) % record_alignment;
}

program::KernelSpec bind_kernel(GemmRecipe const& recipe) {
  return {.headers = {"gemm/bind.h"},
          .entry = "bind_kernel",
          .traits = is_specialized(recipe) ? "true" : "false",
          .is_composed = false,
          .threads = bind_threads,
          .label = "binding pointers"};
}

program::KernelSpec group_kernel(Plan<GroupedGemmProblem> const& plan, CanonicalGemm const& common,
                                 std::size_t record_bytes) {
  GemmRecipe const& recipe = plan.recipe;
  bool const specialized = is_specialized(recipe);
  std::string const maps = specialized ? "TensorMapOfProblem" : "";
  if (plan.device.backend == Backend::emulator)
    return emulated_product_kernel(recipe, common.a.type, common.b.type, maps, true);
  auto const source = [&](MatrixForm const& operand, OperandAccess const& access) {
    bool const by_tma = specialized && !access.by_threads;
    return SourceTraits{operand.type, access.along, access.width, by_tma, maps, access.transposed}.print();
  };
  return product_kernel(common, recipe, plan.problem.members.front().epilogue.expression,
                        {.headers = {"gemm/group.h"},
                         .entry = "grouped_gemm_kernel",
                         .scheduler = "cosmati::GroupScheduler<cosmati::ComposedTraits>",
                         .a = source(common.a, recipe.a),
                         .b = source(common.b, recipe.b),
                         .epilogue = epilogue_text(common),
                         .destination = destination_text(common, recipe, maps),
                         .parameter_bytes = record_bytes});
}

template <class Record>
program::Program make(Plan<GroupedGemmProblem> const& plan, GroupRecords made) {
  static_assert(sizeof(Record) % 8 == 0 && alignof(Record) <= record_alignment);
  GemmRecipe const& recipe = plan.recipe;
  bool const emulated = plan.device.backend == Backend::emulator, specialized = is_specialized(recipe);
  program::Program program;
  std::size_t const bind = add_kernel(program, bind_kernel(recipe));
  program.main = add_kernel(program, group_kernel(plan, made.group.common, sizeof(Record)));
  program.workspace.add("records", group_workspace(plan.device.backend, recipe, made.group, plan.problem));
  std::size_t const count = made.group.problems.size();
  if (count == 0) return program;

  Record const record{};
  SlotCollector slots(made.places, &record);
  made.collect(slots, record);
  std::vector<int> first_tile;
  for (Index const tile : first_tiles(recipe.policy, made.group))
    first_tile.push_back(static_cast<int>(tile));
  Index const tiles = first_tile.back();
  std::size_t const bytes =
      (sizeof(Record) * count + record_alignment - 1) / record_alignment * record_alignment;
  auto const shared = std::make_shared<GroupRecords const>(std::move(made));
  program.constants = {bytes + first_tile.size() * sizeof(int),
                       [shared, first_tile, bytes](program::TensorMapEncoder const& encode, std::byte* to) {
                         for (std::size_t i = 0; i < shared->group.problems.size(); ++i) {
                           Record filled{};
                           shared->fill(filled, i, encode);
                           std::memcpy(to + sizeof(Record) * i, &filled, sizeof(Record));
                         }
                         std::memcpy(to + bytes, first_tile.data(), first_tile.size() * sizeof(int));
                       }};
  std::size_t const maximum = max_bound_values / shared->places.offset.size();
  for (std::size_t first = 0; first < count; first += maximum) {
    std::size_t const records = std::min(maximum, count - first);
    program.steps.push_back(program::launch_of<BindParameters>(
        bind, {static_cast<Index>(records)},
        [shared, first, records](program::Run const& run, BindParameters& to) {
          BoundPlaces const& places = shared->places;
          to.record_bytes = static_cast<int>(sizeof(Record));
          to.slots = static_cast<int>(places.offset.size());
          to.maps = places.maps;
          std::copy(places.offset.begin(), places.offset.end(), to.offset);
          to.image = run.constants + sizeof(Record) * first;
          to.to = records_at(run.workspace) + sizeof(Record) * first;
          for (std::size_t i = 0; i < records; ++i) {
            BoundValues values(to.value + i * places.offset.size());
            shared->add_values<Record>(values, first + i, run);
          }
        }));
  }
  Index const resident =
      emulated ? emulator::emulated_resident_blocks : resident_clusters(recipe.policy, plan.device.gpu);
  program.steps.push_back(program::launch_of<GroupArguments>(
      program.main, {specialized ? std::min(tiles * recipe.policy.cluster(), resident) : tiles},
      [bytes, count](program::Run const& run, GroupArguments& to) {
        to = {records_at(run.workspace), reinterpret_cast<int const*>(run.constants + bytes),
              static_cast<int>(count)};
      }));
  return program;
}

}  // namespace

std::size_t group_workspace(Backend backend, GemmRecipe const& recipe, GroupForm const& group,
                            GroupedGemmProblem const& problem) {
  bool const emulated = backend == Backend::emulator;
  std::size_t const records =
      group.problems.size() *
      with_group_parameters(emulated, recipe, group.common, scalars_of(problem),
                            []<class Record>(Record const&) { return sizeof(Record); });
  return records + (emulated && records > 0 ? record_alignment : 0);
}

program::Program program_of(Plan<GroupedGemmProblem> const& plan) {
  GroupRecords made(plan);
  CanonicalGemm const common = made.group.common;
  return with_group_parameters(
      plan.device.backend == Backend::emulator, plan.recipe, common, made.scalars,
      [&]<class Record>(Record const&) { return make<Record>(plan, std::move(made)); });
}

std::unique_ptr<Kernel<GroupedGemmProblem>> prepare_program(Plan<GroupedGemmProblem> const& plan) {
  return program::prepare(plan, program_of(plan));
}

}  // namespace cosmati::plan
