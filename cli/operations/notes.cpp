// Labels of problems in tables, their costs, and how exactly they can be verified.
#include "cli/operations/notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cli/networks/image.h"
#include "cli/operations/convolution_notes.h"
#include "cli/operations/subject.h"

namespace cosmati::cli {
namespace {

double elements(TensorDescription const& tensor) { return static_cast<double>(tensor.layout.size()); }

char const* direction_text(Direction direction) {
  return direction == Direction::backward ? "backward " : "forward ";
}

bool in_eighths(double value) { return value * 8 == std::floor(value * 8); }

// Whether the tensor is dense with dimensions in this order, slowest first.
bool lies_in(TensorDescription const& tensor, std::vector<int> const& order) {
  return reordered(tensor.layout, order).is_row_major();
}

}  // namespace

std::string format_text(TensorDescription const& tensor) {
  int const rank = tensor.layout.rank();
  for (TensorFormat const format : {TensorFormat::nchw, TensorFormat::nhwc, TensorFormat::chwn})
    if (rank < 2 || lies_in(tensor, file_order(format, rank))) return name_of(format);
  return "strided";
}

Notes notes_of(GemmProblem const& problem, BoundEpilogue const& epilogue, std::string const& letters,
               std::string const& expression) {
  Index const m = problem.m(), n = problem.n(), k = problem.k(), batch = problem.batch();
  Notes notes;
  notes.label = std::to_string(m) + 'x' + std::to_string(n) + 'x' + std::to_string(k);
  if (batch != 1) notes.label += 'x' + std::to_string(batch);
  notes.label += ' ' + letters;
  if (problem.accumulator) notes.label += " f16 sums";
  notes.compute = problem.compute;
  if (problem.compute != ComputeMode::exact) notes.label += std::string(" ") + name_of(problem.compute);
  notes.by_pointers = problem.by_pointers;
  if (problem.by_pointers) notes.label += " by pointers";
  if (!expression.empty()) notes.label += ' ' + expression;
  notes.terms = k;
  notes.operations = 2.0 * static_cast<double>(batch) * static_cast<double>(m) * static_cast<double>(n) *
                     static_cast<double>(k);
  notes.linear = true;
  notes.sum = problem.accumulator.value_or(accumulator_type(problem.a.type, problem.b.type));
  notes.plain = epilogue.is_plain();
  notes.alpha = epilogue.value_of("alpha");
  notes.beta = epilogue.value_of("beta");
  notes.axes = {{"a", {"batch", "m", "k"}}, {"b", {"batch", "k", "n"}}};
  for (char const* const name : {"c", "d"}) notes.axes[name] = {"batch", "m", "n"};
  for (auto const& store : problem.epilogue.expression.stores())
    notes.axes["store " + store.name] = {"batch", "m", "n"};
  for (auto const& operand : problem.epilogue.expression.operands())
    notes.axes["operand " + operand.name] = {operand.indices.begin(), operand.indices.end()};
  // With factors from -3 to 3, f16 represents every sum up to 2048 exactly.
  notes.exact = epilogue.exact() && (notes.sum != DataType::f16 || 9 * k <= 2048);
  notes.transcendental = !epilogue.exact();
  notes.slope = epilogue.slope();
  return notes;
}

Notes notes_of(ElementwiseProblem const& problem, BoundEpilogue const& epilogue) {
  Notes notes;
  notes.label = shape_text(problem.x.shape()) + ' ' + epilogue.text();
  notes.terms = 4;
  notes.operations = elements(problem.x) * static_cast<double>(problem.epilogue.expression.nodes().size());
  // A difference of absolute values does not bound the size of its terms, so the largest of all values is
  // used.
  notes.linear = std::ranges::none_of(problem.epilogue.expression.nodes(), [](epilogue::Node const& node) {
    return node.op == epilogue::Op::subtract || node.op == epilogue::Op::negate;
  });
  notes.exact = epilogue.exact();
  notes.transcendental = !epilogue.exact();
  notes.slope = epilogue.slope();
  return notes;
}

Notes notes_of(PoolingProblem const& problem, std::string const& format) {
  auto const& depth = problem.depth;
  auto const text = [&](Index of_depth, Index const(&values)[2]) {
    return (problem.has_depth() ? std::to_string(of_depth) + ',' : "") + pair_text(values[0], values[1]);
  };
  Notes notes;
  notes.label = std::string(name_of(problem.mode)) + ' ' + direction_text(problem.direction) +
                shape_text(problem.x.shape()) + " window " + text(depth.window, problem.window) + " stride " +
                text(depth.stride, problem.stride) + " pad " + text(depth.pad_begin, problem.pad_begin) +
                '+' + text(depth.pad_end, problem.pad_end) + " dilation " +
                text(depth.dilation, problem.dilation) + ' ' + format;
  notes.terms = depth.window * problem.window[0] * problem.window[1];
  notes.operations = elements(problem.y) * static_cast<double>(notes.terms);
  notes.linear = problem.mode != PoolingMode::max;
  notes.exact = problem.mode == PoolingMode::max;
  return notes;
}

template <>
Notes notes_of(ActivationProblem const& problem) {
  Notes notes;
  notes.label = std::string(name_of(problem.function)) + ' ' + direction_text(problem.direction) +
                shape_text(problem.x.shape());
  notes.terms = 4;
  notes.transcendental = true;
  notes.exact = problem.function == ActivationFunction::relu;
  notes.operations = elements(problem.x);
  return notes;
}

Notes notes_of(BatchNormProblem const& problem, std::string const& format) {
  bool const inference = problem.mode == BatchNormMode::inference;
  Index const channels = problem.x.extent(1);
  Notes notes;
  notes.label = std::string(inference                                 ? "inference "
                            : problem.mode == BatchNormMode::backward ? "backward "
                                                                      : "training ") +
                shape_text(problem.x.shape()) + ' ' + format;
  if (problem.has_activation()) notes.label += fmt::format(" slope {}", problem.slope);
  notes.terms = inference ? 4 : channels == 0 ? 0 : problem.x.layout.size() / channels;
  notes.operations = 4.0 * elements(problem.x);
  return notes;
}

Notes notes_of(LrnProblem const& problem, std::string const& format) {
  Notes notes;
  notes.label = direction_text(problem.direction) + shape_text(problem.x.shape()) + " size " +
                std::to_string(problem.size) + ' ' + format;
  notes.terms = problem.size;
  notes.transcendental = true;
  notes.operations = elements(problem.x) * static_cast<double>(2 * problem.size);
  return notes;
}

template <>
Notes notes_of(SoftmaxProblem const& problem) {
  Notes notes;
  notes.label = std::string(problem.logarithm ? "log " : "") + direction_text(problem.direction) +
                shape_text(problem.y.shape()) + " axis " + std::to_string(problem.axis);
  notes.transcendental = true;
  notes.terms = problem.y.extent(problem.axis);
  notes.operations = 4.0 * elements(problem.y);
  return notes;
}

template <>
Notes notes_of(CrossEntropyProblem const& problem) {
  Notes notes;
  notes.label = direction_text(problem.direction) + shape_text(problem.x.shape());
  notes.transcendental = true;
  notes.terms = problem.x.extent(1);
  notes.operations = 4.0 * elements(problem.x);
  notes.classes = problem.x.extent(1);
  return notes;
}

template <>
Notes notes_of(RbfProblem const& problem) {
  Index const classes = problem.centres.extent(0);
  Notes notes;
  notes.label = std::string(problem.labels.present() ? "loss " : "distances ") +
                direction_text(problem.direction) + shape_text(problem.x.shape()) + 'x' +
                std::to_string(classes);
  notes.transcendental = true;
  notes.terms = problem.x.extent(1);
  // A loss consists of exponentials of distances, which are sums of `terms` squares of about 2, each rounded
  // four times.
  if (problem.labels.present()) notes.exponents = 8.0 * static_cast<double>(notes.terms);
  notes.operations = 3.0 * elements(problem.x) * static_cast<double>(classes);
  notes.classes = classes;
  return notes;
}

template <>
Notes notes_of(AddProblem const& problem) {
  Notes notes;
  notes.label = shape_text(problem.a.shape());
  notes.terms = 2;
  notes.exact = in_eighths(problem.alpha) && in_eighths(problem.beta);
  notes.operations = 3.0 * elements(problem.a);
  notes.linear = true;
  return notes;
}

template <>
Notes notes_of(DropoutProblem const& problem) {
  Notes notes;
  notes.label = shape_text(problem.x.shape()) + " probability " + std::to_string(problem.probability);
  notes.operations = elements(problem.x);
  return notes;
}

Notes notes_of(TransformProblem const& problem, std::string const& from, std::string const& to) {
  Notes notes;
  notes.label = shape_text(problem.x.shape()) + ' ' + from + " to " + to;
  notes.terms = 0;
  return notes;
}

template <>
Notes notes_of(ReduceProblem const& problem) {
  Index terms = 1;
  for (int d = 0; d < problem.x.layout.rank(); ++d)
    if (problem.y.extent(d) == 1) terms *= problem.x.extent(d);
  Notes notes;
  notes.label = std::string(name_of(problem.operation)) + ' ' + shape_text(problem.x.shape()) + " to " +
                shape_text(problem.y.shape());
  notes.terms = terms;
  notes.operations = elements(problem.x);
  notes.linear = problem.operation != ReduceOperation::max && problem.operation != ReduceOperation::min;
  notes.exact = problem.operation != ReduceOperation::mean;
  return notes;
}

template <>
Notes notes_of(OptimizerProblem const& problem) {
  Notes notes;
  notes.label = shape_text(problem.parameter.shape());
  notes.terms = 8;
  notes.operations = (problem.kind == OptimizerKind::adam ? 12.0 : 4.0) * elements(problem.parameter);
  return notes;
}

}  // namespace cosmati::cli
