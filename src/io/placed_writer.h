// Writing at many places of one file at once.
#pragma once
#include <atomic>
#include <cstddef>
#include <map>
#include <mutex>

namespace cosmati::io {

// Every call may be made by many threads, and for one file by many processes, at once, for bytes that do not
// overlap. The file grows as far as it is written and is never cut. Linux lets one write() at a time into a
// file; where the file lies in memory (tmpfs), where that would be the limit, long pieces are therefore
// copied into the file's mapped pages, which are taken from the system before they are touched: a full file
// system is an error here as well.
class PlacedWriter {
 public:
  explicit PlacedWriter(
      int descriptor);  // of a regular file, open for reading and writing; stays the caller's
  ~PlacedWriter();
  PlacedWriter(PlacedWriter const&) = delete;
  PlacedWriter& operator=(PlacedWriter const&) = delete;

  // False with errno, as write_all_at().
  bool write(unsigned long long at, void const* data, std::size_t bytes);
  // `rows` pieces of row_bytes, dense in `data`, each `stride` bytes of the file behind the one before.
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
