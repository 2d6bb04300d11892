// batchnorm and lrn: from arrays of images to problems.
#include "cosmati/ops/normalization.h"

#include "cli/networks/image.h"
#include "cli/operations/notes.h"
#include "cli/operations/subject.h"
#include "cli/output/text.h"

namespace cosmati::cli {

namespace {

// The arrays that batch normalization reads besides x and dy.
std::vector<std::string> parameters_of(BatchNormProblem const& problem) {
  switch (problem.mode) {
    case BatchNormMode::inference: return {"scale", "bias", "mean", "variance"};
    case BatchNormMode::training: return {"scale", "bias"};
    case BatchNormMode::backward: break;
  }
  if (problem.has_activation()) return {"scale", "bias", "mean", "variance"};
  return {"scale", "mean", "variance"};
}

// Scale, bias, mean and variance, inputs and outputs alike, have one type, chosen so that none is rounded:
// the 16-bit type of x if all have it, else f64 if one of them or x is f64, else f32.
DataType statistics_type(Inputs const& inputs, BatchNormProblem const& problem) {
  DataType const x = problem.x.type;
  bool all_as_x = size_of(x) == 2, wide = x == DataType::f64;
  int given = 0;
  for (std::string const& name : parameters_of(problem))
    if (inputs.has(name)) {
      DataType const type = inputs.at(name).type;
      all_as_x = all_as_x && type == x;
      wide = wide || type == DataType::f64;
      ++given;
    }
  if (given > 0 && all_as_x) return x;
  return wide ? DataType::f64 : DataType::f32;
}

class BatchNorm final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<BatchNorm>(*this); }
  std::string name() const override { return "batchnorm"; }
  std::string about() const override { return "batch normalization: inference, training, backward"; }
  std::string run_example() const override {
    return "--x X.npy --scale S.npy --bias B.npy --training --save-mean M.npy --save-variance V.npy --out "
           "Y.npy";
  }
  std::string size_example() const override { return "--size 8x3x17x17 --training"; }

  void add_parameters(Options& options) override {
    options.text("--direction", direction_, "NAME", "forward or backward (default: forward)")
        .flag("--training", training_, "normalize by the mean and variance of the batch, and return them")
        .number("--epsilon", epsilon_, "added to the variance (default: 1e-5)")
        .number("--slope", slope_,
                "factor of negative values in an activation after it; 0: relu, 1: no activation (default: 1)")
        .text("--layout", layout_, "NAME", "nchw, nhwc or chwn: memory layout (default: nchw)");
  }
  std::vector<FileOption> files() const override {
    return {
        {"x", TypeRole::a, false, "(N,C,...) of two to five dimensions"},
        {"dy", TypeRole::a, false, "same shape as x, for backward"},
        {"scale", TypeRole::operand, false, "(C)"},
        {"bias", TypeRole::operand, false, "(C); for backward only with --slope"},
        {"mean", TypeRole::operand, false, "(C); for backward, what training saved"},
        {"variance", TypeRole::operand, false, "(C), of the population; for backward, what training saved"},
        {"out", TypeRole::a, true, "y, or dx"},
        {"save-mean", TypeRole::a, true, "(C), with --training"},
        {"save-variance", TypeRole::a, true, "(C), of the population, with --training"},
        {"out-scale", TypeRole::a, true, "gradient of scale, for backward"},
        {"out-bias", TypeRole::a, true, "gradient of bias, for backward"}};
  }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs;
    inputs.made_here = true;
    inputs.add("x", made_image(size, types.type_of(types.a, DataType::f32), format_of(layout_)));
    return inputs;
  }
  std::size_t fewest_sizes() const override { return 2; }
  std::vector<Index> draw(nets::Random& random) override {
    if (layout_.empty()) layout_ = draw_from<std::string>(random, {"nchw", "nhwc", "chwn"});
    if (direction_.empty() && !training_) {
      Index const mode = draw_between(random, 0, 2);
      direction_ = mode == 2 ? "backward" : "forward";
      training_ = mode == 1;
    }
    std::vector<Index> size{draw_between(random, 8, 16), draw_between(random, 1, 19)};
    for (Index spatial = draw_between(random, 0, 3); spatial > 0; --spatial)
      size.push_back(draw_between(random, 1, 9));
    return size;
  }

  Job job(Inputs const& inputs, Common const& common) const override {
    TensorFormat const format = format_of(layout_);
    BatchNormProblem problem;
    problem.epsilon = epsilon_;
    problem.slope = slope_;
    problem.x = from_file(inputs.at("x", {2, 3, 4, 5}, "(N, C, ...) of two to five dimensions"), format);
    DataType const parameter = problem.x.type == DataType::f64 ? DataType::f64 : DataType::f32;
    TensorDescription const made = describe(parameter, Shape(problem.x.extent(1)));
    bool const backward = is_backward(direction_);
    if (backward && training_)
      throw Error(ErrorCode::bad_request,
                  "--training and --direction backward are mutually exclusive: backward is the "
                  "gradient of training");
    problem.mode = backward    ? BatchNormMode::backward
                   : training_ ? BatchNormMode::training
                               : BatchNormMode::inference;
    problem.statistics = inputs.made_here ? made : inputs.at("scale", {1}, "(C)");
    problem.statistics.type = statistics_type(inputs, problem);
    for (std::string const& name : parameters_of(problem))
      if (inputs.has(name) && !(inputs.shape(name) == problem.statistics.shape()))
        throw Error(ErrorCode::bad_request,
                    inputs.say(name) + ", and " + inputs.say("scale") + ": their shapes must be equal, (C)");
    TensorDescription const result{output_type(common.types, problem.x.type, problem.x.type, false),
                                   problem.x.layout};
    Job job;
    auto const order = file_order(format, problem.x.layout.rank());
    if (backward) {
      problem.y = inputs.made_here
                      ? problem.x
                      : from_file(inputs.at("dy", {problem.x.layout.rank()}, "of the rank of x"), format);
      problem.dx = result;
      job.outputs = {{"dx", "out", order}, {"dscale", "out-scale", {0}}, {"dbias", "out-bias", {0}}};
    } else {
      problem.y = result;
      job.outputs = {
          {"y", "out", order}, {"saved_mean", "save-mean", {0}}, {"saved_variance", "save-variance", {0}}};
      if (!training_) job.outputs.resize(1);
    }
    Notes const notes = notes_of(problem, name_of(format));
    job.task = make_task(std::move(problem), notes);
    return job;
  }
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<BatchNormProblem>(backend);
  }

 private:
  std::string direction_, layout_;
  bool training_ = false;
  double epsilon_ = 1e-5, slope_ = 1;
};

