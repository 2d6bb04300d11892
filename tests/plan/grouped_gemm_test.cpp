// Groups of matrix products: requirements shared by their members, the plans, and results on every available
// backend.
#include "cosmati/ops/grouped_gemm.h"

#include <gtest/gtest.h>

#include "src/plan/gemm/group.h"
#include "tests/plan/gemm_problem.h"
#include "tests/support/complaint.h"

namespace cosmati {
namespace {

using testing::complaint_of;
using testing::gpu_device;
using testing::product;

struct Extents {
  Index m, n, k;
};

GroupedGemmProblem group_of(DataType type, std::vector<Extents> const& sizes, std::string const& letters,
                            std::string const& expression = "acc") {
  GroupedGemmProblem group;
  for (Extents const& size : sizes)
    group.members.push_back(product(type, type, size.m, size.n, size.k, letters, expression));
  return group;
}

// Tensors of all members with small integers, and NaN in the outputs.
class Data {
 public:
  explicit Data(GroupedGemmProblem const& group) : group_(group), members_(group.members.size()) {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      GemmProblem const& member = group.members[i];
      Member& own = members_[i];
      own.a = filled(member.a, 1), own.b = filled(member.b, 2), own.d = Tensor(member.d);
      own.d.fill(std::numeric_limits<double>::quiet_NaN());
      if (member.c.present()) own.c = filled(member.c, 3);
      for (auto const& operand : member.epilogue.operands) own.operands.push_back(filled(operand, 4));
      for (auto const& store : member.epilogue.stores) own.stores.emplace_back(store);
      for (Tensor const& tensor : own.operands) own.operand_pointers.push_back(tensor.data());
      for (Tensor& tensor : own.stores) own.store_pointers.push_back(tensor.data());
      own.scalars.assign(member.epilogue.expression.scalars().size(), 1.0 + static_cast<double>(i));
      arguments_.push_back({.a = own.a.data(),
                            .b = own.b.data(),
                            .c = member.c.present() ? own.c.data() : nullptr,
                            .d = own.d.data(),
                            .operands = own.operand_pointers,
                            .scalars = own.scalars,
                            .stores = own.store_pointers});
    }
  }
  GroupedGemmProblem::Arguments arguments() const { return {arguments_}; }
  void run(Backend backend, std::string const& kernel = "") {
    PlanOptions options;
    options.kernel = kernel;
    auto const prepared = prepare(make_plan(group_, this_device(backend), options));
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.workspace_bytes())));
    workspace.fill(255);
    prepared.run(arguments(), workspace.data());
  }
  void expect_like(Data const& other) const {
    for (std::size_t i = 0; i < members_.size(); ++i) {
      expect_equal(members_[i].d, other.members_[i].d, i);
      for (std::size_t s = 0; s < members_[i].stores.size(); ++s)
        expect_equal(members_[i].stores[s], other.members_[i].stores[s], i);
    }
  }

 private:
  struct Member {
    Tensor a, b, c, d;
    std::vector<Tensor> operands, stores;
    std::vector<void const*> operand_pointers;
    std::vector<void*> store_pointers;
    std::vector<double> scalars;
  };
  static Tensor filled(TensorDescription const& description, int seed) {
    Tensor tensor(description);
    for (Index i = 0; i < tensor.size(); ++i) tensor.set(i, static_cast<double>((i * 7 + seed) % 5) - 2);
    return tensor;
  }
  static void expect_equal(Tensor const& got, Tensor const& right, std::size_t member) {
    for (Index i = 0; i < got.size(); ++i)
      ASSERT_EQ(got.get(i), right.get(i)) << "member " << member << ", element " << i;
  }
  GroupedGemmProblem group_;
  std::vector<Member> members_;
  std::vector<GemmProblem::Arguments> arguments_;
};

void expect_like_reference(GroupedGemmProblem const& group, Backend backend, std::string const& kernel = "") {
  SCOPED_TRACE(std::string(name_of(backend)) + ' ' + kernel);
  Data right(group), got(group);
  right.run(Backend::reference);
  got.run(backend, kernel);
  got.expect_like(right);
}

std::vector<Extents> const mixed{{40, 24, 72}, {1, 8, 16}, {5, 0, 8}, {3, 40, 0}, {0, 8, 8}, {65, 32, 64}};

TEST(GroupedGemm, EveryBackendGivesWhatTheReferenceGives) {
  std::string const expression = "store(pre, acc); alpha * acc + c + bias[n] * scale[m]";
  for (char const* const letters : {"nn", "tn", "nt"})
    for (DataType const type : {DataType::f32, DataType::bf16, DataType::f64}) {
      GroupedGemmProblem const group = group_of(type, mixed, letters, expression);
      expect_like_reference(group, Backend::cpu);
      expect_like_reference(group, Backend::emulator);
    }
}

// Together they are enough work to be divided among threads.
TEST(GroupedGemm, ManySmallMembersOnTheProcessor) {
  std::vector<Extents> sizes;
  for (Index i = 0; i < 24; ++i) sizes.push_back({60 + i % 3, 64, 56 + i});
  expect_like_reference(group_of(DataType::f32, sizes, "nt", "acc + bias[n]"), Backend::cpu);
}

TEST(GroupedGemm, EveryFamilyOfTheEmulator) {
  for (std::string const expression : {"acc", "relu(alpha * acc + bias[n])"}) {
    GroupedGemmProblem const singles = group_of(DataType::f32, mixed, "tn", expression);
    GroupedGemmProblem const halves = group_of(DataType::bf16, mixed, "tn", expression);
    expect_like_reference(singles, Backend::emulator, "double_buffered");
    expect_like_reference(halves, Backend::emulator, "multistage");
    expect_like_reference(group_of(DataType::bf16, mixed, "nn"), Backend::emulator, "multistage");
    // A K extent in multiples of 16 bytes, as TMA requires.
    expect_like_reference(halves, Backend::emulator, "warp_specialized");
    expect_like_reference(halves, Backend::emulator, "each_member");
  }
}

