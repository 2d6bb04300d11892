// sgd and adam: one step of an optimizer on arrays.
#include "cosmati/ops/optimizer.h"

#include "cli/operations/notes.h"
#include "cli/operations/subject.h"

namespace cosmati::cli {

namespace {

class Optimizer final : public Subject {
 public:
  explicit Optimizer(OptimizerKind kind) : adam_(kind == OptimizerKind::adam) {
    problem_.kind = kind;
    arguments_.rate = adam_ ? 1e-3 : 1e-2;
  }
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Optimizer>(*this); }
  std::string name() const override { return adam_ ? "adam" : "sgd"; }
  std::string about() const override {
    return adam_ ? "one step of Adam" : "one step of gradient descent with momentum and weight decay";
  }
  std::string run_example() const override {
    std::string const files = "--parameter P.npy --gradient G.npy ";
    return files +
           (adam_ ? "--first M.npy --second V.npy --rate 0.001 --step 3 --out P1.npy --out-first M1.npy "
                    "--out-second V1.npy"
                  : "--velocity V.npy --rate 0.01 --momentum 0.9 --out P1.npy --out-velocity V1.npy");
  }
  std::string size_example() const override {
    return adam_ ? "--size 1000 --step 3" : "--size 1000 --momentum 0.9";
  }

  void add_parameters(Options& options) override {
    options.number("--rate", arguments_.rate, adam_ ? "(default: 0.001)" : "(default: 0.01)")
        .number("--weight-decay", problem_.weight_decay,
                "times the parameter, added to the gradient (default: 0)");
    if (adam_) {
      options.number("--beta1", problem_.beta1, "(default: 0.9)")
          .number("--beta2", problem_.beta2, "(default: 0.999)")
          .number("--epsilon", problem_.epsilon, "(default: 1e-8)")
          .integer("--step", arguments_.step, "counted from 1 (default: 1)");
    } else {
      options.number("--momentum", problem_.momentum, "(default: 0)")
          .flag("--nesterov", problem_.nesterov, "Nesterov's momentum");
    }
  }
  std::vector<FileOption> files() const override {
    std::vector<FileOption> list{{"parameter", TypeRole::a, false, "any shape"},
                                 {"gradient", TypeRole::b, false, "same shape as the parameter"},
                                 {"out", TypeRole::a, true, "the parameter after the step", "parameter"}};
    std::vector<std::string> const states =
        adam_ ? std::vector<std::string>{"first", "second"} : std::vector<std::string>{"velocity"};
    for (auto const& state : states) {
      list.push_back({state, TypeRole::operand, false, "state before the step (default: zeros)"});
      list.push_back({"out-" + state, TypeRole::a, true, "state after the step", state});
    }
    return list;
  }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs;
    inputs.made_here = true;
    inputs.add("parameter", dense_shape(types.type_of(types.a, DataType::f32), size));
    inputs.add("gradient", dense_shape(types.type_of(types.b, DataType::f32), size));
    return inputs;
  }
  std::vector<Index> draw(nets::Random& random) override {
    if (!adam_ && problem_.momentum == 0 && draw_between(random, 0, 1) == 1) {
      problem_.momentum = 0.9;
      problem_.nesterov = draw_between(random, 0, 1) == 1;
    }
    if (problem_.weight_decay == 0) problem_.weight_decay = draw_from<double>(random, {0, 5e-4});
    return {draw_between(random, 1, 17), draw_between(random, 1, 65)};
  }

  Job job(Inputs const& inputs, Common const& common) const override {
    if (!common.types.d.empty())
      throw Error(ErrorCode::bad_request,
                  "--d-type " + common.types.d + ": parameters keep their type; remove --d-type");
    if (arguments_.step < 1)
      throw Error(ErrorCode::bad_request,
                  "--step " + std::to_string(arguments_.step) + ": steps are counted from 1");
    OptimizerProblem problem = problem_;
    problem.parameter = inputs.at("parameter");
    problem.gradient = inputs.at_like("gradient", "parameter");
    std::string const state = adam_ ? "first" : "velocity";
    if (inputs.has(state))
      problem.state = inputs.at_like(state, "parameter");
    else if (adam_ && inputs.has("second"))
      problem.state = inputs.at_like("second", "parameter");
    else if (adam_ || problem.momentum != 0)
      problem.state = problem.parameter;
    if (inputs.has("first") && inputs.has("second") && !(inputs.at("first") == inputs.at("second")))
      throw Error(ErrorCode::bad_request, inputs.say("first") + ", and " + inputs.say("second") +
                                              ": both moments must be of one type, shape and order");
    auto const order = inputs.order_of("parameter");
    Job job;
    job.outputs = {{"parameter", "out", order}, {"velocity", "out-" + state, order}};
    if (adam_) job.outputs.push_back({"second", "out-second", order});
    job.input_options["velocity"] = state;
    Notes const notes = notes_of(problem);
    job.task = make_task(std::move(problem), notes, arguments_);
    return job;
  }
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<OptimizerProblem>(backend);
  }

 private:
  bool adam_;
  OptimizerProblem problem_;
  OptimizerProblem::Arguments arguments_;
};

}  // namespace

template <>
Subjects subjects_of<OptimizerProblem>() {
  return list_of(Optimizer(OptimizerKind::sgd), Optimizer(OptimizerKind::adam));
}

}  // namespace cosmati::cli
