// The layouts of packed tensors, and the memory traffic of packing.
#include "src/plan/conv/windows/packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "src/plan/buffers.h"
#include "src/plan/gemm/repack.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

Index rounded(Index value, Index to) { return ceiling_divide(value, to) * to; }

// The operand that is read in windows, and the other one.
TensorDescription Problem::*image_member(Problem const& p) {
  return p.direction == ConvolutionDirection::data ? &Problem::y : &Problem::x;
}
TensorDescription Problem::*other_member(Problem const& p) {
  return p.direction == ConvolutionDirection::filter ? &Problem::y : &Problem::w;
}
char const* name_of(TensorDescription Problem::*tensor) {
  return tensor == &Problem::x ? "x" : tensor == &Problem::w ? "w" : "dy";
}
char const* bits_of(int bytes) {
  return bytes == 1   ? "unsigned char"
         : bytes == 2 ? "unsigned short"
         : bytes == 4 ? "unsigned"
                      : "unsigned long long";
}
program::KernelSpec kernel_of(char const* entry, std::string traits, char const* label) {
  return {.headers = {"conv/packing.h"},
          .entry = entry,
          .traits = std::move(traits),
          .is_composed = false,
          .threads = pack_threads,
          .label = label};
}

// A packed tensor: images, rows and columns of positions with `place` elements each, and where its rows and
// columns begin in the source tensor.
struct Packed {
  TensorDescription from;
  Index images, rows, columns, place;  // place: elements per position
  Index top = 0, left = 0, row_step = 1, rows_of_place = 1;

  Index places() const { return images * rows * columns; }
  int size() const { return size_of(from.type); }
  Index bytes() const { return places() * place * size(); }
  // The bytes of the source tensor, without padding.
  double bytes_read() const { return static_cast<double>(from.layout.size()) * size(); }
};

// The distance in image rows between vertically adjacent positions.
Index row_step_of(Problem const& p, PackRecipe const& recipe) {
  return std::gcd(p.stride[0], Index{recipe.rows});
}
Index taps_of_rows(Problem const& p, PackRecipe const& recipe) {
  return (p.w.extent(2) + recipe.rows - 1) / recipe.rows;
}

Packed as_it_is(TensorDescription const& tensor, int bytes = max_vector_bytes) {
  return {tensor, tensor.extent(0), tensor.extent(2), tensor.extent(3),
          rounded(tensor.extent(1), bytes / size_of(tensor.type))};
}

Packed packed_image(Problem const& p, PackRecipe const& recipe) {
  TensorDescription const& image = p.*image_member(p);
  if (recipe.rows == 0) return as_it_is(image, is_filter(p) ? step_bytes : max_vector_bytes);
  Index const step = row_step_of(p, recipe);
  Index const below = (taps_of_rows(p, recipe) - 1) * recipe.rows / step;
  return {image,
          image.extent(0),
          (p.y.extent(2) - 1) * (p.stride[0] / step) + below + 1,
          (p.y.extent(3) - 1) * p.stride[1] + p.w.extent(3),
          recipe.place,
          -p.pad_begin[0],
          -p.pad_begin[1],
          step,
          recipe.rows};
}

// The dimensions of a data gradient's filter that are the images, channels, rows and columns of its packed
// tensor. Its channels are those of dy, along which wgmma can read every type; adjacent positions are as near
// to each other in memory as possible, because adjacent threads load them.
std::array<int, 4> order_of_filter(TensorDescription const& w) {
  std::array<int, 3> places{1, 2, 3};
  auto const distance = [&](int d) { return w.extent(d) == 1 ? max_int : std::abs(w.layout.stride[d]); };
  std::stable_sort(places.begin(), places.end(), [&](int a, int b) { return distance(a) > distance(b); });
  return {places[0], 0, places[1], places[2]};
}

TensorDescription in_order(TensorDescription w, std::array<int, 4> const& order) {
  w.layout = w.layout.permuted(order[0], order[1], order[2], order[3]);
  return w;
}