TEST(GroupedGemm, MoreMembersThanOneLaunchBinds) {
  std::vector<Extents> sizes;
  for (Index i = 0; i < 150; ++i) sizes.push_back({i % 7, 8, i % 3 * 8});
  expect_like_reference(group_of(DataType::f32, sizes, "tn", "acc + bias[n]"), Backend::emulator,
                        "double_buffered");
}

TEST(GroupedGemm, NothingToDo) {
  for (Backend const backend : {Backend::cpu, Backend::emulator, Backend::reference}) {
    expect_like_reference({}, backend);
    expect_like_reference(group_of(DataType::f32, {{0, 3, 4}, {2, 0, 4}}, "nn"), backend);
  }
}

TEST(GroupedGemm, MembersHaveMuchInCommon) {
  auto const complaint = [](auto const& change) {
    GroupedGemmProblem group = group_of(DataType::f32, {{4, 5, 6}, {7, 8, 9}}, "nn");
    change(group.members[1]);
    return complaint_of([&] { validate(group); });
  };
  EXPECT_EQ(
      complaint([](GemmProblem& member) { member = product(DataType::f64, DataType::f64, 1, 2, 3, "nn"); }),
      "member 1: grouped gemm: a is f64, that of member 0 is f32; all members must have the same type");
  EXPECT_NE(complaint([](GemmProblem& member) {
              member.epilogue.expression = epilogue::parse("relu(acc)");
            }).find("the epilogue relu(acc), that of member 0 is acc"),
            std::string::npos);
  EXPECT_NE(complaint([](GemmProblem& member) { member.d.layout.shape[1] = 3; }).find("member 1: gemm: d is"),
            std::string::npos);
  GroupedGemmProblem const two = group_of(DataType::f32, {{1, 1, 1}, {2, 2, 2}}, "nn");
  auto const prepared = prepare(make_plan(two, this_device(Backend::reference)));
  EXPECT_EQ(complaint_of([&] { prepared.run({}); }), "arguments of 0 members; the problem has 2");
}

// Runs that all members support; a member that supports none along a direction does not affect the others.
TEST(GroupedGemm, CommonWidths) {
  auto const common = [](std::vector<Extents> const& sizes, std::string const& letters) {
    return plan::group_form(group_of(DataType::bf16, sizes, letters)).common;
  };
  auto const deep = common({{512, 64, 128}, {1, 64, 128}, {7, 64, 128}}, "tn");
  EXPECT_EQ(plan::access_of(deep.a), (OperandAccess{Along::k, 8}));
  EXPECT_EQ(plan::access_of(deep.b), (OperandAccess{Along::k, 8}));
  // D is column-major with 1, 7 and 512 rows; its transpose is computed, whose rows may have any alignment.
  EXPECT_TRUE(deep.swapped);
  EXPECT_EQ(deep.d.width, 1);
  EXPECT_EQ(common({{512, 64, 128}, {1, 64, 128}, {16, 64, 128}}, "tn").d.width, 8);
  auto const odd = common({{512, 64, 128}, {8, 64, 20}}, "tn");
  EXPECT_EQ(plan::access_of(odd.a), (OperandAccess{Along::k, 4}));
}

TEST(GroupedGemm, PlansOfAGpu) {
  Device const h200 = gpu_device("h200");
  std::vector<Extents> experts{{4096, 4096, 14336}};
  for (Index i = 0; i < 15; ++i) experts.push_back({1 + 8 * i, 4096, 14336});
  // D is N-major: the experts' rows are the rows of a row-major D.
  GroupedGemmProblem group = group_of(DataType::bf16, experts, "tn");
  for (GemmProblem& member : group.members)
    member.d = testing::matrix(DataType::bf16, member.m(), member.n(), 't');
  auto const plan = make_plan(group, h200);
  EXPECT_EQ(plan.kernel, "warp_specialized");
  EXPECT_GT(plan.workspace_bytes, 16u * 3 * 128);
  double const grouped = plan.recipe.predicted_seconds;
  EXPECT_GT(grouped, make_plan(group.members[0], h200).recipe.predicted_seconds);
  EXPECT_LT(grouped, entry_of(plan.considered, "each_member").predicted_seconds);
  EXPECT_NE(entry_of(plan.considered, "warp_specialized").recipe.find("16 members with "), std::string::npos);
  for (char const* const kernel : {"multistage", "double_buffered", "each_member"})
    EXPECT_EQ(entry_of(plan.considered, kernel).refusal, "") << kernel;

  // The message names the number of a member that TMA does not support.
  group.members[3].a.layout.stride[1] = 14337;
  EXPECT_NE(entry_of(make_plan(group, h200).considered, "warp_specialized")
                .refusal.find("member 3: operand a: leading dimension 14337 is not a multiple of 8"),
            std::string::npos);
}

// Tiles of 64 rows leave fewer empty if all members have few; if some have more, they read the weights twice.
TEST(GroupedGemm, MembersWithFewRows) {
  auto const policy_for = [](std::vector<Index> const& tokens) {
    std::vector<Extents> sizes;
    for (Index const n : tokens) sizes.push_back({14336, n, 4096});
    return make_plan(group_of(DataType::bf16, sizes, "tn"), gpu_device("h200")).recipe.policy_name;
  };
  EXPECT_EQ(policy_for({7, 5, 4, 3, 2, 1, 1}), "64x256");
  EXPECT_NE(policy_for({107, 105, 104, 103, 102, 101, 101}), "64x256");
}

}  // namespace
}  // namespace cosmati
