// Data parallelism: one network on several host threads, each on its share of a batch.
#pragma once
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cosmati/ops/elementwise.h"
#include "nets/executor.h"

namespace cosmati::nets {

// Batches are divided into micro-batches of this many images: the batch is contiguous and one vector register
// wide, so that each thread's data stay in its own cache.
inline constexpr Index micro_batch = 16;

// The same network, once per thread of the device. Work is divided by index, so that the same number of
// threads gives the same bits.
class Replicas {
 public:
  // The parameters' arrays are read at run time.
  Replicas(Assignment const& assignment, bool training);

  // Mean loss over the images order[first .. first + count) of `data`, and its gradients in gradients().
  double loss_and_gradients(Dataset const& data, std::vector<Index> const& order, Index first, Index count);
  float* gradients() { return replicas_[0].sum.as<float>(); }

  Index classes() const { return replicas_[0].full->classes(); }
  // Scores (count, classes) of the images starting at `first`, in order.
  std::vector<float> scores(Dataset const& data, Index first, Index count);

 private:
  struct Replica {
    std::unique_ptr<Sequence> full;  // micro_batch images
    std::unique_ptr<Sequence> rest;  // fewer images, of the last size that was needed
    Tensor gradient;                 // of one micro-batch
    Tensor sum;                      // of the micro-batches of this thread
    Tensor workspace;                // workspace of add()
    double loss = 0;
  };
  void add_share(Replica& replica, Dataset const& data, std::vector<Index> const& order, Index first,
                 Index count, std::pair<Index, Index> share);
  // replica.sum = alpha * from + beta * replica.sum, after prepare_add(alpha, beta).
  void add(double alpha, Tensor const& from, double beta, Replica& replica) const;
  void prepare_add(double alpha, double beta);

  std::unique_ptr<Sequence> make(Index batch) const;

  Assignment assignment_;
  Device one_thread_;
  bool training_;
  std::vector<Replica> replicas_;
  std::map<std::pair<double, double>, Prepared<AddProblem>> adds_;
};

}  // namespace cosmati::nets