class Lrn final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Lrn>(*this); }
  std::string name() const override { return "lrn"; }
  std::string about() const override { return "local response normalization across channels"; }
  std::string run_example() const override {
    return "--x X.npy --size 5 --alpha 1e-4 --beta 0.75 --k 1 --out Y.npy";
  }
  std::string size_example() const override { return "--shape 2x17x9x9 --size 5"; }

  void add_parameters(Options& options) override {
    options.text("--direction", direction_, "NAME", "forward or backward (default: forward)")
        .integer("--size", size_, "channels in a window (default: 5)")
        .number("--alpha", alpha_, "divided by the size, as ONNX does (default: 1e-4)")
        .number("--beta", beta_, "exponent (default: 0.75)")
        .number("--k", k_, "added to the mean square (default: 1)")
        .text("--layout", layout_, "NAME", "nchw, nhwc or chwn: memory layout (default: nchw)");
  }
  std::vector<FileOption> files() const override {
    return {{"x", TypeRole::a, false, "(N,C,...)"},
            {"dy", TypeRole::a, false, "same shape as x, for backward"},
            {"out", TypeRole::a, true, "y, or dx"}};
  }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs;
    inputs.made_here = true;
    inputs.add("x", made_image(size, types.type_of(types.a, DataType::f32), format_of(layout_)));
    return inputs;
  }
  std::size_t fewest_sizes() const override { return 2; }
  std::vector<Index> draw(nets::Random& random) override {
    if (layout_.empty()) layout_ = draw_from<std::string>(random, {"nchw", "nhwc", "chwn"});
    if (direction_.empty()) direction_ = draw_from<std::string>(random, {"forward", "backward"});
    if (size_ == 5) size_ = draw_between(random, 1, 7);
    return {draw_between(random, 1, 3), draw_between(random, 1, 19), draw_between(random, 1, 9),
            draw_between(random, 1, 9)};
  }

  Job job(Inputs const& inputs, Common const& common) const override {
    TensorFormat const format = format_of(layout_);
    LrnProblem problem;
    problem.size = size_;
    problem.alpha = alpha_;
    problem.beta = beta_;
    problem.k = k_;
    problem.x = from_file(inputs.at("x", {2, 3, 4, 5, 6}, "(N, C, ...)"), format);
    TensorDescription const result{output_type(common.types, problem.x.type, problem.x.type, false),
                                   problem.x.layout};
    bool const backward = is_backward(direction_);
    if (backward) {
      problem.direction = Direction::backward;
      problem.y = inputs.made_here
                      ? problem.x
                      : from_file(inputs.at("dy", {problem.x.layout.rank()}, "of the rank of x"), format);
      problem.dx = result;
    } else {
      problem.y = result;
    }
    Job job;
    job.outputs.push_back({backward ? "dx" : "y", "out", file_order(format, problem.x.layout.rank())});
    Notes const notes = notes_of(problem, name_of(format));
    job.task = make_task(std::move(problem), notes);
    return job;
  }
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<LrnProblem>(backend);
  }

 private:
  std::string direction_, layout_;
  long long size_ = 5;
  double alpha_ = 1e-4, beta_ = 0.75, k_ = 1;
};

}  // namespace

template <>
Subjects subjects_of<BatchNormProblem>() {
  return list_of(BatchNorm());
}
template <>
Subjects subjects_of<LrnProblem>() {
  return list_of(Lrn());
}

}  // namespace cosmati::cli
