// Blocks of steps in page-locked memory: one is uploaded step by step, while a thread draws the next one.
#include "nets/dcgan/training/feed.h"

#include <algorithm>
#include <cstring>
#include <system_error>
#include <utility>

#include "nets/dataset.h"
#include "nets/dcgan/replica.h"
#include "nets/random.h"

namespace cosmati::dcgan {
namespace {

constexpr unsigned long long latents_purpose = 1ULL << 41;  // of a random stream; see replica.cpp
constexpr std::size_t buffer_alignment = 256;               // bytes
constexpr std::size_t block_bytes = 64ULL << 20;
constexpr long long longest_block = 64;  // steps

std::size_t rounded(std::size_t bytes) {
  return (bytes + buffer_alignment - 1) / buffer_alignment * buffer_alignment;
}

}  // namespace

TensorDescription Feed::numbers_description() { return describe(DataType::f32, Shape(3)); }

Feed::Feed(Settings const& settings, Pictures const& pictures, Device const& device, Index first, Index count,
           OptimizerProblem const& optimizer)
    : settings_(settings),
      pictures_(pictures),
      first_(first),
      count_(count),
      optimizer_(optimizer),
      latents_at_(rounded(static_cast<std::size_t>(count * settings.architecture.image_elements()))),
      numbers_at_(latents_at_ +
                  rounded(static_cast<std::size_t>(count * settings.architecture.latent) * sizeof(float))),
      row_bytes_(numbers_at_ + buffer_alignment),
      block_steps_(std::clamp(static_cast<long long>(block_bytes / row_bytes_), 1LL, longest_block)),
      uploads_(device) {
  for (int place : {0, 1}) {
    places_[place] = DeviceMemory(device, row_bytes_);
    uploaded_[place] = Moment(device);
    done_[place] = Moment(device);
  }
  for (Block* block : {&now_, &next_})
    block->rows = HostMemory(device, static_cast<std::size_t>(block_steps_) * row_bytes_);
}

Feed::~Feed() {
  try {
    uploads_.wait();
  } catch (Error const&) {  // reported where it occurred
  }
}

void const* Feed::pictures(int place) const { return row(place); }
void const* Feed::latents(int place) const { return row(place) + latents_at_; }
void const* Feed::numbers(int place) const { return row(place) + numbers_at_; }

// Writes to the block and order_, which nothing else uses while it runs.
void Feed::draw(Block& block, long long first) {
  Index const elements = settings_.architecture.image_elements(), latent = settings_.architecture.latent;
  Index const steps_an_epoch = pictures_.count / settings_.batch;
  block.first = first;
  block.end = std::min(first + block_steps_, settings_.steps);
  for (long long step = first; step < block.end; ++step) {
    long long const epoch = step / steps_an_epoch;
    if (epoch != order_epoch_) order_ = nets::shuffled(pictures_.count, settings_.seed, epoch);
    order_epoch_ = epoch;
    Index const first_image = step % steps_an_epoch * settings_.batch + first_;
    std::byte* const row = block.rows.as<std::byte>() + static_cast<std::size_t>(step - first) * row_bytes_;
    for (Index n = 0; n < count_; ++n)
      pictures_.draw(order_[static_cast<std::size_t>(first_image + n)],
                     reinterpret_cast<unsigned char*>(row) + n * elements);
    nets::Random random(settings_.seed, latents_purpose + static_cast<unsigned long long>(step));
    // Skips the latent vectors of other devices.
    random.skip(static_cast<unsigned long long>(first_ * latent));
    auto* const z = reinterpret_cast<float*>(row + latents_at_);
    for (Index e = 0; e < count_ * latent; ++e) z[e] = static_cast<float>(random.uniform(-1, 1));
    StepNumbers const now = step_numbers(optimizer_, settings_.rate, step + 1);
    float const numbers[] = {static_cast<float>(now.rate), static_cast<float>(now.correction1),
                             static_cast<float>(now.correction2)};
    std::memcpy(row + numbers_at_, numbers, sizeof(numbers));
  }
}

// Makes the block that begins with step `first` the current one, and draws the one after it while the device
// works.
void Feed::advance(long long first) {
  if (drawn_.valid()) drawn_.get();
  // The last uploads of the current block, whose memory the next one reuses.
  for (Moment const& moment : uploaded_) moment.wait();
  if (next_.first == first && next_.end > first)
    std::swap(now_, next_);
  else
    draw(now_, first);
  if (now_.end == settings_.steps) return;
  try {
    drawn_ = std::async(std::launch::async, [this, first = now_.end] { draw(next_, first); });
  } catch (std::system_error const&) {
    // No thread is available: the block is drawn when it is needed.
  }
}

void Feed::send(long long step, Queue& queue) {
  if (step < now_.first || step >= now_.end) advance(step);
  int const place = static_cast<int>(step % 2);
  uploads_.wait_for(done_[place]);
  uploads_.upload(places_[place].data(),
                  now_.rows.as<std::byte>() + static_cast<std::size_t>(step - now_.first) * row_bytes_,
                  row_bytes_);
  uploads_.mark(uploaded_[place]);
  queue.wait_for(uploaded_[place]);
}

void Feed::done(long long step, Queue& queue) { queue.mark(done_[step % 2]); }

}  // namespace cosmati::dcgan
