// Files as bytes: read whole, mapped read-only, and written so that a crash never leaves half a file.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace cosmati::io {

// A whole file as text. Pipes and devices are read to their end, and must end within 256 MiB; a pipe that
// nobody opens for writing is given up after a few seconds. Errors name the path and the reason (bad_file).
std::string read_file(std::string const& path);

// The bytes of a regular file, for the lifetime of the object: a copy that nothing can change or, of more
// than 256 MiB, the file mapped read-only. If another program cuts such a large file short in the meantime,
// reading past its new end ends this program (SIGBUS); files that are replaced by rename do no harm.
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

// Where a callback of write_atomically puts its bytes, in order.
class FileWriter {
 public:
  FileWriter(int descriptor, std::string const& path) : descriptor_(descriptor), path_(path) {}
  void write(void const* data, std::size_t bytes);  // throws Error(system)
  void write(std::string_view text) { write(text.data(), text.size()); }

 private:
  int descriptor_;
  std::string const& path_;
};

// Writes a new file beside `path`, flushes it to the disk and renames it to `path`: whatever happens, `path`
// holds the old contents or all of the new. If `fill` throws, or the disk is full, the new file is removed
// and the old one stays. A symbolic link is followed; a device or pipe (/dev/stdout) is written directly.
// Throws Error(system).
void write_atomically(std::string const& path, std::function<void(FileWriter&)> const& fill);
void write_atomically(std::string const& path, std::string_view contents);

// Adds `text` at the end of the file, which is made if it does not exist, by one write. Throws Error(system).
void append_to_file(std::string const& path, std::string_view text);
// The same, on a line of its own: if the file ends within a line, that one is ended first.
void append_line(std::string const& path, std::string const& line);

// Before work whose result is to be written there: throws Error(system) if `path` is a folder, or lies in one
// that does not exist or cannot be written.
void check_writable(std::string const& path);

}  // namespace cosmati::io
