// Runs the layers forward and backward, with one memory for all intermediate arrays.
#include "nets/sequence.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <atomic>
#include <exception>
#include <utility>

#include "nets/layers.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::nets {

Sequence::Block Sequence::reserve(std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  Block const block{memory_bytes_, bytes};
  memory_bytes_ += (bytes + alignment - 1) / alignment * alignment;
  return block;
}

namespace {

// Fuses an activation into the epilogue of the preceding product, skipping layers that only select elements
// (max pooling), if the following product can multiply by the derivative.
void fuse(std::vector<std::unique_ptr<Layer>>& layers) {
  for (std::size_t i = 1; i + 1 < layers.size(); ++i) {
    auto const function = layers[i]->activation();
    if (!function || !can_fuse(*function) || !layers[i + 1]->has_epilogue()) continue;
    std::size_t product = i - 1;
    while (product > 0 && layers[product]->selects()) --product;
    if (!layers[product]->has_epilogue()) continue;
    layers[product]->fuse_value(*function);
    layers[i + 1]->fuse_derivative(*function);
    layers.erase(layers.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

}  // namespace

Sequence::Sequence(Parameters const& parameters, Network network, Context const& context,
                   TensorDescription const& x)
    : parameters_(parameters), network_(std::move(network)), context_(context), input_(x) {
  auto const bytes_of = [](TensorDescription const& tensor) {
    return static_cast<std::size_t>(tensor.bytes());
  };
  if (context.fuse) fuse(network_.layers);
  Context now = context;
  now.gradient_of_input = false;
  description_.push_back(x);
  value_.push_back(reserve(bytes_of(x)));
  std::size_t workspace_bytes = 64, largest = 0;
  for (auto const& layer : network_.layers) {
    TensorDescription const y = layer->plan(now, parameters, description_.back());
    now.gradient_of_input = true;
    value_.push_back(layer->in_place() ? value_.back() : reserve(bytes_of(y)));
    description_.push_back(y);
    saved_.push_back(reserve(layer->saved_bytes()));
    workspace_bytes = std::max(workspace_bytes, layer->workspace_bytes());
    largest = std::max(largest, bytes_of(y));
  }
  network_.loss->plan(context, parameters, description_.back());
  workspace_bytes = std::max(workspace_bytes, network_.loss->workspace_bytes());
  loss_scratch_ = reserve(network_.loss->scratch_bytes());
  workspace_ = reserve(workspace_bytes);
  side_workspace_ = context.training && context.branch ? reserve(workspace_bytes) : workspace_;
  if (!context.training) return;
  gradient_.resize(value_.size());
  Block turn[2];
  if (!context.branch)
    for (Block& block : turn) block = reserve(largest);
  std::size_t next = 0;
  for (std::size_t i = value_.size(); i-- > 1;) {
    bool const in_place = i + 1 < value_.size() && network_.layers[i]->in_place();
    gradient_[i] = in_place         ? gradient_[i + 1]
                   : context.branch ? reserve(bytes_of(description_[i]))
                                    : turn[next++ % 2];
  }
}

Stream Branch::fork() {
  main_.mark(forked_);
  side_.wait_for(forked_);
  return side_;
}

void Branch::join() {
  side_.mark(done_);
  main_.wait_for(done_);
}

void Sequence::prepare() {
  memory_ = DeviceMemory(context_.device, memory_bytes_);
  network_.loss->set_scratch(at(loss_scratch_));
  std::vector<std::function<void()>> tasks = network_.loss->take_preparations();
  for (std::size_t i = 0; i < network_.layers.size(); ++i) {
    network_.layers[i]->set_saved(at(saved_[i]));
    for (auto& task : network_.layers[i]->take_preparations()) tasks.push_back(std::move(task));
  }
  std::vector<std::exception_ptr> errors(tasks.size());
  std::atomic<std::size_t> next = 0;
  auto const threads = std::min<std::size_t>(static_cast<std::size_t>(context_.device.threads), tasks.size());
  cpu::parallel_parts(static_cast<int>(threads), [&](int, int) {
    for (std::size_t i = next++; i < tasks.size(); i = next++) try {
        tasks[i]();
      } catch (...) {
        errors[i] = std::current_exception();
      }
  });
  for (std::exception_ptr const& error : errors)
    if (error) std::rethrow_exception(error);
}

void Sequence::forward(Pass const& pass) {
  for (std::size_t i = 0; i < network_.layers.size(); ++i)
    network_.layers[i]->forward(pass, at(value_[i]), at(value_[i + 1]));
}

void Sequence::infer(float const* values, float* scores, Stream stream, Narrow const& narrow) {
  Pass const now = pass(values, nullptr, stream, narrow);
  forward(now);
  network_.loss->scores(now, at(value_.back()), scores);
}

void Sequence::loss_and_gradients(float const* values, int const* labels, float* loss, float* gradients,
                                  Stream stream, Branch* branch, Ready const& ready, Narrow const& narrow) {
  Pass now = pass(values, gradients, stream, narrow);
  forward(now);
  if (branch != nullptr) now.side = {branch->fork(), at(side_workspace_)};
  network_.loss->loss(now, at(value_.back()), labels, loss, at(gradient_.back()));
  for (std::size_t i = network_.layers.size(); i-- > 0;) {
    if (branch != nullptr) now.side.stream = branch->fork();
    network_.layers[i]->backward(now, at(value_[i]), at(gradient_[i + 1]),
                                 i == 0 ? nullptr : at(gradient_[i]));
    if (int const first = network_.layers[i]->first_parameter(); ready && first >= 0)
      ready(parameters_[first].offset);
  }
  if (branch != nullptr) branch->join();
}

std::vector<Index> Sequence::gradient_starts() const {
  std::vector<Index> starts;
  for (std::size_t i = network_.layers.size(); i-- > 0;)
    if (int const first = network_.layers[i]->first_parameter(); first >= 0)
      starts.push_back(parameters_[first].offset);
  return starts;
}

FusedNetwork Sequence::compose() const {
  FusedNetwork network;
  bool fits = !context_.narrow() && context_.format == TensorFormat::nchw;
  for (std::size_t i = 0; fits && i < network_.layers.size(); ++i)
    fits = network_.layers[i]->compose(network, parameters_, description_[i]);
  fits = fits && network_.loss->compose(network, parameters_, description_.back());
  return fits ? network : FusedNetwork();
}

std::string Sequence::explain() const {
  auto const line = [](std::string const& what, std::string const& result, Block const& block,
                       std::vector<std::string> const& kernels) {
    return fmt::format("{:<26} {:<24} {:>9} {:>9}  {}\n", what, result, block.offset, block.bytes,
                       fmt::join(kernels, ", "));
  };
  std::string text =
      fmt::format("{:<26} {:<24} {:>9} {:>9}  {}\n", "layer", "output", "at byte", "bytes", "kernels");
  text += line("input", to_string(input_), value_[0], {});
  for (std::size_t i = 0; i < network_.layers.size(); ++i) {
    Layer const& layer = *network_.layers[i];
    text += line(layer.name(), to_string(description_[i + 1].shape()), value_[i + 1], layer.choices());
    if (saved_[i].bytes > 0) text += line("  kept for backward", "", saved_[i], {});
  }
  text += line(network_.loss->name(), "", loss_scratch_.bytes > 0 ? loss_scratch_ : Block(),
               network_.loss->choices());
  text += line("workspace", "", workspace_, {});
  if (context_.training && context_.branch) text += line("separate workspace", "", side_workspace_, {});
  for (std::size_t i = gradient_.size(); i-- > 1;)
    text += line("gradient of " + (i + 1 < gradient_.size() ? "layer " + std::to_string(i) : "scores"), "",
                 gradient_[i], {});
  return text + fmt::format("{} bytes in one allocation on {}, batch {}\n", memory_bytes_,
                            cosmati::name_of(context_.device.backend), batch());
}

}  // namespace cosmati::nets
