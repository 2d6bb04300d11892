// Merges tensor dimensions, and maps the epilogue's indices.
#include "src/plan/conv/plain_gemm.h"

#include <fmt/format.h>

#include <utility>

#include "src/plan/conv/choice.h"
#include "src/plan/conv/runs.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// The position of the image index in the product.
enum class Images { around_pixels, inside_pixels, in_batch };

// Merges rows and columns, and possibly images, into one index; dimension -1 means that there is none.
std::optional<Run> pixels_of(TensorDescription const& tensor, int image, int row, int column, Images images) {
  std::optional<Run> pixels = joined(run_of(tensor, row), run_of(tensor, column));
  if (pixels && images == Images::around_pixels) pixels = joined(run_of(tensor, image), *pixels);
  if (pixels && images == Images::inside_pixels) pixels = joined(*pixels, run_of(tensor, image));
  return pixels;
}

class Translation {
 public:
  Translation(Problem const& problem, Images images) : problem_(problem), images_(images) {}

  // Returns false if the pixels of a tensor have no common stride.
  bool translate(PlainGemm& made) const {
    Index const groups = problem_.groups, filters = problem_.w.extent(0) / groups,
                channels = problem_.w.extent(1);
    auto const x = pixels_of(problem_.x, 0, 2, 3, images_), y = pixels_of(problem_.y, 0, 2, 3, images_);
    if (!x || !y) return false;
    bool const in_batch = images_ == Images::in_batch;
    // (group or image, pixel, channel)
    auto const image = [&](TensorDescription const& tensor, Run const& pixels, Index of_group) {
      Run const channel{of_group, tensor.layout.stride[1]};
      Run const batch = in_batch ? run_of(tensor, 0) : Run{groups, channel.stride * of_group};
      return matrix(tensor, batch, pixels, channel);
    };
    Index const batch = in_batch ? problem_.x.extent(0) : groups;
    Run const k{filters, problem_.w.layout.stride[0]}, c{channels, problem_.w.layout.stride[1]};
    Run const of_filter{batch, in_batch ? 0 : k.stride * filters};
    TensorDescription const of_x = image(problem_.x, *x, channels), of_y = image(problem_.y, *y, filters);
    GemmProblem& gemm = made.problem;
    switch (problem_.direction) {
      case ConvolutionDirection::forward:
        gemm.a = of_x, gemm.b = matrix(problem_.w, of_filter, c, k), gemm.d = of_y;
        break;
      case ConvolutionDirection::data:
        gemm.a = of_y, gemm.b = matrix(problem_.w, of_filter, k, c), gemm.d = of_x;
        break;
      default:
        gemm.a = of_y;
        gemm.a.layout = of_y.layout.permuted(0, 2, 1);
        gemm.b = of_x;
        gemm.d = in_batch ? describe(accumulator_type(of_y.type, of_x.type), Shape(batch, filters, channels))
                          : matrix(problem_.w, of_filter, k, c);
    }
    return translate_epilogue(made);
  }

 private:
  bool translate_epilogue(PlainGemm& made) const {
    Epilogue const& from = problem_.epilogue;
    Epilogue& to = made.problem.epilogue;
    to = {};
    auto contents = std::make_shared<epilogue::Expression::Contents>();
    contents->text = from.expression.text();
    contents->nodes = from.expression.nodes();
    contents->scalars = from.expression.scalars();
    contents->operands = from.expression.operands();
    contents->stores = from.expression.stores();
    contents->result = from.expression.result();
    contents->source_column = from.expression.source_column();
    for (std::size_t i = 0; i < from.operands.size(); ++i) {
      TensorDescription operand = from.operands[i];
      if (!translate(contents->operands[i].indices, operand)) {
        made.refusal = fmt::format("epilogue operand '{}' has indices that a matrix does not have",
                                   contents->operands[i].name);
        return true;
      }
      to.operands.push_back(operand);
    }
    for (TensorDescription const& store : from.stores) {
      auto const pixels = pixels_of(store, 0, 2, 3, images_);
      if (!pixels) return false;
      Index const of_group = made.problem.d.extent(2);
      Run const channel{of_group, store.layout.stride[1]};
      Run const batch =
          images_ == Images::in_batch ? run_of(store, 0) : Run{problem_.groups, channel.stride * of_group};
      to.stores.push_back(matrix(store, batch, pixels.value(), channel));
    }
    to.expression = epilogue::Expression(std::move(contents));
    return true;
  }

  bool translate(std::vector<std::string>& indices, TensorDescription& operand) const {
    int at[4] = {-1, -1, -1, -1};
    for (std::size_t d = 0; d < indices.size(); ++d)
      for (int letter = 0; letter < 4; ++letter)
        if (indices[d] == std::string(1, "nkpq"[letter])) {
          if (at[letter] >= 0) return false;
          at[letter] = static_cast<int>(d);
        }
    std::vector<std::pair<char const*, Run>> found;
    if (at[1] >= 0) {
      Run const all = run_of(operand, at[1]);
      if (images_ == Images::in_batch || problem_.groups == 1) {
        found.emplace_back("n", all);
      } else {
        Index const of_group = all.extent / problem_.groups;
        found.emplace_back("batch", Run{problem_.groups, all.stride * of_group});
        found.emplace_back("n", Run{of_group, all.stride});
      }
    }
    bool const rows = at[2] >= 0, columns = at[3] >= 0;
    bool const by_image = images_ == Images::in_batch;
    if (rows != columns || (!by_image && (at[0] >= 0) != rows)) return false;
    if (rows) {
      auto const pixels = pixels_of(operand, at[0], at[2], at[3], images_);
      if (!pixels) return false;
      found.emplace_back("m", *pixels);
    }
    if (by_image && at[0] >= 0) found.emplace_back("batch", run_of(operand, at[0]));
    indices.clear();
    operand.layout = {};
    operand.layout.shape.rank = static_cast<int>(found.size());
    for (std::size_t d = 0; d < found.size(); ++d) {
      indices.emplace_back(found[d].first);
      operand.layout.shape.extent[d] = found[d].second.extent;
      operand.layout.stride[d] = found[d].second.stride;
    }
    return true;
  }

