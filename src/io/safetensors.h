// safetensors files (https://github.com/huggingface/safetensors): named dense tensors and a JSON header.
#pragma once
#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "src/io/raw_array.h"

namespace cosmati::io {

// A memory-mapped safetensors file. Opening it validates all of it: a valid JSON header of at most 100 MB;
// unique names; offsets in range that cover the data without gaps or overlaps; a shape and type that match
// the bytes of each tensor. Throws Error(bad_file).
class SafetensorsFile {
 public:
  static SafetensorsFile open(std::string const& path);
  // Opens a file in memory, which must outlive the object and its tensors; messages use `name` in place of
  // the path.
  static SafetensorsFile parse(std::span<std::byte const> file, std::string const& name);

  // All tensors by name, row-major, in place in the file (a RawArray keeps the mapping alive).
  std::map<std::string, RawArray> const& tensors() const { return tensors_; }
  std::map<std::string, std::string> const& metadata() const { return metadata_; }  // "__metadata__"
  bool contains(std::string const& tensor) const { return tensors_.count(tensor) != 0; }
  // Throws Error(bad_file) listing the existing tensors.
  RawArray const& at(std::string const& tensor) const;
  // Returns a copy; conversions as in to_tensor. Without `as`, also throws for types that have no data type.
  Tensor tensor(std::string const& name, std::optional<DataType> as = std::nullopt) const {
    return to_tensor(at(name), as);
  }

 private:
  std::string name_;
  std::map<std::string, RawArray> tensors_;
  std::map<std::string, std::string> metadata_;
};

// The input of write_safetensors: elements at `data`, in any layout; non-owning.
struct NamedTensor {
  std::string name;
  TensorDescription description;
  void const* data = nullptr;
};

inline NamedTensor named(std::string name, Tensor const& tensor) {
  return {std::move(name), tensor.description(), tensor.data()};
}

// Writes row-major data; wide types first, then by name, so that each tensor is aligned and equal contents
// give equal files. tf32 is written as F32. Crash-safe, like write_atomically. Throws Error(bad_request) for
// a name that is empty, duplicate, reserved or not UTF-8.
void write_safetensors(std::string const& path, std::vector<NamedTensor> tensors,
                       std::map<std::string, std::string> const& metadata = {});

}  // namespace cosmati::io
