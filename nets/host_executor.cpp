// Training on host threads: Replicas and the optimizer's step, on the arrays of the parameters themselves.
#include <algorithm>
#include <utility>

#include "cosmati/ops/fused_training.h"
#include "nets/executor.h"
#include "nets/replicas.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::nets {
namespace {

class HostExecutor final : public Executor {
 public:
  explicit HostExecutor(Assignment const& assignment)
      : assignment_(assignment), replicas_(assignment, assignment.data != nullptr) {
    if (assignment_.data == nullptr) return;
    OptimizerProblem problem = assignment_.optimizer;
    problem.parameter = problem.gradient = problem.state = assignment_.parameters.trainable();
    update_ = prepare(make_plan(problem, assignment_.device));
    workspace_ = Tensor(DataType::u8, Shape(static_cast<Index>(update_.workspace_bytes())));
  }

  void begin(Epoch epoch) override {
    if (assignment_.group != nullptr) {  // all processes start from the same bits
      Parameters& parameters = assignment_.parameters;
      assignment_.group->broadcast(parameters.values(), parameters.value_bytes());
      for (int i = 0; i < parameters.state_count(); ++i)
        assignment_.group->broadcast(parameters.states(i), parameters.state_bytes());
    }
    epoch_ = std::move(epoch);
    step_ = 0;
  }

  Index advance() override {
    Index const left = static_cast<Index>(epoch_.order->size()) - epoch_.first;
    if (left == 0) return 0;
    Index const count = std::min(assignment_.batch, left);
    double const loss = loss_and_gradients(epoch_.first, count);
    Parameters& parameters = assignment_.parameters;
    update_.run({.parameter = parameters.values(),
                 .gradient = replicas_.gradients(),
                 .velocity = parameters.states(0),
                 .second = parameters.states(1),
                 .rate = epoch_.rates[step_],
                 .step = epoch_.steps_done + 1},
                workspace_.data());
    epoch_.loss_sum += loss * static_cast<double>(count);
    epoch_.first += count;
    ++epoch_.steps_done, ++step_;
    return 1;
  }

  double loss_sum() override { return epoch_.loss_sum; }
  void fetch_parameters() override {}

  bool any(bool mine) override { return any_process(mine, assignment_.group); }

  std::vector<float> scores(Dataset const& data) override {
    parallel::ProcessGroup* const group = assignment_.group;
    if (group == nullptr || assignment_.data == nullptr) return replicas_.scores(data, 0, data.count());
    auto const [first, last] = cpu::share(data.count(), group->rank(), group->size());
    std::vector<float> all(static_cast<std::size_t>(data.count() * replicas_.classes()));
    auto const own = replicas_.scores(data, first, last - first);
    std::copy(own.begin(), own.end(), all.begin() + first * replicas_.classes());
    group->sum(all.data(), all.size());
    return all;
  }

 private:
  // Computes the loss and gradients of the whole batch: each process computes its share, and all receive the
  // sums.
  double loss_and_gradients(Index begin, Index count) {
    parallel::ProcessGroup* const group = assignment_.group;
    Dataset const& data = *assignment_.data;
    if (group == nullptr) return replicas_.loss_and_gradients(data, *epoch_.order, begin, count);
    auto const [first, last] = cpu::share(count, group->rank(), group->size());
    auto const elements = static_cast<std::size_t>(assignment_.parameters.trainable().extent(0));
    float* const gradients = replicas_.gradients();
    double loss = 0;
    if (last > first) loss = replicas_.loss_and_gradients(data, *epoch_.order, begin + first, last - first);
    double const weight = static_cast<double>(last - first) / static_cast<double>(count);
    for (std::size_t i = 0; i < elements; ++i)
      gradients[i] = last > first ? gradients[i] * static_cast<float>(weight) : 0;
    loss *= weight;
    group->sum(gradients, elements);
    group->sum(&loss, 1);
    return loss;
  }

  Assignment assignment_;
  Replicas replicas_;
  Prepared<OptimizerProblem> update_;
  Tensor workspace_;  // workspace of update_
  Epoch epoch_;
  std::size_t step_ = 0;  // since begin()
};

}  // namespace

std::unique_ptr<Executor> make_host_executor(Assignment const& assignment) {
  return std::make_unique<HostExecutor>(assignment);
}

namespace {
bool on_host_threads(Assignment const& assignment) {
  Backend const backend = assignment.device.backend;
  return (backend == Backend::cpu || backend == Backend::reference) && assignment.type == DataType::f32;
}

std::string explain_on_device(Assignment const& assignment) {
  auto const network = assignment.make(device_context(assignment, true), assignment.batch);
  FusedPlan const plan = plan_fused(network->compose(), assignment.batch, assignment.optimizer,
                                    assignment.device, assignment.factors);
  return network->explain() + plan.text() + "\n";
}
}  // namespace

std::unique_ptr<Executor> make_executor(Assignment const& assignment) {
  if (!assignment.others.empty()) return make_team_executor(assignment);
  if (on_host_threads(assignment)) return make_host_executor(assignment);
  bool const alone = assignment.group == nullptr || assignment.group->size() == 1;
  return alone ? make_device_executor(assignment) : make_team_executor(assignment);
}

std::string explain(Assignment const& assignment) {
  if (!on_host_threads(assignment)) return explain_on_device(assignment);
  return std::to_string(assignment.device.threads) + " threads share each batch of " +
         std::to_string(assignment.batch) + " images, in micro-batches of this size:\n" +
         assignment.make(host_context(assignment, true), micro_batch)->explain();
}

}  // namespace cosmati::nets
