// Host arrays on a GPU, with the fake driver: memory, the copies made by the command line's wrapper, and
// whether verify detects the same errors on the device as on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "cli/data/staged.h"
#include "cli/verify/verification.h"
#include "cosmati/ops/elementwise.h"
#include "cosmati/ops/memory.h"
#include "src/backend/cuda/driver/module.h"
#include "tests/cuda/fake_libcuda.h"
#include "tests/support/complaint.h"

namespace cosmati::cli {
namespace {

using testing::complaint_of;

struct Params {
  float const* x;
  float* y;
  unsigned char* workspace;
  Index count;
  Index written;     // number of elements written
  Index trespasses;  // index of an element written beyond those; 0: none
};

void twice(fake::Launch const& launch) {
  auto const& params = launch.as<Params>();
  for (Index i = 0; i < params.written; ++i) params.y[i] = 2 * params.x[i];
  if (params.trespasses != 0) params.y[params.trespasses] = 1;
  if (params.workspace != nullptr) params.workspace[0] = 1;
}

constexpr Index count = 37;

struct Behavior {
  Index written = count;
  Index trespasses = 0;
};

// y = 2*x by the fake's kernel.
class DeviceTwice final : public PreparedTask {
 public:
  explicit DeviceTwice(Behavior behavior, std::size_t workspace_bytes = 0) : behavior_(behavior) {
    choice_.kernel = "twice";
    choice_.workspace_bytes = workspace_bytes;
    fake::set_kernel("twice", twice);
    function_ = std::make_unique<cuda::Function>(cuda::Module(0, "image").function("twice"));
  }
  void run(std::span<void* const> pointers, void* workspace, Stream) const override {
    Params const params{static_cast<float const*>(pointers[0]),
                        static_cast<float*>(pointers[1]),
                        choice_.workspace_bytes > 0 ? static_cast<unsigned char*>(workspace) : nullptr,
                        count,
                        behavior_.written,
                        behavior_.trespasses};
    function_->launch({}, 32, 0, params, nullptr);
  }
  Choice const& choice() const override { return choice_; }

 private:
  Behavior behavior_;
  Choice choice_;
  std::unique_ptr<cuda::Function> function_;
};

// The task y = 2*x, whose device kernel is the fake's.
class Twice final : public Task {
 public:
  explicit Twice(Behavior behavior) : behavior_(behavior) {
    AddProblem problem;
    problem.a = problem.y = describe(DataType::f32, {count});
    problem.alpha = 2;
    notes.terms = 0;
    host_ = make_task(problem, notes);
  }
  std::unique_ptr<Task> clone() const override { return host_->clone(); }
  void visit(Visit const& visit) override { host_->visit(visit); }
  void make_scalars_absolute() override { host_->make_scalars_absolute(); }
  std::unique_ptr<Task> accumulator_alone() const override { return nullptr; }
  Choice plan(Device const&, PlanOptions const&) const override { return {}; }
  Findings find(Device const&, FindOptions const&, bool) const override { return {}; }
  std::unique_ptr<PreparedTask> prepare(Device const&, PlanOptions const&) const override {
    return std::make_unique<DeviceTwice>(behavior_);
  }

