// The variables of a network in training, in device memory: flat arrays, so that an optimizer step, an
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
  // Returns the number of the variable of this name, adding it if necessary. All must be added before arrays
  // are allocated.
  int add(std::string name, Shape shape);
  std::vector<Variable> const& list() const { return list_; }
  Variable const& operator[](int number) const { return list_[static_cast<std::size_t>(number)]; }
  TensorDescription flat(DataType type = DataType::f32) const { return describe(type, Shape(elements_)); }
  TensorDescription description(int number, DataType type = DataType::f32) const {
    return describe(type, (*this)[number].shape);
  }
  // Returns a flat array on `device`, all zero, including padding.
  DeviceMemory zeros(Device const& device, DataType type = DataType::f32) const;
  // Returns the address of a variable in such an array.
  void* in(DeviceMemory const& array, int number, DataType type = DataType::f32) const {
    return static_cast<std::byte*>(array.data()) + (*this)[number].offset * size_of(type);
  }

 private:
  std::vector<Variable> list_;
  Index elements_ = 0;
};

// What batch normalization computes its statistics from if devices share each batch: the whole batch, so that
// the devices learn the same as a single one; or each device's share of it, as is usual in data-parallel
// training, which is faster, since a device waits for the others only at the end of a pass.
enum class StatisticsOf { batch, device };
char const* name_of(StatisticsOf scope);
// Parses the text of a checkpoint; throws Error(bad_file) with its path.
StatisticsOf parse_statistics(std::string const& name, std::string const& path);

struct Network {
  // If devices share each batch: the sums over the devices, and this device's share. Its gradients, those of
  // the mean over the whole batch, are then parts of a sum.
  parallel::AllReduce* sums = nullptr;
  double share = 1;
  StatisticsOf statistics_of = StatisticsOf::batch;
  bool shares_statistics() const { return sums != nullptr && statistics_of == StatisticsOf::batch; }

  Variables variables;         // trained
  Variables statistics;        // means and variances of batch normalization
  DeviceMemory values;         // f32
  DeviceMemory factors;        // the values in Precision::stored(), if that is not f32
  DeviceMemory gradient[2];    // of two batches; the optimizer uses the first
  DeviceMemory first, second;  // moments of Adam
  DeviceMemory running;        // the moving average of the statistics

  // Must be called after all parts have added their variables.
  void allocate(Device const& device, Precision precision);
  void* value(int number) const { return variables.in(values, number); }
  void* factor(int number, Precision precision) const {
    DataType const type = precision.stored();
    return type == DataType::f32 ? value(number) : variables.in(factors, number, type);
  }
};

// Copy f32 arrays to and from the host, for initial weights and checkpoints, never within a step.
std::vector<float> download(DeviceMemory const& array);
void upload(DeviceMemory& array, std::vector<float> const& values);

}  // namespace cosmati::dcgan
