// Makes problems from lines of JSON.
#include "cli/operations/recorded_problem.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <type_traits>

#include "cli/operations/convolution_notes.h"
#include "cli/operations/group_task.h"
#include "cli/operations/notes.h"
#include "cosmati/epilogue/parse.h"
#include "src/io/file.h"
#include "src/io/json_lines.h"
#include "src/plan/problem_fields.h"

namespace cosmati::cli {
namespace {

using Json = nlohmann::json;

[[noreturn]] void refuse_file(std::string const& sentence) { throw Error(ErrorCode::bad_file, sentence); }

Json const& at(Json const& object, std::string const& key) {
  if (!object.is_object() || !object.contains(key)) refuse_file("the key \"" + key + "\" is missing");
  return object[key];
}
Index whole(Json const& value, std::string const& key) {
  if (!value.is_number_integer()) refuse_file("\"" + key + "\" is " + value.dump() + "; expected an integer");
  return value.get<Index>();
}
std::string word(Json const& value, std::string const& key) {
  if (!value.is_string()) refuse_file("\"" + key + "\" is " + value.dump() + "; expected a string");
  return value.get<std::string>();
}
Json const& list(Json const& value, std::string const& key) {
  if (!value.is_array()) refuse_file("\"" + key + "\" is " + value.dump() + "; expected a list");
  return value;
}

TensorDescription tensor_of(Json const& value, std::string const& key) {
  if (value.is_null()) return {};
  TensorDescription tensor;
  tensor.type = parse_data_type(word(at(value, "type"), "type"));
  Json const &extents = list(at(value, "extents"), "extents"),
             &strides = list(at(value, "strides"), "strides");
  if (extents.size() != strides.size() || extents.size() > max_rank)
    refuse_file("\"" + key + "\" has " + std::to_string(extents.size()) + " extents and " +
                std::to_string(strides.size()) + " strides; expected as many of each, at most " +
                std::to_string(max_rank));
  for (std::size_t d = 0; d < extents.size(); ++d) {
    int const dimension = tensor.layout.shape.rank++;
    Index const extent = whole(extents[d], "extents"), stride = whole(strides[d], "strides");
    if (extent < 0 || extent > Index{1} << 40 || stride < 0 || stride > Index{1} << 40)
      refuse_file("\"" + key + "\": the extent " + std::to_string(extent) + " with the stride " +
                  std::to_string(stride) + " is invalid; valid values: 0 to 2^40");
    tensor.layout.shape[dimension] = extent;
    tensor.layout.stride[dimension] = stride;
  }
  Index const alignment = whole(at(value, "alignment"), "alignment");
  if (alignment < 1 || alignment > 4096 || (alignment & (alignment - 1)) != 0)
    refuse_file("\"alignment\" is " + std::to_string(alignment) + "; expected powers of two up to 4096");
  tensor.alignment = static_cast<int>(alignment);
  return tensor;
}

std::vector<TensorDescription> tensors_of(Json const& value, std::string const& key) {
  std::vector<TensorDescription> tensors;
  for (Json const& one : list(value, key)) tensors.push_back(tensor_of(one, key));
  return tensors;
}

template <class Problem>
void read_fields(Json const& object, Problem& problem, std::span<std::string_view const> indices);

// Sets the fields of a problem; `indices` are those of its epilogue.
class Reader {
 public:
  Reader(Json const& object, std::span<std::string_view const> indices)
      : object_(object), indices_(indices) {}

  template <class Field>
  void operator()(char const* key, Field& field) const {
    // Records that predate these fields have only exact products, and batch normalization without activation.
    if ((std::is_same_v<Field, ComputeMode> || std::string_view(key) == "slope") && object_.is_object() &&
        !object_.contains(key))
      return;
    read(key, at(object_, key), field);
  }

