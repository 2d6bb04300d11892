// layernorm, rmsnorm and groupnorm: from arrays to problems, and how large their rounding errors may be.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cli/networks/image.h"
#include "cli/operations/notes.h"
#include "cli/operations/subject.h"
#include "cli/output/text.h"
#include "cosmati/ops/normalization.h"
#include "reference/elements.h"

namespace cosmati::cli {

template <>
Notes notes_of(RowNormProblem const& problem);

namespace {

// The dimensions starting at `axis`.
std::vector<Index> extents_from(TensorDescription const& tensor, int axis) {
  std::vector<Index> extents;
  for (int d = axis; d < tensor.layout.rank(); ++d) extents.push_back(tensor.extent(d));
  return extents;
}
std::vector<Index> extents_of_statistics(TensorDescription const& tensor, int axis) {
  std::vector<Index> extents = extents_from(tensor, 0);
  std::fill(extents.begin() + axis, extents.end(), Index{1});
  return extents;
}

class RowNorm final : public Subject {
 public:
  explicit RowNorm(RowNormMode mode) : mode_(mode) {}
  std::unique_ptr<Subject> clone() const override { return std::make_unique<RowNorm>(*this); }
  std::string name() const override { return grouped() ? "groupnorm" : centered() ? "layernorm" : "rmsnorm"; }
  std::string about() const override {
    return std::string(grouped()    ? "group"
                       : centered() ? "layer"
                                    : "RMS") +
           " normalization and its gradients";
  }
  std::string run_example() const override {
    if (grouped()) return "--x X.npy --groups 32 --weight W.npy --bias B.npy --out Y.npy";
    return std::string("--x X.npy --axis -1 --weight W.npy ") + (centered() ? "--bias B.npy " : "") +
           "--out Y.npy";
  }
  std::string size_example() const override {
    return grouped() ? "--size 8x64x17x17 --groups 32" : "--size 64x1024 --axis -1";
  }
  std::size_t fewest_sizes() const override { return grouped() ? 2 : 1; }

  void add_parameters(Options& options) override {
    if (grouped())
      options
          .integer("--groups", groups_, "number of groups of adjacent channels, each normalized separately")
          .text("--layout", layout_, "NAME", "nchw, nhwc or chwn: memory layout (default: nchw)");
    else
      options.integer(
          "--axis", axis_,
          "first of the dimensions that are normalized; negative: counted from the last (default: -1)");
    options
        .number(
            "--epsilon", epsilon_,
            centered() ? "added to the variance (default: 1e-5)" : "added to the mean square (default: 1e-5)")
        .text("--direction", direction_, "NAME", "forward or backward (default: forward)");
  }
  std::vector<FileOption> files() const override {
    if (grouped())
      return {{"x", TypeRole::a, false, "(N,C,...) of two to five dimensions"},
              {"dy", TypeRole::a, false, "of the shape of x, for backward"},
              {"weight", TypeRole::operand, false, "(C) (default: ones)"},
              {"bias", TypeRole::operand, false, "(C), for forward (default: zeros)"},
              {"mean", TypeRole::operand, false, "what forward saved, for backward"},
              {"inverse", TypeRole::operand, false, "what forward saved, for backward"},
              {"out", TypeRole::a, true, "y, or dx"},
              {"save-mean", TypeRole::a, true, "(N,groups)"},
              {"save-inverse", TypeRole::a, true, "(N,groups), 1 / sqrt(variance + epsilon)"},
              {"out-weight", TypeRole::a, true, "gradient of the weights, for backward"},
              {"out-bias", TypeRole::a, true, "gradient of the bias, for backward"}};
    std::vector<FileOption> files{
        {"x", TypeRole::a, false, "any shape"},
        {"dy", TypeRole::a, false, "same shape as x, for backward"},
        {"weight", TypeRole::operand, false, "of the normalized dimensions (default: ones)"},
        {"bias", TypeRole::operand, false, "of the normalized dimensions, for forward (default: zeros)"},
        {"mean", TypeRole::operand, false, "what forward saved, for backward"},
        {"inverse", TypeRole::operand, false, "what forward saved, for backward"},
        {"out", TypeRole::a, true, "y, or dx"},
        {"save-mean", TypeRole::a, true, "shape of x, with extent 1 in the normalized dimensions"},
        {"save-inverse", TypeRole::a, true,
         centered()
             ? "1 / sqrt(variance + epsilon), like the mean"
             : "1 / sqrt(mean square + epsilon); shape of x, with extent 1 in the normalized dimensions"},
        {"out-weight", TypeRole::a, true, "gradient of the weights, for backward"},
        {"out-bias", TypeRole::a, true, "gradient of the bias, for backward"}};
    if (!centered())
      std::erase_if(files, [](FileOption const& file) {
        return file.name == "bias" || file.name == "mean" || file.name == "save-mean" ||
               file.name == "out-bias";
      });
    return files;
  }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs;
    inputs.made_here = true;
    DataType const type = types.type_of(types.a, DataType::f32);
    inputs.add("x", grouped() ? made_image(size, type, format_of(layout_)) : dense_shape(type, size));
    return inputs;
  }
  std::vector<Index> draw(nets::Random& random) override {
    if (direction_.empty()) direction_ = draw_from<std::string>(random, {"forward", "backward"});
    has_weight_ = draw_between(random, 0, 3) > 0;
    has_bias_ = draw_between(random, 0, 3) > 0;
    saves_ = draw_between(random, 0, 1) == 1;
    if (grouped()) return draw_groups(random);
    std::vector<Index> size;
    for (Index rank = draw_between(random, 1, 4); rank > 0; --rank)
      size.push_back(draw_between(random, 1, rank == 1 ? 70 : 13));
    if (axis_ == -1) axis_ = draw_between(random, 0, static_cast<Index>(size.size()) - 1);
    if (draw_between(random, 0, 7) == 0 && size.size() < 3) size.back() = draw_between(random, 257, 3000);
    return size;
  }

