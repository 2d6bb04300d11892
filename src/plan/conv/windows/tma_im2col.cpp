// Convolutions that TMA can unroll (im2col mode), and their tensor maps.
#include "src/plan/conv/windows/tma_im2col.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "src/ops/architecture.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/windows/packing.h"
#include "src/plan/conv/windows/window_maps.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/integers.h"
#include "src/program/tensor_map_limits.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// The reason why TMA does not support a tensor with these strides; empty if it does.
std::string tensor_violation(char const* name, char const* neighbors, TensorDescription const& tensor,
                             Index const (&extent)[4], Index const (&stride)[4]) {
  int const size = size_of(tensor.type);
  if (extent[0] > 1 && stride[0] != 1)
    return fmt::format("{}: its {} are {} elements apart; TMA requires 1 (channels last)", name, neighbors,
                       stride[0]);
  if (tensor.alignment % max_vector_bytes != 0)
    return fmt::format("{}: aligned to {} bytes; TMA requires {}", name, tensor.alignment, max_vector_bytes);
  for (int i = 1; i < 4; ++i)
    if (extent[i] > 1 && (stride[i] <= 0 || stride[i] * size % max_vector_bytes != 0))
      return fmt::format(
          "{}: a stride of {} elements of {}; TMA requires positive multiples of {} elements ({} "
          "bytes)",
          name, stride[i], name_of(tensor.type), max_vector_bytes / size, max_vector_bytes);
  return {};
}

// One axis of the windows: corner = first + window * step, position = corner + tap * tap_step, where tap_step
// may be negative.
struct Axis {
  char const* name;
  Index extent, windows, taps;
  int first, step, tap_step;
};

