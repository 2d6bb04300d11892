// Training the DCGAN generator against a discriminator, from pictures.
#pragma once
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "nets/dcgan/replica.h"
#include "src/parallel/crew.h"

namespace cosmati::dcgan {

struct Report {
  long long step = 0;        // completed steps
  long long epoch = 0;       // completed epochs
  double discriminator = 0;  // mean loss since the last report: data plus generated images
  double generator = 0;
  double images_per_second = 0;  // of the data, since the last report
};

// Whether samples are generated after step `step` (from 1) of `steps`: after every `every` steps and the
// last; with `every` 0 after steps 1, 2, 4, 8, ..., after each pass of `steps_an_epoch`, and the last. It
// depends on nothing else, so that a resumed training generates the same samples as an uninterrupted one.
bool sample_is_due(long long step, long long steps, long long every, long long steps_an_epoch);

struct Callbacks {
  long long report_every = 100;  // steps; reading the losses waits for the device
  // The generator's last update may still be incomplete here; when `sample` and `epoch` are called, it is
  // complete.
  std::function<void(Report const&)> report = {};
  long long sample_every = 0;  // see sample_is_due(); the same in all processes
  std::function<void(long long step)> sample = {};
  // Called after each pass over the pictures and after the last step, with the number of the pass, from 1.
  std::function<void(long long pass)> epoch = {};
  std::atomic<bool> const* stop = nullptr;  // checked after each step
};

// A step uses a batch of the data and one of generated images; the discriminator learns to distinguish them
// (two passes with separate batch statistics, added gradients, one step of Adam), then the generator learns
// to have its images classified as data by the updated discriminator. No step waits for the device: a
// thread draws pictures and latent vectors ahead, they are uploaded step by step while the device computes
// the step before, and losses are summed on the device. Steps after the first are recorded.
//
// All random numbers follow from the seed and the number of the step: with the same devices and type, the
// same seed gives bit-identical results, with or without a checkpoint in between. Devices that share each
// batch, including the statistics of batch normalization (StatisticsOf::batch), learn the same as a single
// one, except for rounding; one process saves the checkpoint.
class Training {
 public:
  // `pictures` must outlive the training. Throws Error(bad_request) if they are fewer than a batch, or a
  // number is out of range.
  Training(Settings const& settings, Pictures const& pictures, nets::Team const& team);
  // Continues a checkpoint to `steps` steps (0: as stored). Throws Error(bad_file) if it is not a checkpoint,
  // or was made from another number of pictures.
  Training(std::string const& checkpoint, long long steps, Pictures const& pictures, nets::Team const& team);
  Training(Training const&) = delete;
  Training& operator=(Training const&) = delete;

  bool run(Callbacks const& callbacks);  // true if complete
  Settings const& settings() const { return settings_; }
  long long steps_done() const { return step_; }
  long long steps_an_epoch() const { return pictures_.count / settings_.batch; }

  // Returns images of `count` latent vectors that depend only on the seed, the same as those of generate
  // dcgan: (count, size, size, channels) in [-1, 1], with the moving averages of the statistics.
  std::vector<float> sample(Index count);
  // Saves the generator, with the names of weights.h, and everything needed to resume. Crash-safe.
  void save(std::string const& path);
  // Saves only the generator, f16, with `metadata` in addition to the training's own.
  void save_generator(std::string const& path, std::map<std::string, std::string> metadata);

  // For tests: the gradients of one step, before the optimizer's update, are in network(i).gradient[0].
  Network& generator_network() { return replicas_[0]->generator_values; }
  Network& discriminator_network() { return replicas_[0]->discriminator_values; }

 private:
  void prepare();
  void each(std::function<void(Replica&)> const& act);
  int first_device() const;  // number of this process's first device among all
  void check_replicas();
  std::map<std::string, std::string> metadata() const;

  Settings settings_;
  Pictures const& pictures_;
  nets::Team team_;
  std::vector<std::unique_ptr<parallel::AllReduce>> sums_;
  std::vector<std::unique_ptr<Replica>> replicas_;  // one per device of this process
  std::unique_ptr<parallel::Crew> crew_;            // if there are several
  long long step_ = 0;
};

}  // namespace cosmati::dcgan