  Job job(Inputs const& inputs, Common const& common) const override;
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<RowNormProblem>(backend);
  }

 private:
  bool centered() const { return mode_ != RowNormMode::rms; }
  bool grouped() const { return mode_ == RowNormMode::group; }
  // Images of a few pixels, and some whose groups do not fit in the registers of a block.
  std::vector<Index> draw_groups(nets::Random& random) {
    if (layout_.empty()) layout_ = draw_from<std::string>(random, {"nchw", "nhwc", "chwn"});
    if (groups_ == 0) groups_ = draw_between(random, 1, 5);
    std::vector<Index> size{draw_between(random, 1, 4), groups_ * draw_between(random, 1, 9)};
    for (Index spatial = draw_between(random, 0, 3); spatial > 0; --spatial)
      size.push_back(draw_between(random, 1, 9));
    if (draw_between(random, 0, 7) == 0 && size.size() == 3) size.back() = draw_between(random, 257, 3000);
    return size;
  }
  void set_axis(RowNormProblem& problem, Inputs const& inputs) const;
  void set_groups(RowNormProblem& problem) const;

  RowNormMode mode_;
  long long axis_ = -1, groups_ = 0;
  double epsilon_ = 1e-5;
  std::string direction_, layout_;
  bool has_weight_ = true, has_bias_ = true, saves_ = false;  // of generated problems
};

void RowNorm::set_axis(RowNormProblem& problem, Inputs const& inputs) const {
  int const rank = problem.x.layout.rank();
  if (axis_ < -rank || axis_ >= rank)
    throw Error(ErrorCode::bad_request, "--axis " + std::to_string(axis_) + ": " + inputs.say("x") +
                                            ", has axes " + std::to_string(-rank) + " to " +
                                            std::to_string(rank - 1));
  problem.axis = static_cast<int>(axis_ < 0 ? axis_ + rank : axis_);
}

void RowNorm::set_groups(RowNormProblem& problem) const {
  if (groups_ == 0) throw Error(ErrorCode::bad_request, "missing required option --groups N");
  problem.groups = groups_;
}

