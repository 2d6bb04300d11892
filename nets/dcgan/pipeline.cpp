// The three queues of a device: upload, compute and download.
#include "nets/dcgan/pipeline.h"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "nets/dcgan/narrow.h"

namespace cosmati::dcgan {

Pipeline::Pipeline(FoldedWeights const& weights, Device const& device, GeneratorOptions const& options,
                   int slots, bool download)
    : device_(device),
      download_(download),
      generator_(weights, device, options),
      upload_(device),
      compute_(device),
      download_queue_(device),
      made_(device),
      slots_(static_cast<std::size_t>(slots)) {
  auto const batch = static_cast<std::size_t>(options.batch);
  auto const z_bytes = batch * latent_size * static_cast<std::size_t>(size_of(generator_.latent_type()));
  auto const image_bytes = batch * static_cast<std::size_t>(bytes_of_image(options.image_type));
  // Includes buffers that the writer holds or that wait for it, because page-locking memory stalls a device
  // for milliseconds.
  constexpr int waiting = 4;
  if (download)
    for (int i = 0; i < slots + waiting; ++i) host_images_.emplace_back(device, image_bytes);
  for (Slot& slot : slots_) {
    slot.z = HostMemory(device, z_bytes);
    slot.device_z = DeviceMemory(device, z_bytes);
    slot.device_images = DeviceMemory(device, image_bytes);
    for (Moment* moment :
         {&slot.begun, &slot.uploaded, &slot.started, &slot.computed, &slot.fetched, &slot.done})
      *moment = Moment(device);
    void const* const z = slot.device_z.data();
    void* const images = slot.device_images.data();
    slot.work = Recording(compute_, [this, z, images](Stream stream) { generator_.run(z, images, stream); });
  }
  compute_.mark(made_);
  made_.wait();
  made_at_ = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void Pipeline::begin(float const* z, Index count) {
  Slot& slot = slots_[next_];
  slot.count = count;
  auto const elements = count * latent_size, all = generator_.batch() * latent_size;
  DataType const type = generator_.latent_type();
  auto const bytes_of = [&](Index count_of) { return static_cast<std::size_t>(count_of * size_of(type)); };
  if (type == DataType::f32)
    std::memcpy(slot.z.data(), z, bytes_of(elements));
  else
    narrow(type, z, elements, slot.z.as<unsigned short>());
  std::memset(slot.z.as<std::byte>() + bytes_of(elements), 0, bytes_of(all - elements));
  // The previous reader of device_z has finished, since the slot's last chunk was taken.
  upload_.mark(slot.begun);
  upload_.upload(slot.device_z.data(), slot.z.data(), slot.z.bytes());
  upload_.mark(slot.uploaded);
  compute_.wait_for(slot.uploaded);
  compute_.mark(slot.started);
  slot.work.put(compute_);
  compute_.mark(slot.computed);
  download_queue_.wait_for(slot.computed);
  download_queue_.mark(slot.fetched);
  if (download_) {
    slot.images = free_host_images();
    download_queue_.download(
        host_images_[slot.images].data(), slot.device_images.data(),
        static_cast<std::size_t>(count * bytes_of_image(generator_.options().image_type)));
  }
  download_queue_.mark(slot.done);
  under_way_.push_back(next_);
  next_ = (next_ + 1) % slots_.size();
}

// Neither owned elsewhere nor being copied.
std::size_t Pipeline::free_host_images() {
  for (std::size_t i = 0; i < host_images_.size(); ++i) {
    bool const on_its_way = std::any_of(under_way_.begin(), under_way_.end(),
                                        [&](std::size_t slot) { return slots_[slot].images == i; });
    if (!on_its_way && !host_images_[i].shared()) return i;
  }
  host_images_.emplace_back(device_, host_images_.front().bytes());
  return host_images_.size() - 1;
}

Images Pipeline::front() {
  Slot const& slot = slots_[under_way_.front()];
  slot.done.wait();
  return download_ ? host_images_[slot.images].share() : nullptr;
}

void Pipeline::pop() { under_way_.pop_front(); }

Pipeline::Times Pipeline::times_of_front() const {
  Slot const& slot = slots_[under_way_.front()];
  auto const at = [&](Moment const& moment) { return made_at_ + moment.seconds_since(made_); };
  return {at(slot.begun),    at(slot.uploaded), at(slot.started),
          at(slot.computed), at(slot.fetched),  at(slot.done)};
}

Index even_batch(Index count, Index largest) {
  if (count <= largest) return std::max<Index>(count, 1);
  Index const chunks = (count + largest - 1) / largest;
  return (count + chunks - 1) / chunks;
}

std::vector<float> generate(FoldedWeights const& weights, Device const& device, std::vector<float> const& z,
                            Index largest_batch) {
  Index const count = static_cast<Index>(z.size()) / latent_size;
  std::vector<float> images(static_cast<std::size_t>(count * image_elements));
  if (count == 0) return images;
  GeneratorOptions options;
  options.batch = even_batch(count, largest_batch);
  Pipeline pipeline(weights, device, options, 1);
  Index const batch = pipeline.generator().batch();
  for (Index first = 0; first < count; first += batch) {
    Index const now = std::min(batch, count - first);
    pipeline.begin(z.data() + first * latent_size, now);
    std::memcpy(images.data() + first * image_elements, pipeline.front().get(),
                static_cast<std::size_t>(now * bytes_of_image(DataType::f32)));
    pipeline.pop();
  }
  return images;
}

}  // namespace cosmati::dcgan
