// LeNet-5: its variants as sequences of layers, its files, and its predictions.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "nets/dataset.h"
#include "nets/executor.h"
#include "nets/metadata.h"

namespace cosmati::lenet5 {

inline constexpr int class_count = 10;
inline constexpr Index image_size = 28;

// modern:    C1 5x5 1->6 (padding 2), 2x2 maximum, ReLU; C3 5x5 6->16, 2x2 maximum, ReLU; fully connected
//            400->120 (C5: a 5x5 convolution whose output is one pixel), ReLU; 120->84, ReLU; 84->10; softmax
//            with cross-entropy.
// chapter:   the same with 2x2 means and sigmoids, and Gaussian (RBF) units around trained centers at the end
//            (Kirk and Hwu, Programming Massively Parallel Processors, chapter 16). There, the bias is added
//            after pooling; since a mean is linear, adding it in the convolution is equivalent.
// lecun1998: 60,000 trained numbers: after C1 and C3 means with a trained coefficient and bias for each map,
//            C3 partially connected, scaled tanh, Gaussian units around fixed digit images (codes.h).
enum class Variant { modern, chapter, lecun1998 };
inline constexpr Variant variants[] = {Variant::modern, Variant::chapter, Variant::lecun1998};
char const* name_of(Variant variant);
Variant parse_variant(std::string const& name);  // throws Error listing the valid names

class Model {
 public:
  // state_count: arrays of optimizer state in addition to the parameters. Weights are zero until initialize()
  // or load().
  explicit Model(Variant variant, int state_count = 0);
  void initialize(unsigned long long seed);

  Variant variant() const { return variant_; }
  nets::Parameters& parameters() { return parameters_; }
  nets::Parameters const& parameters() const { return parameters_; }

  // Return the network planned for a batch, and the inputs of an executor. Both refer to the model, which
  // must not move meanwhile.
  std::unique_ptr<nets::Sequence> sequence(nets::Context const& context, Index batch);
  nets::Assignment assignment(Device const& device);

  nets::PixelStatistics statistics;  // how pixels become inputs
  std::vector<std::string> classes;

 private:
  nets::Network make_network();
  // Weights are initialized uniformly in [-limit, limit]. Before a ReLU, 6/inputs preserves the variance of a
  // unit's sum (He et al. 2015); a sigmoid, with a slope of at most 1/4, needs four times the limit of Glorot
  // and Bengio (2010); 1998 used 2.4/inputs.
  double initial_limit(nets::Parameter const& parameter) const;

  Variant variant_;
  nets::Parameters parameters_;
};

// Writes parameters, optimizer state and `metadata` (in addition to the model's own). Crash-safe. Throws
// Error(system), leaving an existing file unchanged, if a number is not finite.
void save(Model& model, std::string const& path, nets::Metadata metadata);

struct Loaded {
  std::unique_ptr<Model> model;
  nets::Metadata metadata;
};
// Throws Error(bad_file) if the file is not a LeNet-5 of this library, or a tensor has an unexpected shape or
// a number that is not finite.
Loaded load(std::string const& path, bool with_state);

struct Evaluation {
  std::vector<int> predictions;
  std::vector<std::vector<Index>> confusion;  // [label][prediction]
  double accuracy = 0;                        // 0..1
};
Evaluation evaluate(nets::Executor& executor, nets::Dataset const& data);

// The class with the highest score.
int best_class(float const* scores);

}  // namespace cosmati::lenet5
