// The bytes of a block of memory in order, inflated on the way if they are a gzip file's.
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace cosmati::io {

class ByteReader {
 public:
  // `input` must outlive the reader; it is gzip's if it begins with 1f 8b. `name` stands for it in messages.
  ByteReader(std::span<std::byte const> input, std::string name);
  ~ByteReader();
  ByteReader(ByteReader const&) = delete;
  ByteReader& operator=(ByteReader const&) = delete;

  // Fills `to` and returns its size, or less where the input ends. Throws Error(bad_file) on compressed data
  // that is damaged, cut short or fails its checksum (known when its end is read).
  std::size_t read(std::span<std::byte> to);

 private:
  struct Inflater;
  std::size_t inflate_into(std::span<std::byte> to);

  std::span<std::byte const> input_;  // what has not been read; without what the inflater holds
  std::string name_;
  std::unique_ptr<Inflater> inflater_;  // null for plain input
};

}  // namespace cosmati::io