// Fills entry i of the maps (0: columns, 1: rows); returns which TMA limit is exceeded.
std::string set_axis(WindowProduct& made, Axis const& axis, int i) {
  Index const reach = (axis.taps - 1) * std::abs(axis.tap_step);
  Index const lower = axis.first - (axis.tap_step < 0 ? reach : 0);
  Index const upper = lower + (axis.windows - 1) * axis.step - (axis.extent - 1);
  if (axis.step > 8)
    return fmt::format("windows are {} {} apart; TMA supports at most 8", axis.step, axis.name);
  if (std::min(lower, upper) < -128 || std::max(lower, upper) > 127)
    return fmt::format(
        "the first window begins at {} of the {}, the last one {} beyond their end; TMA supports -128 to 127",
        lower, axis.name, upper);
  if (reach > 255)
    return fmt::format("the taps of a window span {} {}; TMA supports at most 255", reach, axis.name);
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

std::optional<Index> joined_stride(ProductIndex const& index, Index const (&stride)[3]) {
  return plan::joined_stride({index[0].extent, index[1].extent, index[2].extent}, stride);
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

// Whether all operands and stores of the epilogue, and d, can be described as matrices.
struct Results {
  bool epilogue_is, d_is;
};
// Describes them as matrices where possible.
Results set_results(CanonicalGemm& product, ConvolutionForm const& form) {
  auto const as_matrix = [&](DigitForm const& digits, MatrixForm& matrix) {
    std::optional<MatrixForm> const made = matrix_of(digits, form.m, form.n);
    if (made) matrix = *made;
    return made.has_value();
  };
  bool const d_is_matrix = as_matrix(form.d, product.d);
  bool all = true;
  product.operands.resize(form.operands.size());
  product.stores.resize(form.stores.size());
  for (std::size_t i = 0; i < form.operands.size(); ++i)
    all = as_matrix(form.operands[i], product.operands[i]) && all;
  for (std::size_t i = 0; i < form.stores.size(); ++i)
    all = as_matrix(form.stores[i], product.stores[i]) && all;
  return {all, d_is_matrix};
}

// Checks that pixels are ordered by image, row and column (npq) and taps by row, column and channel (rsc),
// which ordering by stride may have changed.
bool is_in_order(ProductIndex const& index, std::string const& order) {
  std::string letters;
  for (ProductDigit const& digit : index)
    if (digit.extent > 1) letters += digit.letter;
  return std::is_sorted(letters.begin(), letters.end(),
                        [&](char x, char y) { return order.find(x) < order.find(y); });
}

// Sets the map of d's pixels and returns a matrix like them; none if TMA cannot store them.
std::optional<MatrixForm> pixels_of(WindowProduct& made) {
  ConvolutionForm const& form = made.form;
  DigitForm const& d = form.d;
  int const size = size_of(d.type);
  bool const has_channels =
      has_one_digit(form.n) && (form.columns() == 1 || d.arguments.column_stride[2] == 1);
  if (!has_channels || !is_in_order(form.m, "npq") || d.alignment % max_vector_bytes != 0 ||
      d.base * size % max_vector_bytes != 0)
    return {};
  ImageMap& map = made.result;
  map.extent[0] = form.columns(), map.stride[0] = 1;
  MatrixForm matrix = made.product.d;
  matrix.alignment = d.alignment;
  matrix.column_stride = 1;
  matrix.present = true;
  constexpr char order[] = {'q', 'p', 'n'};
  for (int i = 3; i > 0; --i) {
    map.extent[i] = 1;
    for (std::size_t digit = 0; digit < 3; ++digit) {
      if (form.m[digit].letter != order[i - 1] || form.m[digit].extent == 1) continue;
      map.extent[i] = form.m[digit].extent;
      map.stride[i] = matrix.row_stride = d.arguments.row_stride[digit];
      if (map.stride[i] <= 0 || map.stride[i] * size % max_vector_bytes != 0) return {};
    }
  }
  auto* const lowest = reinterpret_cast<void*>(static_cast<std::uintptr_t>(max_vector_bytes));
  TensorBox const box = tensor_box(Along::k, size, 2 * max_vector_bytes / size, tensor_store_rows, 1);
  if (!program::map_violation(windowed_tensor(map, d.type, lowest, box)).empty()) return {};
  return matrix;
}

// Describes every part's d by its pixels, unless TMA cannot store one of them; returns whether it can.
bool set_pixels(std::vector<WindowProduct>& parts) {
  std::vector<MatrixForm> matrices;
  for (WindowProduct& part : parts) {
    std::optional<MatrixForm> const matrix = pixels_of(part);
    if (!matrix) return false;
    matrices.push_back(*matrix);
  }
  for (std::size_t i = 0; i < parts.size(); ++i) parts[i].product.d = matrices[i];
  return true;
}

// The form whose image is operand a or b, regardless of which index is contiguous in the result.
ConvolutionForm with_image(ConvolutionForm form, bool image_is_a) {
  return form.image_is_a == image_is_a ? form : exchanged(std::move(form));
}

// The operand that is read in windows: x, or dy for a data gradient. The other operand: w, or dy for a filter
// gradient.
TensorDescription const& image_of(Problem const& p) {
  return p.direction == ConvolutionDirection::data ? p.y : p.x;
}
TensorDescription const& other_of(Problem const& p) { return is_filter(p) ? p.y : p.w; }

// Whether the filter operand is K-major or MN-major, which wgmma reads only for 2-byte types. K-major means
// that the channels of the image are contiguous (of x, or of dy for a data gradient), MN-major those of the
// result.
Along along_of_filter(Problem const& p) {
  TensorDescription const& w = p.w;
  auto const contiguous = [&](int d) { return w.extent(d) == 1 || w.layout.stride[d] == 1; };
  bool const narrow = size_of(w.type) == 2;
  if (p.direction == ConvolutionDirection::forward)
    return contiguous(1) || !contiguous(0) || !narrow ? Along::k : Along::mn;
  bool const wide = contiguous(1) && narrow;
  return contiguous(0) && !wide ? Along::k : Along::mn;
}

std::string problem_kind_violation(Problem const& p, Gpu const& gpu, PackRecipe const& packing) {
  if (std::string sentence = wgmma_device_violation(gpu); !sentence.empty()) return sentence;
  if (p.groups != 1)
    return fmt::format("{} groups; expected 1, since TMA windows cover all channels", p.groups);
  TensorDescription const &image = image_of(p), &other = other_of(p);
  DataType const sum = accumulator_type(image.type, other.type);
  if (!wgmma_takes(image.type, other.type, sum))
    return fmt::format("multiply wgmma does not support {} and {} with sums in {}", name_of(image.type),
                       name_of(other.type), name_of(sum));
  if (p.direction == ConvolutionDirection::data && size_of(other.type) != 2 &&
      along_of_filter(p) == Along::mn)
    return fmt::format("multiply wgmma requires {} contiguous along k; in the filter, c is contiguous, not k",
                       name_of(other.type));
  if (!is_filter(p)) return {};
  if (packing.transposes && size_of(image.type) != 4)
    return fmt::format("dy is transposed only for 4-byte types; {} has {}", name_of(image.type),
                       size_of(image.type));
  if (!packing.transposes && size_of(image.type) != 2)
    return fmt::format(
        "multiply wgmma requires {} contiguous along k; pixels are not contiguous in either tensor",
        name_of(image.type));
  Index const whole = step_bytes / size_of(image.type);
  if (p.x.extent(1) % whole != 0)
    return fmt::format(
        "{} channels; a TMA box of a filter gradient holds one tap and requires a multiple of {}",
        p.x.extent(1), whole);
  return {};
}

// `channels`: those that exist; TMA fills the others with zeros.
void set_image(WindowProduct& made, TensorDescription const& image, Index channels) {
  for (int i = 0; i < 4; ++i) {
    int const of_image = i == 0 ? 1 : i == 3 ? 0 : 4 - i;
    made.image.extent[i] = image.extent(of_image);
    made.image.stride[i] = image.layout.stride[of_image];
  }
  made.image.extent[0] = channels;
}

// `row` is the dimension of w whose elements are contiguous, `line` the other dimension of channels.
void set_filter(WindowProduct& made, TensorDescription const& w, int row, int line) {
  ConvolutionForm const& form = made.form;
  IndexStrides const& taps = form.b.arguments.depth;
  Index const extent[4] = {w.extent(row), form.k[1].extent, form.k[0].extent, w.extent(line)};
  Index const stride[4] = {w.layout.stride[row], taps.middle.stride, taps.first.stride,
                           w.layout.stride[line]};
  std::copy_n(extent, 4, made.filter.extent);
  std::copy_n(stride, 4, made.filter.stride);
  made.filter.base = form.b.base;
}

// Sets dy, the operand without windows: an MN-major matrix of filters by pixels, or K-major if transposed;
// returns why this is impossible.
std::string set_gradient(WindowProduct& made, Problem const& p, PackRecipe const& packing) {
  GradientMatrix const gradient = gradient_matrix(p);
  if (!gradient.from.present) return "dy: no single stride covers all pixels, as TMA requires";
  MatrixForm& matrix = made.form.image_is_a ? made.product.b : made.product.a;
  if (packing.transposes) {
    matrix.row_stride = gradient.transposed().pitch;
    matrix.column_stride = 1;
    return {};
  }
  matrix.row_stride = 1;
  matrix.column_stride = gradient.from.column_stride;
  Index const extents[4] = {gradient.filters, gradient.pixels, 1, 1};
  Index const strides[4] = {gradient.from.row_stride, matrix.column_stride, 0, 0};
  return tensor_violation("dy", "channels", p.y, extents, strides);
}

// The digit with the given letter: its extent, and the rows and columns of the image that it advances.
struct Steps {
  Index extent = 1;
  int down = 0, right = 0;
};
Steps steps_of_digit(ProductIndex const& index, IndexStrides const& walk, char letter) {
  IndexStride const steps[] = {walk.first, walk.middle, walk.last};
  for (std::size_t i = 0; i < 3; ++i)
    if (index[i].letter == letter && index[i].extent > 1)
      return {index[i].extent, steps[i].down, steps[i].right};
  return {};
}

// Sets corners and taps of the windows; returns which TMA limit is exceeded.
std::string set_windows(WindowProduct& made, bool filter_gradient) {
  ConvolutionForm const& form = made.form;
  WindowArguments const& walk = form.image().arguments;
  ProductIndex const &pixels = filter_gradient ? form.k : form.m,
                     &taps = filter_gradient ? form.image_outer() : form.k;
  IndexStrides const &over = filter_gradient ? walk.depth : walk.outer,
                     &within = filter_gradient ? walk.outer : walk.depth;
  Steps const p = steps_of_digit(pixels, over, 'p'), q = steps_of_digit(pixels, over, 'q'),
              r = steps_of_digit(taps, within, 'r'), s = steps_of_digit(taps, within, 's');
  Axis const columns{"columns", walk.width, q.extent, s.extent, walk.left, std::max(1, q.right), s.right};
  Axis const rows{"rows", walk.height, p.extent, r.extent, walk.top, std::max(1, p.down), r.down};
  std::string sentence = set_axis(made, columns, 0);
  if (sentence.empty()) sentence = set_axis(made, rows, 1);
  ImageArguments& image = made.image_arguments;
  image.pixels = {Divisor(rows.windows), Divisor(columns.windows)};
  image.taps =
      made.filter_arguments.depth = {Divisor(columns.taps), Divisor(std::max<Index>(1, taps[2].extent))};
  image.last_tap = static_cast<int>(rows.taps * columns.taps * taps[2].extent) - 1;
  return sentence;
}

// The limit of the driver that a map exceeds even with the smallest box, whichever tile is chosen. The
// alignment stands for the address: it is the lowest that a tensor may have.
std::string map_violation(WindowProduct const& made, Problem const& p) {
  auto const address = [](TensorDescription const& tensor) {
    return reinterpret_cast<void*>(static_cast<std::uintptr_t>(tensor.alignment));
  };
  TensorDescription const& image = image_of(p);
  TensorBox const box =
      tensor_box(Along::k, size_of(image.type), 2 * max_vector_bytes / size_of(image.type), 1, 1);
  std::string sentence = program::map_violation(windowed_tensor(made.image, image.type, address(image), box));
  if (!sentence.empty()) return fmt::format("{}: a tensor map {}", &image == &p.x ? "x" : "dy", sentence);
  if (is_filter(p)) return {};
  Index const offset = made.filter.base * size_of(p.w.type);
  if (offset % max_vector_bytes != 0)
    return fmt::format("w: the first tap of a phase is {} bytes from the start; TMA requires multiples of {}",
                       offset, max_vector_bytes);
  sentence = program::map_violation(filter_tensor(made.filter, p.w.type, address(p.w), box));
  return sentence.empty() ? sentence : "w: a tensor map " + sentence;
}

// Sets the maps and strides of one launch; returns why this is impossible.
std::string set_operands(WindowProduct& made, Problem const& p, PackRecipe const& packing, Index channels) {
  TensorDescription const& image = image_of(p);
  ConvolutionForm const& form = made.form;
  bool const gradient = is_filter(p);
  if (!is_in_order(gradient ? form.k : form.m, "npq") ||
      !is_in_order(gradient ? form.image_outer() : form.k, "rsc"))
    return "the strides of the images do not follow image, row, column and channel";
  set_image(made, image, channels);
  std::string sentence =
      tensor_violation(&image == &p.x ? "x" : "dy", "channels", image, made.image.extent, made.image.stride);
  if (!sentence.empty()) return sentence;
  MatrixForm &a = made.product.a, &b = made.product.b;
  if (!gradient) {
    bool const data = p.direction == ConvolutionDirection::data;
    bool const by_outputs = data == (along_of_filter(p) == Along::k);
    set_filter(made, p.w, by_outputs ? 0 : 1, by_outputs ? 1 : 0);
    sentence = tensor_violation("w", by_outputs ? "output channels" : "input channels", p.w,
                                made.filter.extent, made.filter.stride);
    a.row_stride = made.image.stride[1];
    a.column_stride = b.row_stride = b.column_stride = 1;
    (along_of_filter(p) == Along::k ? b.row_stride : b.column_stride) = made.filter.stride[3];
  } else {
    sentence = set_gradient(made, p, packing);
    MatrixForm& windows = form.image_is_a ? a : b;
    windows.row_stride = 1;
    windows.column_stride = made.image.stride[1];
  }
  if (!sentence.empty() || form.depth() == 0) return sentence;  // phases without taps have no windows
  sentence = set_windows(made, gradient);
  return sentence.empty() ? map_violation(made, p) : sentence;
}

// The fraction of the image that is read if windows skip rows and columns.
double share_read(Problem const& p) {
  double share = 1;
  if (p.direction != ConvolutionDirection::data)
    for (int i = 0; i < 2; ++i)
      share *= std::min(1.0, static_cast<double>(p.w.extent(2 + i)) / static_cast<double>(p.stride[i]));
  return share;
}

}  // namespace

int bytes_of_step(Problem const& problem, PackRecipe const& packing, bool emulated) {
  Problem const p = packed_problem(problem, packing);
  TensorDescription const& image = image_of(p);
  if (is_filter(p) || size_of(image.type) != 2) return step_bytes;
  int const shallowest = emulated ? step_bytes / 2 : step_bytes / 4;  // the swizzles of wgmma's operands
  int bytes = step_bytes;
  while (bytes > shallowest && image.extent(1) * size_of(image.type) * 2 <= bytes) bytes /= 2;
  return bytes;
}

WindowProducts window_products(Problem const& problem, Gpu const& gpu, PackRecipe const& packing,
                               int row_bytes) {
  WindowProducts all;
  all.row_bytes = row_bytes;
  Problem const p = packed_problem(problem, packing);
  all.refusal = problem_kind_violation(p, gpu, packing);
  if (!all.refusal.empty()) return all;
  TensorDescription const &image = image_of(p), &other = other_of(p);
  all.filter_gradient = is_filter(p);
  all.image_is_a = !all.filter_gradient || packing.transposes;
  all.along_of_a = all.filter_gradient ? Along::mn : Along::k;
  all.along_of_b = !all.filter_gradient ? along_of_filter(p) : packing.transposes ? Along::k : Along::mn;
  auto const bytes = [](TensorDescription const& tensor) {
    return static_cast<double>(tensor.layout.span()) * size_of(tensor.type);
  };
  all.operand_bytes = bytes(image) * share_read(p) + bytes(other);
  Index const channels = packing.pads ? image_of(problem).extent(1) : image.extent(1);
  std::vector<ConvolutionForm> forms = forms_of(p);
  unify(forms);
  bool are_matrices = true, epilogues_are = true;
  for (ConvolutionForm const& form : forms) {
    if (form.rows() == 0 || form.columns() == 0) continue;
    WindowProduct& made = all.parts.emplace_back();
    made.form = with_image(all.filter_gradient ? form : stepwise(form, row_bytes / size_of(image.type)),
                           all.image_is_a);
    made.product = gemm_view(made.form);
    all.refusal = set_operands(made, p, packing, channels);
    if (!all.refusal.empty()) return all;
    DigitArguments const& d = made.form.d.arguments;
    bool const along_m = made.form.rows() > 1 && std::abs(d.row_stride[2]) < std::abs(d.column_stride[2]);
    all.along_m = all.along_m || along_m;
    Results const results = set_results(made.product, made.form);
    epilogues_are = epilogues_are && results.epilogue_is;
    are_matrices = are_matrices && epilogues_are && results.d_is && !along_m;
  }
  all.by_pixels =
      !are_matrices && epilogues_are && !all.filter_gradient && !all.along_m && set_pixels(all.parts);
  all.by_digits = !are_matrices && !all.by_pixels;
  if (all.parts.empty()) all.refusal = "the product is empty";
  return all;
}

bool stores_by_digits(WindowProducts const& windows, GemmPolicy const& policy) {
  return windows.by_digits || (windows.by_pixels && !stores_by_tma(policy, windows.parts.front().product));
}

bool is_window_product(ConvolutionRecipe const& recipe) {
  return recipe.algorithm == ConvolutionAlgorithm::implicit_gemm &&
         recipe.product.policy.main_loop == MainLoop::warp_specialized;
}

}  // namespace cosmati::plan
