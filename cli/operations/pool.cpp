// pool: from arrays of images, or sizes, to a PoolingProblem.
#include "cosmati/ops/pooling.h"

#include "cli/networks/image.h"
#include "cli/operations/notes.h"
#include "cli/operations/subject.h"
#include "cli/output/text.h"

namespace cosmati::cli {

namespace {

class Pool final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Pool>(*this); }
  std::string name() const override { return "pool"; }
  std::string about() const override { return "maximum or average over the windows of an image"; }
  std::string run_example() const override {
    return "--x X.npy --mode max --window 3 --stride 2 --pad 1 --ceil --indices I.npy --out Y.npy";
  }
  std::string size_example() const override {
    return "--size 2x3x17x17 --mode average --window 3 --stride 2";
  }

  void add_parameters(Options& options) override {
    options.text("--direction", direction_, "NAME", "forward or backward (default: forward)")
        .text("--mode", mode_, "NAME",
              "max, average (over the elements inside the image) or average-with-padding (default: max)")
        .text("--layout", layout_, "NAME", "layout of all files: nchw, nhwc or chwn (default: nchw)")
        .text("--window", size_, "ROWS,COLUMNS",
              "in three dimensions PLANES,ROWS,COLUMNS, like the following (default: 2)")
        .text("--stride", window_.stride, "ROWS,COLUMNS", "(default: the window)")
        .text(
            "--pad", window_.pad, "T,B,L,R",
            "top,bottom,left,right (after front,back), or rows,columns, or one value, or same-upper, same-lower, "
            "valid (default: 0)")
        .text("--dilation", window_.dilation, "ROWS,COLUMNS", "(default: 1)")
        .flag("--ceil", ceil_,
              "round the number of windows up instead of down; for backward, the extents of dy must match")
        .text("--storage-order", storage_order_, "NAME",
              "how --indices counts within a plane: row (along its rows) or column (default: row)");
  }
  std::vector<FileOption> files() const override {
    return {{"x", TypeRole::a, false,
             "(N,C,H,W); (N,H,W,C) with --layout nhwc; without H: in one dimension; (N,C,D,H,W) in three"},
            {"dy", TypeRole::a, false, "(N,C,P,Q), for backward"},
            {"out", TypeRole::a, true, "y (N,C,P,Q), or dx"},
            {"indices", TypeRole::a, true,
             "int64 index of each maximum in x, in the order (N,C,H,W), as in ONNX"}};
  }
  std::vector<std::string> letters() const override { return {"n", "c", "h", "w", "d"}; }
  std::size_t fewest_sizes() const override { return 4; }
  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override {
    Inputs inputs;
    inputs.made_here = true;
    SideNumbers const extents = {size.size() > 4 ? size[4] : 1, size[2], size[3]};
    int const spatial = extents[0] == 1 ? 2 : 3;
    auto const x =
        dense_sides(types.type_of(types.a, DataType::f32), format(), size[0], size[1], extents, spatial);
    inputs.add("x", reordered(x, file_order(format(), 2 + spatial)));
    return inputs;
  }
  std::vector<Index> draw(nets::Random& random) override;
  Job job(Inputs const& inputs, Common const& common) const override;
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<PoolingProblem>(backend);
  }

 private:
  void check_uses(PoolingProblem const& problem, Inputs const& inputs) const;
  TensorFormat format() const {
    return layout_.empty() ? TensorFormat::nchw : parse_format(layout_, "--layout");
  }

  std::string direction_, mode_, layout_, size_;
  WindowText window_;
  std::string storage_order_;  // empty: row-major
  bool ceil_ = false;
};

std::vector<Index> Pool::draw(nets::Random& random) {
  auto const open = [](std::string& text, std::string const& value) {
    if (text.empty()) text = value;
  };
  open(direction_, draw_from<std::string>(random, {"forward", "forward", "backward"}));
  open(mode_, draw_from<std::string>(random, {"max", "average", "average-with-padding"}));
  open(layout_, draw_from<std::string>(random, {"nchw", "nhwc", "chwn"}));
  bool const has_numbers = !(size_.empty() && window_.stride.empty() && window_.pad.empty());
  if (!has_numbers && draw_between(random, 0, 3) == 0) {  // a volume
    size_ = draw_from<std::string>(random, {"2", "3", "3,2,2", "1,3,2"});
    window_.stride = draw_from<std::string>(random, {"1", "2", "2,1,1", "1,2,2"});
    bool const flat = size_.starts_with('1');
    window_.pad = flat ? draw_from<std::string>(random, {"0", "0,0,1,0,0,1"})
                       : draw_from<std::string>(random, {"0", "0,1,0,0,0,1", "1,0,0,1,0,0", "same-upper"});
    open(window_.dilation, draw_from<std::string>(random, {"1", "1", "2"}));
    ceil_ = ceil_ || draw_between(random, 0, 1) == 1;
    return {draw_between(random, 1, 3), draw_between(random, 1, 9), draw_between(random, 7, 11),
            draw_between(random, 7, 11), draw_between(random, 5, 9)};
  }
  open(size_, draw_from<std::string>(random, {"2", "3", "2,3", "3,2"}));
  open(window_.stride, draw_from<std::string>(random, {"1", "2", "3", "2,1"}));
  open(window_.pad, draw_from<std::string>(random, {"0", "0", "1", "1,0,0,1", "same-upper"}));
  open(window_.dilation, draw_from<std::string>(random, {"1", "1", "2"}));
  ceil_ = ceil_ || (window_.stride != "3" && draw_between(random, 0, 1) == 1);
  return {draw_between(random, 1, 3), draw_between(random, 1, 17), draw_between(random, 7, 19),
          draw_between(random, 7, 19)};
}

