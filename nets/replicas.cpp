// Sharing micro-batches among threads, and adding what they found in a fixed order.
#include "nets/replicas.h"

#include <algorithm>
#include <numeric>

#include "src/backend/cpu/parallel.h"

namespace cosmati::nets {

Replicas::Replicas(MakeSequence make, Device const& device, Index gradient_elements, bool training)
    : make_(std::move(make)), one_thread_(device), gradient_elements_(gradient_elements) {
  one_thread_.threads = 1;
  replicas_.resize(static_cast<std::size_t>(device.threads));
  for (Replica& replica : replicas_) {
    replica.full = make_(one_thread_, micro_batch, training);
    if (!training) continue;
    replica.gradient = Tensor(DataType::f32, Shape(gradient_elements_));
    replica.sum = Tensor(DataType::f32, Shape(gradient_elements_));
    replica.gradient.fill(0);  // the padding between parameters is never written
  }
}

void Replicas::prepare_add(double alpha, double beta) {
  if (adds_.count({alpha, beta}) != 0) return;
  TensorDescription const flat = describe(DataType::f32, Shape(gradient_elements_));
  TensorDescription const second =
      beta == 0 ? TensorDescription{} : flat;  // what is not read may be anything
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

// share: the micro-batches [first, last) of this thread. Each adds its mean gradient times its number of
// images.
void Replicas::add_share(Replica& replica, Dataset const& data, std::vector<Index> const& order, Index first,
                         Index count, PixelStatistics const& statistics, std::pair<Index, Index> share) {
  replica.loss = 0;
  int labels[micro_batch];
  for (Index m = share.first; m < share.second; ++m) {
    Index const begin = m * micro_batch, images = std::min(micro_batch, count - begin);
    Sequence& sequence = images == micro_batch ? *replica.full : *replica.rest;
    gather(data, order, first + begin, statistics, sequence.input(), sequence.input_data());
    for (Index i = 0; i < images; ++i) {
      Index const image = order[static_cast<std::size_t>(first + begin + i)];
      labels[i] = data.labels[static_cast<std::size_t>(image)];
    }
    double const weight = static_cast<double>(images) / static_cast<double>(count);
    replica.loss += weight * sequence.loss_and_gradients(labels, {replica.gradient.as<float>()});
    add(weight, replica.gradient, m == share.first ? 0 : 1, replica);
  }
}

double Replicas::loss_and_gradients(Dataset const& data, std::vector<Index> const& order, Index first,
                                    Index count, PixelStatistics const& statistics) {
  Index const micro_batches = (count + micro_batch - 1) / micro_batch, rest = count % micro_batch;
  int const parts = static_cast<int>(std::min<Index>(static_cast<Index>(replicas_.size()), micro_batches));
  Replica& last = replicas_[static_cast<std::size_t>(parts - 1)];
  if (rest > 0 && (!last.rest || last.rest->batch() != rest)) last.rest = make_(one_thread_, rest, true);
  for (Index images : {std::min(micro_batch, count), rest})
    for (double beta : {0.0, 1.0})
      prepare_add(static_cast<double>(images) / static_cast<double>(count), beta);
  prepare_add(1, 1);
  cpu::parallel_parts(parts, [&](int part, int) {
    auto const share = cpu::share(micro_batches, part, parts);
    add_share(replicas_[static_cast<std::size_t>(part)], data, order, first, count, statistics,
              {share.first, share.last});
  });
  double loss = replicas_[0].loss;
  for (std::size_t part = 1; part < static_cast<std::size_t>(parts); ++part) {
    add(1, replicas_[part].sum, 1, replicas_[0]);
    loss += replicas_[part].loss;
  }
  return loss;
}

std::vector<float> Replicas::scores(Dataset const& data, PixelStatistics const& statistics, Index classes) {
  std::vector<Index> order(static_cast<std::size_t>(data.count()));
  std::iota(order.begin(), order.end(), Index{0});
  std::vector<float> all(
      static_cast<std::size_t>((data.count() + micro_batch - 1) / micro_batch * micro_batch * classes));
  Index const micro_batches = (data.count() + micro_batch - 1) / micro_batch;
  cpu::parallel_parts(static_cast<int>(replicas_.size()), [&](int part, int parts) {
    auto const share = cpu::share(micro_batches, part, parts);
    Sequence& sequence = *replicas_[static_cast<std::size_t>(part)].full;
    for (Index m = share.first; m < share.last; ++m) {
      gather(data, order, m * micro_batch, statistics, sequence.input(), sequence.input_data());
      sequence.infer(all.data() + m * micro_batch * classes);
    }
  });
  all.resize(static_cast<std::size_t>(data.count() * classes));
  return all;
}

}  // namespace cosmati::nets
