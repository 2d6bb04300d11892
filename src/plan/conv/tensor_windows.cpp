// Which convolutions the copy engine unrolls, the maps for it, and the policy that is predicted to be
// fastest.
#include "src/plan/conv/tensor_windows.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "src/backend/emulator/emulated_policy.h"
#include "src/backend/emulator/warp_specialized_convolution.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/fft.h"
#include "src/plan/conv/product_choice.h"
#include "src/plan/conv/winograd.h"
#include "src/plan/gemm/choice.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/partition.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

constexpr int step_bytes = 128, unit = 16;  // of depth; that the engine aligns to

// Why the copy engine cannot take a tensor of these strides along (neighbours, ...); empty: it can.
std::string tensor_violation(char const* name, char const* neighbours, TensorDescription const& tensor,
                             Index const (&extent)[4], Index const (&stride)[4]) {
  int const size = size_of(tensor.type);
  if (extent[0] > 1 && stride[0] != 1)
    return fmt::format("{}: its {} are {} elements apart; the copy engine needs 1 (channels last)", name,
                       neighbours, stride[0]);
  if (tensor.alignment % unit != 0)
    return fmt::format("{}: aligned to {} bytes; the copy engine needs {}", name, tensor.alignment, unit);
  for (int i = 1; i < 4; ++i)
    if (extent[i] > 1 && (stride[i] <= 0 || stride[i] * size % unit != 0))
      return fmt::format(
          "{}: a stride of {} elements of {}; the copy engine needs positive multiples of {} elements ({} "
          "bytes)",
          name, stride[i], name_of(tensor.type), unit / size, unit);
  return {};
}

// One axis of the windows: in terms of the walk, corner = first + window * step, place = corner + tap *
// tap_step, with a tap_step that may be negative.
struct Axis {
  char const* name;
  Index extent, windows, taps;
  int first, step, tap_step;
};

// Fills column 0 or row 1 of the maps; says what is beyond the engine's numbers.
std::string set_axis(WindowProduct& made, Axis const& axis, int i) {
  Index const reach = (axis.taps - 1) * std::abs(axis.tap_step);
  Index const lower = axis.first - (axis.tap_step < 0 ? reach : 0);
  Index const upper = lower + (axis.windows - 1) * axis.step - (axis.extent - 1);
  if (axis.step > 8)
    return fmt::format("windows lie {} {} apart; the copy engine steps by at most 8", axis.step, axis.name);
  if (std::min(lower, upper) < -128 || std::max(lower, upper) > 127)
    return fmt::format(
        "the first window begins at {} of the {}, the last one {} beyond their end; the copy engine takes "
        "-128 to 127",
        lower, axis.name, upper);
  if (reach > 255)
    return fmt::format("a window's taps reach over {} {}; the copy engine takes 255", reach, axis.name);
  made.image.lower[i] = static_cast<int>(lower);
  made.image.upper[i] = static_cast<int>(upper);
  made.image.step[i] = axis.step;
  ImageArguments& image = made.image_arguments;
  int const first_tap = axis.tap_step < 0 ? static_cast<int>(reach) : 0;
  (i == 0 ? image.left : image.top) = static_cast<int>(lower);
  (i == 0 ? image.right : image.down) = axis.step;
  (i == 0 ? image.first_right : image.first_down) = first_tap;
  (i == 0 ? image.tap_right : image.tap_down) = axis.tap_step;
  return {};
}

// The stride of an index whose digits lie one within the other; nothing if they do not.
std::optional<Index> joined_stride(ProductIndex const& index, Index const (&stride)[3]) {
  Index extent = 1, joined = 0;
  for (int i = 2; i >= 0; --i) {
    if (index[static_cast<std::size_t>(i)].extent == 1) continue;
    if (extent == 1) joined = stride[i];
    if (stride[i] != joined * extent) return {};
    extent *= index[static_cast<std::size_t>(i)].extent;
  }
  return joined;
}

std::optional<MatrixForm> matrix_of(DigitForm const& digits, ProductIndex const& m, ProductIndex const& n) {
  std::optional<Index> const row = joined_stride(m, digits.arguments.row_stride),
                             column = joined_stride(n, digits.arguments.column_stride);
  if (!row || !column || digits.base != 0) return {};
  MatrixForm matrix;
  matrix.type = digits.type;
  matrix.row_stride = *row;
  matrix.column_stride = *column;
  matrix.alignment = digits.alignment;
  matrix.by_m = digits.by_m;
  matrix.by_n = digits.by_n;
  matrix.width = *column == 1 ? digits.width : 1;
  matrix.present = true;
  return matrix;
}

