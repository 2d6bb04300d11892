// Maps convolution indices to matrix indices, and computes the resulting strides.
#include "src/plan/conv/form.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/gemm.h"
#include "src/plan/conv/operand_access.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

// The strides of a tensor by index letter.
struct Walk {
  IndexStride of[26];
  IndexStride& operator[](char letter) { return of[letter - 'a']; }
  IndexStride along(char letter) const { return letter < 'a' ? IndexStride{} : of[letter - 'a']; }
};

// Positions of a window along one axis: position = window * stride + tap * dilation - pad.
struct SpatialAxis {
  Index image, outputs, taps, stride, pad, dilation;
};
SpatialAxis spatial_axis(ConvolutionProblem const& p, int i) {
  return {p.x.extent(2 + i), p.y.extent(2 + i), p.w.extent(2 + i),
          p.stride[i],       p.pad_begin[i],    p.dilation[i]};
}

// The elements between groups; 0 for a single group, which may then be aligned to less.
Index group_stride(ConvolutionProblem const& p, TensorDescription const& tensor, int dimension,
                   Index channels) {
  return p.groups > 1 ? channels * stride_of(tensor, dimension) : 0;
}

IndexStrides index_strides(ProductIndex const& index, Walk const& walk) {
  return {{Divisor(std::max<Index>(1, index[1].extent)), Divisor(std::max<Index>(1, index[2].extent))},
          walk.along(index[0].letter),
          walk.along(index[1].letter),
          walk.along(index[2].letter)};
}

WindowForm window_form(TensorDescription const& tensor, ProductIndex const& outer, ProductIndex const& depth,
                       Walk const& walk, Index base, Index batch_stride) {
  WindowForm form;
  form.type = tensor.type;
  form.alignment = std::max(tensor.alignment, size_of(tensor.type));
  form.base = base;
  form.arguments.batch_stride = batch_stride;
  form.arguments.outer = index_strides(outer, walk);
  form.arguments.depth = index_strides(depth, walk);
  form.arguments.depth_extent = to_int(depth[2].extent);
  set_access(form, outer, depth);
  return form;
}

// The image from which windows are taken, and the position of the first window's first element.
struct ImageWindow {
  Index top, left, height, width;
  bool windowed;
};

WindowForm with_window(WindowForm form, ProductIndex const& outer, ProductIndex const& depth,
                       ImageWindow const& window) {
  form.arguments.top = to_int(window.top);
  form.arguments.left = to_int(window.left);
  form.arguments.height = to_int(window.height);
  form.arguments.width = to_int(window.width);
  form.windowed = window.windowed;
  set_access(form, outer, depth);
  return form;
}

// Whether windows reach beyond the image.
bool leaves_image(SpatialAxis const& axis) {
  return axis.pad > 0 || (axis.outputs - 1) * axis.stride + (axis.taps - 1) * axis.dilation >= axis.image;
}
ImageWindow window_of(SpatialAxis const& rows, SpatialAxis const& columns) {
  return {-rows.pad, -columns.pad, rows.image, columns.image, leaves_image(rows) || leaves_image(columns)};
}

DigitForm digit_form(TensorDescription const& tensor, ProductIndex const& m, ProductIndex const& n,
                     Walk const& walk, Index base, Index batch_stride) {
  DigitForm form;
  form.type = tensor.type;
  form.present = true;
  form.base = base;
  form.alignment = std::max(tensor.alignment, size_of(tensor.type));
  IndexStrides const rows = index_strides(m, walk), columns = index_strides(n, walk);
  form.arguments = {nullptr,
                    batch_stride,
                    rows.extents,
                    columns.extents,
                    {rows.first.stride, rows.middle.stride, rows.last.stride},
                    {columns.first.stride, columns.middle.stride, columns.last.stride}};
  auto const is_used = [](Index const(&stride)[3]) {
    return stride[0] != 0 || stride[1] != 0 || stride[2] != 0;
  };
  form.by_m = is_used(form.arguments.row_stride);
  form.by_n = is_used(form.arguments.column_stride);
  if (form.by_n) form.width = width_along(n, columns, rows, base, batch_stride, tensor.type, form.alignment);
  return form;
}

