// Who draws the chunks: a thread for each device of this process, and other processes.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nets/dcgan/chunks.h"
#include "nets/dcgan/latents.h"
#include "nets/dcgan/pipeline.h"
#include "src/parallel/process_group.h"

namespace cosmati::dcgan {

// What one device did, and when: a line of a timeline.
struct DrawnChunk {
  Chunk chunk;
  Pipeline::Times times;
};

// A thread for each device. A device that fails hands its chunks to the others; `warn` is told, as often as
// that happens. Pipelines are prepared by the constructor, for all devices at once.
class Workers {
 public:
  using Warn = std::function<void(std::string const&)>;
  // Called on a thread of its own for each device, all at once.
  using Make = std::function<std::unique_ptr<Pipeline>(std::size_t device)>;
  Workers(std::size_t devices, Make const& make, Warn warn);
  Workers(FoldedWeights const& weights, std::vector<Device> const& devices, GeneratorOptions const& options,
          bool download, Warn warn);
  ~Workers();
  Workers(Workers const&) = delete;
  Workers& operator=(Workers const&) = delete;

  void start(Dealer& dealer, Latents const& latents);
  void wait();  // until all chunks are computed, or nobody is left
  std::vector<PlannedPart> const& parts() const;
  std::vector<std::vector<DrawnChunk>> const& drawn() const {
    return drawn_;
  }  // of each device, after wait()

 private:
  void work(std::size_t device, Dealer& dealer, Latents const& latents);

  std::vector<std::unique_ptr<Pipeline>> pipelines_;
  std::vector<std::vector<DrawnChunk>> drawn_;
  std::vector<std::thread> threads_;
  Warn warn_;
};

// The weights of rank 0 on all ranks, which call it together; `mine` is read on rank 0 alone.
Weights broadcast(parallel::ProcessGroup& group, Weights const* mine);
// Rank 0: deals chunks to the other ranks until all are computed, while Workers of its own take part. Chunks
// of at most 1 GiB. Whoever dies takes the others with it (parallel/process_group.h).
void deal_to_ranks(parallel::ProcessGroup& group, Dealer& dealer, Latents const& latents, Index image_bytes);
// The other ranks: draw what rank 0 sends until it sends no more.
void draw_for_rank_0(parallel::ProcessGroup& group, Pipeline& pipeline);

}  // namespace cosmati::dcgan
