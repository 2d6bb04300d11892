// Layout of the flat parameter arrays.
#include "nets/parameters.h"

#include <algorithm>

namespace cosmati::nets {

int Parameters::add(std::string name, Shape shape, bool trainable, std::vector<bool> connected) {
  if (int const known = find(name); known >= 0) return known;
  list_.push_back({std::move(name), describe(DataType::f32, shape), 0, trainable, std::move(connected)});
  return static_cast<int>(list_.size()) - 1;
}

void Parameters::allocate(int state_count) {
  constexpr Index alignment = 16;  // elements: 64 bytes
  Index end = 0;
  for (bool trainable : {true, false}) {
    for (Parameter& parameter : list_) {
      if (parameter.trainable != trainable) continue;
      parameter.offset = end;
      end += (parameter.description.layout.size() + alignment - 1) / alignment * alignment;
    }
    if (trainable) trainable_elements_ = end;
  }
  auto const zeros = [](Index count) {
    Tensor tensor(DataType::f32, Shape(count));
    tensor.fill(0);
    return tensor;
  };
  value_ = zeros(end);
  for (int i = 0; i < state_count; ++i) state_.push_back(zeros(trainable_elements_));
}

int Parameters::find(std::string const& name) const {
  for (std::size_t i = 0; i < list_.size(); ++i)
    if (list_[i].name == name) return static_cast<int>(i);
  return -1;
}

}  // namespace cosmati::nets