 private:
  void read(std::string const& key, Json const& value, TensorDescription& tensor) const {
    tensor = tensor_of(value, key);
  }
  void read(std::string const&, Json const& value, Epilogue& epilogue) const {
    if (value.is_null()) return;
    epilogue.expression = epilogue::parse(word(at(value, "expression"), "expression"), indices_);
    epilogue.operands = tensors_of(at(value, "operands"), "operands");
    epilogue.stores = tensors_of(at(value, "stores"), "stores");
    if (epilogue.operands.size() != epilogue.expression.operands().size() ||
        epilogue.stores.size() != epilogue.expression.stores().size())
      refuse_file("\"expression\" names " + std::to_string(epilogue.expression.operands().size()) +
                  " operands and " + std::to_string(epilogue.expression.stores().size()) +
                  " stores; there are " + std::to_string(epilogue.operands.size()) + " and " +
                  std::to_string(epilogue.stores.size()));
  }
  void read(std::string const& key, Json const& value, std::optional<DataType>& type) const {
    if (!value.is_null()) type = parse_data_type(word(value, key));
  }
  void read(std::string const& key, Json const& value, Index (&pair)[2]) const {
    if (list(value, key).size() != 2)
      refuse_file("\"" + key + "\" is " + value.dump() + "; expected two numbers");
    for (std::size_t i : {0u, 1u}) pair[i] = whole(value[i], key);
  }
  void read(std::string const& key, Json const& value, std::vector<GemmProblem>& members) const {
    for (Json const& member : list(value, key)) read_fields(member, members.emplace_back(), indices_);
  }
  void read(std::string const& key, Json const& value, bool& flag) const {
    if (!value.is_boolean())
      refuse_file("\"" + key + "\" is " + value.dump() + "; valid values: true, false");
    flag = value.get<bool>();
  }
  // Infinity is recorded as null; it is the default of every field that may be infinite.
  void read(std::string const& key, Json const& value, double& number) const {
    if (value.is_null()) return;
    if (!value.is_number()) refuse_file("\"" + key + "\" is " + value.dump() + "; expected a number");
    number = value.get<double>();
  }
  void read(std::string const& key, Json const& value, unsigned long long& number) const {
    if (!value.is_number_unsigned())
      refuse_file("\"" + key + "\" is " + value.dump() + "; expected a non-negative integer");
    number = value.get<unsigned long long>();
  }
  void read(std::string const& key, Json const& value, Index& number) const { number = whole(value, key); }
  void read(std::string const& key, Json const& value, int& number) const {
    Index const given = whole(value, key);
    if (given < 0 || given >= max_rank)
      refuse_file("\"" + key + "\" is " + value.dump() + "; valid values: 0 to " +
                  std::to_string(max_rank - 1));
    number = static_cast<int>(given);
  }
  template <class Value>
  requires(std::is_enum_v<Value>) void read(std::string const& key, Json const& value, Value& choice) const {
    std::string const name = word(value, key);
    auto const names = plan::names_of(choice);
    std::string legal;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == name) {
        choice = static_cast<Value>(i);
        return;
      }
      legal += (i == 0 ? "" : ", ") + names[i];
    }
    refuse_file("\"" + key + "\" is \"" + name + "\"; valid values: " + legal);
  }

  Json const& object_;
  std::span<std::string_view const> indices_;
};

template <class Problem>
void read_fields(Json const& object, Problem& problem, std::span<std::string_view const> indices) {
  plan::visit_fields(problem, Reader(object, indices));
}

// The expression with values for all its scalars: multiples of an eighth other than 0 and 1.
BoundEpilogue with_scalars(Epilogue const& epilogue, std::span<std::string_view const> indices) {
  EpilogueText text{to_string(epilogue.expression), {}};
  double value = 0.75;
  for (auto const& scalar : epilogue.expression.scalars())
    text.settings.push_back(scalar.name + '=' + std::to_string(value += 0.5));
  return BoundEpilogue(text, indices, true);
}

std::string shown(Epilogue const& epilogue) {
  return epilogue.expression == epilogue::Expression() ? "" : to_string(epilogue.expression);
}

// The transposition letters if the product is column-major, as peers require; otherwise empty.
std::string transposition_of(GemmProblem const& problem) {
  auto const lies = [](TensorDescription const& t, int fast, int slow) {
    auto const& stride = t.layout.stride;
    return stride[fast] == 1 && stride[slow] == t.extent(fast) &&
           (t.extent(0) == 1 || stride[0] == t.extent(1) * t.extent(2));
  };
  if (problem.by_pointers || !lies(problem.d, 1, 2)) return {};
  std::string letters;
  for (TensorDescription const* operand : {&problem.a, &problem.b})
    letters += lies(*operand, 1, 2) ? "n" : lies(*operand, 2, 1) ? "t" : "";
  return letters.size() == 2 ? letters : "";
}

Notes gemm_notes(GemmProblem const& problem, BoundEpilogue const& epilogue) {
  std::string const letters = transposition_of(problem);
  Notes notes = notes_of(problem, epilogue, letters.empty() ? "as it lay" : letters, shown(problem.epilogue));
  bool const sum_alone = problem.epilogue.expression == epilogue::Expression();
  notes.transposition = sum_alone ? letters : "";
  if (sum_alone) notes.plain = true, notes.alpha = 1, notes.beta = 0;
  return notes;
}

std::unique_ptr<Task> task_of(GemmProblem problem) {
  BoundEpilogue const epilogue = with_scalars(problem.epilogue, epilogue::gemm_indices);
  Notes const notes = gemm_notes(problem, epilogue);
  return make_task(std::move(problem), notes, {}, epilogue.scalars());
}

std::unique_ptr<Task> task_of(GroupedGemmProblem group) {
  if (group.members.empty()) refuse_file("\"members\" is empty");
  Notes notes;
  std::vector<double> scalars;
  std::string sizes;
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    GemmProblem const& member = group.members[i];
    BoundEpilogue const epilogue = with_scalars(member.epilogue, epilogue::gemm_indices);
    Notes const own = gemm_notes(member, epilogue);
    Index const terms = std::max(notes.terms, own.terms);
    double const operations = (i == 0 ? 0.0 : notes.operations) + own.operations;
    bool const exact = own.exact && (i == 0 || notes.exact);
    if (i == 0) notes = own, scalars = epilogue.scalars();
    notes.terms = terms, notes.operations = operations, notes.exact = exact;
    if (i < 4) sizes += (i == 0 ? "" : ",") + own.label.substr(0, own.label.find(' '));
    if (i == 4) sizes += ",...";
  }
  notes.label = std::to_string(group.members.size()) + " in a group: " + sizes;
  std::string const expression = shown(group.members.front().epilogue);
  if (!expression.empty()) notes.label += ' ' + expression;
  notes.axes.clear();
  notes.transposition.clear();
  return make_group_task(std::move(group), notes, scalars);
}

