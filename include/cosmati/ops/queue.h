// Asynchronous work on a device: queues, events, page-locked host memory, and recorded work. Host backends
// execute everything immediately, so that the same program runs on all backends.
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

// Host memory, page-locked for the backend cuda, so that copies are asynchronous. 256-byte aligned; contents
// undefined. Throws Error(out_of_memory).
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(Device const& device, std::size_t bytes);

  void* data() const { return memory_.get(); }
  std::size_t bytes() const { return bytes_; }
  // share() returns a shared owner of the memory; shared() returns whether there is another one.
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

// A point in the work of a queue, set by Queue::mark() (an event).
class Moment {
 public:
  Moment() = default;
  explicit Moment(Device const& device);
  void wait() const;                                  // blocks the host; returns immediately if never marked
  double seconds_since(Moment const& earlier) const;  // both must have completed

 private:
  friend class Queue;
  std::shared_ptr<cuda::Event> event_;
  double host_seconds_ = 0;
};

// Work executed in the order of submission. Queues of one device are independent. Not thread-safe.
class Queue {
 public:
  Queue() = default;
  explicit Queue(Device const& device);
  operator Stream() const;  // for Prepared::run

  // Asynchronous if the host memory is a HostMemory; otherwise the call may return only after the copy.
  void upload(void* device_memory, void const* host_memory, std::size_t bytes);
  void download(void* host_memory, void const* device_memory, std::size_t bytes);
  void fill(void* device_memory, unsigned char value, std::size_t bytes);
  void mark(Moment& moment);            // sets it after all submitted work
  void wait_for(Moment const& moment);  // later work waits
  void wait() const;                    // blocks the host until all submitted work is complete

 private:
  friend class Recording;
  Device device_;
  std::shared_ptr<cuda::OwnedStream> stream_;
};

// Work enqueued by a function, for repeated execution: a CUDA graph on the backend cuda, otherwise the
// function itself, which must remain valid. The function must only enqueue, with the same pointers each time.
class Recording {
 public:
  Recording() = default;
  Recording(Queue& queue, std::function<void(Stream)> work);
  void put(Queue& queue) const;  // enqueues the work; may be called repeatedly

 private:
  std::shared_ptr<cuda::Graph> graph_;
  std::function<void(Stream)> work_;
};

}  // namespace cosmati