Job RowNorm::job(Inputs const& inputs, Common const& common) const {
  bool const backward = is_backward(direction_), made = inputs.made_here;
  RowNormProblem problem;
  problem.mode = mode_;
  problem.direction = backward ? Direction::backward : Direction::forward;
  problem.epsilon = epsilon_;
  TensorFormat const format = format_of(layout_);
  problem.x = grouped()
                  ? from_file(inputs.at("x", {2, 3, 4, 5}, "(N, C, ...) of two to five dimensions"), format)
                  : inputs.at("x");
  int const rank = problem.x.layout.rank();
  grouped() ? set_groups(problem) : set_axis(problem, inputs);
  int const axis = problem.axis, parameter_rank = grouped() ? 1 : rank - axis;
  DataType const type = output_type(common.types, problem.x.type, problem.x.type, false);
  TensorDescription const result{type, problem.x.layout};
  DataType const real = problem.x.type == DataType::f64 ? DataType::f64 : DataType::f32;
  // Generated parameters have the type of x, as in a network of one type.
  TensorDescription const parameter =
      dense_shape(is_integer(problem.x.type) ? real : problem.x.type,
                  grouped() ? std::vector<Index>{problem.x.extent(1)} : extents_from(problem.x, axis));
  TensorDescription const statistic =
      dense_shape(real, grouped() ? std::vector<Index>{problem.x.extent(0), groups_}
                                  : extents_of_statistics(problem.x, axis));
  auto const optional = [&](char const* name, bool generated) {
    if (made) return generated ? parameter : TensorDescription{};
    return inputs.has(name)
               ? inputs.at(name, {parameter_rank}, grouped() ? "(C)" : "of the normalized dimensions")
               : TensorDescription{};
  };
  auto const wants = [&](char const* option) { return inputs.wanted.contains(option); };
  problem.weight = optional("weight", has_weight_);
  Job job;
  std::vector<int> const order = grouped() ? file_order(format, rank) : inputs.order_of("x");
  std::vector<int> const parameter_order = identity_order(parameter_rank),
                         statistic_order = grouped() ? identity_order(2) : order;
  if (backward) {
    problem.y = !grouped() || made ? inputs.at_or_like("dy", problem.x)
                                   : from_file(inputs.at("dy", {rank}, "of the rank of x"), format);
    problem.dx = result;
    problem.statistics = made ? statistic : inputs.at("inverse");
    if (!made && centered() && !(inputs.at("mean") == problem.statistics))
      throw Error(ErrorCode::bad_request, inputs.say("mean") + ", and " + inputs.say("inverse") +
                                              ": their shapes and types must be equal");
    TensorDescription const gradient =
        problem.weight.present() ? describe(problem.weight.type, problem.weight.shape()) : parameter;
    if (made ? problem.weight.present() : wants("out-weight")) problem.dweight = gradient;
    if (centered() && (made ? has_bias_ : wants("out-bias"))) problem.dbias = gradient;
    job.outputs = {{"dx", "out", order}};
    if (problem.dweight.present()) job.outputs.push_back({"dweight", "out-weight", parameter_order});
    if (problem.dbias.present()) job.outputs.push_back({"dbias", "out-bias", parameter_order});
  } else {
    if (centered()) problem.bias = optional("bias", has_bias_);
    problem.y = result;
    job.outputs = {{"y", "out", order}};
    if (made ? saves_ : wants("save-mean") || wants("save-inverse")) {
      problem.statistics = statistic;
      if (centered()) job.outputs.push_back({"saved_mean", "save-mean", statistic_order});
      job.outputs.push_back({"saved_inverse", "save-inverse", statistic_order});
    }
  }
  Notes const notes = notes_of(problem);
  job.task = make_task(std::move(problem), notes);
  return job;
}

// The errors of the elements of one problem, from the rounding errors of their sums. u: the unit roundoff of
// the sums. A sum of n terms has an error of up to k(n) u times the sum of their absolute values: at most one
// rounding per term, or six standard deviations of a random walk of roundings (as in judge.cpp).
class RowNormBounds {
 public:
  RowNormBounds(RowNormProblem const& problem, RowNormProblem::Arguments const& arguments)
      : given_(problem),
        problem_(in_rows(problem)),
        x_(problem_.x, arguments.x),
        dy_(problem_.y, arguments.dy),
        weight_(problem_.weight, arguments.weight),
        bias_(problem_.bias, arguments.bias),
        mean_(problem_.statistics, arguments.mean),
        inverse_(problem_.statistics, arguments.inverse),
        rows_(problem_.x.shape()),
        row_(rows_),
        parameters_(rows_),
        others_(rows_) {
    bool wide = false;
    RowNormProblem::visit_tensors(problem, [&](char const*, Role, TensorDescription const& tensor, auto) {
      wide = wide || tensor.type == DataType::f64 || tensor.type == DataType::s32;
    });
    unit_ = wide ? 2 * 0x1p-53 : 0x1p-24;  // the reference also rounds
    largest_ = wide ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
    for (int d = 0; d < rows_.rank; ++d) {
      (d < problem_.axis ? row_ : rows_)[d] = 1;
      (problem_.has_parameters_along(d) ? others_ : parameters_)[d] = 1;
    }
    count_ = static_cast<double>(row_.size());
  }

