// conv: from arrays of images and filters, or sizes, to a ConvolutionProblem.
#include <algorithm>
#include <map>
#include <span>

#include "cli/networks/image.h"
#include "cli/operations/convolution_draws.h"
#include "cli/operations/convolution_notes.h"
#include "cli/operations/subject.h"
#include "cli/options/epilogue_options.h"
#include "cli/output/text.h"
#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"

namespace cosmati::cli {
namespace {

class Convolution final : public Subject {
 public:
  std::unique_ptr<Subject> clone() const override { return std::make_unique<Convolution>(*this); }
  std::string name() const override { return "conv"; }
  std::string about() const override {
    return "convolution: forward, its gradients (data, filter, bias), transposed";
  }
  std::string run_example() const override {
    return "--x X.npy --w W.npy --direction forward --stride 2 --pad 1,1,1,1 --operand bias=b.npy "
           "--epilogue \"relu(acc + bias[k])\" --out Y.npy";
  }
  std::string size_example() const override { return "--size 2x3x17x17x8x5x5 --pad 2 --direction filter"; }

  void add_parameters(Options& options) override {
    options
        .text("--direction", direction_, "NAME",
              "forward, data, filter, transposed or bias (default: forward)")
        .text("--layout", layout_, "NAME",
              "layout of all files: nchw, nhwc or chwn; filters are KCRS, KRSC or CRSK")
        .text("--stride", window_.stride, "ROWS,COLUMNS",
              "in three dimensions PLANES,ROWS,COLUMNS, like the following (default: 1)")
        .text(
            "--pad", window_.pad, "T,B,L,R",
            "top,bottom,left,right (after front,back), or rows,columns, or one value, or same-upper, same-lower, "
            "valid (default: 0)")
        .text("--dilation", window_.dilation, "ROWS,COLUMNS", "(default: 1)")
        .integer("--groups", groups_, "(default: 1)")
        .text("--input-size", input_size_, "H,W", "size of dx, for --direction data")
        .text("--filter-size", filter_size_, "R,S", "size of the filter, for --direction filter")
        .text("--output-pad", output_pad_, "ROWS,COLUMNS",
              "for transposed, without --pad same-...: added to the smallest output (default: 0)")
        .text("--output-size", output_size_, "H,W", "for transposed: instead of --output-pad")
        .text("--algorithm", algorithm_, "NAME", "auto, or a kernel's name as for --kernel");
    add_epilogue_options(options, epilogue_);
  }

  std::vector<FileOption> files() const override {
    return {
        {"x", TypeRole::a, false,
         "(N,C,H,W); for transposed (N,K,P,Q); (N,H,W,C) with --layout nhwc; without H: in one dimension; "
         "(N,C,D,H,W) in three"},
        {"w", TypeRole::b, false,
         "(K,C/groups,R,S); for transposed, those of the convolution whose data gradient it is"},
        {"dy", TypeRole::a, false, "(N,K,P,Q), for data, filter and bias"},
        {"out", TypeRole::a, true, "y (N,K,P,Q), dx (N,C,H,W), dw (K,C/groups,R,S) or db (K)"},
        {"out-bias", TypeRole::a, true, "db (K), with --direction filter"}};
  }
  bool has_epilogue() const override { return true; }
  bool sums_products() const override { return true; }
  std::vector<std::string> letters() const override { return {"n", "c", "h", "w", "k", "r", "s", "d", "t"}; }
  std::size_t fewest_sizes() const override { return 7; }

  Inputs inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const override;
  std::vector<Index> draw(nets::Random& random) override;
  void draw_for(std::string const& kernel) override { drawn_for_ = kernel; }
  std::string kernel() const override { return algorithm_ == "auto" ? "" : algorithm_; }
  Job job(Inputs const& inputs, Common const& common) const override;
  std::vector<std::string> kernels(Backend backend) const override {
    return kernel_names<ConvolutionProblem>(backend);
  }