bool packs_for_data(Problem const& p, PackRecipe const& recipe) {
  return recipe.other && p.direction == ConvolutionDirection::data;
}

Packed packed_other(Problem const& p, PackRecipe const& recipe) {
  TensorDescription const& other = p.*other_member(p);
  if (packs_for_data(p, recipe)) return as_it_is(in_order(other, order_of_filter(other)));
  if (recipe.rows == 0 || is_filter(p)) return as_it_is(other);
  return {other,       other.extent(0), taps_of_rows(p, recipe), other.extent(3), recipe.place, 0, 0,
          recipe.rows, recipe.rows};
}

TensorDescription channels_last(Packed const& packed) {
  TensorDescription tensor = packed.from;
  tensor.alignment = buffer_alignment;
  tensor.layout.stride[0] = packed.rows * packed.columns * packed.place;
  tensor.layout.stride[1] = 1;
  tensor.layout.stride[2] = packed.columns * packed.place;
  tensor.layout.stride[3] = packed.place;
  return tensor;
}

PackLaunch launch_of(Packed const& packed) {
  PackLaunch launch;
  PackParameters& made = launch.parameters;
  Layout const& layout = packed.from.layout;
  made.image_stride = layout.stride[0], made.channel_stride = layout.stride[1];
  made.row_stride = layout.stride[2], made.column_stride = layout.stride[3];
  made.channels = Divisor(layout.extent(1));
  made.height = static_cast<int>(layout.extent(2)), made.width = static_cast<int>(layout.extent(3));
  made.top = static_cast<int>(packed.top), made.left = static_cast<int>(packed.left);
  made.row_step = static_cast<int>(packed.row_step);
  made.rows_of_place = static_cast<int>(packed.rows_of_place);
  made.rows = Divisor(packed.rows), made.columns = Divisor(packed.columns);
  made.places = static_cast<int>(packed.places());
  made.runs = static_cast<int>(packed.place * packed.size() / max_vector_bytes);
  launch.blocks = (made.places + pack_threads - 1) / pack_threads;
  launch.blocks_of_runs = (made.runs + pack_runs_of_thread - 1) / pack_runs_of_thread;
  launch.element_bytes = packed.size();
  return launch;
}

// A filter gradient as the product writes it: the channels of a tap, or of a row of taps, are padded to full
// steps.
struct PackedResult {
  Index channels, rows, columns;
  Index of_filter() const { return channels * rows * columns; }
};
PackedResult packed_result(Problem const& p, PackRecipe const& recipe) {
  Index const step = step_bytes / size_of(p.x.type);
  if (recipe.rows == 0) return {rounded(p.w.extent(1), step), p.w.extent(2), p.w.extent(3)};
  return {rounded(p.w.extent(3) * recipe.place, step), taps_of_rows(p, recipe), 1};
}
Index result_bytes(Problem const& p, PackRecipe const& recipe) {
  return p.w.extent(0) * packed_result(p, recipe).of_filter() * size_of(p.w.type);
}
// Calls use(packed tensor, pointer to member of ConvolutionProblem) for each tensor that is packed.
template <class Use>
void for_each_packed(Problem const& p, PackRecipe const& recipe, Use&& use) {
  if (recipe.other) use(packed_other(p, recipe), other_member(p));
  if (recipe.image) use(packed_image(p, recipe), image_member(p));
}

}  // namespace

