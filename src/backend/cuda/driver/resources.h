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

// Makes the primary context of a device the calling thread's current one, and the former current again at the
// end of the scope. The primary context is retained when it is first needed, and for the rest of the process.
// Costs one query where it is current already.
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

// A handle with the ordinal of its device; moved, not copied. Derived classes give it back.
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
  void wait() const;                               // until what was recorded has happened
  double seconds_since(Event const& start) const;  // both have happened
};

// A stream that does not wait for the default stream, nor that for it.
class OwnedStream : public Owner<CUstream_st*> {
 public:
  explicit OwnedStream(int ordinal);
  OwnedStream(OwnedStream&&) noexcept = default;
  OwnedStream& operator=(OwnedStream&&) noexcept = default;
  ~OwnedStream();

  operator Stream() const { return handle_; }
  void wait() const;                  // until all that was enqueued is done
  void wait_for(Event const& event);  // what is enqueued from now on does
};

// Until all that was enqueued on a stream is done, or on every stream of a device.
void wait(int ordinal, Stream stream);
void wait_for_device(int ordinal);

// Device memory; the driver aligns it to 256 bytes. 0 bytes have an address as well.
class DeviceBuffer : public Owner<DeviceAddress> {
 public:
  DeviceBuffer() = default;
  DeviceBuffer(int ordinal, std::size_t bytes);  // throws Error(out_of_memory) that says what was free
  DeviceBuffer(DeviceBuffer&&) noexcept = default;
  DeviceBuffer& operator=(DeviceBuffer&&) noexcept = default;
  ~DeviceBuffer();

  void* data() const { return reinterpret_cast<void*>(handle_); }
};

// Host memory that the device copies from and to without the processor.
class PinnedBuffer : public Owner<void*> {
 public:
  PinnedBuffer(int ordinal, std::size_t bytes);
  PinnedBuffer(PinnedBuffer&&) noexcept = default;
  PinnedBuffer& operator=(PinnedBuffer&&) noexcept = default;
  ~PinnedBuffer();

  void* data() const { return handle_; }
};

// Enqueued; memory of the host that is not pinned is read before these return, but written at any time.
void copy_to_device(int ordinal, void* to, void const* from, std::size_t bytes, Stream stream);
void copy_to_host(int ordinal, void* to, void const* from, std::size_t bytes, Stream stream);
void copy_on_device(int ordinal, void* to, void const* from, std::size_t bytes, Stream stream);
void fill(int ordinal, void* address, unsigned char value, std::size_t bytes, Stream stream);

// What was captured, made ready to be enqueued as a whole.
class Graph : public Owner<CUgraphExec_st*> {
 public:
  Graph(int ordinal, CUgraphExec_st* executable) : Owner(ordinal, executable) {}
  Graph(Graph&&) noexcept = default;
  Graph& operator=(Graph&&) noexcept = default;
  ~Graph();

  void launch(Stream stream) const;
};

// Between its construction and finish(), work for the stream is recorded and not done. Without finish() it is
// forgotten.
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
