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
  long long step = 0;        // steps done
  long long epoch = 0;       // epochs done
  double discriminator = 0;  // mean loss since the last report: of the data plus of the generated
  double generator = 0;
  double images_per_second = 0;  // of the data, since the last report
};

// Whether samples are drawn after step `step` (from 1) of `steps`: after every `every` steps and the last;
// with `every` 0 after steps 1, 2, 4, 8, ..., after each pass of `steps_an_epoch`, and the last. It depends
// on nothing else, so that a resumed training draws what an uninterrupted one draws.
bool sample_is_due(long long step, long long steps, long long every, long long steps_an_epoch);

struct Callbacks {
  long long report_every = 100;  // steps; then the losses are read from the device, which waits for it
  std::function<void(Report const&)> report = {};
  long long sample_every = 0;  // see sample_is_due()
  std::function<void(long long step)> sample = {};
  // After each pass over the pictures and after the last step; which pass, from 1.
  std::function<void(long long pass)> epoch = {};
  std::atomic<bool> const* stop = nullptr;  // checked after each step
};

// A step: a batch of the data and one of generated images; the discriminator learns to tell them apart (two
// passes with batch statistics of their own, gradients added, one step of Adam), then the generator, against
// the discriminator so improved, to have its images taken for data. Nothing in a step waits for the device:
// pictures and latent vectors of many steps are sent at once, losses are summed on the device.
//
// All that is drawn follows from the seed and the number of the step: on the same devices and type, the same
// seed gives the same bits, with or without a checkpoint in between. Devices that share each batch, in
// statistics of batch normalization too, learn what one learns, but for rounding; one process saves the
// checkpoint.
class Training {
 public:
  // `pictures` outlive the training. Throws Error(bad_request) if they are fewer than a batch, or a number is
  // out of range.
  Training(Settings const& settings, Pictures const& pictures, nets::Team const& team);
  // Continues a checkpoint, to `steps` steps (0: as many as it says). Throws Error(bad_file) if it is none,
  // or was made from another number of pictures.
  Training(std::string const& checkpoint, long long steps, Pictures const& pictures, nets::Team const& team);
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

  // For tests: the gradients of one step, before the optimizer's update, are in network(i).gradient[0].
  Network& generator_network() { return replicas_[0]->generator_values; }
  Network& discriminator_network() { return replicas_[0]->discriminator_values; }

 private:
  void prepare();
  void each(std::function<void(Replica&)> const& act);
  int first_device() const;  // of this process, among all
  void check_replicas();
  std::map<std::string, std::string> metadata() const;

  Settings settings_;
  Pictures const& pictures_;
  nets::Team team_;
  std::vector<std::unique_ptr<parallel::AllReduce>> sums_;
  std::vector<std::unique_ptr<Replica>> replicas_;  // one for each device of this process
  std::unique_ptr<parallel::Crew> crew_;            // where there are others
  long long step_ = 0;
};

}  // namespace cosmati::dcgan