 private:
  std::string direction() const {
    return direction_.empty()
               ? "forward"
               : one_of(direction_, {"forward", "data", "filter", "transposed", "bias"}, "--direction");
  }
  TensorFormat format() const {
    return layout_.empty() ? TensorFormat::nchw : parse_format(layout_, "--layout");
  }
  // The number of spatial dimensions (1 to 3) of the array of option `name`.
  static int spatial_of(Inputs const& inputs, std::string const& name) {
    return inputs
               .at(name, {3, 4, 5},
                   "(N, C, H, W) in the order of --layout, without H in one dimension, or (N, C, D, H, W)")
               .layout.rank() -
           2;
  }
  // The array of option `name` as (n, c, h, w) or (n, c, d, h, w), or for a filter (k, c, r, s) or
  // (k, c, t, r, s).
  TensorDescription image(Inputs const& inputs, std::string const& name, int spatial) const {
    constexpr char const* meanings[] = {"of three dimensions, like the other arrays",
                                        "of four dimensions, like the other arrays",
                                        "of five dimensions, like the other arrays"};
    return with_two_spatial(from_file(inputs.at(name, {spatial + 2}, meanings[spatial - 1]), format()));
  }
  void set_transposed_extents(TensorDescription const& dy, SideNumbers const& filter, int spatial,
                              SideNumbers& input) const;
  // The extents of a problem from files and options; also sets the problem's inputs.
  struct Extents {
    Index n = 0, c = 0, k = 0;
    SideNumbers input = {1, 1, 1}, filter = {1, 1, 1};
  };
  Extents read_extents(Inputs const& inputs, int spatial, ConvolutionProblem& problem) const;
  void check_windows(Inputs const& inputs, ConvolutionProblem const& problem, Extents const& extents,
                     int spatial) const;
  void check_uses(std::string const& kind, bool made_here) const;
  void draw_epilogue(nets::Random& random);
  std::vector<Index> draw(ConvolutionDraws const& of_kernel, nets::Random& random);
  std::vector<Index> draw_volume(nets::Random& random);
  Job bias_job(Inputs const& inputs, Common const& common) const;
  void add_epilogue(Inputs const& inputs, TensorDescription const& result, std::vector<int> const& order,
                    ConvolutionProblem problem, Job& job) const;
  Notes notes(ConvolutionProblem const& problem) const {
    return convolution_notes(problem, direction(), name_of(format()), epilogue_.expression);
  }

