// Writes at given offsets with pwrite() or by copying into mapped pages.
#include "src/io/placed_writer.h"

#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "src/io/write_all.h"

#ifndef MADV_POPULATE_WRITE  // since Linux 5.14
#define MADV_POPULATE_WRITE 23
#endif

namespace cosmati::io {
namespace {

constexpr unsigned long long window_bytes = 1ULL << 30;
constexpr std::size_t shortest_copy = 32768;  // for less, populating pages costs more than it saves

}  // namespace

PlacedWriter::PlacedWriter(int descriptor) : descriptor_(descriptor) {
  struct statfs system {};
  mapped_ = ::fstatfs(descriptor, &system) == 0 && system.f_type == TMPFS_MAGIC;
}

PlacedWriter::~PlacedWriter() {
  for (auto const& [number, address] : windows_) ::munmap(address, window_bytes);
}

// The mapped window of this number; null if mapping fails.
std::byte* PlacedWriter::window(unsigned long long number) {
  std::lock_guard const lock(mutex_);
  auto const [place, first] = windows_.try_emplace(number);
  if (first) {
    void* const address = ::mmap(nullptr, window_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_,
                                 static_cast<off_t>(number * window_bytes));
    if (address == MAP_FAILED) {
      windows_.erase(place);
      mapped_ = false;
      return nullptr;
    }
    place->second = static_cast<std::byte*>(address);
  }
  return place->second;
}

// The mapped memory of [at, at + bytes), which must be within the file; null if it cannot be populated.
std::byte* PlacedWriter::pages(unsigned long long at, std::size_t bytes) {
  std::byte* const begin = window(at / window_bytes);
  if (begin == nullptr) return nullptr;
  std::byte* const result = begin + at % window_bytes;
  auto const into_page = at % static_cast<unsigned long long>(::sysconf(_SC_PAGESIZE));
  if (::madvise(result - into_page, bytes + into_page, MADV_POPULATE_WRITE) == 0) return result;
  mapped_ = false;  // unsupported or out of memory: fall back to pwrite(), which reports errors
  return nullptr;
}

bool PlacedWriter::write(unsigned long long at, void const* data, std::size_t bytes) {
  return write_rows(at, bytes, 1, data, bytes);
}

bool PlacedWriter::write_rows(unsigned long long at, std::size_t stride, std::size_t rows, void const* data,
                              std::size_t row_bytes) {
  if (rows == 0 || row_bytes == 0) return true;
  auto const* from = static_cast<std::byte const*>(data);
  if (stride == row_bytes) row_bytes *= rows, rows = 1;
  std::size_t const reach = stride * (rows - 1) + row_bytes;
  // Splits the write into parts that each lie within one window.
  auto const left = static_cast<std::size_t>(window_bytes - at % window_bytes);
  if (mapped_ && reach > left) {
    if (rows == 1) return write(at, from, left) && write(at + left, from + left, row_bytes - left);
    for (std::size_t row = 0; row < rows; ++row)
      if (!write(at + row * stride, from + row * row_bytes, row_bytes)) return false;
    return true;
  }
  if (mapped_ && reach >= shortest_copy) {
    // Writing the last byte first extends the file and detects size limits early.
    if (!write_all_at(descriptor_, at + reach - 1, from + rows * row_bytes - 1, 1)) return false;
    if (std::byte* const to = pages(at, reach)) {
      for (std::size_t row = 0; row < rows; ++row)
        std::memcpy(to + row * stride, from + row * row_bytes, row_bytes);
      return true;
    }
  }
  for (std::size_t row = 0; row < rows; ++row)
    if (!write_all_at(descriptor_, at + row * stride, from + row * row_bytes, row_bytes)) return false;
  return true;
}

}  // namespace cosmati::io
