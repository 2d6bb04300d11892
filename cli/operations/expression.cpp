// elementwise: from an expression and arrays to an ElementwiseProblem.
#include "cli/operations/notes.h"
#include "cli/operations/subject.h"
#include "cli/options/epilogue_options.h"
#include "cli/output/text.h"
#include "cosmati/ops/elementwise_expression.h"

namespace cosmati::cli {

namespace {

class Elementwise final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Elementwise>(*this); }
  std::string name() const override { return "elementwise"; }
  std::string about() const override { return "an expression of the elements of arrays, in one pass"; }
  std::string run_example() const override {
    return "--x X.npy --operand bias=b.npy --epilogue \"relu(acc + bias[c])\" --out Y.npy";
  }
  std::string size_example() const override {
    return "--size 8x16x14x14 --epilogue \"relu(acc * scale[c] + bias[c])\"";
  }
  void add_parameters(Options& options) override { add_epilogue_options(options, epilogue_); }
  std::vector<FileOption> files() const override {
    return {{"x", TypeRole::a, false,
             "acc of the expression; its indices are i; m, n; batch, m, n; n, c, h, w; or n, c, d, h, w by "
             "its rank"},
            {"out", TypeRole::a, true, "same shape as x"}};
  }
  bool has_epilogue() const override { return true; }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs;
    inputs.made_here = true;
    inputs.add("x", dense_shape(types.type_of(types.a, DataType::f32), size));
    return inputs;
  }
  std::vector<Index> draw(nets::Random& random) override {
    std::vector<Index> size;
    for (Index rank = draw_between(random, 1, 5); rank > 0; --rank)
      size.push_back(draw_between(random, 1, 13));
    if (epilogue_.expression.empty()) {
      std::vector<std::string> expressions{"relu(alpha * acc + 0.5)",
                                           "let t = acc * 2; store(pre, t); tanh(t)"};
      if (size.size() == 2)
        expressions = {"relu(acc * scale[n] + bias[m])",
                       "let t = acc + bias[n]; store(pre, t); gelu(t) + residual[m, n]"};
      if (size.size() >= 4)
        expressions = {"relu(acc * scale[c] + bias[c])", "leaky_relu(acc - mean[n, c], 0.125) + residual[w]"};
      epilogue_.expression = draw_from(random, expressions);
      epilogue_.settings = {"alpha=0.625"};
    }
    return size;
  }
  Job job(Inputs const& inputs, Common const& common) const override;
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<ElementwiseProblem>(backend);
  }

 private:
  EpilogueText epilogue_;
};

Job Elementwise::job(Inputs const& inputs, Common const& common) const {
  ElementwiseProblem problem;
  problem.x = inputs.at("x", {0, 1, 2, 3, 4, 5}, "an array of at most five dimensions");
  int const rank = problem.x.layout.rank();
  auto const letters = elementwise_indices(rank);
  EpilogueText text = epilogue_;
  if (text.expression.empty()) text.expression = "alpha * acc";
  BoundEpilogue epilogue(text, letters, inputs.made_here);
  if (epilogue.uses_source())
    throw Error(ErrorCode::bad_request,
                "--epilogue " + text.expression + ": c is not available; acc is the element of x");
  problem.y = {output_type(common.types, problem.x.type, problem.x.type, false), problem.x.layout};
  std::map<std::string, Index> extents;
  for (int d = 0; d < rank; ++d)
    extents[std::string(letters[static_cast<std::size_t>(d)])] = problem.x.extent(d);
  problem.epilogue = epilogue.complete(inputs, extents, problem.y);
  Notes const notes = notes_of(problem, epilogue);
  Job job;
  std::vector<int> const order = inputs.order_of("x");
  job.outputs.push_back({"y", "out", order});
  for (auto const& store : problem.epilogue.expression.stores())
    job.outputs.push_back({"store " + store.name, "store " + store.name, order});
  job.warnings = epilogue.warnings();
  job.task = make_task(std::move(problem), notes, {}, epilogue.scalars());
  return job;
}

}  // namespace

template <>
Subjects subjects_of<ElementwiseProblem>() {
  return list_of(Elementwise());
}

}  // namespace cosmati::cli
