// LeNet-5 in safetensors files: parameters by name, optimizer state as optimizer.<number>.<name>.
#include <cmath>
#include <cstring>

#include "nets/lenet5/model.h"
#include "nets/metadata.h"
#include "src/io/safetensors.h"

namespace cosmati::lenet5 {
namespace {

std::string state_name(int number, std::string const& parameter) {
  return "optimizer." + std::to_string(number) + "." + parameter;
}

Index first_not_finite(float const* values, Index count) {
  Index at = 0;
  while (at < count && std::isfinite(values[at])) ++at;
  return at;
}

void read_into(io::SafetensorsFile const& file, std::string const& name, TensorDescription const& expected,
               float* target, std::string const& path) {
  Tensor const tensor = file.tensor(name);
  if (!(tensor.description() == expected))
    throw Error(ErrorCode::bad_file, path + ": tensor " + name + " is " + to_string(tensor.description()) +
                                         "; expected " + to_string(expected));
  std::memcpy(target, tensor.data(), tensor.bytes());
  Index const at = first_not_finite(target, tensor.size());
  if (at < tensor.size())
    throw Error(ErrorCode::bad_file, path + ": element " + std::to_string(at) + " of tensor " + name +
                                         " is " + std::to_string(target[at]) + "; expected a finite number");
}

}  // namespace

void save(Model& model, std::string const& path, nets::Metadata metadata) {
  nets::Parameters& parameters = model.parameters();
  std::vector<io::NamedTensor> tensors;
  for (int i = 0; i < static_cast<int>(parameters.list().size()); ++i) {
    nets::Parameter const& parameter = parameters[i];
    tensors.push_back({parameter.name, parameter.description, parameters.value(i)});
    for (int s = 0; parameter.trainable && s < parameters.state_count(); ++s)
      tensors.push_back({state_name(s, parameter.name), parameter.description, parameters.state(s, i)});
  }
  for (io::NamedTensor const& tensor : tensors) {
    Index const size = tensor.description.layout.size();
    auto const* const values = static_cast<float const*>(tensor.data);
    Index const at = first_not_finite(values, size);
    if (at < size)
      throw Error(ErrorCode::system, "the network can no longer be saved to " + path + ": element " +
                                         std::to_string(at) + " of tensor " + tensor.name + " is " +
                                         std::to_string(values[at]));
  }
  metadata["model"] = "lenet5";
  metadata["variant"] = name_of(model.variant());
  metadata["pixel_mean"] = nets::exact(model.statistics.mean);
  metadata["pixel_deviation"] = nets::exact(model.statistics.deviation);
  std::string names;
  for (std::string const& name : model.classes) names += (names.empty() ? "" : ",") + name;
  metadata["classes"] = names;
  io::write_safetensors(path, std::move(tensors), metadata);
}

Loaded load(std::string const& path, bool with_state) {
  auto const file = io::SafetensorsFile::open(path);
  auto const& metadata = file.metadata();
  auto const text = [&](char const* key) {
    auto const entry = metadata.find(key);
    return entry == metadata.end() ? std::string() : entry->second;
  };
  if (text("model") != "lenet5")
    throw Error(ErrorCode::bad_file,
                path + ": its metadata has model '" + text("model") + "'; expected 'lenet5'");
  int state_count = 0;
  if (with_state)
    while (file.contains(state_name(state_count, "c1.weight"))) ++state_count;
  Loaded result{std::make_unique<Model>(parse_variant(text("variant")), state_count), metadata};
  Model& model = *result.model;
  for (int i = 0; i < static_cast<int>(model.parameters().list().size()); ++i) {
    nets::Parameter const& parameter = model.parameters()[i];
    read_into(file, parameter.name, parameter.description, model.parameters().value(i), path);
    for (int s = 0; parameter.trainable && s < state_count; ++s)
      read_into(file, state_name(s, parameter.name), parameter.description, model.parameters().state(s, i),
                path);
  }
  model.statistics = {nets::real(metadata, "pixel_mean", path),
                      nets::real(metadata, "pixel_deviation", path)};
  if (!(model.statistics.deviation > 0))
    throw Error(ErrorCode::bad_file, path + ": its metadata has '" + text("pixel_deviation") +
                                         "' as pixel_deviation; expected a positive number");
  std::string names = text("classes") + ",";
  for (std::size_t comma; (comma = names.find(',')) != std::string::npos; names.erase(0, comma + 1))
    model.classes.push_back(names.substr(0, comma));
  if (model.classes.size() != class_count)
    throw Error(ErrorCode::bad_file, path + ": its metadata names " + std::to_string(model.classes.size()) +
                                         " classes; expected " + std::to_string(class_count));
  return result;
}

}  // namespace cosmati::lenet5
