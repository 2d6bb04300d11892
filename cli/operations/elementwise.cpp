// dropout, transform, reduce and add: from arrays to problems.
#include "cosmati/ops/elementwise.h"

#include <cmath>

#include "cli/networks/image.h"
#include "cli/operations/notes.h"
#include "cli/operations/subject.h"
#include "cli/output/text.h"

namespace cosmati::cli {

namespace {

Inputs made_array(char const* name, std::vector<Index> const& size, TypeChoice const& types) {
  Inputs inputs;
  inputs.made_here = true;
  inputs.add(name, dense_shape(types.type_of(types.a, DataType::f32), size));
  return inputs;
}

std::vector<Index> draw_shape(nets::Random& random, Index min_rank, Index max_rank, Index longest) {
  std::vector<Index> size;
  for (Index rank = draw_between(random, min_rank, max_rank); rank > 0; --rank)
    size.push_back(draw_between(random, 1, longest));
  return size;
}

class Dropout final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Dropout>(*this); }
  std::string name() const override { return "dropout"; }
  std::string about() const override { return "zeroes random elements and scales the rest"; }
  std::string run_example() const override { return "--x X.npy --probability 0.5 --seed 7 --out Y.npy"; }
  std::string size_example() const override { return "--size 64x1000 --probability 0.1"; }
  void add_parameters(Options& options) override {
    options.number("--probability", probability_, "probability that an element becomes 0 (default: 0.5)")
        .integer("--step", step_, "training step; each step has its own mask (default: 0)")
        .text("--direction", direction_, "NAME", "forward, or backward: the same mask on dy");
  }
  std::vector<FileOption> files() const override {
    return {{"x", TypeRole::a, false, "any shape"},
            {"dy", TypeRole::a, false, "for backward, instead of x"},
            {"out", TypeRole::a, true, "y, or dx"}};
  }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    return made_array("x", size, types);
  }
  std::vector<Index> draw(nets::Random& random) override { return draw_shape(random, 1, 4, 13); }
  Job job(Inputs const& inputs, Common const& common) const override {
    bool const backward = is_backward(direction_) && !inputs.made_here;
    DropoutProblem problem;
    std::string const input = backward ? "dy" : "x";
    problem.x = inputs.at(input);
    problem.y = {output_type(common.types, problem.x.type, problem.x.type, false), problem.x.layout};
    problem.probability = probability_;
    problem.seed = static_cast<unsigned long long>(common.seed);
    Notes const notes = notes_of(problem);
    Job job;
    job.outputs.push_back({"y", "out", inputs.order_of(input)});
    if (backward) job.input_options["x"] = "dy";
    DropoutProblem::Arguments arguments;
    if (step_ < 0)
      throw Error(ErrorCode::bad_request,
                  "--step " + std::to_string(step_) + " is negative; it must be at least 0");
    arguments.step = static_cast<unsigned long long>(step_);
    job.task = make_task(std::move(problem), notes, arguments);
    return job;
  }
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<DropoutProblem>(backend);
  }

 private:
  double probability_ = 0.5;
  long long step_ = 0;
  std::string direction_;
};

class Transform final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Transform>(*this); }
  std::string name() const override { return "transform"; }
  std::string about() const override { return "permutes the axes of images, or converts their type"; }
  std::string run_example() const override { return "--x X.npy --from nchw --to nhwc --out Y.npy"; }
  std::string size_example() const override { return "--size 8x3x17x19 --from nchw --to chwn"; }
  void add_parameters(Options& options) override {
    options.text("--from", from_, "NAME", "nchw, nhwc or chwn (default: nchw)")
        .text("--to", to_, "NAME", "nchw, nhwc or chwn (default: nchw)");
  }
  std::vector<FileOption> files() const override {
    return {{"x", TypeRole::a, false, "images in the layout --from; without H: in one dimension"},
            {"out", TypeRole::a, true, "the same images in the layout --to, of type --d-type"}};
  }
  std::vector<std::string> letters() const override { return {"n", "c", "h", "w"}; }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    TensorFormat const format = from();
    Inputs inputs;
    inputs.made_here = true;
    auto const x =
        dense_image(types.type_of(types.a, DataType::f32), format, size[0], size[1], size[2], size[3]);
    inputs.add("x", reordered(x, file_order(format, 4)));
    return inputs;
  }
  std::vector<Index> draw(nets::Random& random) override {
    if (from_.empty()) from_ = draw_from<std::string>(random, {"nchw", "nhwc", "chwn"});
    if (to_.empty()) to_ = draw_from<std::string>(random, {"nchw", "nhwc", "chwn"});
    return draw_shape(random, 4, 4, 17);
  }
  Job job(Inputs const& inputs, Common const& common) const override {
    TensorFormat const to = to_.empty() ? TensorFormat::nchw : parse_format(to_, "--to");
    TensorDescription const& file = inputs.at("x", {3, 4}, "images of four dimensions, or three without H");
    TransformProblem problem;
    problem.x = with_two_spatial(from_file(file, from()));
    problem.y =
        dense_image(output_type(common.types, problem.x.type, problem.x.type, false), to, problem.x.extent(0),
                    problem.x.extent(1), problem.x.extent(2), problem.x.extent(3));
    Notes const notes = notes_of(problem, name_of(from()), name_of(to));
    Job job;
    job.outputs.push_back({"y", "out", image_file_order(to, file.layout.rank() - 2)});
    job.task = make_task(std::move(problem), notes);
    return job;
  }
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<TransformProblem>(backend);
  }

 private:
  TensorFormat from() const { return from_.empty() ? TensorFormat::nchw : parse_format(from_, "--from"); }
  std::string from_, to_;
};

