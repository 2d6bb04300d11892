// Reads and checks the generator's parameters.
#include "nets/dcgan/weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "src/io/file.h"
#include "src/io/safetensors.h"

namespace cosmati::dcgan {
namespace {

// A safetensors file begins with the length of its header, whose first character is a brace.
bool is_safetensors(std::span<std::byte const> bytes) {
  if (bytes.size() < 9 || bytes[8] != std::byte{'{'}) return false;
  unsigned long long length = 0;
  for (int i = 7; i >= 0; --i)
    length = length << 8 | std::to_integer<unsigned long long>(bytes[static_cast<std::size_t>(i)]);
  return length <= bytes.size() - 8;
}

// The numbers of hidden channels according to the filters' shapes. If a filter is missing or does not have
// the rank of one, those of the report are used, and the later comparison of all shapes reports it.
Architecture architecture_of(io::SafetensorsFile const& tensors) {
  Architecture result;
  for (int i = 1; i <= layer_count; ++i) {
    std::string const name = "tconv" + std::to_string(i) + "_w";
    if (!tensors.contains(name)) continue;
    Shape const shape = tensors.at(name).layout.shape;
    if (shape.rank != 4 || shape[2] < 1 || shape[3] < 1) continue;
    if (i == 1) result.channels[0] = shape[3];
    if (i < layer_count) result.channels[static_cast<std::size_t>(i)] = shape[2];
  }
  return result;
}

}  // namespace

Weights::Weights(Architecture const& architecture) : architecture_(architecture) {
  auto const add = [this](std::string name, Shape shape) { list_.push_back({std::move(name), shape, {}}); };
  auto const add_batch_norm = [&](int i) {
    for (char const* part : {"_beta", "_gamma", "_mean", "_var"})
      add("bn" + std::to_string(i) + part, Shape(architecture.channel(i)));
  };
  add("proj_w", {architecture.latent, architecture.features()});
  add("proj_b", Shape(architecture.features()));
  add_batch_norm(0);
  for (int i = 1; i <= layer_count; ++i) {
    std::string const name = "tconv" + std::to_string(i);
    add(name + "_w", {filter_size, filter_size, architecture.channel(i), architecture.channel(i - 1)});
    add(name + "_b", Shape(architecture.channel(i)));
    if (i < layer_count) add_batch_norm(i);
  }
}

Weights Weights::read(std::string const& path) {
  io::MappedFile const file(path);
  if (!is_safetensors(file.bytes())) {
    std::size_t const count = number_count({}), expected = count * sizeof(float);
    if (file.bytes().size() != expected)
      throw Error(ErrorCode::bad_file, path + ": is " + std::to_string(file.bytes().size()) +
                                           " bytes long; a network.bin of " + std::to_string(count) +
                                           " f32 is " + std::to_string(expected));
    std::vector<float> all(count);
    std::memcpy(all.data(), file.bytes().data(), expected);
    Weights const weights = from({}, all);
    weights.check(path);
    return weights;
  }
  auto const tensors = io::SafetensorsFile::open(path);
  Weights weights(architecture_of(tensors));
  for (Weight& weight : weights.list_) {
    DataType const type = tensors.tensor(weight.name).type();
    Tensor const tensor = tensors.tensor(weight.name, DataType::f32);
    if ((type != DataType::f32 && type != DataType::f16) || !(tensor.shape() == weight.shape))
      throw Error(ErrorCode::bad_file, path + ": tensor " + weight.name + " is " +
                                           to_string(describe(type, tensor.shape())) +
                                           "; expected f32 or f16 " + to_string(weight.shape));
    weight.values.assign(tensor.as<float>(), tensor.as<float>() + tensor.size());
  }
  weights.check(path);
  return weights;
}

void Weights::check(std::string const& path) const {
  for (Weight const& weight : list_)
    for (std::size_t i = 0; i < weight.values.size(); ++i) {
      float const value = weight.values[i];
      bool const variance = weight.name.ends_with("_var");
      if (!std::isfinite(value) || (variance && value < 0))
        throw Error(
            ErrorCode::bad_file,
            path + ": element " + std::to_string(i) + " of " + weight.name + " is " + std::to_string(value) +
                (variance ? "; expected a finite number of at least 0" : "; expected a finite number"));
    }
}

std::vector<float> Weights::all() const {
  std::vector<float> result;
  for (Weight const& weight : list_) result.insert(result.end(), weight.values.begin(), weight.values.end());
  return result;
}

Weights Weights::from(Architecture const& architecture, std::vector<float> const& all) {
  Weights weights(architecture);
  float const* next = all.data();
  for (Weight& weight : weights.list_) {
    weight.values.assign(next, next + weight.shape.size());
    next += weight.shape.size();
  }
  return weights;
}

std::size_t Weights::number_count(Architecture const& architecture) {
  Index count = 0;
  for (Weight const& weight : Weights(architecture).list_) count += weight.shape.size();
  return static_cast<std::size_t>(count);
}

std::vector<float> const& Weights::operator[](std::string const& name) const {
  for (Weight const& weight : list_)
    if (weight.name == name) return weight.values;
  throw Error(ErrorCode::bad_request, "the generator has no weight '" + name + "'");
}

void Weights::write_safetensors(std::string const& path) const {
  std::vector<io::NamedTensor> tensors;
  for (Weight const& weight : list_)
    tensors.push_back({weight.name, describe(DataType::f32, weight.shape), weight.values.data()});
  io::write_safetensors(path, std::move(tensors), {{"model", "dcgan-generator"}});
}

}  // namespace cosmati::dcgan
