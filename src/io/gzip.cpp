// Incremental decompression with zlib.
#include "src/io/gzip.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "cosmati/ops/error.h"
#include "src/io/bad_file.h"

namespace cosmati::io {
namespace {

constexpr std::size_t longest_step = 1u << 30;  // zlib's counters have 32 bits

bool begins_as_gzip(std::span<std::byte const> input) {
  return input.size() >= 2 && input[0] == std::byte{0x1f} && input[1] == std::byte{0x8b};
}

}  // namespace

struct ByteReader::Inflater {
  z_stream stream{};
  bool ended = false;

  explicit Inflater(std::string const& name) {
    constexpr int gzip_only = 16 + MAX_WBITS;
    if (inflateInit2(&stream, gzip_only) != Z_OK)
      throw Error(ErrorCode::out_of_memory, name + ": out of memory while decompressing it");
  }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(Inflater const&) = delete;
  Inflater& operator=(Inflater const&) = delete;
};

ByteReader::ByteReader(std::span<std::byte const> input, std::string name)
    : input_(input), name_(std::move(name)) {
  if (begins_as_gzip(input_)) inflater_ = std::make_unique<Inflater>(name_);
}

ByteReader::~ByteReader() = default;

std::size_t ByteReader::read(std::span<std::byte> to) {
  if (inflater_) return inflate_into(to);
  std::size_t const count = std::min(to.size(), input_.size());
  if (count > 0) std::memcpy(to.data(), input_.data(), count);
  input_ = input_.subspan(count);
  return count;
}

std::size_t ByteReader::most() const {
  constexpr std::size_t largest_ratio = 1032;  // of deflate: 258 bytes for two bits
  return inflater_ ? largest_ratio * input_.size() : input_.size();
}

std::size_t ByteReader::inflate_into(std::span<std::byte> to) {
  z_stream& stream = inflater_->stream;
  std::size_t done = 0;
  while (done < to.size() && !inflater_->ended) {
    std::size_t const in = std::min(input_.size(), longest_step);
    std::size_t const out = std::min(to.size() - done, longest_step);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(input_.data()));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(to.data() + done);
    stream.avail_out = static_cast<uInt>(out);
    int const status = inflate(&stream, Z_NO_FLUSH);
    input_ = input_.subspan(in - stream.avail_in);
    done += out - stream.avail_out;
    if (status == Z_STREAM_END) {
      // A gzip file may consist of several members and may be padded with zeros.
      if (begins_as_gzip(input_)) {
        inflateReset(&stream);
        continue;
      }
      if (std::any_of(input_.begin(), input_.end(), [](std::byte byte) { return byte != std::byte{0}; }))
        bad_file(name_,
                 fmt::format("has {} bytes after its compressed data that are not gzip", input_.size()));
      inflater_->ended = true;
    } else if (status == Z_BUF_ERROR && input_.empty()) {
      bad_file(name_, "is truncated: it ends within its compressed data");
    } else if (status == Z_MEM_ERROR) {
      throw Error(ErrorCode::out_of_memory, name_ + ": out of memory while decompressing it");
    } else if (status != Z_OK) {
      bad_file(name_, fmt::format("its compressed data is damaged: {}",
                                  stream.msg != nullptr ? stream.msg : "not a deflate stream"));
    }
  }
  return done;
}

}  // namespace cosmati::io
