// Files that grow for a long time and may be continued by another run.
#pragma once
#include <cstddef>
#include <string>

namespace cosmati::io {

// PATH.partial, which grows by append() and becomes PATH by finish(); without finish() it stays. A device or
// pipe (/dev/stdout) is written directly. All throw Error(system).
class PartialFile {
 public:
  // keep: bytes of a PATH.partial that is there, behind which it is continued; 0: begins anew.
  PartialFile(std::string path, unsigned long long keep);
  ~PartialFile();
  PartialFile(PartialFile const&) = delete;
  PartialFile& operator=(PartialFile const&) = delete;

  void append(void const* data, std::size_t bytes);
  unsigned long long bytes() const { return bytes_; }
  std::string const& partial_path() const { return partial_; }
  void finish();   // flushed to the disk, then renamed
  void discard();  // removed

 private:
  void close();

  std::string path_, partial_;
  unsigned long long bytes_ = 0;
  int descriptor_ = -1;
  bool direct_ = false;
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
