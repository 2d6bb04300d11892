// Threads that process chunks.
#include "nets/dcgan/workers.h"

#include <deque>
#include <exception>
#include <utility>

#include "cosmati/ops/error.h"

namespace cosmati::dcgan {
namespace {

std::string text_of(std::exception_ptr const& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (std::exception const& error) {
    return error.what();
  }
}

}  // namespace

Workers::Workers(FoldedWeights const& weights, std::vector<Device> const& devices,
                 GeneratorOptions const& options, bool download, Warn warn)
    : Workers(
          devices.size(),
          [&](std::size_t i) {
            return std::make_unique<Pipeline>(weights, devices[i], options, slots_of(devices[i]), download);
          },
          std::move(warn)) {}

Workers::Workers(std::size_t devices, Make const& make, Warn warn)
    : pipelines_(devices), drawn_(devices), warn_(std::move(warn)) {
  std::vector<std::exception_ptr> failures(devices);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < devices; ++i)
    threads.emplace_back([&, i] {
      try {
        pipelines_[i] = make(i);
      } catch (...) {
        failures[i] = std::current_exception();
      }
    });
  threads.clear();  // waits for the threads
  std::size_t left = devices;
  for (std::exception_ptr const& failure : failures)
    if (failure && --left == 0) std::rethrow_exception(failure);
  for (std::size_t i = 0; i < devices; ++i)
    if (failures[i]) warn_("device " + std::to_string(i) + " does not take part: " + text_of(failures[i]));
}

Workers::~Workers() { wait(); }

std::vector<PlannedPart> const& Workers::parts() const {
  for (auto const& pipeline : pipelines_)
    if (pipeline) return pipeline->generator().parts();
  throw Error(ErrorCode::bad_request, "no device is available to generate images");
}

void Workers::start(Dealer& dealer, Latents const& latents, Deliver deliver) {
  deliver_ = std::move(deliver);
  for (auto const& pipeline : pipelines_)
    if (pipeline) dealer.join();
  for (std::size_t i = 0; i < pipelines_.size(); ++i)
    if (pipelines_[i]) threads_.emplace_back([this, i, &dealer, &latents] { work(i, dealer, latents); });
}

void Workers::wait() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void Workers::work(std::size_t device, Dealer& dealer, Latents const& latents) {
  Pipeline& pipeline = *pipelines_[device];
  std::deque<Chunk> mine;  // chunks in flight
  try {
    std::vector<float> z(static_cast<std::size_t>(pipeline.generator().batch() * latent_size));
    for (;;) {
      while (!pipeline.full()) {
        auto const chunk = dealer.take(mine.empty());
        if (!chunk) break;
        mine.push_back(*chunk);
        latents.read(chunk->first, chunk->count, z.data());
        pipeline.begin(z.data(), chunk->count);
      }
      if (mine.empty()) return dealer.leave();
      Images images = pipeline.front();
      drawn_[device].push_back({mine.front(), pipeline.times_of_front()});
      pipeline.pop();
      Chunk const chunk = mine.front();
      mine.pop_front();
      try {
        deliver_(chunk, std::move(images));
      } catch (...) {  // failures of files, not of the device
        dealer.fail(std::current_exception());
        return dealer.leave();
      }
    }
  } catch (...) {
    auto const failure = std::current_exception();
    if (!mine.empty())
      warn_("device " + std::to_string(device) + " failed with " + std::to_string(mine.size()) +
            " chunks in flight: " + text_of(failure));
    for (Chunk const& chunk : mine) dealer.give_back(chunk);
    dealer.leave(failure);
  }
}

}  // namespace cosmati::dcgan