// Orders the digits so that the last one has the smallest stride.
ProductIndex ordered(ProductIndex index, Walk const& walk) {
  auto const key = [&](ProductDigit const& digit) {
    Index const stride = std::abs(walk.along(digit.letter).stride);
    return digit.extent == 1 ? Index{1} << 62 : stride;
  };
  std::stable_sort(index.begin(), index.end(),
                   [&](ProductDigit const& x, ProductDigit const& y) { return key(x) > key(y); });
  return index;
}

// The strides of the result or of an epilogue operand; `base` is the offset of its first element,
// `batch_stride` that of a group.
struct ResultWalk {
  Walk walk;
  Index base = 0, batch_stride = 0;
};
// `strides[i]` belongs to the letter `letters[i]`; the digits are those of m and n.
ResultWalk result_walk(std::string const& letters, std::vector<Index> const& strides, ProductIndex const& m,
                       ProductIndex const& n, Index channels_of_group, char channel) {
  ResultWalk result;
  for (ProductIndex const* index : {&m, &n})
    for (ProductDigit const& digit : *index) {
      std::size_t const at = letters.find(digit.letter);
      if (digit.letter < 'a' || at == std::string::npos) continue;
      result.walk[digit.letter].stride += strides[at] * digit.step;
      result.base += strides[at] * digit.first;
    }
  std::size_t const at = letters.find(channel);
  if (at != std::string::npos) result.batch_stride = strides[at] * channels_of_group;
  return result;
}

// The properties of the result that its form needs in addition to m, n and k: its description, its index
// letters, the letter of its channels, and the channels of a group.
struct ResultShape {
  TensorDescription const& tensor;
  std::string letters;
  char channel;
  Index channels_of_group;
};

void add_results(ConvolutionForm& form, ConvolutionProblem const& problem, ResultShape const& result) {
  auto const strides = [](TensorDescription const& tensor) {
    std::vector<Index> list;
    for (int d = 0; d < tensor.layout.rank(); ++d) list.push_back(stride_of(tensor, d));
    return list;
  };
  auto const made = [&](TensorDescription const& tensor, std::string const& letters) {
    // A letter that occurs twice advances along both dimensions.
    ResultWalk all;
    std::vector<Index> const each = strides(tensor);
    for (std::size_t d = 0; d < letters.size(); ++d) {
      ResultWalk const one = result_walk(std::string(1, letters[d]), {each[d]}, form.m, form.n,
                                         result.channels_of_group, result.channel);
      for (int i = 0; i < 26; ++i) all.walk.of[i].stride += one.walk.of[i].stride;
      all.base += one.base;
      all.batch_stride += one.batch_stride;
    }
    return digit_form(tensor, form.m, form.n, all.walk, all.base, all.batch_stride);
  };
  form.d = made(result.tensor, result.letters);
  auto const& expression = problem.epilogue.expression;
  for (std::size_t i = 0; i < problem.epilogue.operands.size(); ++i) {
    std::string letters;
    for (std::string const& index : expression.operands()[i].indices) letters += index;
    form.operands.push_back(made(problem.epilogue.operands[i], letters));
  }
  for (TensorDescription const& store : problem.epilogue.stores)
    form.stores.push_back(made(store, result.letters));
}

void add_types(ConvolutionForm& form, ConvolutionProblem const& problem, DataType a, DataType b) {
  form.groups = problem.groups;
  form.sum = accumulator_type(a, b);
  form.identity = problem.epilogue.expression == epilogue::Expression();
  form.evaluation = form.sum;
  if (form.sum == DataType::s32) form.evaluation = form.identity ? DataType::s32 : DataType::f64;
  for (TensorDescription const& operand : problem.epilogue.operands)
    if (operand.type == DataType::f64) form.evaluation = DataType::f64;
}

