// What a step reads besides the networks: pictures, latent vectors and the optimizer's numbers. Drawn ahead
// by a thread and uploaded while the device computes the step before.
#pragma once
#include <cstddef>
#include <future>
#include <vector>

#include "cosmati/ops/memory.h"
#include "cosmati/ops/optimizer.h"
#include "cosmati/ops/queue.h"
#include "nets/dcgan/pictures.h"

namespace cosmati::dcgan {

struct Settings;

// The inputs of a device's steps alternate between two places in its memory, so that two recordings of a step
// can read them at fixed addresses.
class Feed {
 public:
  // For images `first` to first + count of each batch. `settings` and `pictures` must outlive the feed;
  // `optimizer`: that of the networks.
  Feed(Settings const& settings, Pictures const& pictures, Device const& device, Index first, Index count,
       OptimizerProblem const& optimizer);
  ~Feed();  // waits for the uploads
  Feed(Feed const&) = delete;
  Feed& operator=(Feed const&) = delete;

  // Uploads the inputs of step `step`, from 0, to place step % 2; later work of `queue` waits for them.
  void send(long long step, Queue& queue);
  // Marks the end of the work that reads the inputs of this step.
  void done(long long step, Queue& queue);

  void const* pictures(int place) const;  // (count, size, size, 3), u8
  void const* latents(int place) const;   // (count, latent), f32
  void const* numbers(int place) const;   // OptimizerProblem::numbers
  static TensorDescription numbers_description();

 private:
  struct Block {  // of consecutive steps
    long long first = 0, end = 0;
    HostMemory rows;
  };
  void draw(Block& block, long long first);
  void advance(long long first);
  std::byte const* row(int place) const { return static_cast<std::byte const*>(places_[place].data()); }

  Settings const& settings_;
  Pictures const& pictures_;
  Index first_, count_;
  OptimizerProblem optimizer_;
  std::size_t latents_at_, numbers_at_, row_bytes_;
  long long block_steps_;
  Queue uploads_;
  DeviceMemory places_[2];
  Moment uploaded_[2], done_[2];
  Block now_, next_;
  std::vector<Index> order_;  // of the pictures of an epoch
  long long order_epoch_ = -1;
  std::future<void> drawn_;  // next_, if valid; last, since it uses the other members
};

}  // namespace cosmati::dcgan
