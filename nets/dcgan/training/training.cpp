// The training loop of all devices.
#include "nets/dcgan/training/training.h"

#include <bit>
#include <chrono>
#include <cmath>
#include <string>

namespace cosmati::dcgan {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

bool sample_is_due(long long step, long long steps, long long every, long long steps_an_epoch) {
  if (step == steps) return true;
  if (every > 0) return step % every == 0;
  return std::has_single_bit(static_cast<unsigned long long>(step)) || step % steps_an_epoch == 0;
}

Training::Training(Settings const& settings, Pictures const& pictures, nets::Team const& team)
    : settings_(settings), pictures_(pictures), team_(team) {
  prepare();
  each([](Replica& replica) { replica.initialize(); });
}

void Training::each(std::function<void(Replica&)> const& act) {
  if (!crew_) return act(*replicas_[0]);
  crew_->run([&](int i) { act(*replicas_[static_cast<std::size_t>(i)]); });
}

void Training::prepare() {
  auto const refuse = [](std::string const& sentence) { throw Error(ErrorCode::bad_request, sentence); };
  Settings const& s = settings_;
  if (s.compute != DataType::f32 && s.compute != DataType::tf32 && s.compute != DataType::bf16)
    refuse(std::string("a DCGAN is trained in f32, tf32 or bf16, not in ") + name_of(s.compute));
  if (s.batch < 2 || s.batch > 1 << 16)
    refuse("a batch of " + std::to_string(s.batch) + " is out of range; expected 2 to 65536");
  if (pictures_.count < s.batch)
    refuse(pictures_.source + " holds " + std::to_string(pictures_.count) + " pictures; a batch of " +
           std::to_string(s.batch) + " needs at least as many");
  if (pictures_.size != s.architecture.image_size() || s.architecture.channels.back() != 3)
    refuse("the pictures are " + std::to_string(pictures_.size) + " pixels wide; the generator makes " +
           std::to_string(s.architecture.image_size()));
  int const here = static_cast<int>(team_.devices.size()), all = team_.size();
  if (s.batch < all)
    refuse("a batch of " + std::to_string(s.batch) + " images for " + std::to_string(all) +
           " devices; expected at least one for each");
  replicas_.resize(team_.devices.size());
  if (all > 1) {
    sums_ = parallel::make_all_reduce(team_.devices, team_.group);
    crew_ = std::make_unique<parallel::Crew>(here, [this] {
      for (auto const& sums : sums_) sums->abort();
    });
  }
  auto const make = [&](std::size_t i) {
    nets::Membership member;
    if (all > 1) member = {first_device() + static_cast<int>(i), all, sums_[i].get()};
    replicas_[i] = std::make_unique<Replica>(settings_, pictures_, team_.devices[i], member);
  };
  make(0);  // compiles the kernels; the other replicas find them in the cache
  if (crew_)
    crew_->run([&](int i) {
      if (i > 0) make(static_cast<std::size_t>(i));
    });
}

int Training::first_device() const {
  return team_.group == nullptr ? 0 : team_.group->rank() * static_cast<int>(team_.devices.size());
}

void Training::check_replicas() {
  if (!crew_) return;
  std::vector<std::uint64_t> found(replicas_.size());
  crew_->run([&](int i) {
    auto const at = static_cast<std::size_t>(i);
    found[at] = replicas_[at]->fingerprint();
  });
  nets::check_same(found, first_device(), team_.group);
}

bool Training::run(Callbacks const& callbacks) {
  double start = seconds_now();
  long long reported = step_;
  each([](Replica& replica) { replica.take_losses(); });
  while (step_ < settings_.steps) {
    each([this](Replica& replica) { replica.step(step_); });
    ++step_;
    bool const last = step_ == settings_.steps, epoch_ends = step_ % steps_an_epoch() == 0;
    if (step_ % callbacks.report_every == 0 || last) {
      Replica::Losses sums{};
      each([&](Replica& replica) {
        Replica::Losses const found = replica.take_losses();
        if (&replica == replicas_[0].get()) sums = found;
      });
      double const steps = static_cast<double>(step_ - reported), now = seconds_now();
      Report report{step_, step_ / steps_an_epoch(), sums.discriminator / steps, sums.generator / steps,
                    steps * static_cast<double>(settings_.batch) / (now - start)};
      if (!std::isfinite(report.discriminator + report.generator))
        throw Error(ErrorCode::system, "the losses are no longer finite at step " + std::to_string(step_) +
                                           ": discriminator " + std::to_string(report.discriminator) +
                                           ", generator " + std::to_string(report.generator));
      if (callbacks.report) callbacks.report(report);
      reported = step_;
      start = seconds_now();
    }
    if (sample_is_due(step_, settings_.steps, callbacks.sample_every, steps_an_epoch())) {
      each([](Replica& replica) { replica.finish(); });  // by all processes, of which one draws samples
      double const before = seconds_now();
      if (callbacks.sample) callbacks.sample(step_);
      start += seconds_now() - before;
    }
    if (epoch_ends || last) {
      each([](Replica& replica) { replica.finish(); });
      double const before = seconds_now();
      check_replicas();
      if (callbacks.epoch) callbacks.epoch((step_ + steps_an_epoch() - 1) / steps_an_epoch());
      start += seconds_now() - before;
    }
    if (callbacks.stop != nullptr && !last && nets::any_process(*callbacks.stop, team_.group)) {
      each([](Replica& replica) { replica.finish(); });
      return false;
    }
  }
  return true;
}

std::vector<float> Training::sample(Index count) { return replicas_[0]->sample(count); }

}  // namespace cosmati::dcgan
