// The numbers of a network in training, in device memory: flat arrays, so that an optimizer's step, an
// addition of gradients or a conversion is one operation.
#pragma once
#include <string>
#include <vector>

#include "cosmati/ops/memory.h"
#include "cosmati/ops/tensor.h"
#include "nets/dcgan/training/workbench.h"
#include "src/parallel/all_reduce.h"

namespace cosmati::dcgan {

struct Variable {
  std::string name;
  Shape shape;
  Index offset = 0;  // elements from the start of the flat arrays
};

// The layout of variables in flat arrays.
class Variables {
 public:
  // The number of the variable of this name, which is added if there is none. All are added before arrays are
  // allocated.
  int add(std::string name, Shape shape);
  std::vector<Variable> const& list() const { return list_; }
  Variable const& operator[](int number) const { return list_[static_cast<std::size_t>(number)]; }
  TensorDescription flat(DataType type = DataType::f32) const { return describe(type, Shape(elements_)); }
  TensorDescription description(int number, DataType type = DataType::f32) const {
    return describe(type, (*this)[number].shape);
  }
  // A flat array on `device`, zero everywhere, padding included.
  DeviceMemory zeros(Device const& device, DataType type = DataType::f32) const;
  // Where a variable begins in such an array.
  void* in(DeviceMemory const& array, int number, DataType type = DataType::f32) const {
    return static_cast<std::byte*>(array.data()) + (*this)[number].offset * size_of(type);
  }

 private:
  std::vector<Variable> list_;
  Index elements_ = 0;
};

struct Network {
  // Where devices share each batch: their sums, and this one's share. Batches' statistics are those of the
  // whole batch then, and gradients, which are of the mean over the whole batch, parts of a sum.
  parallel::AllReduce* sums = nullptr;
  double share = 1;

  Variables variables;         // trained
  Variables statistics;        // means and variances of batch normalization
  DeviceMemory values;         // f32
  DeviceMemory factors;        // the values in Precision::stored(), where that is not f32
  DeviceMemory gradient[2];    // of two batches; what the optimizer takes is in the first
  DeviceMemory first, second;  // moments of Adam
  DeviceMemory batch;          // statistics of the last batch
  DeviceMemory running;        // their moving average

  // Call after all parts have added their variables.
  void allocate(Device const& device, Precision precision);
  void* value(int number) const { return variables.in(values, number); }
  void* factor(int number, Precision precision) const {
    DataType const type = precision.stored();
    return type == DataType::f32 ? value(number) : variables.in(factors, number, type);
  }
};

// f32 arrays on the host and back: for initial weights and checkpoints, never within a step.
std::vector<float> download(DeviceMemory const& array);
void upload(DeviceMemory& array, std::vector<float> const& values);

}  // namespace cosmati::dcgan
