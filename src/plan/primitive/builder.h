// Turns tensors with any strides into a pass: axes with compatible strides are merged, and the width of runs
// follows from the problem's guarantees.
#pragma once
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "src/plan/primitive/program.h"

namespace cosmati::plan {

inline constexpr unsigned primitive_threads = 256;  // of a block

// The target of lowering.
struct PrimitiveTarget {
  Gpu gpu;
  bool emulated = false;  // a few policies for everything
  unsigned max_splits =
      1024;  // parts of a reduction, whose values are in the workspace until they are combined
};
int max_cluster_blocks_of(PrimitiveTarget const& target);  // 1 if it has no clusters

// A tensor in the index space of a pass: one stride per axis, 0 along axes on which it does not depend.
struct StridedTensor {
  std::string name;
  TensorDescription description;  // of the memory; only the alignment of its layout matters
  Binding binding;
  Index stride[max_rank] = {};
};
// Returns a tensor of the space's shape.
StridedTensor strided(std::string name, TensorDescription const& tensor, Binding binding);
// Returns a tensor of rank 1 along axis `axis` of the space.
StridedTensor strided_along(std::string name, TensorDescription const& tensor, int axis, Binding binding);
// Returns a dense array of `type` in the workspace, with the extents of the axes in `axes`, the last fastest.
StridedTensor strided_in_workspace(std::string name, DataType type, Shape const& space,
                                   std::initializer_list<int> axes, std::size_t offset);
// The indices of the space's elements in row-major order, for the mask of dropout.
StridedTensor mask_of(Shape const& space);

// Text in the epilogue language: inputs are name[e], outputs store(name, value) and the result.
struct Formula {
  std::string text;
  std::string result;                       // the name of the output of the result
  std::map<std::string, double> constants;  // for names without brackets
  std::vector<std::string> scalars = {};    // those given per run, in the order of the run
  // Used instead of the text, and parsed with other letters than e; `accumulator` names the input for acc.
  epilogue::Expression const* parsed = nullptr;
  std::string accumulator = {};
};

struct SpaceAxis {
  Index extent = 1;
  std::vector<Index> stride;  // of each tensor, inputs first
};

// The index space of a pass after collapsing: positions, then terms; fastest first.
struct CollapsedSpace {
  std::vector<SpaceAxis> positions, terms;
};

// Removes axes of extent 1; the term axes are those in `reduced`. Sorts by the strides of tensor `leader`.
// `apart` are axes that are not merged.
CollapsedSpace collapse(Shape const& shape, std::vector<bool> const& reduced,
                        std::vector<StridedTensor const*> const& tensors, std::size_t leader,
                        std::vector<int> const& apart = {});

// Part of a space, from `first` on.
struct Piece {
  Shape shape;
  Index first[max_rank] = {};
  std::vector<StridedTensor> of(std::vector<StridedTensor> tensors) const;  // the tensors, from `first` on
};
// Divides the space into pieces of at most `maximum` elements, not counting the axes in `whole`, which are
// not divided.
std::vector<Piece> pieces_of(Shape const& shape, std::vector<bool> const& whole, double maximum = 0x1p30);

// Returns f64 if any of the tensors is f64 or s32, else f32.
DataType real_of(std::vector<StridedTensor> const& tensors);

// Returns the longest run along an axis that all tensors support; 1 if there is none.
int run_width(std::vector<StridedTensor const*> const& tensors, CollapsedSpace const& space, bool of_terms,
              PrimitiveTarget const& target, int max_bytes = 64);

// Sets axes, strides, policy.width, kept and terms, and the types; `of_terms`: runs are along the terms.
void fill_space(PrimitivePass& pass, CollapsedSpace const& space, std::vector<StridedTensor> const& inputs,
                std::vector<StridedTensor> const& outputs, int width, bool of_terms);

// Makes `many` positions of the axis one, the last of which may have fewer.
void divide(SpaceAxis& axis, Index many);

PrimitiveFunction function_of(Formula const& formula, std::vector<std::string> const& inputs,
                              std::vector<std::string> const& outputs, PrimitiveParameters& parameters);
// Returns the names that the formula reads.
std::vector<std::string> names_in(Formula const& formula);

// y... = formula(x...): appends its passes, several if there are more than 2^31 runs.
void add_map(PrimitiveProgram& program, Shape const& shape, Formula const& formula,
             std::vector<StridedTensor> inputs, std::vector<StridedTensor> const& outputs,
             PrimitiveTarget const& target, bool may_transpose = false);

struct Reduction {
  Shape shape;                // of the inputs
  std::vector<bool> reduced;  // axes
  int combine = 0;            // Combine
  Formula terms;              // from inputs to the values v0, v1, ...
  int values = 1;
  Formula last;  // from s0, s1, ... to the outputs
  std::vector<StridedTensor> inputs, outputs;
};
void add_reduction(PrimitiveProgram& program, Reduction const& reduction, PrimitiveTarget const& target);
// Like add_reduction, but in one launch; for partial results, at most a few thousand terms.
void add_joining_reduction(PrimitiveProgram& program, Reduction const& reduction,
                           PrimitiveTarget const& target);

// Reserves workspace; returns its offset in bytes, a multiple of 256.
std::size_t reserve(PrimitiveProgram& program, Index elements, DataType type);

unsigned power_of_two_from(unsigned number);  // the smallest that is at least `number`; at most 2^31
std::string describe(CollapsedSpace const& space);
void finish(PrimitivePass& pass, CollapsedSpace const& space);  // bytes, text

}  // namespace cosmati::plan
