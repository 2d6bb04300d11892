// Files as bytes: read in full, mapped read-only, and written so that a crash never leaves a partial file.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace cosmati::io {

// Returns the contents of a file as text. Pipes and devices are read to their end, which must be within 256
// MiB; a pipe that no process opens for writing fails after a few seconds. Errors name the path and the
// reason (bad_file).
std::string read_file(std::string const& path);

// The bytes of a regular file, for the lifetime of the object: an immutable copy or, above 256 MiB, the file
// mapped read-only. If another program truncates such a large file in the meantime, reading past its new end
// terminates this program (SIGBUS); replacing a file by rename is safe.
class MappedFile {
 public:
  explicit MappedFile(std::string const& path);
  ~MappedFile();
  MappedFile(MappedFile const&) = delete;
  MappedFile& operator=(MappedFile const&) = delete;

  std::span<std::byte const> bytes() const { return {data_, size_}; }

 private:
  std::byte const* data_ = nullptr;
  std::size_t size_ = 0;
};

// The output of a callback of write_atomically; writes are sequential.
class FileWriter {
 public:
  FileWriter(int descriptor, std::string const& path) : descriptor_(descriptor), path_(path) {}
  void write(void const* data, std::size_t bytes);  // throws Error(system)
  void write(std::string_view text) { write(text.data(), text.size()); }

 private:
  int descriptor_;
  std::string const& path_;
};

// Writes a new file beside `path`, flushes it to disk and renames it to `path`: in every case, `path`
// contains either the old or the complete new contents. If `fill` throws, or the disk is full, the new file
// is removed and the old one remains. A symbolic link is followed; a device or pipe (/dev/stdout) is written
// directly. Throws Error(system).
void write_atomically(std::string const& path, std::function<void(FileWriter&)> const& fill);
void write_atomically(std::string const& path, std::string_view contents);

// Appends `text` to the file, which is created if it does not exist, by one write. Throws Error(system).
void append_to_file(std::string const& path, std::string_view text);
// Appends `line` as a separate line: if the file ends within a line, that line is ended first.
void append_line(std::string const& path, std::string const& line);

// Call before work whose result will be written there: throws Error(system) if `path` is a folder, or is in
// one that does not exist or is not writable.
void check_writable(std::string const& path);

}  // namespace cosmati::io
