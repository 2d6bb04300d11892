// activation: from an array of any shape to an ActivationProblem.
#include "cosmati/ops/activation.h"

#include <cmath>

#include "cli/operations/notes.h"
#include "cli/operations/subject.h"
#include "cli/output/text.h"

namespace cosmati::cli {

namespace {

std::vector<std::string> function_names() {
  std::vector<std::string> names;
  for (int i = 0; i < activation_function_count; ++i)
    names.emplace_back(name_of(static_cast<ActivationFunction>(i)));
  return names;
}

class Activation final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Activation>(*this); }
  std::string name() const override { return "activation"; }
  std::string about() const override { return "relu, sigmoid, tanh and similar, element by element"; }
  std::string run_example() const override {
    return "--x X.npy --dy DY.npy --direction backward --function leaky_relu --alpha 0.2 --out DX.npy";
  }
  std::string size_example() const override { return "--size 64x1000 --function gelu"; }

  void add_parameters(Options& options) override {
    options.text("--function", function_, "NAME", join(function_names(), ", "))
        .text("--direction", direction_, "NAME", "forward or backward (default: forward)")
        .number("--alpha", alpha_,
                "slope of leaky_relu (0.01), scale of elu (1), alpha of alpha*tanh(beta*x) (1.7159)")
        .number("--beta", beta_, "beta of scaled_tanh (2/3)");
  }
  std::vector<FileOption> files() const override {
    return {{"x", TypeRole::a, false, "any shape"},
            {"dy", TypeRole::a, false,
             "same shape as x, for backward; at 0, the slope of relu is 0, that of leaky_relu and elu alpha"},
            {"out", TypeRole::a, true, "y, or dx"}};
  }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs;
    inputs.made_here = true;
    inputs.add("x", dense_shape(types.type_of(types.a, DataType::f32), size));
    return inputs;
  }
  std::vector<Index> draw(nets::Random& random) override {
    if (function_.empty()) function_ = draw_from(random, function_names());
    if (direction_.empty()) direction_ = draw_from<std::string>(random, {"forward", "backward"});
    return {draw_between(random, 1, 5), draw_between(random, 1, 33), draw_between(random, 1, 65)};
  }

  Job job(Inputs const& inputs, Common const& common) const override {
    if (function_.empty())
      throw Error(ErrorCode::bad_request,
                  "missing required option --function NAME; valid values: " + join(function_names(), ", "));
    ActivationProblem problem;
    problem.function = parse_activation_function(one_of(function_, function_names(), "--function"));
    problem.alpha = std::isnan(alpha_) ? default_alpha(problem.function) : alpha_;
    problem.beta = std::isnan(beta_) ? default_beta(problem.function) : beta_;
    check_parameters(problem.function);
    problem.x = inputs.at("x");
    TensorDescription const result{output_type(common.types, problem.x.type, problem.x.type, false),
                                   problem.x.layout};
    Job job;
    bool const backward = is_backward(direction_);
    if (backward) {
      problem.direction = Direction::backward;
      problem.y = inputs.at_or_like("dy", "x");
      problem.dx = result;
    } else {
      problem.y = result;
    }
    job.outputs.push_back({backward ? "dx" : "y", "out", inputs.order_of("x")});
    Notes const notes = notes_of(problem);
    job.task = make_task(std::move(problem), notes);
    return job;
  }
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<ActivationProblem>(backend);
  }

 private:
  void check_parameters(ActivationFunction function) const {
    auto const given = [](double value) { return std::isnan(value) ? "" : std::to_string(value); };
    std::string const here = "with --function " + function_;
    check_use(default_alpha(function) != 0, "--alpha", given(alpha_), here,
              "leaky_relu, elu and scaled_tanh");
    check_use(default_beta(function) != 0, "--beta", given(beta_), here, "scaled_tanh");
  }

  std::string function_, direction_;
  double alpha_ = std::nan(""), beta_ = std::nan("");  // NaN: the default of the function
};

}  // namespace

template <>
Subjects subjects_of<ActivationProblem>() {
  return list_of(Activation());
}

}  // namespace cosmati::cli
