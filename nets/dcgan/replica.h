// One device's part in DCGAN training: both networks, its share of each batch, and a step.
#pragma once
#include <cstdint>
#include <future>
#include <memory>
#include <vector>

#include "cosmati/ops/optimizer.h"
#include "cosmati/ops/queue.h"
#include "nets/dcgan/pictures.h"
#include "nets/dcgan/training/discriminator.h"
#include "nets/dcgan/training/generator_training.h"
#include "nets/team.h"

namespace cosmati::dcgan {

// Settings of both networks; Radford, Metz and Chintala 2016.
struct Settings {
  Architecture architecture;
  Index batch = 256;
  long long steps = 7000;
  double rate = 2e-4;
  double beta1 = 0.5;
  double beta2 = 0.999;
  unsigned long long seed = 1;
  DataType compute = DataType::f32;  // see Precision
};

// If there are several replicas, all of them call the computing functions together, each on its own thread.
// Values and moments are bit-identical on all.
class Replica {
 public:
  // `settings` and `pictures` must outlive the replica. Values are undefined until initialize(), or until
  // they are written and refresh_factors() is called.
  Replica(Settings const& settings, Pictures const& pictures, Device const& device,
          nets::Membership const& membership);
  Replica(Replica const&) = delete;
  Replica& operator=(Replica const&) = delete;

  // Weights are initialized as N(0, 0.02), the scales of batch normalization as N(1, 0.02), the rest as 0.
  void initialize();
  void refresh_factors();
  // Runs step `step`, from 0; periodically first uploads the pictures and latent vectors of many steps.
  void step(long long step);
  // Mean losses of discriminator and generator over full batches, summed over the steps since the last call.
  struct Losses {
    double discriminator, generator;
  };
  Losses take_losses();
  std::vector<float> sample(Index count);  // see Training::sample
  std::uint64_t fingerprint() const;       // of values and moments

  Network generator_values, discriminator_values;

 private:
  void draw_block(long long first, long long steps);
  void send_block(long long first);
  void update(Network& network, Prepared<OptimizerProblem> const& optimizer,
              Prepared<TransformProblem> const& convert, long long step);
  long long steps_an_epoch() const { return pictures_.count / settings_.batch; }

  Settings const& settings_;
  Pictures const& pictures_;
  Device device_;
  nets::Membership membership_;
  Index first_, batch_;  // this device's share of each batch: the first image and their number
  std::unique_ptr<GeneratorTraining> generator_, sampler_;
  std::unique_ptr<Discriminator> discriminator_;
  std::unique_ptr<Workbench> bench_;
  Prepared<OptimizerProblem> learn_generator_, learn_discriminator_;
  Prepared<TransformProblem> convert_generator_, convert_discriminator_;
  Prepared<ElementwiseProblem> normalize_;
  DeviceMemory real_;    // a batch of the data, in [-1, 1]
  DeviceMemory losses_;  // of discriminator and generator, summed since the last report, 256 bytes apart
  // A block of steps, uploaded together.
  DeviceMemory pictures_block_, latents_block_;
  std::size_t picture_stride_ = 0, latent_stride_ = 0;  // bytes per step
  long long block_first_ = 0, block_end_ = 0, block_steps_ = 1;
  HostMemory pictures_host_, latents_host_;
  std::vector<Index> order_;
  long long order_epoch_ = -1;
  long long drawn_first_ = -1;  // first step of the block that drawn_ prepares
  std::future<void> drawn_;     // last, since it uses the other members
};

}  // namespace cosmati::dcgan
