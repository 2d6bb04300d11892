// Reads the bytes of a block of memory sequentially, decompressing them if they are gzip data.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace cosmati::io {

class ByteReader {
 public:
  // `input` must outlive the reader; it is gzip data if it begins with 1f 8b. Messages use `name`.
  ByteReader(std::span<std::byte const> input, std::string name);
  ~ByteReader();
  ByteReader(ByteReader const&) = delete;
  ByteReader& operator=(ByteReader const&) = delete;

  // Fills `to` and returns its size, or less at the end of the input. Throws Error(bad_file) for compressed
  // data that are damaged, truncated or fail the checksum (detected at their end).
  std::size_t read(std::span<std::byte> to);
  // About as many bytes as can follow at most, whatever the input is.
  std::size_t most() const;

 private:
  struct Inflater;
  std::size_t inflate_into(std::span<std::byte> to);

  std::span<std::byte const> input_;  // unread input, without what the inflater holds
  std::string name_;
  std::unique_ptr<Inflater> inflater_;  // null for plain input
};

}  // namespace cosmati::io