 private:
  Behavior behavior_;
  std::unique_ptr<Task> host_;
};

Device gpu() { return this_device(Backend::cuda, 1); }

Verdict verdict_on(Behavior behavior, Index misalignment = 0) {
  fake::reset();
  Twice task(behavior);
  nets::Random random(1, 1);
  return verify_task(task, gpu(), {}, {false, misalignment}, random);
}

TEST(DeviceMemory, CopiesOnEveryBackend) {
  for (Backend const backend : {Backend::cuda, Backend::reference}) {
    DeviceMemory memory(this_device(backend, 1), 10);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 256, 0U);
    memory.fill(3);
    char const two[] = {1, 2};
    memory.upload(two, 2, 4);
    std::vector<char> back(10);
    memory.download(back.data(), 10);
    EXPECT_EQ(back, (std::vector<char>{3, 3, 3, 3, 1, 2, 3, 3, 3, 3}));
    EXPECT_EQ(complaint_of([&] { memory.upload(two, 2, 9); }),
              "an upload of 2 bytes at 9 exceeds a memory of 10 bytes");
    EXPECT_NE(DeviceMemory(this_device(backend, 1), 0).data(), nullptr);
  }
}

TEST(Staged, HostBackendsStayAsTheyAre) {
  auto prepared = std::make_unique<DeviceTwice>(Behavior{});
  PreparedTask const* const before = prepared.get();
  EXPECT_EQ(for_host_arrays(std::move(prepared), this_device(Backend::reference, 1), {}).get(), before);
}

TEST(Staged, BringsArraysAndWorkspaceOverAndBack) {
  fake::reset();
  int const allocations = fake::allocations();
  Tensor x(DataType::f32, {count}), y(DataType::f32, {count}), workspace(DataType::u8, {64});
  x.fill(1.5);
  y.fill(0);
  auto const task =
      for_host_arrays(std::make_unique<DeviceTwice>(Behavior{}, 64), gpu(),
                      {{"x", Role::input, x.description()}, {"y", Role::output, y.description()}});
  std::vector<void*> const pointers{x.data(), y.data()};
  workspace.fill(0);
  EXPECT_GE(task->timed_run(pointers, workspace.data()), 0);
  EXPECT_EQ(y.get(count - 1), 3);
  auto const& params = fake::launches().back().as<Params>();
  EXPECT_NE(params.x, x.data());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(params.workspace) % 256, 0U);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(params.x) % 64, 0U);
  EXPECT_EQ(fake::allocations(), allocations);
}

TEST(Staged, OutputThatNobodyWroteIsNotANumber) {
  fake::reset();
  Tensor x(DataType::f32, {count}), y(DataType::f32, {count});
  x.fill(1);
  y.fill(0);
  auto const task =
      for_host_arrays(std::make_unique<DeviceTwice>(Behavior{count - 1, 0}), gpu(),
                      {{"x", Role::input, x.description()}, {"y", Role::output, y.description()}});
  task->run(std::vector<void*>{x.data(), y.data()}, nullptr);
  EXPECT_EQ(y.get(count - 2), 2);
  EXPECT_TRUE(std::isnan(y.get(count - 1)));
}

TEST(VerifyOnTheDevice, AcceptsWhatIsRight) {
  Verdict const verdict = verdict_on({});
  EXPECT_TRUE(verdict.correct) << verdict.complaint;
  EXPECT_EQ(fake::launches().size(), 2U) << "one run for each poison";
}

TEST(VerifyOnTheDevice, SeesWritesOutside) {
  EXPECT_EQ(verdict_on({count, count}).complaint, "y: byte 0 past its end was written");
  EXPECT_EQ(verdict_on({count, -1}).complaint, "y: byte 4 before it was written");
}

TEST(VerifyOnTheDevice, SeesWhatWasNotWritten) {
  Verdict const verdict = verdict_on({count - 1, 0});
  EXPECT_FALSE(verdict.correct);
  EXPECT_NE(verdict.complaint.find("y (36) is -nan"), std::string::npos) << verdict.complaint;
}

TEST(VerifyOnTheDevice, Misaligns) {
  for (Index const bytes : {1, 4, 8, 20}) {
    Verdict const verdict = verdict_on({}, bytes);
    EXPECT_TRUE(verdict.correct) << verdict.complaint;
    auto const& params = fake::launches().back().as<Params>();
    Index const offset = (bytes + 3) / 4 * 4;
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(params.x) % 64, static_cast<std::uintptr_t>(offset));
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(params.y) % 64, static_cast<std::uintptr_t>(offset));
  }
  EXPECT_EQ(verdict_on({count, count}, 4).complaint, "y: byte 0 past its end was written");
}

TEST(VerifyOnTheDevice, PromisesNoMoreThanTheArraysHave) {
  Twice task({});
  nets::Random random(1, 1);
  fake::reset();
  verify_task(task, gpu(), {}, {false, 20}, random);
  for (Slot const& slot : task.slots()) EXPECT_EQ(slot.description.alignment, 4) << slot.name;
}

}  // namespace
}  // namespace cosmati::cli