// Makes d, the operands and the stores matrices, if all of them are.
bool set_results(CanonicalGemm& product, ConvolutionForm const& form) {
  auto const as_matrix = [&](DigitForm const& digits, MatrixForm& matrix) {
    std::optional<MatrixForm> const made = matrix_of(digits, form.m, form.n);
    if (made) matrix = *made;
    return made.has_value();
  };
  bool all = as_matrix(form.d, product.d);
  product.operands.resize(form.operands.size());
  product.stores.resize(form.stores.size());
  for (std::size_t i = 0; i < form.operands.size(); ++i)
    all = as_matrix(form.operands[i], product.operands[i]) && all;
  for (std::size_t i = 0; i < form.stores.size(); ++i)
    all = as_matrix(form.stores[i], product.stores[i]) && all;
  return all;
}

// Pixels go by image, row and column, whatever their strides: what ordering by memory may not have changed.
bool in_order_of_images(ProductIndex const& pixels) {
  std::string letters;
  for (ProductDigit const& digit : pixels)
    if (digit.extent > 1) letters += digit.letter;
  return std::is_sorted(letters.begin(), letters.end(), [](char x, char y) {
    return std::string("npq").find(x) < std::string("npq").find(y);
  });
}

std::string problem_kind_violation(Problem const& p, Gpu const& gpu) {
  if (gpu.major != 9 || gpu.minor != 0)
    return fmt::format("wgmma needs compute capability 9.0; {} has {}.{}", gpu.name, gpu.major, gpu.minor);
  if (p.direction == ConvolutionDirection::filter)
    return "sums over pixels, of the filter's gradient, are for the other main loops";
  if (p.groups != 1) return fmt::format("{} groups; the copy engine's windows have all channels", p.groups);
  TensorDescription const& image = p.direction == ConvolutionDirection::forward ? p.x : p.y;
  DataType const sum = accumulator_type(image.type, p.w.type);
  if (!wgmma_takes(image.type, p.w.type, sum))
    return fmt::format("multiply wgmma takes no {} and {} with sums in {}", name_of(image.type),
                       name_of(p.w.type), name_of(sum));
  if (p.direction == ConvolutionDirection::data && size_of(p.w.type) != 2)
    return fmt::format(
        "multiply wgmma takes {} along k only; the filter's k are no neighbours in memory, its c are",
        name_of(p.w.type));
  return {};
}

TensorDescription const& image_of(Problem const& p) {
  return p.direction == ConvolutionDirection::forward ? p.x : p.y;
}

void set_tensors(WindowProduct& made, Problem const& p) {
  TensorDescription const& image = image_of(p);
  for (int i = 0; i < 4; ++i) {
    int const of_image = i == 0 ? 1 : i == 3 ? 0 : 4 - i;
    made.image.extent[i] = image.extent(of_image);
    made.image.stride[i] = image.layout.stride[of_image];
  }
  ConvolutionForm const& form = made.form;
  DigitSteps const& taps = form.b.arguments.depth;
  Index const extent[4] = {p.w.extent(1), form.k[1].extent, form.k[0].extent, p.w.extent(0)};
  Index const stride[4] = {p.w.layout.stride[1], taps.middle.stride, taps.first.stride, p.w.layout.stride[0]};
  std::copy_n(extent, 4, made.filter.extent);
  std::copy_n(stride, 4, made.filter.stride);
  made.filter.base = form.b.base;
}

// Corners and taps of the windows; says what is beyond the engine's numbers.
std::string set_windows(WindowProduct& made) {
  ConvolutionForm const& form = made.form;
  WindowArguments const& walk = form.a.arguments;
  DigitStep const steps[] = {walk.outer.first, walk.outer.middle, walk.outer.last};
  auto const axis = [&](char const* name, char letter, Index extent, Index taps, int first,
                        int tap_step) -> Axis {
    for (std::size_t i = 0; i < 3; ++i)
      if (form.m[i].letter == letter && form.m[i].extent > 1)
        return {name,    extent, form.m[i].extent, taps, first, std::max(steps[i].right, steps[i].down),
                tap_step};
    return {name, extent, 1, taps, first, 1, tap_step};
  };
  Axis const columns = axis("columns", 'q', walk.width, form.k[1].extent, walk.left, walk.depth.middle.right);
  Axis const rows = axis("rows", 'p', walk.height, form.k[0].extent, walk.top, walk.depth.first.down);
  std::string sentence = set_axis(made, columns, 0);
  if (sentence.empty()) sentence = set_axis(made, rows, 1);
  made.image_arguments.outer = {Divisor(rows.windows), Divisor(columns.windows)};
  made.image_arguments.depth = made.filter_arguments.depth = walk.depth.extents;
  return sentence;
}

}  // namespace