// True if exchanging m and n makes the result contiguous along n.
bool is_better_swapped(ProductIndex const& m, ProductIndex const& n, Walk const& result) {
  return std::abs(result.along(m[2].letter).stride) == 1 && m[2].extent > 1 &&
         std::abs(result.along(n[2].letter).stride) != 1;
}

// Sets a and b, whose outer indices are m and n, and exchanges them if that is better for the result.
void set_sides(ConvolutionForm& form, ProductIndex const& m, ProductIndex const& n, WindowForm const& a,
               WindowForm const& b, Walk const& result) {
  form.swapped = is_better_swapped(m, n, result);
  form.m = form.swapped ? n : m;
  form.n = form.swapped ? m : n;
  form.a = form.swapped ? b : a;
  form.b = form.swapped ? a : b;
}

// The strides of x by window and tap indices.
Walk image_walk(ConvolutionProblem const& p, SpatialAxis const& rows, SpatialAxis const& columns) {
  Walk x;
  x['n'].stride = stride_of(p.x, 0);
  x['c'].stride = stride_of(p.x, 1);
  x['p'] = {rows.stride * stride_of(p.x, 2), to_int(rows.stride), 0};
  x['q'] = {columns.stride * stride_of(p.x, 3), 0, to_int(columns.stride)};
  x['r'] = {rows.dilation * stride_of(p.x, 2), to_int(rows.dilation), 0};
  x['s'] = {columns.dilation * stride_of(p.x, 3), 0, to_int(columns.dilation)};
  return x;
}

ConvolutionForm forward_form(ConvolutionProblem const& p, DepthOrder order) {
  Index const channels = p.x.extent(1) / p.groups, filters = p.y.extent(1) / p.groups;
  SpatialAxis const rows = spatial_axis(p, 0), columns = spatial_axis(p, 1);
  Walk const x = image_walk(p, rows, columns);
  Walk w, y;
  w['k'].stride = stride_of(p.w, 0);
  w['c'].stride = stride_of(p.w, 1);
  w['r'].stride = stride_of(p.w, 2);
  w['s'].stride = stride_of(p.w, 3);
  for (int d = 0; d < 4; ++d) y["nkpq"[d]].stride = stride_of(p.y, d);

  ProductIndex const pixels =
      ordered({{{'n', p.y.extent(0), 0, 1}, {'p', rows.outputs, 0, 1}, {'q', columns.outputs, 0, 1}}}, y);
  ProductIndex const outputs{{{}, {}, {'k', filters, 0, 1}}};
  ConvolutionForm form;
  form.k = {{{'r', rows.taps, 0, 1}, {'s', columns.taps, 0, 1}, {'c', channels, 0, 1}}};
  if (order == DepthOrder::as_the_filter_lies) form.k = ordered(form.k, w);
  Index const base = -rows.pad * stride_of(p.x, 2) - columns.pad * stride_of(p.x, 3);
  WindowForm const image =
      with_window(window_form(p.x, pixels, form.k, x, base, group_stride(p, p.x, 1, channels)), pixels,
                  form.k, window_of(rows, columns));
  WindowForm const filter = window_form(p.w, outputs, form.k, w, 0, group_stride(p, p.w, 0, filters));
  set_sides(form, pixels, outputs, image, filter, y);
  form.image_is_a = !form.swapped;
  add_types(form, p, form.a.type, form.b.type);
  add_results(form, p, {p.y, "nkpq", 'k', filters});
  return form;
}

