// The implementation of a primitive on a GPU: a few passes over memory, each a kernel composed of expressions
// and tensors; kernel.h makes their launches.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "cosmati/epilogue/expression.h"
#include "cosmati/ops/device.h"
#include "cosmati/ops/tensor.h"
#include "cosmati/primitive/arguments.h"
#include "src/program/program.h"

namespace cosmati::plan {

enum class PrimitiveFamily : unsigned char { map, transpose, reduce, rows, windows, lrn, gather, channels };
char const* name_of(PrimitiveFamily family);

// The memory of a pass's tensor: an argument of the run, or a part of the workspace.
struct Binding {
  int argument = -1;          // in the order of visit_tensors, then operands and stores of an epilogue
  std::size_t workspace = 0;  // bytes, if argument is -1
  bool mask = false;          // no memory: the elements that dropout keeps
  Index first = 0;            // elements
};
inline Binding argument(int number) { return {number, 0, false, 0}; }
inline Binding workspace_at(std::size_t offset) { return {-1, offset, false, 0}; }

// An expression as a function from the inputs of a kernel to its outputs.
struct PrimitiveFunction {
  epilogue::Expression expression;
  int inputs = 1, outputs = 1;
  std::vector<int> operands;  // operand i is this input
  int accumulator = 0;        // acc is this input
  std::vector<int> scalars;   // scalar i is this one of the parameters
  std::vector<int> stores;    // store i is this output
  int result = 0;             // the result is this output
};

struct PassTensor {
  Binding binding;
  DataType type = DataType::f32;
  bool same = false;      // all elements of a run are the same
  bool by_fours = false;  // of a mask: runs are whole blocks of four elements
};

// One of several tensors that share a launch: the offset of its arguments from those of the first tensor.
struct GroupMember {
  int arguments = 0;
  Index extent = 0;
  unsigned blocks = 0;
};

struct PrimitivePass {
  PrimitiveFamily family = PrimitiveFamily::map;
  DataType real = DataType::f32;
  PrimitiveParameters parameters;  // without pointers and values of the run
  std::vector<PassTensor> inputs, outputs;
  std::vector<PassTensor> counts;  // labels, saved indices or an order: the last input of the parameters
  PrimitiveFunction function, last;
  std::vector<GroupMember> members;  // not empty: the parameters are a PrimitiveGroup
  unsigned blocks = 0, splits = 1;
  bool stays = false;  // persistent clusters: at most as many as can be resident
  int shared_bytes = 0;
  double bytes = 0;  // memory traffic
  std::string text;  // for messages
};

struct PrimitiveProgram {
  std::vector<PrimitivePass> passes;  // none: there is nothing to do
  std::size_t workspace_bytes = 0;
  std::string refusal;
};

// Set the parameters of a launch that depend on the run.
void bind(PrimitivePass const& pass, program::Run const& run, PrimitiveParameters& parameters);
void bind(PrimitivePass const& pass, program::Run const& run, PrimitiveGroup& group);

double predict(PrimitiveProgram const& program, Gpu const& gpu);
std::string to_string(PrimitiveProgram const& program);

// Returns the text of a policy as an initializer: ".width = 4, ...".
std::string initializer(PrimitivePolicy const& policy);

}  // namespace cosmati::plan
