// Concurrent writes to many positions of one file.
#pragma once
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>

namespace cosmati::io {

// Every function is thread-safe, and for one file also across processes, for bytes that do not overlap. The
// file grows as it is written and is never truncated. Linux serializes write() to a file; for files in memory
// (tmpfs), where that limits the throughput, long pieces are therefore copied to the file's mapped pages,
// which are allocated before they are accessed: a full file system is an error here as well.
class PlacedWriter {
 public:
  explicit PlacedWriter(
      int descriptor);  // of a regular file, open for reading and writing; remains owned by the caller
  ~PlacedWriter();
  PlacedWriter(PlacedWriter const&) = delete;
  PlacedWriter& operator=(PlacedWriter const&) = delete;

  // Returns false and sets errno, like write_all_at().
  bool write(unsigned long long at, void const* data, std::size_t bytes);
  // Writes `rows` pieces of row_bytes, dense in `data`, `stride` bytes apart in the file.
  bool write_rows(unsigned long long at, std::size_t stride, std::size_t rows, void const* data,
                  std::size_t row_bytes);

 private:
  std::byte* pages(unsigned long long at, std::size_t bytes);
  std::byte* window(unsigned long long number);

  int descriptor_;
  std::atomic<bool> mapped_{false};
  std::mutex mutex_;
  std::map<unsigned long long, std::byte*> windows_;  // mapped parts of the file, by number
};

}  // namespace cosmati::io
