// Generation of images in chunks on one device: upload and download overlap with the computation of the next
// chunk.
#pragma once
#include <cstddef>
#include <deque>
#include <vector>

#include "cosmati/ops/queue.h"
#include "nets/dcgan/chunks.h"
#include "nets/dcgan/generator.h"

namespace cosmati::dcgan {

inline Index bytes_of_image(DataType type) { return image_elements * size_of(type); }

// A ring of buffers, one per chunk in flight: one is uploaded and one downloaded while another is computed.
// Not thread-safe. On host backends begin() returns when the chunk is complete.
class Pipeline {
 public:
  // download: false leaves the images on the device (to measure the computation).
  Pipeline(FoldedWeights const& weights, Device const& device, GeneratorOptions const& options, int slots = 3,
           bool download = true);
  virtual ~Pipeline() = default;
  Pipeline(Pipeline const&) = delete;
  Pipeline& operator=(Pipeline const&) = delete;
  Generator const& generator() const { return generator_; }
  bool full() const { return under_way_.size() == slots_.size(); }
  bool empty() const { return under_way_.empty(); }

  // z (count, 100), copied before this returns; count <= batch. Not if full().
  virtual void begin(float const* z, Index count);
  // Waits for the oldest chunk's images, (count, 64, 64, 3) of options().image_type. Their memory is reused
  // only when no owner is left. Null without download. Not if empty().
  virtual Images front();
  void pop();

  // The times of the oldest chunk, in seconds of the host's steady clock: on the backend cuda from events,
  // relative to the host's time of one of them. Not before front(). Without download its two times are the
  // end of the computation.
  struct Times {
    double upload_begin, upload_end, compute_begin, compute_end, download_begin, download_end;
  };
  Times times_of_front() const;

 private:
  std::size_t free_host_images();

  struct Slot {
    HostMemory z;
    std::size_t images = 0;  // index in host_images_
    DeviceMemory device_z, device_images;
    Recording work;
    Moment begun, uploaded, started, computed, fetched, done;  // fetched: start of the download
    Index count = 0;
  };
  Device device_;
  bool download_;
  Generator generator_;
  Queue upload_, compute_, download_queue_;
  Moment made_;
  double made_at_ = 0;  // by the host's clock
  std::vector<Slot> slots_;
  std::vector<HostMemory> host_images_;  // the maximum number that was owned at a time
  std::deque<std::size_t> under_way_;
  std::size_t next_ = 0;
};

// Generates f32 images from all latent vectors, in batches of at most `largest_batch`.
std::vector<float> generate(FoldedWeights const& weights, Device const& device, std::vector<float> const& z,
                            Index largest_batch = 64);

// Returns the images per batch for `count` images, at most `largest` at a time: equal shares, with the last
// padded.
Index even_batch(Index count, Index largest);

}  // namespace cosmati::dcgan