std::unique_ptr<Task> task_of(ConvolutionProblem problem) {
  BoundEpilogue const epilogue = with_scalars(problem.epilogue, epilogue_indices(problem));
  std::string const format =
      format_text(problem.direction == ConvolutionDirection::bias ? problem.y : problem.x);
  Notes notes = convolution_notes(
      problem, plan::names_of(problem.direction).at(static_cast<std::size_t>(problem.direction)), format,
      shown(problem.epilogue));
  notes.exact = epilogue.exact();
  notes.transcendental = !epilogue.exact();
  notes.slope = epilogue.slope();
  return make_task(std::move(problem), notes, {}, epilogue.scalars());
}

std::unique_ptr<Task> task_of(ElementwiseProblem problem) {
  BoundEpilogue const epilogue = with_scalars(problem.epilogue, elementwise_indices(problem.x.layout.rank()));
  Notes const notes = notes_of(problem, epilogue);
  return make_task(std::move(problem), notes, {}, epilogue.scalars());
}

std::unique_ptr<Task> task_of(OptimizerProblem problem) {
  Notes const notes = notes_of(problem);
  OptimizerProblem::Arguments arguments;
  arguments.rate = 0.01;
  return make_task(std::move(problem), notes, arguments);
}

std::unique_ptr<Task> task_of(TransformProblem problem) {
  Notes const notes = notes_of(problem, format_text(problem.x), format_text(problem.y));
  return make_task(std::move(problem), notes);
}

template <class Problem>
std::unique_ptr<Task> task_of(Problem problem) {
  Notes notes;
  if constexpr (requires { notes_of(problem, std::string()); })
    notes = notes_of(problem, format_text(problem.x));
  else
    notes = notes_of(problem);
  return make_task(std::move(problem), notes);
}

template <class Problem>
std::span<std::string_view const> indices_of(Problem const&, Json const&) {
  return epilogue::gemm_indices;
}
std::span<std::string_view const> indices_of(ConvolutionProblem problem, Json const& object) {
  problem.y = tensor_of(at(object, "y"), "y");
  return epilogue_indices(problem);
}
std::span<std::string_view const> indices_of(ElementwiseProblem const&, Json const& object) {
  return elementwise_indices(tensor_of(at(object, "x"), "x").layout.rank());
}

// Returns true if the line is a problem of this kind, and then sets the call's task.
template <class Problem>
bool read(Json const& object, RecordedCall& call) {
  Problem problem;
  if (call.subject != plan::subject_of(problem)) return false;
  read_fields(object, problem, indices_of(problem, object));
  call.task = task_of(std::move(problem));
  return true;
}

RecordedCall read_call(Json const& line) {
  if (Index const version = whole(at(line, "record"), "record"); version != 1)
    refuse_file("\"record\" is " + std::to_string(version) + "; this program reads version 1");
  RecordedCall call;
  call.subject = word(at(line, "subject"), "subject");
  call.runs = whole(at(line, "runs"), "runs");
  Json const& invariant = at(line, "batch_invariant");
  if (!invariant.is_boolean())
    refuse_file("\"batch_invariant\" is " + invariant.dump() + "; valid values: true, false");
  call.batch_invariant = invariant.get<bool>();
  Json const& object = at(line, "problem");
  bool known = false, counted = false;
#define COSMATI_READ(Problem, name) known = known || read<Problem>(object, call);
  COSMATI_EACH_OPERATION(COSMATI_READ)
  COSMATI_READ(GroupedGemmProblem, "gemm-group")
#undef COSMATI_READ
#define COSMATI_COUNT(Problem, name) counted = counted || call.subject == name;
  COSMATI_EACH_COUNTED_OPERATION(COSMATI_COUNT)
#undef COSMATI_COUNT
  if (!known && !counted) refuse_file("\"subject\" is \"" + call.subject + "\", which is unknown");
  if (!known) call.reason = call.subject + " is not an operation of verify and bench";
  return call;
}

}  // namespace

std::vector<RecordedCall> read_recorded_calls(std::string const& path) {
  std::vector<RecordedCall> calls;
  io::parse_json_lines(io::read_file(path), path, [&](std::size_t number, Json&& line) {
    try {
      calls.push_back(read_call(line));
    } catch (Error const& error) {
      refuse_file(path + ", line " + std::to_string(number) + ": " + error.what());
    }
    calls.back().line = number;
  });
  if (calls.empty()) refuse_file(path + " holds no calls");
  return calls;
}

}  // namespace cosmati::cli