// One phase along one axis: the pixels h = first + i * stride of dx, the taps r = first_tap + r' * tap_step
// that reach them, and the windows p = origin + i - r' * back that they come from.
struct Parity {
  Index first, pixels, stride;
  Index first_tap, taps, tap_step;
  Index origin, back;
};
// Whether the windows of a phase reach beyond the `extent` rows or columns of dy.
bool leaves_image(Parity const& phase, Index extent) {
  if (phase.taps == 0) return false;
  return phase.origin < (phase.taps - 1) * phase.back || phase.origin + phase.pixels > extent;
}
std::vector<Parity> parities_of(SpatialAxis const& axis) {
  Index const common = std::gcd(axis.stride, axis.dilation);
  std::vector<Parity> list;
  for (Index first = 0; first < std::min(axis.stride, axis.image); ++first) {
    Parity parity{first,       (axis.image - first + axis.stride - 1) / axis.stride,
                  axis.stride, 0,
                  0,           axis.stride / common,
                  0,           axis.dilation / common};
    Index tap = 0;
    auto const start = [&] { return first + axis.pad - tap * axis.dilation; };
    while (tap < std::min(axis.taps, parity.tap_step) && start() % axis.stride != 0) ++tap;
    if (tap < axis.taps && start() % axis.stride == 0) {
      parity.first_tap = tap;
      parity.taps = (axis.taps - tap + parity.tap_step - 1) / parity.tap_step;
      parity.origin = start() / axis.stride;
    }
    list.push_back(parity);
  }
  return list;
}

// `windowed`: whether windows of some phase reach beyond dy.
ConvolutionForm data_form(ConvolutionProblem const& p, Parity const& rows, Parity const& columns,
                          bool windowed, DepthOrder order) {
  Index const channels = p.x.extent(1) / p.groups, filters = p.y.extent(1) / p.groups;
  Walk dy, w, dx;
  dy['n'].stride = stride_of(p.y, 0);
  dy['c'].stride = stride_of(p.y, 1);  // along the depth, 'c' counts channels of dy
  dy['p'] = {stride_of(p.y, 2), 1, 0};
  dy['q'] = {stride_of(p.y, 3), 0, 1};
  dy['r'] = {-rows.back * stride_of(p.y, 2), to_int(-rows.back), 0};
  dy['s'] = {-columns.back * stride_of(p.y, 3), 0, to_int(-columns.back)};
  w['c'].stride = stride_of(p.w, 0);
  w['k'].stride = stride_of(p.w, 1);
  w['r'].stride = rows.tap_step * stride_of(p.w, 2);
  w['s'].stride = columns.tap_step * stride_of(p.w, 3);
  Index const w_base = rows.first_tap * stride_of(p.w, 2) + columns.first_tap * stride_of(p.w, 3);
  for (int d = 0; d < 4; ++d) dx["nkpq"[d]].stride = stride_of(p.x, d);
  dx['p'].stride *= rows.stride, dx['q'].stride *= columns.stride;

  ProductIndex const pixels = ordered({{{'n', p.x.extent(0), 0, 1},
                                        {'p', rows.pixels, rows.first, rows.stride},
                                        {'q', columns.pixels, columns.first, columns.stride}}},
                                      dx);
  ProductIndex const outputs{{{}, {}, {'k', channels, 0, 1}}};
  ConvolutionForm form;
  form.k = {{{'r', rows.taps, 0, 1}, {'s', columns.taps, 0, 1}, {'c', filters, 0, 1}}};
  if (order == DepthOrder::as_the_filter_lies) form.k = ordered(form.k, w);
  Index const base = rows.origin * stride_of(p.y, 2) + columns.origin * stride_of(p.y, 3);
  ImageWindow const window{rows.origin, columns.origin, p.y.extent(2), p.y.extent(3), windowed};
  WindowForm const image = with_window(
      window_form(p.y, pixels, form.k, dy, base, group_stride(p, p.y, 1, filters)), pixels, form.k, window);
  WindowForm const filter = window_form(p.w, outputs, form.k, w, w_base, group_stride(p, p.w, 0, filters));
  set_sides(form, pixels, outputs, image, filter, dx);
  form.image_is_a = !form.swapped;
  add_types(form, p, form.a.type, form.b.type);
  add_results(form, p, {p.x, "nkpq", 'k', channels});
  return form;
}

