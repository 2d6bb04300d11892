// The workers that generate the chunks: one thread per device of this process.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nets/dcgan/chunks.h"
#include "nets/dcgan/latents.h"
#include "nets/dcgan/pipeline.h"

namespace cosmati::dcgan {

// The work of one device on one chunk, with times: a line of a timeline.
struct DrawnChunk {
  Chunk chunk;
  Pipeline::Times times;
};

// Returns the chunks that may be in flight: on the CPU nothing overlaps, and a chunk is delivered before the
// next one begins.
inline int slots_of(Device const& device) { return device.backend == Backend::cuda ? 3 : 1; }

// One thread per device. The chunks of a device that fails are reassigned to the others, and `warn` is called
// each time. Pipelines are prepared by the constructor, for all devices concurrently.
class Workers {
 public:
  using Warn = std::function<void(std::string const&)>;
  // Called for each device on its own thread, concurrently.
  using Make = std::function<std::unique_ptr<Pipeline>(std::size_t device)>;
  Workers(std::size_t devices, Make const& make, Warn warn);
  Workers(FoldedWeights const& weights, std::vector<Device> const& devices, GeneratorOptions const& options,
          bool download, Warn warn);
  ~Workers();
  Workers(Workers const&) = delete;
  Workers& operator=(Workers const&) = delete;

  // Called on the device's thread for each chunk that it has computed; may throw, which fails the dealer.
  using Deliver = std::function<void(Chunk const&, Images)>;
  void start(Dealer& dealer, Latents const& latents, Deliver deliver);
  void wait();  // waits until all chunks are computed, or no worker is left
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
  Deliver deliver_;
};

}  // namespace cosmati::dcgan