  std::string direction_, layout_, input_size_, filter_size_, output_pad_, output_size_, algorithm_,
      drawn_for_;
  WindowText window_;
  long long groups_ = 1;
  EpilogueText epilogue_;
};

Inputs Convolution::inputs_of_size(std::vector<Index> const& size, TypeChoice const& types) const {
  Index const n = size[0], c = size[1], k = size[4];
  bool const deep = size.size() > 8 && (size[7] != 1 || size[8] != 1);
  int const spatial = deep ? 3 : 2;
  SideNumbers const input = {deep ? size[7] : 1, size[2], size[3]};
  SideNumbers const filter = {deep ? size[8] : 1, size[5], size[6]};
  if (groups_ < 1 || c % groups_ != 0 || k % groups_ != 0)
    throw Error(ErrorCode::bad_request, "--groups " + std::to_string(groups_) + " must divide c = " +
                                            std::to_string(c) + " and k = " + std::to_string(k));
  DataType const type = types.compute == "tf32" ? DataType::tf32 : DataType::f32;
  Window const window = read_window(window_, spatial, input, filter, {1, 1, 1});
  SideNumbers output = {1, 1, 1};
  for (int side = 3 - spatial; side < 3; ++side)
    output[side] = convolution_extent(input[side], filter[side], window.stride[side], window.pad_begin[side],
                                      window.pad_end[side], window.dilation[side]);
  auto const in_file = [&](DataType of, Index n0, Index c0, SideNumbers const& extents) {
    return reordered(dense_sides(of, format(), n0, c0, extents, spatial), file_order(format(), 2 + spatial));
  };
  Inputs inputs;
  inputs.made_here = true;
  inputs.add("x", in_file(types.type_of(types.a, type), n, c, input));
  inputs.add("w", in_file(types.type_of(types.b, type), k, c / groups_, filter));
  inputs.add("dy", in_file(types.type_of(types.a, type), n, k, output));
  return inputs;
}

namespace {

void open(std::string& text, std::string const& value) {
  if (text.empty()) text = value;
}

}  // namespace

std::vector<Index> Convolution::draw(nets::Random& random) {
  if (ConvolutionDraws const* const own = draws_for(drawn_for_)) return draw(*own, random);
  open(direction_, draw_from<std::string>(random, {"forward", "data", "filter", "transposed", "bias"}));
  open(layout_, draw_from<std::string>(random, {"nchw", "nchw", "nhwc", "chwn"}));
  bool const has_numbers = !(window_.stride.empty() && window_.dilation.empty() && window_.pad.empty());
  bool const volume = drawn_for_ == "depth_taps" || (drawn_for_.empty() && draw_between(random, 0, 3) == 0);
  if (!has_numbers && volume) return draw_volume(random);
  open(window_.stride, pair_text(draw_between(random, 1, 3), draw_between(random, 1, 3)));
  open(window_.dilation, draw_from<std::string>(random, {"1", "1", "1,2", "2"}));
  if (groups_ == 1) groups_ = draw_from<Index>(random, {1, 1, 1, 2, 3});
  Index const r = draw_between(random, 1, 5), s = draw_between(random, 1, 5);
  if (window_.pad.empty()) {
    for (Index const extent : {r, r, s, s}) {
      if (!window_.pad.empty()) window_.pad += ',';
      window_.pad += std::to_string(draw_between(random, 0, extent - 1));
    }
  }
  draw_epilogue(random);
  Index const c = groups_ * draw_between(random, 1, 9), k = groups_ * draw_between(random, 1, 12);
  return {draw_between(random, 1, 3), c, draw_between(random, 9, 19), draw_between(random, 9, 23), k, r, s};
}

void Convolution::draw_epilogue(nets::Random& random) {
  bool const epilogue = direction_ == "forward" || direction_ == "data" || direction_ == "transposed";
  if (epilogue && epilogue_.expression.empty())
    epilogue_.expression = draw_from<std::string>(
        random, {"acc", "acc + bias[k]", "relu(acc + bias[k])", "tanh(0.5*acc) + bias[k]"});
}

std::vector<Index> Convolution::draw(ConvolutionDraws const& of_kernel, nets::Random& random) {
  auto const number = [&](std::vector<Index> const& values) { return draw_from<Index>(random, values); };
  open(direction_, draw_from<std::string>(random, of_kernel.directions));
  open(layout_, draw_from<std::string>(random, of_kernel.layouts));
  Index const taps = number(of_kernel.taps);
  open(window_.stride, std::to_string(number(of_kernel.strides)));
  open(window_.dilation, std::to_string(number(of_kernel.dilations)));
  open(window_.pad, std::to_string(draw_between(random, 0, (taps - 1) / 2)));
  Index c = number(of_kernel.channels), k = number(of_kernel.filters);
  if (groups_ == 1) groups_ = number(of_kernel.groups);
  c *= groups_, k *= groups_;
  draw_epilogue(random);
  return {
      number(of_kernel.images), c, draw_between(random, 13, 19), draw_between(random, 13, 23), k, taps, taps};
}

std::vector<Index> Convolution::draw_volume(nets::Random& random) {
  auto const three = [&](Index low, Index high) {
    return std::to_string(draw_between(random, low, high)) + ',' +
           pair_text(draw_between(random, low, high), draw_between(random, low, high));
  };
  window_.stride = three(1, 2);
  window_.dilation = draw_from<std::string>(random, {"1", "1", "2,1,1", "2,1,2"});
  if (groups_ == 1) groups_ = draw_from<Index>(random, {1, 1, 2});
  Index const t = draw_between(random, 1, 4), r = draw_between(random, 1, 3), s = draw_between(random, 1, 3);
  for (Index const extent : {t, t, r, r, s, s}) {
    if (!window_.pad.empty()) window_.pad += ',';
    window_.pad += std::to_string(draw_between(random, 0, extent - 1));
  }
  draw_epilogue(random);
  Index const c = groups_ * draw_between(random, 1, 6), k = groups_ * draw_between(random, 1, 6);
  return {draw_between(random, 1, 3), c, draw_between(random, 5, 9), draw_between(random, 5, 9), k, r, s,
          draw_between(random, 7, 9), t};
}

// Rejects options without effect. If the program generates the data, the size has all extents, and the window
// determines the extents of dy in every direction.
void Convolution::check_uses(std::string const& kind, bool made_here) const {
  std::string const here =
      made_here ? "with a size, which determines all extents" : "with --direction " + kind;
  std::string const only = made_here ? "cosmati run conv --direction " : "--direction ";
  check_use(kind == "data" && !made_here, "--input-size", input_size_, here, only + "data");
  check_use(kind == "filter" && !made_here, "--filter-size", filter_size_, here, only + "filter");
  check_use(kind == "transposed" && !made_here, "--output-pad", output_pad_, here, only + "transposed");
  check_use(kind == "transposed" && !made_here, "--output-size", output_size_, here, only + "transposed");
  check_use(output_size_.empty(), "--output-pad", output_pad_, "with --output-size " + output_size_,
            "outputs whose size is not specified");
  check_use(!window_.pad.starts_with("same"), "--output-pad", output_pad_, "with --pad " + window_.pad,
            "numeric --pad; otherwise select the size with --output-size H,W");
  if (kind != "bias" || made_here) return;
  std::string const windows = "the directions in which a filter slides over an image";
  check_use(false, "--stride", window_.stride, here, windows);
  check_use(false, "--pad", window_.pad, here, windows);
  check_use(false, "--dilation", window_.dilation, here, windows);
  check_use(false, "--groups", groups_ == 1 ? "" : std::to_string(groups_), here, windows);
}

// The extents of dx: as requested, or the smallest that dy and the filter allow plus --output-pad.
void Convolution::set_transposed_extents(TensorDescription const& dy, SideNumbers const& filter, int spatial,
                                         SideNumbers& input) const {
  if (!output_size_.empty()) return read_sides(output_size_, "--output-size", spatial, 1, input);
  SideNumbers stride = {1, 1, 1}, extra = {0, 0, 0}, output = {1, 1, 1};
  read_sides(window_.stride, "--stride", spatial, 1, stride);
  read_sides(output_pad_, "--output-pad", spatial, 0, extra);
  cli::read_extents(dy, output);
  for (int d = 0; d < 3; ++d) input[d] = output[d] * stride[d];
  if (window_.pad.starts_with("same")) return;
  Window const window = read_window(window_, spatial, input, filter, {1, 1, 1});
  for (int d = 0; d < 3; ++d)
    input[d] = (output[d] - 1) * window.stride[d] + window.dilation[d] * (filter[d] - 1) + 1 + extra[d] -
               window.pad_begin[d] - window.pad_end[d];
}

Convolution::Extents Convolution::read_extents(Inputs const& inputs, int spatial,
                                               ConvolutionProblem& problem) const {
  std::string const kind = direction();
  bool const forward = kind == "forward", filter_gradient = kind == "filter";
  Extents e;
  if (!filter_gradient) {
    problem.w = image(inputs, "w", spatial);
    e.k = problem.w.extent(0);
    e.c = problem.w.extent(1) * groups_;
    cli::read_extents(problem.w, e.filter);
  }
  if (!forward) {
    problem.y = image(inputs, kind == "transposed" && !inputs.made_here ? "x" : "dy", spatial);
    e.n = problem.y.extent(0);
    e.k = problem.y.extent(1);
  }
  if (forward || filter_gradient || inputs.made_here) {
    problem.x = image(inputs, "x", spatial);
    e.n = problem.x.extent(0);
    e.c = problem.x.extent(1);
    cli::read_extents(problem.x, e.input);
  } else if (kind == "transposed") {
    set_transposed_extents(problem.y, e.filter, spatial, e.input);
  } else {
    if (input_size_.empty())
      throw Error(ErrorCode::bad_request, "--direction data requires --input-size H,W, the extents of dx");
    read_sides(input_size_, "--input-size", spatial, 1, e.input);
  }
  if (filter_gradient && inputs.made_here) {
    cli::read_extents(image(inputs, "w", spatial), e.filter);
  } else if (filter_gradient) {
    if (filter_size_.empty())
      throw Error(ErrorCode::bad_request, "--direction filter requires --filter-size R,S, the extents of dw");
    read_sides(filter_size_, "--filter-size", spatial, 1, e.filter);
  }
  return e;
}

// Checks that dy has as many positions as windows fit into dx; the message names the options that set the
// extents of dx.
void Convolution::check_windows(Inputs const& inputs, ConvolutionProblem const& problem,
                                Extents const& extents, int spatial) const {
  bool const data = direction() == "data", same = window_.pad.starts_with("same");
  std::string const dy = data ? "dy" : "x";
  if (problem.w.extent(0) != extents.k)
    throw Error(ErrorCode::bad_request, inputs.say("w") + ", has " + std::to_string(problem.w.extent(0)) +
                                            " filters, but " + inputs.say(dy) + ", has " +
                                            std::to_string(extents.k) + " channels; they must be equal");
  std::string const given = data                    ? "--input-size " + input_size_
                            : !output_size_.empty() ? "--output-size " + output_size_
                            : !output_pad_.empty()  ? "--output-pad " + output_pad_
                                                    : "--pad " + window_.pad;
  Window const window = read_window(window_, spatial, extents.input, extents.filter, {1, 1, 1});
  SideNumbers output = {1, 1, 1};
  cli::read_extents(problem.y, output);
  for (int d = 3 - spatial; d < 3; ++d) {
    Index const stride = window.stride[d], pads = window.pad_begin[d] + window.pad_end[d];
    Index const positions = output[d], span = window.dilation[d] * (extents.filter[d] - 1) + 1;
    Index const size = extents.input[d];
    if (size >= 0 && positions >= 1 &&
        convolution_extent(size, extents.filter[d], stride, window.pad_begin[d], window.pad_end[d],
                           window.dilation[d]) == positions)
      continue;
    Index const smallest = (positions - 1) * stride + (same ? 1 : span - pads);
    std::string const lines = side_lines[d], reach = std::to_string(smallest + stride - 1);
    std::string legal = "no size is valid: --pad " + window_.pad + " removes all of it";
    if (smallest >= 0) legal = "valid values: " + std::to_string(smallest);
    if (smallest < 0 && smallest + stride - 1 >= 0) legal = "valid values: 0";
    if (smallest + stride - 1 > std::max<Index>(smallest, 0)) legal += " to " + reach;
    if (smallest >= 0 && given.starts_with("--output-pad")) {
      legal = "valid values: an --output-pad of 0";
      if (stride > 1) legal += " to " + std::to_string(stride - 1) + ", below the stride";
    }
    throw Error(ErrorCode::bad_request, given + ": " + std::to_string(size) + lines + " do not match " +
                                            inputs.say(dy) + ": " + std::to_string(positions) + lines +
                                            " with a window of " + std::to_string(span) + " and stride " +
                                            std::to_string(stride) + "; " + legal);
  }
}

Job Convolution::bias_job(Inputs const& inputs, Common const& common) const {
  ConvolutionProblem problem;
  problem.direction = ConvolutionDirection::bias;
  problem.y = image(inputs, "dy", spatial_of(inputs, "dy"));
  DataType const type = output_type(common.types, problem.y.type, problem.y.type, true);
  problem.db = describe(type, Shape(problem.y.extent(1)));
  Job job;
  job.outputs.push_back({"db", "out", {0}});
  job.task = make_task(problem, notes(problem));
  return job;
}

void Convolution::add_epilogue(Inputs const& inputs, TensorDescription const& result,
                               std::vector<int> const& order, ConvolutionProblem problem, Job& job) const {
  std::span<std::string_view const> const letters = epilogue_indices(problem);
  BoundEpilogue epilogue(epilogue_, letters, inputs.made_here);
  std::map<std::string, Index> extents;
  for (std::size_t i = 0; i < letters.size(); ++i)
    extents[std::string(letters[i])] = result.extent(static_cast<int>(i));
  problem.epilogue = epilogue.complete(inputs, extents, result);
  for (auto const& store : problem.epilogue.expression.stores())
    job.outputs.push_back({"store " + store.name, "store " + store.name, order});
  job.warnings = epilogue.warnings();
  Notes what = notes(problem);
  what.exact = epilogue.exact();
  what.transcendental = !what.exact;
  what.slope = epilogue.slope();
  job.task = make_task(std::move(problem), std::move(what), {}, epilogue.scalars());
}

Job Convolution::job(Inputs const& inputs, Common const& common) const {
  std::string const kind = direction();
  bool const forward = kind == "forward", filter_gradient = kind == "filter", bias = kind == "bias";
  if ((filter_gradient || bias) && !(epilogue_.expression.empty() && epilogue_.settings.empty()))
    throw Error(ErrorCode::bad_request,
                "--direction " + kind + " does not support an epilogue; forward, data and transposed do");
  if (groups_ < 1)
    throw Error(ErrorCode::bad_request,
                "--groups " + std::to_string(groups_) + " is invalid; it must be at least 1");
  check_uses(kind, inputs.made_here);
  if (bias) return bias_job(inputs, common);
  bool const renamed = kind == "transposed" && !inputs.made_here;  // --x holds what the problem calls y
  std::string const first_input = forward || filter_gradient || renamed ? "x" : "dy";
  int const spatial = spatial_of(inputs, first_input);

  ConvolutionProblem problem;
  problem.groups = groups_;
  Extents const e = read_extents(inputs, spatial, problem);
  Window const window = read_window(window_, spatial, e.input, e.filter, {1, 1, 1});
  copy_window(window, spatial, problem);
  if (!forward && !filter_gradient && !inputs.made_here) check_windows(inputs, problem, e, spatial);
  DataType const first = forward || filter_gradient ? problem.x.type : problem.y.type;
  DataType const second = filter_gradient ? problem.y.type : problem.w.type;
  check_accumulator(common.types, first, second);
  DataType const type = output_type(common.types, first, second, true);

  Job job;
  std::vector<int> const order = image_file_order(format(), spatial);
  if (filter_gradient) {
    problem.direction = ConvolutionDirection::filter;
    problem.w = dense_sides(type, format(), e.k, e.c / groups_, e.filter, spatial);
    if (inputs.made_here || inputs.wanted.contains("out-bias")) problem.db = describe(type, Shape(e.k));
    job.outputs = {{"dw", "out", order}, {"db", "out-bias", {0}}};
    job.task = make_task(problem, notes(problem));
  } else if (forward) {
    SideNumbers output = {1, 1, 1};
    for (int d = 3 - spatial; d < 3; ++d)
      output[d] = convolution_extent(e.input[d], e.filter[d], window.stride[d], window.pad_begin[d],
                                     window.pad_end[d], window.dilation[d]);
    problem.y = dense_sides(type, format(), e.n, e.k, output, spatial);
    job.outputs.push_back({"y", "out", order});
    add_epilogue(inputs, problem.y, order, problem, job);
  } else {
    problem.direction = ConvolutionDirection::data;
    problem.x = dense_sides(type, format(), e.n, e.c, e.input, spatial);
    if (renamed) job.input_options["dy"] = "x";
    job.outputs.push_back({"dx", "out", order});
    add_epilogue(inputs, problem.x, order, problem, job);
  }
  return job;
}

}  // namespace

template <>
Subjects subjects_of<ConvolutionProblem>() {
  return list_of(Convolution());
}

}  // namespace cosmati::cli
