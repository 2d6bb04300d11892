// Distributes micro-batches over threads, and adds their gradients in a fixed order.
#include "nets/replicas.h"

#include <algorithm>
#include <numeric>

#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::nets {

Context host_context(Assignment const& assignment, bool training) {
  Context context{assignment.device, preferred_format(assignment.device), training};
  context.device.threads = 1;  // each thread has its own network
  context.factors = assignment.factors;
  return context;
}

Replicas::Replicas(Assignment const& assignment, bool training)
    : assignment_(assignment), one_thread_(assignment.device), training_(training) {
  one_thread_.threads = 1;
  replicas_.resize(static_cast<std::size_t>(assignment.device.threads));
  for (Replica& replica : replicas_) {
    replica.full = make(micro_batch);
    if (!training) continue;
    replica.gradient = Tensor(assignment_.parameters.trainable());
    replica.sum = Tensor(assignment_.parameters.trainable());
    replica.gradient.fill(0);  // the padding between parameters is never written
  }
}

std::unique_ptr<Sequence> Replicas::make(Index batch) const {
  auto sequence = assignment_.make(host_context(assignment_, training_), batch);
  sequence->prepare();
  return sequence;
}

void Replicas::prepare_add(double alpha, double beta) {
  if (adds_.count({alpha, beta}) != 0) return;
  TensorDescription const flat = assignment_.parameters.trainable();
  TensorDescription const second =
      beta == 0 ? TensorDescription{} : flat;  // with beta = 0 the second tensor is not read
  auto const& added = adds_[{alpha, beta}] =
      prepare(make_plan(AddProblem{flat, second, flat, alpha, beta}, one_thread_));
  auto const bytes = static_cast<Index>(added.workspace_bytes());
  for (Replica& replica : replicas_)
    if (replica.workspace.size() < bytes) replica.workspace = Tensor(DataType::u8, Shape(bytes));
}

void Replicas::add(double alpha, Tensor const& from, double beta, Replica& replica) const {
  adds_.at({alpha, beta})
      .run({.a = from.data(), .b = replica.sum.data(), .y = replica.sum.data()}, replica.workspace.data());
}

// `share` is the range [first, last) of this thread's micro-batches. Each adds its mean gradient times its
// number of images.
void Replicas::add_share(Replica& replica, Dataset const& data, std::vector<Index> const& order, Index first,
                         Index count, std::pair<Index, Index> share) {
  replica.loss = 0;
  int labels[micro_batch];
  for (Index m = share.first; m < share.second; ++m) {
    Index const begin = m * micro_batch, images = std::min(micro_batch, count - begin);
    Sequence& sequence = images == micro_batch ? *replica.full : *replica.rest;
    gather(data, order, first + begin, assignment_.statistics, sequence.input(), sequence.input_data());
    for (Index i = 0; i < images; ++i) {
      Index const image = order[static_cast<std::size_t>(first + begin + i)];
      labels[i] = data.labels[static_cast<std::size_t>(image)];
    }
    double const weight = static_cast<double>(images) / static_cast<double>(count);
    float loss = 0;
    sequence.loss_and_gradients(assignment_.parameters.values(), labels, &loss, replica.gradient.as<float>());
    replica.loss += weight * static_cast<double>(loss);
    add(weight, replica.gradient, m == share.first ? 0 : 1, replica);
  }
}

double Replicas::loss_and_gradients(Dataset const& data, std::vector<Index> const& order, Index first,
                                    Index count) {
  Index const micro_batches = (count + micro_batch - 1) / micro_batch, rest = count % micro_batch;
  int const parts = static_cast<int>(std::min<Index>(static_cast<Index>(replicas_.size()), micro_batches));
  Replica& last = replicas_[static_cast<std::size_t>(parts - 1)];
  if (rest > 0 && (!last.rest || last.rest->batch() != rest)) last.rest = make(rest);
  for (Index images : {std::min(micro_batch, count), rest})
    for (double beta : {0.0, 1.0})
      prepare_add(static_cast<double>(images) / static_cast<double>(count), beta);
  prepare_add(1, 1);
  cpu::parallel_parts(parts, [&](int part, int) {
    auto const share = cpu::share(micro_batches, part, parts);
    add_share(replicas_[static_cast<std::size_t>(part)], data, order, first, count,
              {share.first, share.last});
  });
  double loss = replicas_[0].loss;
  for (std::size_t part = 1; part < static_cast<std::size_t>(parts); ++part) {
    add(1, replicas_[part].sum, 1, replicas_[0]);
    loss += replicas_[part].loss;
  }
  return loss;
}

std::vector<float> Replicas::scores(Dataset const& data, Index first, Index count) {
  Index const classes = this->classes();
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), first);
  Index const micro_batches = (count + micro_batch - 1) / micro_batch;
  std::vector<float> all(static_cast<std::size_t>(micro_batches * micro_batch * classes));
  cpu::parallel_parts(static_cast<int>(replicas_.size()), [&](int part, int parts) {
    auto const share = cpu::share(micro_batches, part, parts);
    Sequence& sequence = *replicas_[static_cast<std::size_t>(part)].full;
    for (Index m = share.first; m < share.last; ++m) {
      gather(data, order, m * micro_batch, assignment_.statistics, sequence.input(), sequence.input_data());
      sequence.infer(assignment_.parameters.values(), all.data() + m * micro_batch * classes);
    }
  });
  all.resize(static_cast<std::size_t>(count * classes));
  return all;
}

}  // namespace cosmati::nets