Problem packed_problem(Problem const& problem, PackRecipe const& recipe) {
  Problem made = problem;
  TensorDescription& image = made.*image_member(problem);
  if (recipe.image) image = channels_last(packed_image(problem, recipe));
  if (recipe.other) {
    TensorDescription const packed = channels_last(packed_other(problem, recipe));
    TensorDescription& other = made.*other_member(problem);
    std::array<int, 4> const order =
        packs_for_data(problem, recipe) ? order_of_filter(problem.w) : std::array{0, 1, 2, 3};
    other.alignment = packed.alignment;
    for (std::size_t d = 0; d < order.size(); ++d) other.layout.stride[order[d]] = packed.layout.stride[d];
  }
  bool const unpacked = packs_result(problem, recipe);
  if (unpacked) {
    PackedResult const result = packed_result(problem, recipe);
    image.layout.shape[1] = result.channels;
    made.w.layout =
        image_layout(TensorFormat::nhwc, problem.w.extent(0), result.channels, result.rows, result.columns);
    made.w.alignment = buffer_alignment;
  }
  if (recipe.rows == 0) return made;
  // A window reads one position per row, with the taps of the row and their channels contiguous.
  Packed const packed = packed_image(problem, recipe);
  Index const channels = problem.w.extent(3) * recipe.place, taps = taps_of_rows(problem, recipe);
  image.layout.shape = {packed.images, unpacked ? image.extent(1) : channels, packed.rows,
                        problem.y.extent(3)};
  image.layout.stride[3] = problem.stride[1] * recipe.place;
  if (!unpacked) made.w.layout.shape = {problem.w.extent(0), channels, taps, 1};
  made.stride[0] = problem.stride[0] / packed.row_step, made.stride[1] = 1;
  made.dilation[0] = recipe.rows / packed.row_step, made.dilation[1] = 1;
  for (int i = 0; i < 2; ++i) made.pad_begin[i] = made.pad_end[i] = 0;
  return made;
}

RepackRecipe GradientMatrix::transposed(PackRecipe const& recipe) const {
  RepackRecipe made = repack_of(from, filters, pixels, 1, Along::k);
  made.offset = recipe.of_other;
  return made;
}

std::optional<Index> joined_stride(std::array<Index, 3> const& extent, Index const (&stride)[3]) {
  Index all = 1, joined = 0;
  for (std::size_t i = 3; i-- > 0;) {
    if (extent[i] == 1) continue;
    if (all == 1) joined = stride[i];
    if (stride[i] != joined * all) return {};
    all *= extent[i];
  }
  return joined;
}

GradientMatrix gradient_matrix(Problem const& problem) {
  TensorDescription const& dy = problem.y;
  Index const stride[] = {dy.layout.stride[0], dy.layout.stride[2], dy.layout.stride[3]};
  std::optional<Index> const pixel = joined_stride({dy.extent(0), dy.extent(2), dy.extent(3)}, stride);
  GradientMatrix made;
  if (!pixel) return made;
  made.filters = dy.extent(1);
  made.pixels = dy.extent(0) * dy.extent(2) * dy.extent(3);
  made.from.type = dy.type;
  made.from.row_stride = dy.layout.stride[1];
  made.from.column_stride = *pixel;
  made.from.alignment = dy.alignment;
  made.from.present = true;
  return made;
}

std::vector<PackRecipe> packings_of_rows(Problem const& p) {
  std::vector<PackRecipe> list;
  int const size = size_of(p.x.type);
  Index const channels = p.x.extent(1), rows = p.w.extent(2), columns = p.w.extent(3);
  bool const dense = p.dilation[0] == 1 && p.dilation[1] == 1 && p.groups == 1;
  if (p.direction == ConvolutionDirection::data || !dense || rows * columns == 1 || channels == 0 ||
      channels * size > step_bytes / 2)
    return list;
  for (int place = max_vector_bytes / size; place * size <= step_bytes / 2;
       place += max_vector_bytes / size) {
    Index const together = std::min(rows, place / channels);
    if (together == 0) continue;
    PackRecipe recipe;
    recipe.image = true;
    recipe.other = !is_filter(p);
    recipe.place = place;
    recipe.rows = static_cast<int>(together);
    list.push_back(recipe);
    if (together == rows) break;
  }
  return list;
}

