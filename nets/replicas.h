// Data parallelism: one network on several host threads, each on its share of a batch.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cosmati/ops/elementwise.h"
#include "nets/dataset.h"
#include "nets/sequence.h"

namespace cosmati::nets {

// Batches are cut into micro-batches of this many images: the batch innermost and one vector register wide,
// so that what a thread computes on stays in its own cache.
inline constexpr Index micro_batch = 16;

// Makes a sequence for batches of `batch` images on a device (of one thread).
using MakeSequence =
    std::function<std::unique_ptr<Sequence>(Device const& device, Index batch, bool training)>;

// The same network once for each thread of the device. Work is divided by index, so that the same number of
// threads gives the same bits.
class Replicas {
 public:
  Replicas(MakeSequence make, Device const& device, Index gradient_elements, bool training);

  // Mean loss over the images order[first .. first + count) of `data`, and its gradients in gradients().
  double loss_and_gradients(Dataset const& data, std::vector<Index> const& order, Index first, Index count,
                            PixelStatistics const& statistics);
  float const* gradients() const { return replicas_[0].sum.as<float>(); }

  // Scores (count, classes) of all images of `data`, in order.
  std::vector<float> scores(Dataset const& data, PixelStatistics const& statistics, Index classes);

 private:
  struct Replica {
    std::unique_ptr<Sequence> full;  // micro_batch images
    std::unique_ptr<Sequence> rest;  // fewer, of the last size that was needed
    Tensor gradient;                 // of one micro-batch
    Tensor sum;                      // of the micro-batches of this thread
    Tensor workspace;                // of add()
    double loss = 0;
  };
  void add_share(Replica& replica, Dataset const& data, std::vector<Index> const& order, Index first,
                 Index count, PixelStatistics const& statistics, std::pair<Index, Index> share);
  // replica.sum = alpha * from + beta * replica.sum, after prepare_add(alpha, beta).
  void add(double alpha, Tensor const& from, double beta, Replica& replica) const;
  void prepare_add(double alpha, double beta);

  MakeSequence make_;
  Device one_thread_;
  Index gradient_elements_;
  std::vector<Replica> replicas_;
  std::map<std::pair<double, double>, Prepared<AddProblem>> adds_;
};

}  // namespace cosmati::nets