ConvolutionForm filter_form(ConvolutionProblem const& p) {
  Index const channels = p.x.extent(1) / p.groups, filters = p.y.extent(1) / p.groups;
  SpatialAxis const rows = spatial_axis(p, 0), columns = spatial_axis(p, 1);
  Walk const x = image_walk(p, rows, columns);
  Walk dy, dw;
  dy['n'].stride = stride_of(p.y, 0);
  dy['k'].stride = stride_of(p.y, 1);
  dy['p'].stride = stride_of(p.y, 2);
  dy['q'].stride = stride_of(p.y, 3);
  for (int d = 0; d < 4; ++d) dw["kcrs"[d]].stride = stride_of(p.w, d);

  ProductIndex const taps =
      ordered({{{'r', rows.taps, 0, 1}, {'s', columns.taps, 0, 1}, {'c', channels, 0, 1}}}, x);
  ProductIndex const outputs{{{}, {}, {'k', filters, 0, 1}}};
  ConvolutionForm form;
  form.k =
      ordered({{{'n', p.y.extent(0), 0, 1}, {'p', rows.outputs, 0, 1}, {'q', columns.outputs, 0, 1}}}, dy);
  Index const base = -rows.pad * stride_of(p.x, 2) - columns.pad * stride_of(p.x, 3);
  WindowForm const image =
      with_window(window_form(p.x, taps, form.k, x, base, group_stride(p, p.x, 1, channels)), taps, form.k,
                  window_of(rows, columns));
  WindowForm const gradient = window_form(p.y, outputs, form.k, dy, 0, group_stride(p, p.y, 1, filters));
  set_sides(form, outputs, taps, gradient, image, dw);
  form.image_is_a = form.swapped;
  add_types(form, p, form.a.type, form.b.type);
  add_results(form, p, {p.w, "kcrs", 'k', filters});
  return form;
}

}  // namespace

bool pixels_begin_at(TensorDescription const& tensor, int bytes) {
  bool all = true;
  for (int const d : {0, 2, 3})
    all = all && (tensor.extent(d) <= 1 || tensor.layout.stride[d] * size_of(tensor.type) % bytes == 0);
  return all;
}

Index stride_of(TensorDescription const& tensor, int dimension) {
  return tensor.extent(dimension) > 1 ? tensor.layout.stride[dimension] : 0;
}

Index ConvolutionForm::position(char letter, Index group, Index at_m, Index at_n) const {
  for (bool const in_m : {true, false}) {
    ProductIndex const& index = in_m ? m : n;
    Index const at = in_m ? at_m : at_n;
    Index const digit[3] = {at / (index[1].extent * index[2].extent), at / index[2].extent % index[1].extent,
                            at % index[2].extent};
    for (std::size_t i = 0; i < 3; ++i)
      if (index[i].letter == letter)
        return index[i].first + digit[i] * index[i].step + (letter == 'k' ? group * index[i].extent : 0);
  }
  return 0;
}

std::vector<ConvolutionForm> forms_of(ConvolutionProblem const& problem, DepthOrder order) {
  if (problem.direction == ConvolutionDirection::forward) return {forward_form(problem, order)};
  if (problem.direction == ConvolutionDirection::filter) return {filter_form(problem)};
  std::vector<Parity> const all_rows = parities_of(spatial_axis(problem, 0)),
                            all_columns = parities_of(spatial_axis(problem, 1));
  auto const leaves = [&](std::vector<Parity> const& phases, Index extent) {
    return std::any_of(phases.begin(), phases.end(),
                       [&](Parity const& phase) { return leaves_image(phase, extent); });
  };
  bool const windowed = leaves(all_rows, problem.y.extent(2)) || leaves(all_columns, problem.y.extent(3));
  std::vector<ConvolutionForm> forms;
  for (Parity const& rows : all_rows)
    for (Parity const& columns : all_columns)
      forms.push_back(data_form(problem, rows, columns, windowed, order));
  if (forms.empty()) forms.push_back(whole_gradient_form(problem));  // a form without pixels
  return forms;
}

ConvolutionForm whole_gradient_form(ConvolutionProblem const& problem) {
  auto const all = [](SpatialAxis const& axis) { return Parity{0, axis.image, 1, 0, axis.taps, 1, 0, 0}; };
  return data_form(problem, all(spatial_axis(problem, 0)), all(spatial_axis(problem, 1)), true,
                   DepthOrder::taps_first);
}