class Reduce final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Reduce>(*this); }
  std::string name() const override { return "reduce"; }
  std::string about() const override { return "sum, mean, maximum, minimum or sum of squares over axes"; }
  std::string run_example() const override { return "--x X.npy --axes 0,2,3 --operation mean --out Y.npy"; }
  std::string size_example() const override { return "--size 8x3x17x17 --axes 0,2,3 --operation sum"; }
  void add_parameters(Options& options) override {
    options.text("--axes", axes_, "AXIS,...", "negative: counted from the last (default: all)")
        .text("--operation", operation_, "NAME", "sum, mean, max, min or sum-of-squares (default: sum)")
        .flag("--keep-axes", keep_axes_, "keep reduced axes in the result, with extent 1");
  }
  std::vector<FileOption> files() const override {
    return {{"x", TypeRole::a, false, "any shape"},
            {"out", TypeRole::a, true, "shape of x without the reduced axes"}};
  }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    return made_array("x", size, types);
  }
  std::vector<Index> draw(nets::Random& random) override {
    auto const size = draw_shape(random, 1, 5, 17);
    if (operation_.empty())
      operation_ = draw_from<std::string>(random, {"sum", "mean", "max", "min", "sum-of-squares"});
    if (axes_.empty())
      for (std::size_t d = 0; d < size.size(); ++d)
        if (draw_between(random, 0, 1) == 1) axes_ += (axes_.empty() ? "" : ",") + std::to_string(d);
    return size;
  }
  Job job(Inputs const& inputs, Common const& common) const override;
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<ReduceProblem>(backend);
  }

 private:
  std::string axes_, operation_;
  bool keep_axes_ = false;
};

Job Reduce::job(Inputs const& inputs, Common const& common) const {
  ReduceProblem problem;
  if (!operation_.empty())
    problem.operation = parse_reduce_operation(
        one_of(operation_, {"sum", "mean", "max", "min", "sum-of-squares"}, "--operation"));
  problem.x = inputs.at("x");
  Shape shape = problem.x.shape();
  std::vector<bool> reduced(static_cast<std::size_t>(shape.rank), axes_.empty());
  if (!axes_.empty())
    for (Index axis : parse_indices(axes_, "--axes")) {
      if (axis < -shape.rank || axis >= shape.rank)
        throw Error(ErrorCode::bad_request, "--axes " + axes_ + ": " + inputs.say("x") + ", has axes " +
                                                std::to_string(-shape.rank) + " to " +
                                                std::to_string(shape.rank - 1));
      reduced[static_cast<std::size_t>(axis < 0 ? axis + shape.rank : axis)] = true;
    }
  std::vector<int> kept;
  for (int d = 0; d < shape.rank; ++d) {
    bool const gone = reduced[static_cast<std::size_t>(d)];
    if (gone) shape[d] = 1;
    if (!gone || keep_axes_) kept.push_back(d);
  }
  if (inputs.shape("x").rank == 0) kept.clear();
  bool const sum = problem.operation != ReduceOperation::max && problem.operation != ReduceOperation::min;
  problem.y = describe(output_type(common.types, problem.x.type, problem.x.type, sum), shape);
  Notes const notes = notes_of(problem);
  Job job;
  job.outputs.push_back({"y", "out", kept});
  job.task = make_task(std::move(problem), notes);
  return job;
}

class Add final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Add>(*this); }
  std::string name() const override { return "add"; }
  std::string about() const override { return "alpha*a + beta*b, or alpha*a"; }
  std::string run_example() const override { return "--a A.npy --b B.npy --alpha 2 --beta -1 --out Y.npy"; }
  std::string size_example() const override { return "--size 64x1000 --alpha 0.5"; }
  void add_parameters(Options& options) override {
    options.number("--alpha", alpha_, "(default: 1)").number("--beta", beta_, "(default: 1)");
  }
  std::vector<FileOption> files() const override {
    return {{"a", TypeRole::a, false, "any shape"},
            {"b", TypeRole::b, false, "same shape as a; without it alpha*a is computed"},
            {"out", TypeRole::a, true, "same shape as a"}};
  }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs = made_array("a", size, types);
    inputs.add("b", dense_shape(types.type_of(types.b, DataType::f32), size));
    return inputs;
  }
  std::vector<Index> draw(nets::Random& random) override { return draw_shape(random, 1, 4, 17); }
  Job job(Inputs const& inputs, Common const& common) const override {
    AddProblem problem;
    check_use(inputs.has("b"), "--beta", std::isnan(beta_) ? "" : std::to_string(beta_), "without --b FILE",
              "alpha*a + beta*b");
    double const beta = std::isnan(beta_) ? 1 : beta_;
    problem.a = inputs.at("a");
    if (inputs.has("b")) problem.b = inputs.at_like("b", "a");
    problem.alpha = alpha_;
    problem.beta = beta;
    DataType const second = problem.b.present() ? problem.b.type : problem.a.type;
    problem.y = {output_type(common.types, problem.a.type, second, false), problem.a.layout};
    Notes const notes = notes_of(problem);
    Job job;
    job.outputs.push_back({"y", "out", inputs.order_of("a")});
    job.task = make_task(std::move(problem), notes);
    return job;
  }
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<AddProblem>(backend);
  }

 private:
  double alpha_ = 1, beta_ = std::nan("");  // NaN: not given
};

}  // namespace

template <>
Subjects subjects_of<DropoutProblem>() {
  return list_of(Dropout());
}
template <>
Subjects subjects_of<TransformProblem>() {
  return list_of(Transform());
}
template <>
Subjects subjects_of<ReduceProblem>() {
  return list_of(Reduce());
}
template <>
Subjects subjects_of<AddProblem>() {
  return list_of(Add());
}

}  // namespace cosmati::cli
