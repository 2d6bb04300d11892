// Files that grow for a long time and may be continued by another run.
#pragma once
#include <cstddef>
#include <memory>
#include <string>

#include "src/io/placed_writer.h"

namespace cosmati::io {

// PATH.partial, whose parts are written in any order, by many threads and processes concurrently, and which
// finish() renames to PATH; without finish() it remains. A device or pipe (/dev/stdout) is written directly,
// in order. All functions throw Error(system).
class PartialFile {
 public:
  // keep: bytes of an existing PATH.partial to keep; 0: start over.
  PartialFile(std::string path, unsigned long long keep);
  // Opens the PATH.partial that another process created and will finish; null if there is none that is
  // writable.
  static std::unique_ptr<PartialFile> join(std::string path);
  ~PartialFile();
  PartialFile(PartialFile const&) = delete;
  PartialFile& operator=(PartialFile const&) = delete;

  bool in_order() const { return direct_; }  // each write must begin where the previous one ended
  void write(unsigned long long at, void const* data, std::size_t bytes);
  // Writes `rows` pieces of row_bytes, dense in `data`, `stride` bytes apart in the file. Must not be called
  // if in_order().
  void write_rows(unsigned long long at, std::size_t stride, std::size_t rows, void const* data,
                  std::size_t row_bytes);
  std::string read(unsigned long long at, std::size_t bytes) const;  // fewer at the end of the file
  std::string const& partial_path() const { return partial_; }
  void flush();                           // flushes this process's writes to disk
  void finish(unsigned long long bytes);  // truncates to this size, flushes and renames
  void discard();                         // removes the file

 private:
  PartialFile() = default;
  void close();

  std::string path_, partial_;
  int descriptor_ = -1;
  bool direct_ = false;
  std::unique_ptr<PlacedWriter> writer_;  // not if direct_
};

// A line of text that is replaced as a whole: the valid parts of a partial file. While the object exists, no
// other process can have one for the same path. Throws Error(system); Error(unavailable) if another process
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