void place_in_workspace(PackRecipe& recipe, Problem const& problem, std::size_t own) {
  recipe.end = own;
  if (recipe.transposes) {
    recipe.of_other = padded_bytes(recipe.end);
    recipe.end = recipe.of_other + gradient_matrix(problem).transposed().bytes;
  }
  for_each_packed(problem, recipe, [&](Packed const& packed, auto tensor) {
    std::size_t& place = tensor == image_member(problem) ? recipe.of_image : recipe.of_other;
    place = padded_bytes(recipe.end);
    recipe.end = place + static_cast<std::size_t>(packed.bytes());
  });
  if (!unpacks_result(problem, recipe)) return;
  // The last window may read past the end of the packed image.
  recipe.of_result = padded_bytes(recipe.end + (recipe.image ? std::size_t{step_bytes} : 0));
  recipe.end = recipe.of_result + static_cast<std::size_t>(result_bytes(problem, recipe));
}

std::string packing_violation(Problem const& problem, PackRecipe const& recipe) {
  std::string sentence;
  for_each_packed(problem, recipe, [&](Packed const& packed, auto tensor) {
    if (packed.places() > max_int)
      sentence = fmt::format("{} pixels of {} to pack; at most {}: split the batch", packed.places(),
                             name_of(tensor), max_int);
  });
  if (problem.w.layout.size() > max_int)
    sentence = fmt::format("{} elements of the filter; at most {}", problem.w.layout.size(), max_int);
  return sentence;
}

double packing_seconds(Problem const& problem, PackRecipe const& recipe, Gpu const& gpu) {
  // Measured on an H200: 0.22 to 0.27 with loads that are waited for one at a time. For overlapping loads
  // this is a prediction.
  constexpr double launch_seconds = 2.5e-6, share_of_copy = 0.45;
  double seconds = 0;
  for_each_packed(problem, recipe, [&](Packed const& packed, auto) {
    seconds += launch_seconds + (packed.bytes_read() + static_cast<double>(packed.bytes())) /
                                    (share_of_copy * gpu.memory_bytes_per_second);
  });
  if (recipe.transposes) {
    GemmRecipe pass;
    pass.repack_b = gradient_matrix(problem).transposed();
    seconds += predict_repack(pass, gpu);
  }
  if (unpacks_result(problem, recipe))
    seconds +=
        launch_seconds + static_cast<double>(result_bytes(problem, recipe)) / gpu.memory_bytes_per_second;
  return seconds;
}

std::string packing_text(Problem const& problem, PackRecipe const& recipe, Gpu const& gpu) {
  std::string text;
  Index bytes = 0;
  for_each_packed(problem, recipe, [&](Packed const& packed, auto tensor) {
    text += std::string(text.empty() ? "" : " and ") + name_of(tensor);
    bytes += packed.bytes();
  });
  if (recipe.transposes) {
    text += std::string(text.empty() ? "" : " and ") + "dy";
    bytes += static_cast<Index>(gradient_matrix(problem).transposed().bytes);
  }
  if (!text.empty())
    text += recipe.transposes && !recipe.image ? " transposed first"
            : recipe.transposes                ? " packed first, channels last, and pixels of dy last"
            : packs_for_data(problem, recipe)  ? " packed first, channels of dy last"
                                               : " packed first, channels last";
  if (recipe.pads) text += std::string(text.empty() ? "" : ", ") + "channels of x padded by TMA";
  if (unpacks_result(problem, recipe)) bytes += result_bytes(problem, recipe);
  if (text.empty()) return text;
  if (recipe.rows > 0)
    text += fmt::format(", {} rows of {} channels in {}, a row's taps side by side", recipe.rows,
                        problem.x.extent(1), recipe.place);
  if (recipe.by_taps) text += ", dw stored by taps";
  if (unpacks_result(problem, recipe)) text += ", dw unpacked at the end";
  if (bytes == 0) return text;
  return fmt::format("{}: {} bytes in {:.0f} us", text, bytes, packing_seconds(problem, recipe, gpu) * 1e6);
}