  std::vector<Tensor> operator()() {
    std::vector<Tensor> errors;
    RowNormProblem::visit_tensors(given_, [&](char const*, Role role, TensorDescription const& tensor, auto) {
      if (role == Role::input) return;
      errors.emplace_back(DataType::f64, tensor.shape());
      errors.back().fill(0);
    });
    bool const forward = problem_.direction == Direction::forward;
    reference::for_each_index(rows_, [&](Position const& row) {
      forward ? bound_forward(row, errors) : bound_gradient(row, errors.front());
    });
    std::size_t next = 1;
    if (!forward && problem_.dweight.present()) bound_sums(true, errors[next++]);
    if (!forward && problem_.dbias.present()) bound_sums(false, errors[next]);
    return errors;
  }

 private:
  using Position = reference::Position;

  static double k(double terms) { return std::min(terms + 8, 6 * std::sqrt(terms) + 8); }
  double sums_of(double terms) const { return k(terms) * unit_; }

  template <class Visit>
  void for_each_in_row(Position const& row, Visit const& visit) const {
    reference::for_each_index(row_, [&](Position at) {
      for (int d = 0; d < problem_.axis; ++d) at[d] = row[d];
      visit(static_cast<Position const&>(at));
    });
  }
  // Sets the error of the output element, in an array of this shape, that belongs to position `at` of x.
  static void set(Tensor& errors, Shape const& shape, Position const& at, double error) {
    Index place = 0;
    for (int d = 0; d < shape.rank; ++d) place = place * shape[d] + (shape[d] == 1 ? 0 : at[d]);
    if (!std::isnan(error)) errors.set(place, error);
  }
  double weight(Position const& at) const { return problem_.weight.present() ? weight_(at) : 1; }

  // The error of the mean is dm <= k u R, where R is the root mean square. A variance about such a mean,
  // combined from parts with such means, has the error dv <= k u V + 2 sqrt(V) dm + dm^2.
  void bound_forward(Position const& row, std::vector<Tensor>& errors) const {
    bool const centered = problem_.centered();
    double sum = 0, squares = 0, deviations = 0;
    for_each_in_row(row, [&](Position const& at) {
      sum += x_(at);
      squares += x_(at) * x_(at);
    });
    if (std::isnan(squares) || (std::isinf(squares) && largest_ < std::numeric_limits<double>::max()))
      return;  // x is not finite
    double const mean = centered ? sum / count_ : 0, root = std::sqrt(squares / count_);
    for_each_in_row(row, [&](Position const& at) { deviations += (x_(at) - mean) * (x_(at) - mean); });
    double const off = sums_of(count_), variance = deviations / count_;
    double const of_mean = centered ? off * root : 0;
    double const of_variance =
        off * variance + 2 * std::sqrt(variance) * of_mean + of_mean * of_mean + 0x1p-126;
    double const base = variance + problem_.epsilon, inverse = 1 / std::sqrt(base);
    double const largest = 1 / std::sqrt(std::max(0.0, base - of_variance)) * (1 + 4 * unit_);
    double const minimum = 1 / std::sqrt(base + of_variance) * (1 - 4 * unit_);
    double const of_inverse = std::max(largest - inverse, inverse - minimum);
    double const overflow = squares < largest_ / 4 ? 0 : std::numeric_limits<double>::infinity();
    for_each_in_row(row, [&](Position const& at) {
      double const d = std::fabs(x_(at) - mean), w = std::fabs(weight(at)),
                   bias = problem_.bias.present() ? std::fabs(bias_(at)) : 0;
      double const of_d = (1 + unit_) * of_mean + unit_ * d;
      // Regardless of the errors of mean and inverse, |u| is at most sqrt(n), like every normalized
      // deviation.
      double const of_u = std::min(of_d * largest + (d > 0 ? d * of_inverse : 0),
                                   centered || d > 0 ? std::sqrt(count_) * (1 + 8 * unit_) + d * inverse : 0);
      double const u = d * inverse + of_u;
      double const error = w * of_u + 4 * unit_ * (w * u + bias) + 0x1p-126 * (1 + w);
      set(errors[0], problem_.x.shape(), at, error + overflow);
    });
    if (!problem_.statistics.present()) return;
    if (centered) set(errors[1], rows_, row, of_mean + overflow);
    set(errors.back(), rows_, row, of_inverse + overflow);
  }

