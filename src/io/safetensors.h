// safetensors files (https://github.com/huggingface/safetensors): named tensors, packed, and a JSON header.
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

// A safetensors file, mapped. Opening it checks all of it: a header of at most 100 MB that is the JSON it
// should be; no name twice; offsets in range that cover the data without gap or overlap; for each tensor
// shape and type that mean exactly its bytes. Throws Error(bad_file).
class SafetensorsFile {
 public:
  static SafetensorsFile open(std::string const& path);
  // From memory, which must outlive the object and what is taken out of it; `name` stands for the path in
  // messages.
  static SafetensorsFile parse(std::span<std::byte const> file, std::string const& name);

  // All tensors by name, row-major, where they lie in the file (a RawArray keeps the mapping alive).
  std::map<std::string, RawArray> const& tensors() const { return tensors_; }
  std::map<std::string, std::string> const& metadata() const { return metadata_; }  // "__metadata__"
  bool contains(std::string const& tensor) const { return tensors_.count(tensor) != 0; }
  // Throws Error(bad_file) naming the tensors that there are.
  RawArray const& at(std::string const& tensor) const;
  // A copy; conversions as in to_tensor. Throws also for the types that have no number type, without `as`.
  Tensor tensor(std::string const& name, std::optional<DataType> as = std::nullopt) const {
    return to_tensor(at(name), as);
  }

 private:
  std::string name_;
  std::map<std::string, RawArray> tensors_;
  std::map<std::string, std::string> metadata_;
};

// What write_safetensors writes: elements at `data`, in any layout; owns nothing.
struct NamedTensor {
  std::string name;
  TensorDescription description;
  void const* data = nullptr;
};

inline NamedTensor named(std::string name, Tensor const& tensor) {
  return {std::move(name), tensor.description(), tensor.data()};
}

// Writes row-major data; wide types first, then by name, so that each tensor is aligned and equal contents
// give equal files. tf32 is written as F32. Crash-safe, as write_atomically. Throws Error(bad_request) for a
// name that is empty, taken, reserved or not UTF-8.
void write_safetensors(std::string const& path, std::vector<NamedTensor> tensors,
                       std::map<std::string, std::string> const& metadata = {});

}  // namespace cosmati::io