WindowProducts window_products(Problem const& p, Gpu const& gpu) {
  WindowProducts all;
  all.refusal = problem_kind_violation(p, gpu);
  if (!all.refusal.empty()) return all;
  bool const forward = p.direction == ConvolutionDirection::forward;
  TensorDescription const& image = image_of(p);
  all.filter_along = forward ? Along::depth : Along::outer;
  auto const bytes = [](TensorDescription const& tensor) {
    return static_cast<double>(tensor.layout.span()) * size_of(tensor.type);
  };
  all.operand_bytes = bytes(image) + bytes(p.w);
  std::vector<ConvolutionForm> forms = forms_of(p);
  unify(forms);
  for (ConvolutionForm const& form : forms) {
    if (form.rows() == 0 || form.columns() == 0) continue;
    WindowProduct& made = all.parts.emplace_back();
    made.form = stepwise(form, step_bytes / size_of(image.type));
    made.product = gemm_view(made.form);
    set_tensors(made, p);
    if (form.swapped || !in_order_of_images(form.m))
      all.refusal = "the result's channels are no neighbours in memory; its tensor is to have channels last";
    if (all.refusal.empty())
      all.refusal =
          tensor_violation(forward ? "x" : "dy", "channels", image, made.image.extent, made.image.stride);
    if (all.refusal.empty())
      all.refusal = tensor_violation("w", "input channels", p.w, made.filter.extent, made.filter.stride);
    // Places between strides that no tap reaches have no windows.
    if (all.refusal.empty() && made.form.depth() > 0) all.refusal = set_windows(made);
    if (!all.refusal.empty()) return all;
    made.product.a.row_stride = made.image.stride[1];
    made.product.b.row_stride = made.filter.stride[3];
    made.product.a.column_stride = made.product.b.column_stride = 1;
    if (!set_results(made.product, made.form)) all.by_digits = true;
  }
  if (all.parts.empty()) all.refusal = "there is nothing to multiply";
  return all;
}

bool is_window_product(ConvolutionRecipe const& recipe) {
  return recipe.algorithm == ConvolutionAlgorithm::implicit_gemm &&
         recipe.product.policy.main_loop == MainLoop::warp_specialized;
}

namespace {

// Tries every policy and division; the fastest, by the prediction.
class WindowSearch {
 public:
  WindowSearch(Problem const& problem, Device const& device, PlanOptions const& options,
               WindowProducts const& windows)
      : problem_(problem), device_(device), options_(options), windows_(windows) {}

  Offer<Problem> best() {
    std::string main_loop = name_of(MainLoop::warp_specialized);
    policy_ = without_main_loop(options_.policy, main_loop);
    if (main_loop != name_of(MainLoop::warp_specialized)) {
      offer_.refusal = "--policy " + options_.policy + ": another main loop";
      return offer_;
    }
    if (names_tile(policy_) || names_extent(policy_)) {
      offer_.refusal =
          "has no tiles of winograd, no transforms of fft; --policy " + options_.policy + " was asked for";
      return offer_;
    }
    int const size = size_of(front().a.type);
    std::vector<NamedPolicy> policies = warpgroup_policies(size);
    GemmPolicy const own = emulator::emulated_policy(MainLoop::warp_specialized, Multiply::wgmma, size);
    if (emulated()) policies = {{"emulated", own}};
    if (!policy_.empty() && policy_ != "partition=" + asked_partition()) {
      policies = {parse_policy(policy_, policies, policies[emulated() ? 0 : 2])};
      policies.front().policy.partition = own.partition;  // which is chosen below
    }
    if (emulated() && !(policies.front().policy == own)) {
      offer_.refusal =
          "--policy " + options_.policy + ": the emulator has one policy for each kernel and type: emulated";
      return offer_;
    }
    for (NamedPolicy const& named : policies) try_policy(named);
    if (offer_.text.empty() && offer_.refusal.empty())
      offer_.refusal =
          fmt::format("--policy {}: {} launches, the first of {} steps, are not divided so", options_.policy,
                      windows_.parts.size(), front().k * size_of(front().a.type) / step_bytes);
    return offer_;
  }

 private:
  bool emulated() const { return device_.backend == Backend::emulator; }
  // What all launches have in common: types and widths.
  CanonicalGemm const& front() const { return windows_.parts.front().product; }
  bool is_one() const { return windows_.parts.size() == 1; }