  // dx = inverse * (g - S - u * T) with the means S of g and T of g * u.
  void bound_gradient(Position const& row, Tensor& errors) const {
    double const mean = problem_.centered() ? mean_(row) : 0, inverse = inverse_(row);
    double sum = 0, sum_with_u = 0;
    auto const u_at = [&](Position const& at) { return std::fabs((x_(at) - mean) * inverse); };
    auto const g_at = [&](Position const& at) { return std::fabs(dy_(at) * weight(at)); };
    for_each_in_row(row, [&](Position const& at) {
      sum += problem_.centered() ? g_at(at) : 0;
      sum_with_u += g_at(at) * u_at(at);
    });
    double const off = sums_of(count_);
    for_each_in_row(row, [&](Position const& at) {
      double const g = g_at(at), s = sum / count_, t = u_at(at) * sum_with_u / count_;
      double const error = std::fabs(inverse) * (off * (s + t) + 8 * unit_ * (g + s + t)) +
                           0x1p-126 * (1 + std::fabs(inverse));
      bool const finite = std::isfinite(error), overflows = std::fabs(inverse) * (g + s + t) >= largest_ / 4;
      set(errors, problem_.x.shape(), at,
          finite && overflows ? std::numeric_limits<double>::infinity()
          : finite            ? error
                              : 0);
    });
  }

  void bound_sums(bool with_u, Tensor& errors) const {
    double const off = sums_of(static_cast<double>(others_.size()) + 4);
    reference::for_each_index(parameters_, [&](Position const& parameter) {
      double sum = 0;
      reference::for_each_index(others_, [&](Position at) {
        for (int d = 0; d < others_.rank; ++d) at[d] += parameter[d];
        double const mean = problem_.centered() && with_u ? mean_(at) : 0;
        sum += std::fabs(dy_(at) * (with_u ? (x_(at) - mean) * inverse_(at) : 1));
      });
      set(errors, parameters_, parameter, std::isfinite(sum) ? off * sum + 0x1p-126 : 0);
    });
  }

  RowNormProblem const& given_;
  RowNormProblem problem_;
  reference::Input x_, dy_, weight_, bias_, mean_, inverse_;
  Shape rows_, row_, parameters_, others_;
  double unit_ = 0, largest_ = 0, count_ = 1;
};

}  // namespace

template <>
Notes notes_of(RowNormProblem const& problem) {
  bool const backward = problem.direction == Direction::backward;
  Notes notes;
  bool const grouped = problem.mode == RowNormMode::group;
  RowNormProblem const rows = in_rows(problem);
  notes.label = std::string(backward ? "backward " : "forward ") + shape_text(problem.x.shape()) +
                (grouped ? " groups " + std::to_string(problem.groups) + " " + format_text(problem.x)
                         : " axis " + std::to_string(problem.axis));
  if (problem.weight.present()) notes.label += " weight";
  if (problem.bias.present() || problem.dbias.present()) notes.label += " bias";
  notes.terms = 1;
  for (Index const extent : extents_from(rows.x, rows.axis)) notes.terms *= extent;
  notes.operations = (backward ? 12.0 : 6.0) * static_cast<double>(problem.x.layout.size());
  notes.bounds = [](void const* of, void const* arguments) {
    return RowNormBounds(*static_cast<RowNormProblem const*>(of),
                         *static_cast<RowNormProblem::Arguments const*>(arguments))();
  };
  return notes;
}

template <>
Subjects subjects_of<RowNormProblem>() {
  return list_of(RowNorm(RowNormMode::layer), RowNorm(RowNormMode::rms), RowNorm(RowNormMode::group));
}

}  // namespace cosmati::cli
