// Work that a device does while the host does something else: queues, moments in them, memory of the host
// that the device reaches, and work that is recorded once and repeated. Host backends do everything at once,
// so that the same program runs on all of them.
#pragma once
#include <cstddef>
#include <functional>
#include <memory>

#include "cosmati/ops/device.h"

namespace cosmati {

namespace cuda {
class OwnedStream;
class Event;
class Graph;
}  // namespace cuda

// Host memory, page-locked for the backend cuda, so that copies need no processor. 256-byte aligned; contents
// undefined. Throws Error(out_of_memory).
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(Device const& device, std::size_t bytes);

  void* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }
  // Another owner of the same memory; and whether there is one.
  std::shared_ptr<void> share() const { return memory_; }
  bool shared() const;
  template <class Element>
  Element* as() const {
    return static_cast<Element*>(memory_.get());
  }

 private:
  std::shared_ptr<void> memory_;
  std::size_t bytes_ = 0;
};

// A moment between two pieces of work of a queue.
class Moment {
 public:
  Moment() = default;
  explicit Moment(Device const& device);
  void wait() const;                                  // of the host; at once if it was never marked
  double seconds_since(Moment const& earlier) const;  // both have happened

 private:
  friend class Queue;
  std::shared_ptr<cuda::Event> event_;
  double host_seconds_ = 0;
};

// Pieces of work in the order in which they were put. Queues of one device do not wait for each other. Used
// by one thread at a time.
class Queue {
 public:
  Queue() = default;
  explicit Queue(Device const& device);
  operator Stream() const;  // for Prepared::run

  // Host memory is a HostMemory, or the call may return only when the copy is done.
  void upload(void* device_memory, void const* host_memory, std::size_t bytes);
  void download(void* host_memory, void const* device_memory, std::size_t bytes);
  void fill(void* device_memory, unsigned char value, std::size_t bytes);
  void mark(Moment& moment);
  void wait_for(Moment const& moment);  // what is put from now on waits
  void wait() const;                    // of the host, for all that was put

 private:
  friend class Recording;
  Device device_;
  std::shared_ptr<cuda::OwnedStream> stream_;
};

// Work that a function puts into a stream, to be done again and again: a CUDA graph on the backend cuda, else
// the function itself, which must stay valid. The function only enqueues, with the same pointers each time.
class Recording {
 public:
  Recording() = default;
  Recording(Queue& queue, std::function<void(Stream)> work);
  void put(Queue& queue) const;

 private:
  std::shared_ptr<cuda::Graph> graph_;
  std::function<void(Stream)> work_;
};

}  // namespace cosmati
