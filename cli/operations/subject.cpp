// Functions shared by all subjects.
#include "cli/operations/subject.h"

#include "cli/output/text.h"
#include "cosmati/ops/gemm.h"
#include "src/ops/number_types.h"

namespace cosmati::cli {

void Inputs::add(std::string const& name, TensorDescription const& description, std::string const& origin,
                 bool scalar) {
  entries_[name] = origin.empty() ? name : origin;
  descriptions_[name] = description;
  if (scalar) scalars_.insert(name);
}

TensorDescription const& Inputs::at(std::string const& name) const {
  auto const found = descriptions_.find(name);
  if (found == descriptions_.end()) {
    bool const statistic = name == "mean" || name == "variance";  // computed with --training
    throw Error(ErrorCode::bad_request,
                "missing required option --" + name + " FILE" + (statistic ? " (or use --training)" : ""));
  }
  used_.insert(name);
  return found->second;
}

TensorDescription const& Inputs::at(std::string const& name, std::vector<int> const& ranks,
                                    char const* meaning) const {
  TensorDescription const& description = at(name);
  int const own = shape(name).rank;
  for (int const rank : ranks)
    if (own == rank) return description;
  throw Error(ErrorCode::bad_request,
              say(name) + " has " + std::to_string(own) + " dimensions; it should be " + meaning);
}

TensorDescription const& Inputs::at_like(std::string const& name, std::string const& model) const {
  TensorDescription const& description = at(name);
  if (scalars_.contains(name) != scalars_.contains(model))
    throw Error(ErrorCode::bad_request, say(name) + ", and " + say(model) + ": their shapes must be equal");
  return description;
}

Shape Inputs::shape(std::string const& name) const {
  return scalars_.contains(name) ? Shape() : descriptions_.at(name).shape();
}

std::vector<int> Inputs::order_of(std::string const& name) const { return identity_order(shape(name).rank); }

std::string Inputs::say(std::string const& name) const {
  TensorDescription const& description = at(name);
  return entries_.at(name) + ", " + name_of(description.type) + ' ' + to_string(shape(name));
}

std::vector<std::string> Inputs::unused() const {
  std::vector<std::string> names;
  for (auto const& [name, description] : descriptions_)
    if (!used_.contains(name)) names.push_back(name);
  return names;
}

PlanOptions plan_options(Subject const& subject, Common const& common) {
  PlanOptions options = common.plan_options();
  std::string const own = subject.kernel();
  if (!own.empty() && !options.kernel.empty() && own != options.kernel)
    throw Error(ErrorCode::bad_request, "--algorithm " + own + " and --kernel " + options.kernel +
                                            " select different kernels; specify only one");
  if (!own.empty()) options.kernel = own;
  return options;
}

Subjects make_subjects() {
  Subjects all;
#define COSMATI_ADD(Problem, name) \
  for (auto& subject : subjects_of<Problem>()) all.push_back(std::move(subject));
  COSMATI_EACH_OPERATION(COSMATI_ADD)
#undef COSMATI_ADD
  return all;
}

std::unique_ptr<Subject> make_subject(std::string_view name) {
  for (auto& subject : make_subjects())
    if (subject->name() == name) return std::move(subject);
  return nullptr;
}

void check_use(bool has_use, std::string const& option, std::string const& value, std::string const& here,
               std::string const& there) {
  if (has_use || value.empty()) return;
  throw Error(ErrorCode::bad_request, option + (value == "yes" ? "" : ' ' + value) + " has no effect " +
                                          here + "; it applies to " + there);
}

bool is_backward(std::string const& direction) {
  return !direction.empty() && one_of(direction, {"forward", "backward"}, "--direction") == "backward";
}

TensorDescription dense_shape(DataType type, std::vector<Index> const& extents) {
  Shape shape;
  for (Index const extent : extents) shape[shape.rank++] = extent;
  checked_size(shape, type);
  return describe(type, shape);
}

std::string shape_text(Shape const& shape) {
  std::string text;
  for (int d = 0; d < shape.rank; ++d) text += (d == 0 ? "" : "x") + std::to_string(shape[d]);
  return text;
}

DataType output_type(TypeChoice const& types, DataType a, DataType b, bool sum) {
  std::string const& asked = types.d;
  if (!asked.empty()) return parse_data_type(asked);
  bool const integers = is_integer(a) && is_integer(b);
  if (integers && (sum || a != b)) return DataType::s32;
  if (!types.all.empty() && types.all != name_of(DataType::tf32)) return parse_data_type(types.all);
  if (a == DataType::f64 || b == DataType::f64) return DataType::f64;
  return a == b && a != DataType::tf32 ? a : DataType::f32;
}

namespace {

ComputeMode named_mode(std::string const& name) {
  for (int i = 1; i < compute_mode_count; ++i)
    if (auto const mode = static_cast<ComputeMode>(i); name == name_of(mode)) return mode;
  return ComputeMode::exact;
}

}  // namespace

ComputeMode compute_mode_of(TypeChoice const& types, DataType a, DataType b) {
  ComputeMode const mode = named_mode(types.compute);
  if (mode == ComputeMode::fast_accumulation) {
    if (is_float8(a) && is_float8(b)) return mode;
    throw Error(ErrorCode::bad_request, "--compute fast_accumulation applies to 8-bit floats; a and b are " +
                                            std::string(name_of(a)) + " and " + name_of(b));
  }
  if (mode == ComputeMode::exact || (a == DataType::f32 && b == DataType::f32)) return mode;
  throw Error(ErrorCode::bad_request, "--compute " + types.compute + " splits factors of f32; a and b are " +
                                          name_of(a) + " and " + name_of(b));
}

void check_accumulator(TypeChoice const& types, DataType a, DataType b, bool halves) {
  DataType const actual = accumulator_type(a, b);
  bool const may_be_half = halves && a == DataType::f16 && b == DataType::f16;
  if (!types.accumulator.empty()) {
    DataType const asked = parse_data_type(types.accumulator);
    if (asked != actual && !(may_be_half && asked == DataType::f16))
      throw Error(ErrorCode::bad_request, "--accumulator " + types.accumulator + ": products of " +
                                              name_of(a) + " and " + name_of(b) + " are summed in " +
                                              name_of(actual) + "; valid values: " + name_of(actual) +
                                              (may_be_half ? ", f16" : ""));
  }
  if (types.compute.empty()) return;
  if (named_mode(types.compute) != ComputeMode::exact) {
    if (halves) return;  // compute_mode_of() checks it
    throw Error(ErrorCode::bad_request,
                "--compute " + types.compute +
                    " applies to matrix products; valid values for this operation: tf32 for f32 data");
  }
  bool const cut = a == DataType::tf32 || b == DataType::tf32;
  DataType const asked = parse_data_type(types.compute);
  if (asked == DataType::tf32 ? cut : asked == actual || (asked == a && asked == b)) return;
  throw Error(ErrorCode::bad_request,
              "--compute " + types.compute + ": factors of " + name_of(a) + " and " + name_of(b) +
                  " are multiplied exactly and summed in " + name_of(actual) +
                  "; valid values: " + name_of(actual) + ", and tf32 for f32 data" +
                  (halves ? ", as are bf16x3, bf16x6, bf16x9 and tf32x3; fast_accumulation for "
                            "8-bit floats"
                          : ""));
}

Layout reordered(Layout const& layout, std::vector<int> const& order) {
  Layout result;
  result.shape.rank = static_cast<int>(order.size());
  for (int d = 0; d < result.shape.rank; ++d) {
    result.shape[d] = layout.extent(order[static_cast<std::size_t>(d)]);
    result.stride[d] = layout.stride[order[static_cast<std::size_t>(d)]];
  }
  return result;
}

TensorDescription reordered(TensorDescription const& description, std::vector<int> const& order) {
  return {description.type, reordered(description.layout, order), description.alignment};
}

std::vector<int> identity_order(int rank) {
  std::vector<int> order(static_cast<std::size_t>(rank));
  for (int d = 0; d < rank; ++d) order[static_cast<std::size_t>(d)] = d;
  return order;
}

Index draw_between(nets::Random& random, Index low, Index high) {
  return low + static_cast<Index>(random.bits() % static_cast<unsigned long long>(high - low + 1));
}

}  // namespace cosmati::cli
