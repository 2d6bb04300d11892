// All-reduce over devices whose memory is host memory: the last thread to arrive adds for all.
#include "src/parallel/all_reduce.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "cosmati/ops/error.h"
#include "src/parallel/nccl.h"
#include "src/parallel/wait.h"

namespace cosmati::parallel {
namespace {

class Meeting {
 public:
  Meeting(std::size_t members, ProcessGroup* group) : arrays_(members), group_(group) {}

  // Replaces the arrays of all members, which are already weighted, by their sum.
  void meet(std::size_t member, float* data, std::size_t count) {
    std::unique_lock lock(mutex_);
    check();
    arrays_[member] = data;
    if (arrived_ == 0) count_ = count, first_ = member;
    if (count != count_) {
      auto const of = [&](std::size_t who) { return std::to_string(who == member ? count : count_); };
      auto const [low, high] = std::minmax(member, first_);
      fail(std::make_exception_ptr(Error(ErrorCode::system, "device " + std::to_string(low) + " adds " +
                                                                of(low) + " numbers, device " +
                                                                std::to_string(high) + " adds " + of(high))));
      check();
    }
    if (++arrived_ == arrays_.size()) {
      add();
      arrived_ = 0;
      ++meeting_;
      all_came_.notify_all();
      return;
    }
    auto const now = meeting_;
    parallel::wait(all_came_, lock, [&] { return failure_ || meeting_ != now; });
    if (meeting_ == now) check();
  }

  void abort() {
    std::lock_guard const lock(mutex_);
    fail(std::make_exception_ptr(Error(ErrorCode::system, "another device failed during a sum")));
  }

 private:
  void check() const {
    if (failure_) std::rethrow_exception(failure_);
  }
  // All members report the first failure, whichever member is asked first.
  void fail(std::exception_ptr reason) {
    if (!failure_) failure_ = std::move(reason);
    all_came_.notify_all();
  }
  // Adds in the order of the members, so that results do not depend on the order of arrival.
  void add() {
    float* const sum = arrays_[0];
    for (std::size_t member = 1; member < arrays_.size(); ++member)
      for (std::size_t i = 0; i < count_; ++i) sum[i] += arrays_[member][i];
    try {
      if (group_ != nullptr) group_->sum(sum, count_);
    } catch (...) {
      fail(std::current_exception());
      throw;
    }
    for (std::size_t member = 1; member < arrays_.size(); ++member) std::copy_n(sum, count_, arrays_[member]);
  }

  std::mutex mutex_;
  std::condition_variable all_came_;
  std::vector<float*> arrays_;
  ProcessGroup* group_;
  std::size_t arrived_ = 0, first_ = 0, count_ = 0;  // arrived members; the first of them and its count
  unsigned long long meeting_ = 0;
  std::exception_ptr failure_;  // set once no further sums are possible
};

class HostAllReduce final : public AllReduce {
 public:
  HostAllReduce(std::shared_ptr<Meeting> meeting, std::size_t member)
      : meeting_(std::move(meeting)), member_(member) {}

  void sum(float* data, std::size_t count, double weight, Stream) override {
    if (weight != 1)
      for (std::size_t i = 0; i < count; ++i) data[i] *= static_cast<float>(weight);
    meeting_->meet(member_, data, count);
  }
  void abort() noexcept override { meeting_->abort(); }

 private:
  std::shared_ptr<Meeting> meeting_;
  std::size_t member_;
};

}  // namespace

std::vector<std::unique_ptr<AllReduce>> make_all_reduce(std::vector<Device> const& devices,
                                                        ProcessGroup* group) {
  if (devices.at(0).backend == Backend::cuda) return nccl::make_all_reduce(devices, group);
  auto const meeting = std::make_shared<Meeting>(devices.size(), group);
  std::vector<std::unique_ptr<AllReduce>> parts;
  for (std::size_t i = 0; i < devices.size(); ++i)
    parts.push_back(std::make_unique<HostAllReduce>(meeting, i));
  return parts;
}

}  // namespace cosmati::parallel
