// softmax, cross-entropy and rbf: from arrays of scores to problems.
#include "cosmati/ops/softmax.h"

#include <cmath>

#include "cli/operations/notes.h"
#include "cli/operations/subject.h"
#include "cli/output/text.h"

namespace cosmati::cli {

namespace {

class Softmax final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Softmax>(*this); }
  std::string name() const override { return "softmax"; }
  std::string about() const override { return "softmax or its logarithm along an axis"; }
  std::string run_example() const override { return "--x X.npy --axis -1 --log --out Y.npy"; }
  std::string size_example() const override { return "--size 64x1000 --axis 1"; }

  void add_parameters(Options& options) override {
    options.integer("--axis", axis_, "negative: counted from the last (default: -1)")
        .flag("--log", logarithm_, "the logarithm of softmax")
        .text("--direction", direction_, "NAME", "forward or backward (default: forward)");
  }
  std::vector<FileOption> files() const override {
    return {{"x", TypeRole::a, false, "any shape; for backward, instead of y"},
            {"y", TypeRole::a, false, "the forward result, for backward"},
            {"dy", TypeRole::a, false, "same shape as y, for backward"},
            {"out", TypeRole::a, true, "y, or dx"}};
  }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs;
    inputs.made_here = true;
    auto const array = dense_shape(types.type_of(types.a, DataType::f32), size);
    for (char const* name : {"x", "y", "dy"}) inputs.add(name, array);
    return inputs;
  }
  std::vector<Index> draw(nets::Random& random) override {
    if (direction_.empty()) direction_ = draw_from<std::string>(random, {"forward", "backward"});
    logarithm_ = logarithm_ || draw_between(random, 0, 1) == 1;
    std::vector<Index> size;
    for (Index rank = draw_between(random, 1, 4); rank > 0; --rank)
      size.push_back(draw_between(random, 1, 19));
    if (axis_ == -1) axis_ = draw_between(random, 0, static_cast<Index>(size.size()) - 1);
    return size;
  }

  Job job(Inputs const& inputs, Common const& common) const override {
    bool const backward = is_backward(direction_);
    bool const forward_first = backward && !inputs.has("y");
    std::string const input = backward && !forward_first ? "y" : "x";
    TensorDescription const& given = inputs.at(input);
    int const rank = given.layout.rank();
    if (axis_ < -rank || axis_ >= rank)
      throw Error(ErrorCode::bad_request, "--axis " + std::to_string(axis_) + ": " + inputs.say(input) +
                                              ", has axes " + std::to_string(-rank) + " to " +
                                              std::to_string(rank - 1));
    TensorDescription const result{output_type(common.types, given.type, given.type, false), given.layout};
    SoftmaxProblem problem;
    problem.logarithm = logarithm_;
    problem.axis = static_cast<int>(axis_ < 0 ? axis_ + rank : axis_);
    Job job;
    job.outputs.push_back({backward ? "dx" : "y", "out", inputs.order_of(input)});
    problem.x = forward_first ? given : result;
    problem.y = result;
    if (!backward) problem.x = given;
    if (forward_first) {
      job.before = make_task(problem, notes_of(problem));
      job.before_output = "y";
      problem.x = result;
    }
    if (backward) {
      problem.direction = Direction::backward;
      if (!forward_first) problem.y = given;
      problem.dy = inputs.at_like("dy", input);
    }
    Notes const notes = notes_of(problem);
    job.task = make_task(std::move(problem), notes);
    return job;
  }
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<SoftmaxProblem>(backend);
  }

 private:
  long long axis_ = -1;
  bool logarithm_ = false;
  std::string direction_;
};

class CrossEntropy final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<CrossEntropy>(*this); }
  std::string name() const override { return "cross-entropy"; }
  std::string about() const override { return "mean cross-entropy of softmax, and its gradient"; }
  std::string run_example() const override { return "--x LOGITS.npy --labels LABELS.npy --out LOSS.npy"; }
  std::string size_example() const override { return "--n 64 --classes 10 --direction backward"; }

  void add_parameters(Options& options) override {
    options.text("--direction", direction_, "NAME", "forward or backward (default: forward)");
  }
  std::vector<FileOption> files() const override {
    return {{"x", TypeRole::a, false, "logits (N, classes)"},
            {"labels", TypeRole::labels, false, "(N) integers from 0"},
            {"out", TypeRole::a, true, "the mean loss, a scalar; backward: dx (N, classes)"}};
  }
  std::vector<std::string> letters() const override { return {"n", "classes"}; }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs;
    inputs.made_here = true;
    inputs.add("x", dense_shape(types.type_of(types.a, DataType::f32), size));
    inputs.add("labels", dense_shape(DataType::s32, {size[0]}));
    return inputs;
  }
  std::vector<Index> draw(nets::Random& random) override {
    if (direction_.empty()) direction_ = draw_from<std::string>(random, {"forward", "backward"});
    return {draw_between(random, 1, 65), draw_between(random, 1, 31)};
  }
  Job job(Inputs const& inputs, Common const& common) const override {
    CrossEntropyProblem problem;
    problem.x = inputs.at("x", {2}, "(N, classes)");
    problem.labels = inputs.at("labels", {1}, "(N)");
    DataType const type = output_type(common.types, problem.x.type, problem.x.type, false);
    Job job;
    bool const backward = is_backward(direction_);
    if (backward) {
      problem.direction = Direction::backward;
      problem.dx = {type, problem.x.layout};
      job.outputs.push_back({"dx", "out", {0, 1}});
    } else {
      problem.loss = describe(type, Shape(1));
      job.outputs.push_back({"loss", "out", {}});
    }
    Notes const notes = notes_of(problem);
    job.task = make_task(std::move(problem), notes);
    return job;
  }
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<CrossEntropyProblem>(backend);
  }

 private:
  std::string direction_;
};

