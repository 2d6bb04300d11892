// Driver resources with owners that release them: the current context, streams, events, memory, graphs.
// Streams are passed as cosmati::Stream; null is the default stream.
#pragma once
#include <cstddef>
#include <utility>

#include "cosmati/ops/device.h"
#include "src/backend/cuda/driver/driver.h"

namespace cosmati::cuda {

inline CUstream_st* handle_of(Stream stream) { return static_cast<CUstream_st*>(stream); }
inline DeviceAddress address_of(void const* pointer) { return reinterpret_cast<DeviceAddress>(pointer); }

// Makes the primary context of a device current for the calling thread, and restores the previous one at the
// end of the scope. The primary context is retained on first use, for the rest of the process. Costs one
// query if it is already current.
class Current {
 public:
  explicit Current(int ordinal);
  ~Current();
  Current(Current const&) = delete;
  Current& operator=(Current const&) = delete;

 private:
  CUctx_st* former_ = nullptr;
  bool changed_ = false;
};

// A handle with the ordinal of its device; movable, not copyable. Derived classes release it.
template <class Handle>
class Owner {
 public:
  Owner() = default;
  Owner(int ordinal, Handle handle) : ordinal_(ordinal), handle_(handle) {}
  Owner(Owner&& other) noexcept : ordinal_(other.ordinal_), handle_(std::exchange(other.handle_, Handle{})) {}
  Owner& operator=(Owner&& other) noexcept {
    std::swap(ordinal_, other.ordinal_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle handle() const { return handle_; }
  int ordinal() const { return ordinal_; }

 protected:
  int ordinal_ = 0;
  Handle handle_{};
};

class Event : public Owner<CUevent_st*> {
 public:
  explicit Event(int ordinal, bool timing = true);
  Event(Event&&) noexcept = default;
  Event& operator=(Event&&) noexcept = default;
  ~Event();

  void record(Stream stream);
  void wait() const;                               // waits until the recorded work is complete
  double seconds_since(Event const& start) const;  // both must have completed
};

// A stream that is not synchronized with the default stream.
class OwnedStream : public Owner<CUstream_st*> {
 public:
  explicit OwnedStream(int ordinal);
  OwnedStream(OwnedStream&&) noexcept = default;
  OwnedStream& operator=(OwnedStream&&) noexcept = default;
  ~OwnedStream();

  operator Stream() const { return handle_; }
  void wait() const;                  // waits until all enqueued work is complete
  void wait_for(Event const& event);  // work enqueued from now on waits for the event
};

// These wait until all work on a stream, or on every stream of a device, is complete.
void wait(int ordinal, Stream stream);
void wait_for_device(int ordinal);
// Lets kernels on device `from` access memory of another device `to`. Returns false if they cannot.
bool enable_peer_access(int from, int to);

// Device memory, aligned to 256 bytes by the driver. Even a buffer of 0 bytes has an address.
class DeviceBuffer : public Owner<DeviceAddress> {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(int ordinal, std::size_t bytes);  // throws Error(out_of_memory) with the free memory
  DeviceBuffer(DeviceBuffer&&) noexcept = default;
  DeviceBuffer& operator=(DeviceBuffer&&) noexcept = default;
  ~DeviceBuffer();

  void* data() const { return reinterpret_cast<void*>(handle_); }
};

// Page-locked host memory, which the device can copy asynchronously.
class PinnedBuffer : public Owner<void*> {
 public:
  PinnedBuffer(int ordinal, std::size_t bytes);
  PinnedBuffer(PinnedBuffer&&) noexcept = default;
  PinnedBuffer& operator=(PinnedBuffer&&) noexcept = default;
  ~PinnedBuffer();

  void* data() const { return handle_; }
};

// Enqueue a copy or a fill. Host memory that is not page-locked is read before the call returns, but may be
// written later.
void copy_to_device(int ordinal, void* to, void const* from, std::size_t bytes, Stream stream);
void copy_to_host(int ordinal, void* to, void const* from, std::size_t bytes, Stream stream);
void copy_on_device(int ordinal, void* to, void const* from, std::size_t bytes, Stream stream);
void fill(int ordinal, void* address, unsigned char value, std::size_t bytes, Stream stream);

// Captured work that can be launched as a whole.
class Graph : public Owner<CUgraphExec_st*> {
 public:
  Graph(int ordinal, CUgraphExec_st* executable) : Owner(ordinal, executable) {}
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;
  ~Graph();

  void launch(Stream stream) const;
};

// From construction to finish(), work for the stream is recorded instead of executed. Without finish() it is
// discarded.
class Capture {
 public:
  explicit Capture(OwnedStream const& stream);
  ~Capture();
  Capture(Capture const&) = delete;
  Capture& operator=(Capture const&) = delete;

  Graph finish();

 private:
  OwnedStream const& stream_;
  bool open_ = true;
};

}  // namespace cosmati::cuda
