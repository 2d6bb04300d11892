// Files that grow for a long time and may be continued by another run.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "src/io/placed_writer.h"

namespace cosmati::io {

// PATH.partial, whose parts are written in any order, by many threads and processes at once, and which
// becomes PATH by finish(); without finish() it stays. A device or pipe (/dev/stdout) is written directly, in
// order. All throw Error(system).
class PartialFile {
 public:
  // keep: bytes of a PATH.partial that is there, which stays as it is; 0: begins anew.
  PartialFile(std::string path, unsigned long long keep);
  // The PATH.partial that another process made and will finish; null where there is none that may be written.
  static std::unique_ptr<PartialFile> join(std::string path);
  ~PartialFile();
  PartialFile(PartialFile const&) = delete;
  PartialFile& operator=(PartialFile const&) = delete;

  bool in_order() const { return direct_; }  // each write begins where the one before ended
  void write(unsigned long long at, void const* data, std::size_t bytes);
  // `rows` pieces of row_bytes, dense in `data`, each `stride` bytes behind the one before. Not if
  // in_order().
  void write_rows(unsigned long long at, std::size_t stride, std::size_t rows, void const* data,
                  std::size_t row_bytes);
  std::string read(unsigned long long at, std::size_t bytes) const;  // as many of them as there are
  std::string const& partial_path() const { return partial_; }
  void flush();                           // to the disk, what this process wrote
  void finish(unsigned long long bytes);  // cut to so many, flushed, renamed
  void discard();                         // removed

 private:
  PartialFile() = default;
  void close();

  std::string path_, partial_;
  int descriptor_ = -1;
  bool direct_ = false;
  std::unique_ptr<PlacedWriter> writer_;  // not if direct_
};

// A line of text that is replaced as a whole: what of a partial file is valid. While the object lives, no
// other process can have one of the same path. Throws Error(system); Error(unavailable) where another process
// has it.
class ProgressFile {
 public:
  explicit ProgressFile(std::string path);
  ~ProgressFile();
  ProgressFile(ProgressFile const&) = delete;
  ProgressFile& operator=(ProgressFile const&) = delete;

  std::string read() const;  // empty if nothing was written
  void write(std::string const& line);
  void remove();

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace cosmati::io
