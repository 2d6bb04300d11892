// Layout of the flat arrays, and their download to the host.
#include "nets/dcgan/training/variables.h"

namespace cosmati::dcgan {

char const* name_of(StatisticsOf scope) { return scope == StatisticsOf::batch ? "batch" : "device"; }

StatisticsOf parse_statistics(std::string const& name, std::string const& path) {
  for (StatisticsOf const scope : {StatisticsOf::batch, StatisticsOf::device})
    if (name == name_of(scope)) return scope;
  throw Error(ErrorCode::bad_file,
              path + ": its metadata has '" + name + "' as statistics; expected batch or device");
}

int Variables::add(std::string name, Shape shape) {
  for (std::size_t i = 0; i < list_.size(); ++i)
    if (list_[i].name == name) return static_cast<int>(i);
  constexpr Index alignment = 128;  // elements: 256 bytes in the narrowest type in use
  list_.push_back({std::move(name), shape, elements_});
  elements_ += (shape.size() + alignment - 1) / alignment * alignment;
  return static_cast<int>(list_.size()) - 1;
}

DeviceMemory Variables::zeros(Device const& device, DataType type) const {
  DeviceMemory array(device, static_cast<std::size_t>(elements_ * size_of(type)));
  array.fill(0);
  return array;
}

void Network::allocate(Device const& device, Precision precision) {
  for (DeviceMemory* array : {&values, &gradient[0], &gradient[1], &first, &second})
    *array = variables.zeros(device);
  if (precision.stored() != DataType::f32) factors = variables.zeros(device, precision.stored());
  running = statistics.zeros(device);
}

std::vector<float> download(DeviceMemory const& array) {
  std::vector<float> values(array.bytes() / sizeof(float));
  array.download(values.data(), array.bytes());
  return values;
}

void upload(DeviceMemory& array, std::vector<float> const& values) {
  array.upload(values.data(), values.size() * sizeof(float));
}

}  // namespace cosmati::dcgan
