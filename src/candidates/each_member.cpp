// Computes the members of a group one after another, or small ones concurrently on the host.
#include "src/candidates/each_member.h"

#include <algorithm>
#include <atomic>

#include "src/backend/cpu/runtime/parallel.h"
#include "src/plan/buffers.h"

namespace cosmati::plan {
namespace {

// A product with fewer multiply-adds than this takes less time than synchronizing a team of threads.
constexpr double small_work = 4e6;

double work_of(GemmProblem const& member) {
  return static_cast<double>(member.m()) * static_cast<double>(member.n()) * static_cast<double>(member.k());
}

bool is_small(GemmProblem const& member) { return work_of(member) < small_work; }

// True for members that are planned for one thread and run concurrently.
bool side_by_side(GemmProblem const& member, Device const& device) {
  return device.backend == Backend::cpu && device.threads > 1 && is_small(member);
}

Plan<GemmProblem> plan_of(GemmProblem const& member, Device device, bool batch_invariant) {
  if (side_by_side(member, device)) device.threads = 1;
  return make_plan(member, device, {.batch_invariant = batch_invariant});
}

// One workspace is shared by all members that run sequentially; concurrent members have one per thread.
struct Workspaces {
  std::size_t in_turn = 0, of_thread = 0;
  std::size_t bytes(Device const& device) const {
    return std::max(in_turn, of_thread * static_cast<std::size_t>(device.threads));
  }
  void add(GemmProblem const& member, Device const& device, std::size_t workspace) {
    std::size_t& maximum = side_by_side(member, device) ? of_thread : in_turn;
    maximum = std::max(maximum, padded_bytes(workspace));
  }
};

class EachMember final : public Kernel<GroupedGemmProblem> {
 public:
  explicit EachMember(Plan<GroupedGemmProblem> const& plan) : device_(plan.device) {
    auto const& members = plan.problem.members;
    for (std::size_t i = 0; i < members.size(); ++i) {
      auto const one = plan_of(members[i], device_, plan.batch_invariant);
      workspaces_.add(members[i], device_, one.workspace_bytes);
      prepared_.push_back(cosmati::prepare(one));
      bool const small = side_by_side(members[i], device_);
      (small ? small_ : others_).push_back(i);
      if (small) all_small_work_ += work_of(members[i]);
    }
  }

  void enqueue(GroupedGemmProblem::Arguments const& arguments, std::byte* workspace,
               Stream stream) const override {
    for (std::size_t const i : others_) prepared_[i].run(arguments.members[i], workspace, stream);
    if (!small_.empty()) run_small(arguments, workspace);
  }

 private:
  // Each thread takes the next unprocessed member; one thread takes all if they are little work together.
  void run_small(GroupedGemmProblem::Arguments const& arguments, std::byte* workspace) const {
    std::atomic<std::size_t> next{0};
    int const threads =
        all_small_work_ < small_work
            ? 1
            : static_cast<int>(std::min(small_.size(), static_cast<std::size_t>(device_.threads)));
    cpu::parallel_parts(threads, [&](int part, int) {
      cpu::ThreadCount const one(1);
      std::byte* const own = workspace + static_cast<std::size_t>(part) * workspaces_.of_thread;
      for (std::size_t at = next++; at < small_.size(); at = next++)
        prepared_[small_[at]].run(arguments.members[small_[at]], workspaces_.of_thread == 0 ? nullptr : own);
    });
  }

  Device device_;
  Workspaces workspaces_;
  std::vector<Prepared<GemmProblem>> prepared_;
  std::vector<std::size_t> small_, others_;
  double all_small_work_ = 0;
};

// The slowdown caused by the power limit when tensor cores are busy for `seconds`, as in the model of
// warp_specialized.
double slowed(double seconds) { return 1 + 0.35 * std::min(1.0, seconds / 200e-6); }

Offer<GroupedGemmProblem> offer(GroupedGemmProblem const& problem, Device const& device,
                                PlanOptions const& options) {
  Offer<GroupedGemmProblem> all;
  all.refusal = options.policy.refusal();
  if (!all.refusal.empty()) return all;
  Workspaces workspaces;
  bool predicted = device.backend == Backend::cuda;
  double by_wgmma = 0, by_wgmma_cool = 0;  // seconds; the same without the slowdown
  for (GemmProblem const& member : problem.members) {
    auto const one = plan_of(member, device, options.batch_invariant);
    workspaces.add(member, device, one.workspace_bytes);
    double const seconds = one.recipe.predicted_seconds;
    all.predicted_seconds += seconds;
    if (one.recipe.policy.multiply == Multiply::wgmma) {
      by_wgmma += seconds;
      by_wgmma_cool += seconds / slowed(seconds);
    }
    predicted = predicted && one.recipe.predicted_seconds > 0;
  }
  all.predicted_seconds += std::max(0.0, by_wgmma_cool * slowed(by_wgmma_cool) - by_wgmma);
  all.predicted_seconds *= 1.1;  // a group's own kernel is preferred unless this is clearly faster
  if (!predicted) all.predicted_seconds = 0;
  all.workspace_bytes = workspaces.bytes(device);
  return all;
}

}  // namespace

Candidate<GroupedGemmProblem> each_member_candidate() {
  Candidate<GroupedGemmProblem> candidate{
      "each_member",
      {},
      nullptr,
      [](Plan<GroupedGemmProblem> const& plan) -> std::unique_ptr<Kernel<GroupedGemmProblem>> {
        return std::make_unique<EachMember>(plan);
      }};
  candidate.offer = &offer;
  candidate.batch_invariant = true;
  return candidate;
}

}  // namespace cosmati::plan
