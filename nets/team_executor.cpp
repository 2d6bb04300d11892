// Training on devices that share each batch: one executor and one thread for each device of this process. All
// have bitwise equal parameters, which is checked at the beginning of an epoch.
#include <algorithm>
#include <map>

#include "nets/device_executor.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/parallel/crew.h"

namespace cosmati::nets {
namespace {

class TeamExecutor final : public Executor {
 public:
  explicit TeamExecutor(Assignment const& assignment)
      : assignment_(assignment), here_(static_cast<int>(assignment.others.size()) + 1), crew_(here_, [this] {
          for (auto const& sums : sums_) sums->abort();
        }) {
    parallel::ProcessGroup* const group = assignment.group;
    int const processes = group == nullptr ? 1 : group->size();
    first_ = group == nullptr ? 0 : group->rank() * here_;
    all_ = processes * here_;
    if (assignment.batch < all_)
      throw Error(ErrorCode::bad_request, "a batch of " + std::to_string(assignment.batch) + " images for " +
                                              std::to_string(all_) +
                                              " devices; expected at least one for each");
    std::vector<Device> devices{assignment.device};
    devices.insert(devices.end(), assignment.others.begin(), assignment.others.end());
    sums_ = parallel::make_all_reduce(devices, group);
    bool const one_kernel = group == nullptr && can_train_together(devices);
    members_.resize(devices.size());
    auto const make = [&](int i) {
      auto const at = static_cast<std::size_t>(i);
      Assignment own = assignment;
      own.device = devices[at];
      members_[at] =
          std::make_unique<DeviceExecutor>(own, Membership{first_ + i, all_, sums_[at].get(), one_kernel});
    };
    // The first one compiles the kernels; the others find them in the cache.
    for (bool const first : {true, false})
      crew_.run([&](int i) {
        if (first == (i == 0)) make(i);
      });
    share_fused_sizes();
    for (Index const size : member(0).fused_sizes()) {
      std::vector<Delivery*> inboxes;
      Index const parameters = assignment.parameters.trainable().extent(0);
      for (int i = 0; i < here_; ++i)
        inboxes.push_back(member(i).fused_training(size).inbox(here_, parameters));
      for (int i = 0; i < here_; ++i) member(i).fused_training(size).join(inboxes, i);
    }
    crew_.run([&](int i) { member(i).warm_up(); });
  }

  void begin(Epoch epoch) override {
    // Without the crew: except in the first epoch, fingerprints are known since the last scores(), so this
    // takes less time than waking its threads.
    std::vector<std::uint64_t> found;
    for (int i = 0; i < here_; ++i) found.push_back(member(i).fingerprint());
    check_same(found, first_, assignment_.group);
    for (int i = 0; i < here_; ++i) member(i).begin(epoch);
  }

  void prepare_epoch(Epoch const& epoch) override {
    crew_.run([&](int i) { member(i).prepare_epoch(epoch); });
  }

  Index advance() override {
    Index steps = 0;
    auto const advance = [&](int i) {
      Index const mine = member(i).advance();
      if (i == 0) steps = mine;
    };
    if (member(0).enqueues_one_kernel())  // takes less time than waking the crew's threads
      for (int i = 0; i < here_; ++i) advance(i);
    else
      crew_.run(advance);
    return steps;
  }

  double loss_sum() override { return member(0).loss_sum(); }
  void fetch_parameters() override { member(0).fetch_parameters(); }
  LossScale loss_scale() override { return member(0).loss_scale(); }

  bool any(bool mine) override { return any_process(mine, assignment_.group); }

  std::vector<float> scores(Dataset const& data) override {
    std::vector<std::vector<float>> parts(members_.size());
    auto const share = [&](int i) { return cpu::share(data.count(), first_ + i, all_); };
    crew_.run([&](int i) {
      auto const [first, last] = share(i);
      parts[static_cast<std::size_t>(i)] = member(i).scores(data, first, last - first);
    });
    Index const classes = member(0).classes();
    std::vector<float> all(static_cast<std::size_t>(data.count() * classes));
    for (int i = 0; i < here_; ++i) {
      auto const& part = parts[static_cast<std::size_t>(i)];
      std::copy(part.begin(), part.end(), all.begin() + share(i).first * classes);
    }
    if (assignment_.group != nullptr) assignment_.group->sum(all.data(), all.size());
    return all;
  }

 private:
  // Batch sizes for which only some members have a fused kernel are trained by layers.
  void share_fused_sizes() {
    std::map<Index, std::size_t> counts;
    for (auto const& each : members_)
      for (Index const size : each->fused_sizes()) ++counts[size];
    for (auto const& [size, count] : counts)
      if (count < members_.size())
        for (auto const& each : members_) each->train_by_layers(size);
  }

  DeviceExecutor& member(int i) { return *members_[static_cast<std::size_t>(i)]; }

  Assignment assignment_;
  int here_,
      first_ = 0,
      all_ = 1;  // number of devices of this process, index of its first one, and number of all devices
  std::vector<std::unique_ptr<parallel::AllReduce>> sums_;
  std::vector<std::unique_ptr<DeviceExecutor>> members_;
  parallel::Crew crew_;
};

}  // namespace

std::unique_ptr<Executor> make_team_executor(Assignment const& assignment) {
  return std::make_unique<TeamExecutor>(assignment);
}

}  // namespace cosmati::nets
