// A subject of the command line (gemm, conv, pool, ...): its parameters, its files, and how they define a
// problem.
#pragma once
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cli/operations/task.h"
#include "cli/options/options.h"
#include "nets/random.h"

namespace cosmati::cli {

// Selects the option that sets the type of a file's elements.
enum class TypeRole : unsigned char { a, b, c, operand, labels };

struct FileOption {
  std::string name;  // "x": --x
  TypeRole type = TypeRole::a;
  bool output = false;
  std::string help;
  std::string updates = {};  // for an output: the input whose file it may replace
};

// The input arrays of a problem by option name, with dimensions in the file's order. Operands of an epilogue
// are named "operand NAME".
class Inputs {
 public:
  // `scalar`: the file's array is zero-dimensional; the description has one element, (1).
  void add(std::string const& name, TensorDescription const& description, std::string const& origin = "",
           bool scalar = false);
  bool has(std::string const& name) const { return entries_.contains(name); }
  // Throws Error(bad_request) if the option is missing or the rank is not valid.
  TensorDescription const& at(std::string const& name) const;
  TensorDescription const& at(std::string const& name, std::vector<int> const& ranks,
                              char const* meaning) const;
  // Like at(), and requires the array to be zero-dimensional exactly if `model` is.
  TensorDescription const& at_like(std::string const& name, std::string const& model) const;
  // Like at_like(); if the program generates the data and `name` is absent, `model` itself.
  TensorDescription const& at_or_like(std::string const& name, std::string const& model) const {
    return at_like(made_here && !has(name) ? model : name, model);
  }
  TensorDescription const& at_or_like(std::string const& name, TensorDescription const& model) const {
    return made_here && !has(name) ? model : at(name);
  }
  Shape shape(std::string const& name) const;  // shape of the file's array
  // The dimension order (Port::order) of an output of this array's shape.
  std::vector<int> order_of(std::string const& name) const;
  std::string say(std::string const& name) const;  // "--a A.npy, f32 (3, 4)"
  std::vector<std::string> unused() const;         // inputs that no call of at() has requested
  std::map<std::string, TensorDescription> const& all() const { return descriptions_; }
  // The program generates the data, including missing operands of the epilogue.
  bool made_here = false;
  std::set<std::string> wanted;  // options of the requested outputs

 private:
  std::map<std::string, std::string> entries_;
  std::map<std::string, TensorDescription> descriptions_;
  std::set<std::string> scalars_;
  mutable std::set<std::string> used_;
};

// Maps a file to a tensor of the problem: dimension d of the file is dimension order[d] of the tensor.
struct Port {
  std::string slot;    // the tensor's name in the problem
  std::string option;  // the file's option: "x", "out"
  std::vector<int> order;
  // If not 0, the tensor holds s32 indices within image planes of this size, and the file int64 indices into
  // the full (N, C, H, W) array.
  Index plane = 0;
  Index plane_rows =
      0;  // if not 0, the file's indices are column-major within planes with this number of rows
};

struct Job {
  std::unique_ptr<Task> task;
  std::vector<Port> outputs;
  std::map<std::string, std::string> input_options;  // slot -> option, if the names differ
  std::vector<std::string> warnings;
  // If not null, runs first; its output is the input `before_output` of the task.
  std::unique_ptr<Task> before;
  std::string before_output;
};

class Subject {
 public:
  virtual ~Subject() = default;
  virtual std::unique_ptr<Subject> clone() const = 0;
  virtual std::string name() const = 0;
  virtual std::string about() const = 0;         // one line for the help
  virtual std::string run_example() const = 0;   // options after "cosmati run NAME"
  virtual std::string size_example() const = 0;  // options after "cosmati verify NAME"
  virtual void add_parameters(Options& options) = 0;
  virtual std::vector<FileOption> files() const = 0;
  virtual bool has_epilogue() const { return false; }
  virtual bool sums_products() const { return false; }  // accepts --accumulator and --compute

  // The names of the extents in a size, e.g. m, n, k, batch; extents starting at `fewest_sizes` default to 1.
  // Empty: the size is a shape of any rank.
  virtual std::vector<std::string> letters() const { return {}; }
  virtual std::size_t fewest_sizes() const { return letters().empty() ? 1 : letters().size(); }
  // Generated arrays for a problem of this size.
  virtual Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const = 0;
  // Sizes set by the parameters instead of --size; empty: none.
  virtual std::vector<std::vector<Index>> sizes_of_parameters() const { return {}; }
  // Whether each file option accepts a list of files, for inputs "a[0]", "a[1]", ...
  virtual bool takes_lists() const { return false; }
  // Chooses a random size, and random values for all parameters that were not specified.
  virtual std::vector<Index> draw(nets::Random& random) = 0;
  // Restricts random sizes to those that a requested kernel supports, if it supports few.
  virtual void draw_for(std::string const& /*kernel*/) {}

  // The kernel selected by the subject's own options; empty if none.
  virtual std::string kernel() const { return {}; }
  virtual Job job(Inputs const& inputs, Common const& common) const = 0;
  virtual std::vector<std::string> kernels(Backend backend) const = 0;
};

using Subjects = std::vector<std::unique_ptr<Subject>>;

// The subjects whose problems are of this kind; defined next to them.
template <class Problem>
Subjects subjects_of();
#define COSMATI_DECLARE(Problem, name) \
  template <>                          \
  Subjects subjects_of<Problem>();
COSMATI_EACH_OPERATION(COSMATI_DECLARE)
#undef COSMATI_DECLARE

Subjects make_subjects();  // one of each kind, in the order of the list of operations
std::unique_ptr<Subject> make_subject(std::string_view name);  // null if none has this name

// A list of these subjects.
template <class... Each>
Subjects list_of(Each... each) {
  Subjects subjects;
  (subjects.push_back(std::make_unique<Each>(std::move(each))), ...);
  return subjects;
}

PlanOptions plan_options(Subject const& subject, Common const& common);

// Throws Error(bad_request) if an option was given (its value is not empty, or "yes" for a flag) but has no
// effect: "--ceil has no effect HERE; it applies to THERE".
void check_use(bool has_use, std::string const& option, std::string const& value, std::string const& here,
               std::string const& there);

// False for "forward".
bool is_backward(std::string const& direction);

// A generated, dense array with these extents.
TensorDescription dense_shape(DataType type, std::vector<Index> const& extents);
std::string shape_text(Shape const& shape);  // "2x3x8x8"

// With `sum`, s32 for 8-bit integers; for different types, the one that represents both.
DataType output_type(TypeChoice const& types, DataType a, DataType b, bool sum);
// With `halves`, f16 products may accumulate in f16.
void check_accumulator(TypeChoice const& types, DataType a, DataType b, bool halves = false);

// The mode that --compute names for a matrix product of these factors; exact if it names a data type.
ComputeMode compute_mode_of(TypeChoice const& types, DataType a, DataType b);

// `layout` with its dimensions in another order; omitted dimensions get extent 1.
Layout reordered(Layout const& layout, std::vector<int> const& order);
TensorDescription reordered(TensorDescription const& description, std::vector<int> const& order);
std::vector<int> identity_order(int rank);

Index draw_between(nets::Random& random, Index low, Index high);
template <class Choice>
Choice draw_from(nets::Random& random, std::vector<Choice> const& choices) {
  return choices[static_cast<std::size_t>(draw_between(random, 0, static_cast<Index>(choices.size()) - 1))];
}

}  // namespace cosmati::cli
