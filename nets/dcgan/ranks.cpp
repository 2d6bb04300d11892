// Exchanges work, sizes and positions between ranks; sends images only if a rank cannot write the files
// itself.
#include "nets/dcgan/ranks.h"

#include <chrono>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cosmati/ops/error.h"

namespace cosmati::dcgan {
namespace {

// Messages to a rank: work_tag, a chunk with its latent vectors (empty when all work is done); place_tag, the
// text offset of its oldest chunk without one. From a rank: computed_tag, a chunk is computed and its text
// has this length; written_tag, it is written; or, instead of both, images_tag, its images.
enum Tag : int { work_tag = 1, place_tag, computed_tag, written_tag, images_tag };
constexpr std::size_t chunks_ahead = 2;  // per rank: one is computed while the next one is sent

struct Computed {
  Index chunk = 0, text_bytes = 0;
};

std::vector<std::byte> message_of(void const* data, std::size_t bytes) {
  auto const* const begin = static_cast<std::byte const*>(data);
  return {begin, begin + bytes};
}

template <class Value>
Value value_of(parallel::Message const& message) {
  Value value;
  if (message.bytes.size() != sizeof value)
    throw Error(ErrorCode::system, "rank " + std::to_string(message.from) + " sent " +
                                       std::to_string(message.bytes.size()) + " bytes where " +
                                       std::to_string(sizeof value) + " were expected");
  std::memcpy(&value, message.bytes.data(), sizeof value);
  return value;
}

// Rank 0's view of the other ranks.
class Ranks {
 public:
  Ranks(parallel::ProcessGroup& group, Dealer& dealer, Latents const& latents, Index image_bytes,
        Writer& writer, bool text)
      : group_(group),
        dealer_(dealer),
        latents_(latents),
        image_bytes_(image_bytes),
        writer_(writer),
        text_(text),
        drawing_(static_cast<std::size_t>(group.size())),
        writing_(drawing_.size()) {}

  // Returns true if there was something to do.
  bool turn() {
    bool busy = deal();
    for (; group_.arrived(); busy = true) {  // in the order in which each rank sent them
      auto message = std::make_shared<parallel::Message>(group_.receive());
      if (message->tag == computed_tag)
        take_computed(*message);
      else if (message->tag == written_tag)
        writer_.written(pop(writing_, message->from));
      else
        take_images(message);
    }
    while (auto const part = dealer_.next_elsewhere())
      if (text_) group_.post(part->rank, place_tag, message_of(&part->text_at, sizeof part->text_at));
    return busy;
  }

 private:
  std::deque<Chunk>& of(std::vector<std::deque<Chunk>>& chunks, int rank) {
    return chunks[static_cast<std::size_t>(rank)];
  }

  bool deal() {
    bool dealt = false;
    for (std::size_t ahead = 0; ahead < chunks_ahead;
         ++ahead)  // every rank gets one before any rank gets two
      for (int rank = 1; rank < group_.size(); ++rank) {
        if (of(drawing_, rank).size() > ahead) continue;
        auto const chunk = dealer_.take(false);
        if (!chunk) return dealt;
        std::size_t const numbers = static_cast<std::size_t>(chunk->count * latent_size);
        std::vector<std::byte> message(sizeof *chunk + numbers * sizeof(float));
        std::vector<float> z(numbers);
        latents_.read(chunk->first, chunk->count, z.data());
        std::memcpy(message.data(), &*chunk, sizeof *chunk);
        std::memcpy(message.data() + sizeof *chunk, z.data(), numbers * sizeof(float));
        group_.post(rank, work_tag,
                    std::move(message));  // posted without waiting, because that rank may be sending images
        of(drawing_, rank).push_back(*chunk);
        dealt = true;
      }
    return dealt;
  }

  // Removes the oldest chunk of a rank; they arrive in the order in which they were sent.
  Chunk pop(std::vector<std::deque<Chunk>>& chunks, int rank) {
    if (of(chunks, rank).empty())
      throw Error(ErrorCode::system,
                  "rank " + std::to_string(rank) + " reported a chunk that it was not sent");
    Chunk const chunk = of(chunks, rank).front();
    of(chunks, rank).pop_front();
    return chunk;
  }

  void take_computed(parallel::Message const& message) {
    Part part;
    part.rank = message.from;
    part.text_bytes = value_of<Computed>(message).text_bytes;
    part.chunk = pop(drawing_, message.from);
    of(writing_, message.from).push_back(part.chunk);
    dealer_.put(std::move(part));
  }

  void take_images(std::shared_ptr<parallel::Message> images) {
    Chunk const chunk = pop(drawing_, images->from);
    if (images->bytes.size() != static_cast<std::size_t>(chunk.count * image_bytes_))
      throw Error(ErrorCode::system, "rank " + std::to_string(images->from) + " sent " +
                                         std::to_string(images->bytes.size()) + " bytes where " +
                                         std::to_string(chunk.count * image_bytes_) + " were expected");
    void const* const data = images->bytes.data();
    writer_.deliver(chunk, Images(std::move(images), data));
  }

