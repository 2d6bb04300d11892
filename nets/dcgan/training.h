// Training the DCGAN generator against a discriminator, from pictures.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cosmati/ops/optimizer.h"
#include "nets/dcgan/discriminator.h"
#include "nets/dcgan/generator_training.h"
#include "nets/dcgan/pictures.h"

namespace cosmati::dcgan {

// Of both networks; Radford, Metz and Chintala 2016.
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

struct Report {
  long long step = 0;        // steps done
  long long epoch = 0;       // epochs done
  double discriminator = 0;  // mean loss since the last report: of the data plus of the generated
  double generator = 0;
  double images_per_second = 0;  // of the data, since the last report
};

struct Callbacks {
  long long report_every = 100;  // steps; then the losses are read from the device, which waits for it
  std::function<void(Report const&)> report = {};
  // After each pass over the pictures and after the last step; which pass, from 1.
  std::function<void(long long pass)> epoch = {};
  std::atomic<bool> const* stop = nullptr;  // checked after each step
};

// A step: a batch of the data and one of generated images; the discriminator learns to tell them apart (two
// passes with batch statistics of their own, gradients added, one step of Adam), then the generator, against
// the discriminator so improved, to have its images taken for data. Nothing in a step waits for the device:
// pictures and latent vectors of many steps are sent at once, losses are summed on the device.
//
// Weights start as N(0, 0.02), the scales of batch normalisation as N(1, 0.02), the rest as 0. All that is
// drawn follows from the seed and the number of the step: on one device and type, the same seed gives the
// same bits, with or without a checkpoint in between.
class Training {
 public:
  // `pictures` outlive the training. Throws Error(bad_request) if they are fewer than a batch, or a number is
  // out of range.
  Training(Settings const& settings, Pictures const& pictures, Device const& device);
  // Continues a checkpoint, to `steps` steps (0: as many as it says). Throws Error(bad_file) if it is none,
  // or was made from another number of pictures.
  Training(std::string const& checkpoint, long long steps, Pictures const& pictures, Device const& device);
  Training(Training const&) = delete;
  Training& operator=(Training const&) = delete;

  bool run(Callbacks const& callbacks);  // true if it is done
  Settings const& settings() const { return settings_; }
  long long steps_done() const { return step_; }
  long long steps_an_epoch() const { return pictures_.count / settings_.batch; }

  // Images of `count` latent vectors that depend on the seed alone, the same as generate dcgan draws for it:
  // (count, size, size, channels) in [-1, 1], with the moving averages of the statistics.
  std::vector<float> sample(Index count);
  // The generator as weights.h names it, with all else that resuming needs. Crash-safe.
  void save(std::string const& path);
  // The generator alone, f16, with `metadata` beside what the training itself knows.
  void save_generator(std::string const& path, std::map<std::string, std::string> metadata);

  // For tests: one step's gradients without the optimiser's update are in network(i).gradient[0].
  Network& generator_network() { return generator_values_; }
  Network& discriminator_network() { return discriminator_values_; }

 private:
  void prepare();
  void initialise();
  void send_block(long long steps);
  void step();
  void update(Network& network, Prepared<OptimizerProblem> const& optimizer,
              Prepared<TransformProblem> const& convert);
  void refresh_factors();
  std::map<std::string, std::string> metadata() const;

  Settings settings_;
  Pictures const& pictures_;
  Device device_;
  Network generator_values_, discriminator_values_;
  std::unique_ptr<GeneratorTraining> generator_, sampler_;
  std::unique_ptr<Discriminator> discriminator_;
  std::unique_ptr<Workbench> bench_;
  Prepared<OptimizerProblem> learn_generator_, learn_discriminator_;
  Prepared<TransformProblem> convert_generator_, convert_discriminator_;
  Prepared<ElementwiseProblem> normalize_;
  DeviceMemory real_;    // a batch of the data, in [-1, 1]
  DeviceMemory losses_;  // of discriminator and generator, summed since the last report, 256 bytes apart
  // A block of steps, sent together.
  DeviceMemory pictures_block_, latents_block_;
  std::size_t picture_stride_ = 0, latent_stride_ = 0;  // bytes a step
  long long block_first_ = 0, block_end_ = 0, block_steps_ = 1;
  std::vector<unsigned char> pictures_host_;
  std::vector<float> latents_host_;
  std::vector<Index> order_;
  long long order_epoch_ = -1;
  long long step_ = 0;
};

}  // namespace cosmati::dcgan