  Problem const& problem_;
  Images images_;
};

std::string violation(Problem const& problem) {
  Index const rows = problem.w.extent(2), columns = problem.w.extent(3);
  if (rows != 1 || columns != 1)
    return fmt::format("the filter has {}x{} taps; only a 1x1 filter makes a convolution a matrix product",
                       rows, columns);
  for (int i = 0; i < 2; ++i)
    if (problem.stride[i] != 1 || problem.pad_begin[i] != 0 || problem.pad_end[i] != 0)
      return fmt::format("stride {}, padding {} and {}; a matrix product needs stride 1 and no padding",
                         problem.stride[i], problem.pad_begin[i], problem.pad_end[i]);
  return {};
}

class GemmConvolution final : public Kernel<Problem> {
 public:
  explicit GemmConvolution(Plan<Problem> const& plan)
      : direction_(plan.problem.direction), product_(prepare(plan_of_product(plan))) {}

  void enqueue(Problem::Arguments const& arguments, std::byte* workspace, Stream stream) const override {
    GemmProblem::Arguments product;
    switch (direction_) {
      case ConvolutionDirection::forward:
        product.a = arguments.x, product.b = arguments.w, product.d = arguments.y;
        break;
      case ConvolutionDirection::data:
        product.a = arguments.dy, product.b = arguments.w, product.d = arguments.dx;
        break;
      default: product.a = arguments.dy, product.b = arguments.x, product.d = arguments.dw;
    }
    product.operands = arguments.operands;
    product.scalars = arguments.scalars;
    product.stores = arguments.stores;
    product_.run(product, workspace, stream);
  }

 private:
  ConvolutionDirection direction_;
  Prepared<GemmProblem> product_;
};

}  // namespace

PlainGemm plain_gemm_problem(Problem const& problem) {
  PlainGemm made;
  made.refusal = violation(problem);
  if (!made.refusal.empty()) return made;
  for (Images const images : {Images::around_pixels, Images::inside_pixels}) {
    PlainGemm all;
    if (!Translation(problem, images).translate(all)) continue;
    if (all.refusal.empty()) return all;
    made.refusal = all.refusal;
  }
  // If there are no groups, separate images become a batch of products.
  PlainGemm by_image;
  if (problem.groups == 1 && problem.direction != ConvolutionDirection::filter &&
      Translation(problem, Images::in_batch).translate(by_image) && by_image.refusal.empty())
    return by_image;
  if (made.refusal.empty())
    made.refusal =
        problem.direction == ConvolutionDirection::filter
            ? "the images are not contiguous, so that no single stride covers all pixels of the sum"
        : problem.groups > 1
            ? fmt::format("no single stride covers all pixels, and {} groups leave no batch for the images",
                          problem.groups)
            : "no single stride covers all pixels of an image";
  return made;
}

PlainGemm products_of_images(Problem const& problem) {
  PlainGemm made;
  made.refusal = violation(problem);
  if (problem.direction != ConvolutionDirection::filter)
    made.refusal = "computes only filter gradients, which are sums over the images";
  else if (made.refusal.empty() && problem.groups > 1)
    made.refusal = fmt::format("{} groups leave no batch for the images", problem.groups);
  else if (made.refusal.empty() && plain_gemm_problem(problem).refusal.empty())
    made.refusal = "a single stride covers the pixels of all images, so that one product sums over them";
  else if (made.refusal.empty() && !Translation(problem, Images::in_batch).translate(made))
    made.refusal = "no single stride covers all pixels of an image";
  return made;
}

Offer<Problem> plain_gemm(Problem const& problem, Device const& device, PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (!offer.refusal.empty()) return offer;
  PlainGemm const made = plain_gemm_problem(problem);
  offer.refusal = made.refusal;
  if (!offer.refusal.empty()) return offer;
  PlanOptions of_product = options;
  of_product.kernel.clear();
  of_product.tuning.reset();
  try {
    Plan<GemmProblem> const plan = make_plan(made.problem, device, of_product);
    if (plan.kernel != name_of(plan.recipe.policy.main_loop)) {
      offer.refusal = "the product uses the kernel " + plan.kernel;
      return offer;
    }
    offer.recipe.algorithm = ConvolutionAlgorithm::gemm;
    offer.recipe.product = plan.recipe;
    offer.workspace_bytes = plan.workspace_bytes;
    Considered const& chosen = plan.chosen();
    offer.predicted_seconds = chosen.predicted_seconds;
    offer.text = plan.kernel + ", " + chosen.recipe;
  } catch (Error const& error) {
    if (error.code() != ErrorCode::bad_request) throw;
    offer.refusal = error.what();
  }
  return offer;
}

Plan<GemmProblem> plan_of_product(Plan<Problem> const& plan) {
  Plan<GemmProblem> product;
  product.problem = plain_gemm_problem(plan.problem).problem;
  product.device = plan.device;
  product.kernel = name_of(plan.recipe.product.policy.main_loop);
  product.workspace_bytes = plan.workspace_bytes;
  product.recipe = plan.recipe.product;
  return product;
}

std::unique_ptr<Kernel<Problem>> prepare_plain_gemm(Plan<Problem> const& plan) {
  return std::make_unique<GemmConvolution>(plan);
}

}  // namespace cosmati::plan