  parallel::ProcessGroup& group_;
  Dealer& dealer_;
  Latents const& latents_;
  Index image_bytes_;
  Writer& writer_;
  bool text_;
  std::vector<std::deque<Chunk>> drawing_, writing_;  // one queue per rank
};

}  // namespace

void send_settings(parallel::ProcessGroup& group, RankSettings const& settings) {
  Index numbers[] = {settings.count, settings.batch, static_cast<Index>(settings.seal.size())};
  std::string seal = settings.seal;
  group.broadcast(numbers, sizeof numbers);
  group.broadcast(seal.data(), seal.size());
}

RankSettings receive_settings(parallel::ProcessGroup& group) {
  Index numbers[3] = {};
  group.broadcast(numbers, sizeof numbers);
  RankSettings settings{numbers[0], numbers[1], std::string(static_cast<std::size_t>(numbers[2]), ' ')};
  group.broadcast(settings.seal.data(), settings.seal.size());
  return settings;
}

Weights broadcast(parallel::ProcessGroup& group, Weights const* mine) {
  Architecture architecture = mine == nullptr ? Architecture{} : mine->architecture();
  group.broadcast(architecture.channels.data(), architecture.channels.size() * sizeof(Index));
  std::vector<float> numbers =
      mine == nullptr ? std::vector<float>(Weights::number_count(architecture)) : mine->all();
  group.broadcast(numbers.data(), numbers.size() * sizeof(float));
  return Weights::from(architecture, numbers);
}

std::vector<int> ranks_without_files(parallel::ProcessGroup& group, bool here) {
  std::vector<float> without(static_cast<std::size_t>(group.size()));
  without[static_cast<std::size_t>(group.rank())] = here ? 0 : 1;
  group.sum(without.data(), without.size());
  std::vector<int> ranks;
  for (int rank = 0; rank < group.size(); ++rank)
    if (without[static_cast<std::size_t>(rank)] != 0) ranks.push_back(rank);
  return ranks;
}

void deal_to_ranks(parallel::ProcessGroup& group, Dealer& dealer, Latents const& latents, Index image_bytes,
                   Writer& writer, bool text) {
  Ranks ranks(group, dealer, latents, image_bytes, writer, text);
  while (!dealer.complete() && !dealer.failed()) {
    bool const busy = ranks.turn();
    writer.write_some();
    if (!busy) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (dealer.failed()) return;
  for (int rank = 1; rank < group.size(); ++rank) group.send(rank, work_tag, nullptr, 0);
}

void generate_for_rank_0(parallel::ProcessGroup& group, Pipeline& pipeline, Output* output) {
  auto const image_bytes =
      static_cast<std::size_t>(bytes_of_image(pipeline.generator().options().image_type));
  bool const text = output != nullptr && output->text();
  std::deque<Chunk> drawing;
  std::deque<Part> unplaced;
  std::vector<float> z;
  auto const write = [&](Part const& part) {
    output->write(part);
    group.post(0, written_tag, message_of(&part.chunk.number, sizeof part.chunk.number));
  };
  for (;;) {
    while (!pipeline.full() && ((pipeline.empty() && unplaced.empty()) || group.arrived(0, work_tag))) {
      parallel::Message const message = group.receive(0, work_tag);
      if (message.bytes.empty()) return;  // sent when all files are complete
      Chunk chunk;
      std::memcpy(&chunk, message.bytes.data(), sizeof chunk);
      z.resize(static_cast<std::size_t>(chunk.count * latent_size));
      std::memcpy(z.data(), message.bytes.data() + sizeof chunk, z.size() * sizeof(float));
      pipeline.begin(z.data(), chunk.count);
      drawing.push_back(chunk);
    }
    if (!pipeline.empty()) {
      Chunk const chunk = drawing.front();
      drawing.pop_front();
      Images images = pipeline.front();
      if (output == nullptr) {
        group.send(0, images_tag, images.get(), static_cast<std::size_t>(chunk.count) * image_bytes);
      } else {
        Part part = output->part(chunk, std::move(images));
        Computed const computed{chunk.number, part.text_bytes};
        group.post(0, computed_tag, message_of(&computed, sizeof computed));
        text ? unplaced.push_back(std::move(part)) : write(part);
      }
      pipeline.pop();
    }
    // With nothing to compute, waits for the next message.
    while (!unplaced.empty() &&
           (group.arrived(0, place_tag) || (pipeline.empty() && !group.arrived(0, work_tag)))) {
      if (!group.arrived(0, place_tag)) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));
        continue;
      }
      unplaced.front().text_at = value_of<Index>(group.receive(0, place_tag));
      write(unplaced.front());
      unplaced.pop_front();
    }
  }
}

}  // namespace cosmati::dcgan