std::vector<PackLaunch> pack_launches(Problem const& problem, PackRecipe const& recipe) {
  std::vector<PackLaunch> list;
  for_each_packed(problem, recipe, [&](Packed const& packed, auto tensor) {
    PackLaunch& launch = list.emplace_back(launch_of(packed));
    launch.is_image = tensor == image_member(problem);
    launch.to = launch.is_image ? recipe.of_image : recipe.of_other;
  });
  return list;
}

program::KernelSpec pack_kernel(int element_bytes) {
  return kernel_of("pack_kernel", fmt::format("cosmati::PackTraits<{}>", bits_of(element_bytes)), "packing");
}
program::KernelSpec unpack_kernel(int element_bytes) {
  return kernel_of("unpack_kernel", bits_of(element_bytes), "unpacking");
}

bool packs_result(Problem const& problem, PackRecipe const& recipe) {
  bool const whole = problem.x.extent(1) * size_of(problem.x.type) % step_bytes == 0;
  return is_filter(problem) && (recipe.pads || (recipe.image && (recipe.rows > 0 || !whole)));
}

bool unpacks_result(Problem const& problem, PackRecipe const& recipe) {
  return packs_result(problem, recipe) && !recipe.by_taps;
}

TapMatrices tap_matrices(Problem const& problem) {
  TensorDescription const& w = problem.w;
  auto const& stride = w.layout.stride;
  TapMatrices made;
  made.filters = w.extent(0), made.channels = w.extent(1), made.taps = w.extent(2) * w.extent(3);
  Index const strides[] = {0, stride[2], stride[3]};
  std::optional<Index> const tap = joined_stride({1, w.extent(2), w.extent(3)}, strides);
  made.of_tap.type = w.type;
  made.of_tap.row_stride = stride[0], made.of_tap.column_stride = stride[1];
  made.of_tap.batch_stride = tap.value_or(0);
  made.of_tap.alignment = w.alignment;
  made.of_tap.present = tap.has_value();
  return made;
}

bool stores_by_taps(Problem const& problem, PackRecipe const& recipe, int columns) {
  if (!packs_result(problem, recipe) || recipe.rows > 0 || recipe.transposes) return false;
  TapMatrices const dw = tap_matrices(problem);
  MatrixForm const& tap = dw.of_tap;
  Index const size = size_of(tap.type);
  // A TMA store writes full 16-byte units, even if a row ends within one.
  auto const in_units = [&](Index elements) { return elements * size % max_vector_bytes == 0; };
  return tap.present && tap.column_stride == 1 && tap.alignment % max_vector_bytes == 0 &&
         in_units(tap.row_stride) && in_units(tap.batch_stride) && in_units(dw.channels) &&
         packed_result(problem, recipe).channels % columns == 0;
}

UnpackLaunch unpack_launch(Problem const& problem, PackRecipe const& recipe) {
  UnpackLaunch launch;
  UnpackParameters& made = launch.parameters;
  Layout const& layout = problem.w.layout;
  PackedResult const from = packed_result(problem, recipe);
  launch.from = recipe.of_result;
  made.filter = from.of_filter();
  made.row = from.channels * from.columns;
  made.column = recipe.rows > 0 ? recipe.place : from.channels;
  made.filter_stride = layout.stride[0], made.channel_stride = layout.stride[1];
  made.row_stride = layout.stride[2], made.column_stride = layout.stride[3];
  made.channels = Divisor(layout.extent(1));
  made.rows = Divisor(layout.extent(2)), made.columns = Divisor(layout.extent(3));
  made.rows_of_place = Divisor(std::max(1, recipe.rows));
  made.elements = static_cast<int>(layout.size());
  launch.blocks = (made.elements + pack_threads - 1) / pack_threads;
  return launch;
}

}  // namespace cosmati::plan