  void try_policy(NamedPolicy const& named) {
    CanonicalGemm const& form = front();
    GemmRecipe recipe;
    recipe.policy_name = named.name;
    recipe.policy = named.policy;
    recipe.a = {Along::depth, unit / size_of(form.a.type)};
    recipe.b = {windows_.filter_along, unit / size_of(form.b.type)};
    recipe.result_width = form.d.width;
    recipe.sum = form.sum;
    GemmPolicy& p = recipe.policy;
    if (!emulated() && policy_.find("epilogue=") == std::string::npos) {
      p.epilogue = schedule_of(problem_.epilogue.expression);
      if (!stores_by_engine(p, form)) p.epilogue = EpilogueSchedule::staged;
    }
    // Digits are found by division: once for a run of a row.
    if (windows_.by_digits) p.epilogue = EpilogueSchedule::staged;
    std::string sentence = policy_violation(p, form.a.type, form.b.type, form.sum);
    if (sentence.empty() && p.cluster_n > 1)
      sentence = fmt::format("cluster_n = {}: blocks share no windows; legal is 1", p.cluster_n);
    int const shared = shared_storage_bytes(recipe, form);
    if (sentence.empty() && shared > device_.gpu.shared_bytes_per_block)
      sentence = fmt::format("needs {} bytes of shared memory a block; {} has {}", shared, device_.gpu.name,
                             device_.gpu.shared_bytes_per_block);
    if (!sentence.empty()) return refuse(sentence);
    for (Division const& division :
         divisions_worth_trying(recipe, form, device_.gpu, asked_partition(), !emulated() && is_one()))
      try_division(recipe, division);
  }

  std::string asked_partition() const {
    for (Partition const partition : {Partition::tiles, Partition::split_k, Partition::stream_k})
      if (policy_.find(std::string("partition=") + name_of(partition)) != std::string::npos)
        return name_of(partition);
    return {};
  }

  void try_division(GemmRecipe recipe, Division const& division) {
    GemmPolicy& p = recipe.policy;
    double seconds = 0;
    std::size_t flags = 0, partials = 0;  // the launches use them one after the other
    p.whole = !emulated();
    for (WindowProduct const& part : windows_.parts) {
      CanonicalGemm const& form = part.product;
      std::string const no = division_violation(recipe, division, form);
      if (!no.empty()) return refuse(no);
      p.whole = p.whole && form.m % (p.block_m * p.cluster_m) == 0 && form.n % (p.block_n * p.cluster_n) == 0;
      divide(recipe, division, form,
             emulated() ? emulator::emulated_places : places_of(recipe, form, device_.gpu));
      Volume volume = volume_of(form, recipe);
      volume.operand_bytes = windows_.operand_bytes;  // that windows overlap is for the second cache
      seconds += predict_seconds(recipe, form, device_.gpu, volume);
      flags = std::max(flags, recipe.flag_bytes);
      partials = std::max(partials, recipe.partial_bytes);
    }
    recipe.flag_bytes = flags;
    recipe.partial_bytes = partials;
    recipe.predicted_seconds = seconds;
    if (emulated()) p.partition = Partition::split_k;
    std::size_t const workspace = recipe.flag_bytes + recipe.partial_bytes;
    if (workspace > options_.max_workspace)
      return refuse(
          fmt::format("needs {} bytes of workspace; at most {}", workspace, options_.max_workspace));
    // Of what nobody has measured more must be promised.
    double const share = division.partition == Partition::stream_k ? 0.95 : 1.0;
    if (!offer_.text.empty() && recipe.predicted_seconds >= share * offer_.predicted_seconds) return;
    ConvolutionRecipe made;
    made.product = recipe;
    made.stepwise = true;
    made.launches = static_cast<int>(windows_.parts.size());
    std::string text = to_string(recipe) + ", windows by the copy engine";
    if (!is_one()) text += fmt::format(", {} launches", windows_.parts.size());
    offer_ = {{}, workspace, recipe.predicted_seconds, made, std::move(text)};
  }

  void refuse(std::string sentence) {
    if (offer_.text.empty()) offer_.refusal = std::move(sentence);
  }

  Problem const& problem_;
  Device const& device_;
  PlanOptions const& options_;
  WindowProducts const& windows_;
  std::string policy_;  // without the main loop
  Offer<Problem> offer_;
};

}  // namespace

Offer<Problem> warp_specialized_convolution(Problem const& problem, Device const& device,
                                            PlanOptions const& options) {
  Offer<Problem> offer;
  offer.refusal = problem_violation(problem, device.backend);
  if (!offer.refusal.empty()) return offer;
  WindowProducts const windows = window_products(problem, device.gpu);
  offer.refusal = windows.refusal;
  if (offer.refusal.empty()) offer.refusal = extent_violation(forms_of(problem));
  if (!offer.refusal.empty()) return offer;
  CanonicalGemm const& front = windows.parts.front().product;
  if (device.backend == Backend::emulator && !emulator::has_window_product(front.a.type, front.b.type))
    offer.refusal = fmt::format("the emulator has this kernel for f16 and s8, not for {} and {}",
                                name_of(front.a.type), name_of(front.b.type));
  if (!offer.refusal.empty()) return offer;
  return WindowSearch(problem, device, options, windows).best();
}

}  // namespace cosmati::plan