class Rbf final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Rbf>(*this); }
  std::string name() const override { return "rbf"; }
  std::string about() const override {
    return "Gaussian output units: squared distances, their loss, its gradients";
  }
  std::string run_example() const override {
    return "--x X.npy --centres CENTRES.npy --labels LABELS.npy --rubbish 1 --out LOSS.npy";
  }
  std::string size_example() const override { return "--n 64 --features 84 --classes 10"; }

  void add_parameters(Options& options) override {
    options.text("--direction", direction_, "NAME", "forward or backward (default: forward)")
        .number("--rubbish", rubbish_,
                "the constant j of the loss d[label] + log(exp(-j) + sum of exp(-d)); the default, inf, "
                "omits it");
  }
  std::vector<FileOption> files() const override {
    return {{"x", TypeRole::a, false, "(N, F)"},
            {"centres", TypeRole::b, false, "(classes, F)"},
            {"labels", TypeRole::labels, false, "(N) integers from 0; with them the loss is computed"},
            {"dy", TypeRole::a, false, "gradient of the distances (N, classes), for backward without labels"},
            {"out", TypeRole::a, true, "distances (N, classes), or the loss; backward: dx (N, F)"},
            {"out-distances", TypeRole::a, true, "distances where --out is the loss"},
            {"out-centres", TypeRole::a, true, "gradient of the centres, for backward"}};
  }
  std::vector<std::string> letters() const override { return {"n", "features", "classes"}; }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs;
    inputs.made_here = true;
    inputs.add("x", dense_shape(types.type_of(types.a, DataType::f32), {size[0], size[1]}));
    inputs.add("centres", dense_shape(types.type_of(types.b, DataType::f32), {size[2], size[1]}));
    if (labeled_) inputs.add("labels", dense_shape(DataType::s32, {size[0]}));
    return inputs;
  }
  std::vector<Index> draw(nets::Random& random) override {
    if (direction_.empty()) direction_ = draw_from<std::string>(random, {"forward", "backward"});
    labeled_ = draw_between(random, 0, 1) == 1;
    return {draw_between(random, 1, 33), draw_between(random, 1, 85), draw_between(random, 1, 13)};
  }
  Job job(Inputs const& inputs, Common const& common) const override;
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<RbfProblem>(backend);
  }

 private:
  std::string direction_;
  double rubbish_ = __builtin_huge_val();
  bool labeled_ = true;
};

Job Rbf::job(Inputs const& inputs, Common const& common) const {
  RbfProblem problem;
  problem.rubbish = rubbish_;
  problem.x = inputs.at("x", {2}, "(N, F)");
  problem.centres = inputs.at("centres", {2}, "(classes, F)");
  check_use(inputs.has("labels"), "--rubbish", std::isfinite(rubbish_) ? std::to_string(rubbish_) : "",
            "without --labels FILE", "the loss");
  bool const labeled = inputs.has("labels"), backward = is_backward(direction_);
  if (labeled) problem.labels = inputs.at("labels", {1}, "(N)");
  DataType const type = output_type(common.types, problem.x.type, problem.centres.type, false);
  auto const distances = describe(type, Shape(problem.x.extent(0), problem.centres.extent(0)));
  auto const wants = [&](char const* option) { return inputs.made_here || inputs.wanted.contains(option); };
  Job job;
  if (backward) {
    problem.direction = Direction::backward;
    if (!labeled) {
      problem.distances = inputs.at_or_like("dy", distances);
      job.input_options["ddistances"] = "dy";
    }
    if (wants("out-centres")) problem.dcentres = describe(type, problem.centres.shape());
    job.outputs = {{"dx", "out", {0, 1}}, {"dcentres", "out-centres", {0, 1}}};
  } else {
    if (!labeled || wants("out-distances")) problem.distances = distances;
    job.outputs.push_back({"distances", labeled ? "out-distances" : "out", {0, 1}});
    if (labeled) {
      problem.loss = describe(type, Shape(1));
      job.outputs.push_back({"loss", "out", {}});
    }
  }
  Notes const notes = notes_of(problem);
  job.task = make_task(std::move(problem), notes);
  return job;
}

}  // namespace

template <>
Subjects subjects_of<SoftmaxProblem>() {
  return list_of(Softmax());
}
template <>
Subjects subjects_of<CrossEntropyProblem>() {
  return list_of(CrossEntropy());
}
template <>
Subjects subjects_of<RbfProblem>() {
  return list_of(Rbf());
}

}  // namespace cosmati::cli