void Pool::check_uses(PoolingProblem const& problem, Inputs const& inputs) const {
  bool const backward = problem.direction == Direction::backward;
  bool const indices = inputs.wanted.contains("indices");
  if (!storage_order_.empty()) one_of(storage_order_, {"row", "column"}, "--storage-order");
  std::string const here =
      backward ? "with --direction backward" : "with --mode " + std::string(name_of(problem.mode));
  check_use(!backward && problem.mode == PoolingMode::max, "--indices", indices ? "FILE" : "", here,
            "--direction forward with --mode max");
  check_use(indices || inputs.made_here, "--storage-order", storage_order_,
            backward ? here : "without --indices FILE", "how indices are counted");
}

Job Pool::job(Inputs const& inputs, Common const& common) const {
  PoolingProblem problem;
  if (is_backward(direction_)) problem.direction = Direction::backward;
  if (!mode_.empty())
    problem.mode = parse_pooling_mode(one_of(mode_, {"max", "average", "average-with-padding"}, "--mode"));
  check_uses(problem, inputs);
  TensorDescription const& file =
      inputs.at("x", {3, 4, 5}, "(N, C, H, W), without H in one dimension, or (N, C, D, H, W)");
  int const spatial = file.layout.rank() - 2;
  problem.x = with_two_spatial(from_file(file, format()));
  SideNumbers size = {2, 2, 2}, input = {1, 1, 1};
  if (spatial < 3) size[0] = 1;
  if (spatial == 1) size[1] = 1;
  read_sides(size_, "--window", spatial, 1, size);
  read_extents(problem.x, input);
  Window const window = read_window(window_, spatial, input, size, size);
  copy_window(window, spatial, problem);
  for (int d = 0; d < 2; ++d) problem.window[d] = size[1 + d];
  problem.depth.window = size[0];
  auto const extent = [&](int side) {
    return pooling_extent(input[side], size[side], window.stride[side], window.pad_begin[side],
                          window.pad_end[side], window.dilation[side], ceil_);
  };
  DataType const type = output_type(common.types, problem.x.type, problem.x.type, false);
  auto const image = [&](DataType of) {
    SideNumbers const extents = {spatial == 3 ? extent(0) : 1, extent(1), extent(2)};
    return dense_sides(of, format(), problem.x.extent(0), problem.x.extent(1), extents, spatial);
  };

  Job job;
  auto const order = image_file_order(format(), spatial);
  bool const backward = problem.direction == Direction::backward;
  if (backward) {
    problem.y =
        inputs.made_here
            ? image(problem.x.type)
            : with_two_spatial(from_file(inputs.at("dy", {spatial + 2}, "of the rank of x"), format()));
    int const rank = problem.y.layout.rank();
    for (int side = first_side(rank); side < 3; ++side)
      if (Index const given = problem.y.extent(side_dimension(side, rank)); ceil_ && given != extent(side))
        throw Error(ErrorCode::bad_request, inputs.say("dy") + ", has " + std::to_string(given) +
                                                side_lines[side] + " of windows; with --ceil " +
                                                inputs.say("x") + ", has " + std::to_string(extent(side)));
    if (problem.backward_needs_x() && type != problem.x.type)
      throw Error(ErrorCode::bad_request, "--d-type " + common.types.d +
                                              ": the gradient of a maximum is of x's type, " +
                                              name_of(problem.x.type));
    problem.x.type = inputs.made_here ? problem.x.type : type;
    job.outputs.push_back({"dx", "out", order});
  } else {
    problem.y = image(type);
    job.outputs.push_back({"y", "out", order});
    // Only the reference computes indices for volumes.
    bool const checked = inputs.made_here && problem.mode == PoolingMode::max && spatial < 3;
    if (inputs.wanted.contains("indices") || checked) {
      problem.indices = image(DataType::s32);
      bool const down_columns = storage_order_ == "column";
      if (down_columns && spatial == 3)
        throw Error(ErrorCode::bad_request,
                    "--storage-order column counts within planes; indices of volumes count along rows");
      job.outputs.push_back(
          {"indices", "indices", order, input[0] * input[1] * input[2], down_columns ? input[1] : 0});
    }
  }
  Notes const notes = notes_of(problem, name_of(format()));
  job.task = make_task(std::move(problem), notes);
  return job;
}

}  // namespace

template <>
Subjects subjects_of<PoolingProblem>() {
  return list_of(Pool());
}

}  // namespace cosmati::cli
