// Threads that take chunks, and the messages between processes.
#include "nets/dcgan/workers.h"

#include <chrono>
#include <cstring>
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
            return std::make_unique<Pipeline>(weights, devices[i], options, 3, download);
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
  threads.clear();  // which waits for them
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
  throw Error(ErrorCode::bad_request, "there is no device to draw on");
}

void Workers::start(Dealer& dealer, Latents const& latents) {
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
  std::deque<Chunk> mine;  // on their way
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
      dealer.put(mine.front(), std::move(images));
      mine.pop_front();
    }
  } catch (...) {
    auto const failure = std::current_exception();
    if (!mine.empty())
      warn_("device " + std::to_string(device) + " failed with " + std::to_string(mine.size()) +
            " chunks on their way: " + text_of(failure));
    for (Chunk const& chunk : mine) dealer.give_back(chunk);
    dealer.leave(failure);
  }
}

namespace {

constexpr int work_tag = 1, images_tag = 2;
constexpr std::size_t chunks_ahead = 2;  // of a rank: one is computed while the next one travels

}  // namespace

Weights broadcast(parallel::ProcessGroup& group, Weights const* mine) {
  Architecture architecture = mine == nullptr ? Architecture{} : mine->architecture();
  group.broadcast(architecture.channels.data(), architecture.channels.size() * sizeof(Index));
  std::vector<float> numbers =
      mine == nullptr ? std::vector<float>(Weights::number_count(architecture)) : mine->all();
  group.broadcast(numbers.data(), numbers.size() * sizeof(float));
  return Weights::from(architecture, numbers);
}

void deal_to_ranks(parallel::ProcessGroup& group, Dealer& dealer, Latents const& latents, Index image_bytes) {
  std::vector<std::deque<Chunk>> under_way(static_cast<std::size_t>(group.size()));
  while (!dealer.computed() && !dealer.failed()) {
    bool idle = true;
    for (std::size_t ahead = 0; ahead < chunks_ahead; ++ahead)  // one each before anybody gets two
      for (int rank = 1; rank < group.size(); ++rank) {
        auto& of_rank = under_way[static_cast<std::size_t>(rank)];
        if (of_rank.size() > ahead) continue;
        auto const chunk = dealer.take(false);
        if (!chunk) break;
        std::vector<std::byte> message(static_cast<std::size_t>(chunk->count * latent_size) * sizeof(float));
        latents.read(chunk->first, chunk->count, reinterpret_cast<float*>(message.data()));
        group.post(rank, work_tag, std::move(message));  // that rank may be sending images
        of_rank.push_back(*chunk);
        idle = false;
      }
    while (group.arrived(parallel::any, images_tag)) {
      auto images = std::make_shared<parallel::Message>(group.receive(parallel::any, images_tag));
      auto& of_rank = under_way[static_cast<std::size_t>(images->from)];
      Chunk const chunk = of_rank.front();  // they come in the order in which they were sent
      if (images->bytes.size() != static_cast<std::size_t>(chunk.count * image_bytes))
        throw Error(ErrorCode::system, "rank " + std::to_string(images->from) + " sent " +
                                           std::to_string(images->bytes.size()) + " bytes where " +
                                           std::to_string(chunk.count * image_bytes) + " were expected");
      of_rank.pop_front();
      void const* const data = images->bytes.data();
      dealer.put(chunk, Images(std::move(images), data));
      idle = false;
    }
    if (idle) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  if (dealer.failed()) return;
  for (int rank = 1; rank < group.size(); ++rank) group.send(rank, work_tag, nullptr, 0);
}

void draw_for_rank_0(parallel::ProcessGroup& group, Pipeline& pipeline) {
  auto const image_bytes =
      static_cast<std::size_t>(bytes_of_image(pipeline.generator().options().image_type));
  std::deque<Index> counts;
  for (;;) {
    while (!pipeline.full() && (pipeline.empty() || group.arrived(0, work_tag))) {
      parallel::Message const message = group.receive(0, work_tag);
      if (message.bytes.empty()) return;  // sent when everything has been computed
      auto const count = static_cast<Index>(message.bytes.size() / sizeof(float)) / latent_size;
      pipeline.begin(reinterpret_cast<float const*>(message.bytes.data()), count);
      counts.push_back(count);
    }
    Images const images = pipeline.front();
    group.send(0, images_tag, images.get(), static_cast<std::size_t>(counts.front()) * image_bytes);
    pipeline.pop();
    counts.pop_front();
  }
}

}  // namespace cosmati::dcgan
