// One device's part in DCGAN training: both networks, its share of each batch, and a step.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "cosmati/ops/optimizer.h"
#include "cosmati/ops/queue.h"
#include "nets/dcgan/training/discriminator.h"
#include "nets/dcgan/training/feed.h"
#include "nets/dcgan/training/generator_training.h"
#include "nets/sequence.h"
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
  StatisticsOf statistics = StatisticsOf::batch;
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
  // Enqueues step `step`, from 0; all but the first are recorded. The generator's update is enqueued by the
  // next step, before it uses the generator, or by finish().
  void step(long long step);
  void finish();  // waits until all steps are complete; may sum over all devices
  // Mean losses of discriminator and generator over full batches, summed over the steps since the last call.
  // Waits for the device.
  struct Losses {
    double discriminator, generator;
  };
  Losses take_losses();
  std::vector<float> sample(Index count);  // see Training::sample
  std::uint64_t fingerprint() const;       // of values and moments

  Network generator_values, discriminator_values;

 private:
  // Computes a step from the feed's inputs at `place`. `after_another`: also the generator's update of the
  // step before.
  void compute(int place, bool after_another);
  void update_generator();
  Recording const& recording(int place, bool after_another);
  void update(Network& network, Prepared<OptimizerProblem> const& optimizer,
              Prepared<TransformProblem> const& convert, void const* numbers);

  Settings const& settings_;
  Device device_;
  nets::Membership membership_;
  Queue queue_;
  nets::Branch branch_;  // the discriminator's pass over the data
  std::unique_ptr<Feed> feed_;
  std::unique_ptr<GeneratorTraining> generator_, sampler_;
  std::unique_ptr<Discriminator> discriminator_, beside_;
  std::unique_ptr<Workbench> bench_;
  Prepared<OptimizerProblem> learn_generator_, learn_discriminator_;
  Prepared<TransformProblem> convert_generator_, convert_discriminator_;
  Prepared<ElementwiseProblem> normalize_;
  Prepared<TransformProblem> keep_numbers_;
  DeviceMemory real_;                          // a batch of the data, in [-1, 1]
  DeviceMemory losses_;                        // summed since the last report
  DeviceMemory numbers_;                       // the optimizer's, of the last step
  bool warm_ = false;                          // whether a step has run
  bool generator_is_behind_ = false;           // whether its update of the last step has not been enqueued
  std::optional<Recording> recordings_[2][2];  // of a step: from each place of the feed, after_another
};

}  // namespace cosmati::dcgan