ConvolutionForm slice_of(ConvolutionForm form, int digit, Index first, Index count) {
  ProductDigit& of_image = form.image_outer()[static_cast<std::size_t>(digit)];
  of_image.first += first * of_image.step;
  of_image.extent = count;
  WindowForm& image = form.image();
  IndexStrides& outer = image.arguments.outer;
  IndexStride const step = digit == 0 ? outer.first : outer.middle;
  image.base += first * step.stride;
  image.arguments.top += to_int(first * step.down);
  image.arguments.left += to_int(first * step.right);
  if (digit == 1) outer.extents.middle = Divisor(count);
  auto const move = [&](DigitForm& result) {
    DigitArguments& arguments = result.arguments;
    result.base += first * (form.image_is_a ? arguments.row_stride : arguments.column_stride)[digit];
    if (digit == 1)
      (form.image_is_a ? arguments.row_extents : arguments.column_extents).middle = Divisor(count);
  };
  move(form.d);
  for (DigitForm& operand : form.operands) move(operand);
  for (DigitForm& store : form.stores) move(store);
  return form;
}

ConvolutionForm exchanged(ConvolutionForm form) {
  std::swap(form.m, form.n);
  std::swap(form.a, form.b);
  form.swapped = !form.swapped;
  form.image_is_a = !form.image_is_a;
  auto const exchange = [](DigitForm& result) {
    std::swap(result.arguments.row_extents, result.arguments.column_extents);
    std::swap(result.arguments.row_stride, result.arguments.column_stride);
    std::swap(result.by_m, result.by_n);
    result.width = 1;
  };
  exchange(form.d);
  for (DigitForm& operand : form.operands) exchange(operand);
  for (DigitForm& store : form.stores) exchange(store);
  return form;
}

ConvolutionForm with_all_channels(ConvolutionForm form) {
  ProductDigit& channel = (form.image_is_a ? form.n : form.m)[2];
  channel.extent *= form.groups;
  form.groups = 1;
  auto const steps = [](DigitExtents const& extents, Index const(&stride)[3]) {
    return IndexStrides{extents, {stride[0]}, {stride[1]}, {stride[2]}};
  };
  auto const widen = [&](DigitForm& result) {
    DigitArguments& arguments = result.arguments;
    (form.image_is_a ? arguments.column_extents : arguments.row_extents).last =
        Divisor(std::max<Index>(1, channel.extent));
    arguments.batch_stride = 0;
    if (result.by_n)
      result.width = width_along(form.n, steps(arguments.column_extents, arguments.column_stride),
                                 steps(arguments.row_extents, arguments.row_stride), result.base, 0,
                                 result.type, result.alignment);
  };
  widen(form.d);
  for (DigitForm& operand : form.operands) widen(operand);
  for (DigitForm& store : form.stores) widen(store);
  return form;
}

ConvolutionForm all_channels_form(ConvolutionProblem const& problem) {
  return with_all_channels(problem.direction == ConvolutionDirection::data ? whole_gradient_form(problem)
                                                                           : forms_of(problem).front());
}

ConvolutionForm with_merged_rows(ConvolutionForm form) {
  auto const has_constant_step = [&](DigitForm const& result) {
    Index const* const stride = result.arguments.row_stride;
    return !result.by_m ||
           ((form.m[1].extent == 1 || stride[1] == form.m[2].extent * stride[2]) &&
            (form.m[0].extent == 1 || stride[0] == form.m[1].extent * form.m[2].extent * stride[2]));
  };
  if (has_constant_step(form.d) && std::ranges::all_of(form.operands, has_constant_step) &&
      std::ranges::all_of(form.stores, has_constant_step))
    form.m[0].letter = form.m[1].letter = '1';
  return form;
}

ConvolutionForm stepwise(ConvolutionForm form, int block_k) {
  Index const padded = (form.k[2].extent + block_k - 1) / block_k * block_k;
  form.k[2].extent = padded;
  form.a.arguments.depth.extents.last = form.b.arguments.depth.extents.last =
      Divisor(std::max<Index>(1, padded));
  return form;
}

}  // namespace cosmati::plan
