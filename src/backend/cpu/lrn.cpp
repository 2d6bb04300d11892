// Local response normalization of any data type and layout, forward and backward. Each channel window is
// summed from scratch: a sliding sum, which adds one channel and subtracts another, would keep the rounding
// error of the largest value that it has contained, and a NaN forever.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "cosmati/epilogue/parse.h"
#include "cosmati/epilogue/vector_program.h"
#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/loop_nest.h"
#include "src/backend/cpu/lrn_loops.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::cpu {
namespace {

constexpr Index block_elements = 8192;     // per array of a block; the arrays of a block stay in the L2 cache
constexpr Index lrn_small_work = 1 << 12;  // elements processed in the time needed to start a second thread
constexpr int lrn_arrays = 6;

// The unit of work: all channels of some pixels. Either the channels of a pixel are contiguous (step = 1, one
// pixel after another), or the pixels are, and `step` pixels of each channel form a row. The arrays of a
// block have room for zeros on both sides of a pixel's channels, so that windows at the edges need no special
// case.
struct LrnBlock {
  Index first;   // index of the first pixel in the loop nest
  Index pixels;  // stored consecutively
  Index step;    // distance between adjacent channels
};

class LrnKernel final : public HostKernel<LrnProblem> {
 public:
  explicit LrnKernel(LrnProblem const& problem, int threads)
      : problem_(problem),
        forward_(problem.direction == Direction::forward),
        channels_(problem.x.extent(1)),
        before_(std::min((problem.size - 1) / 2, channels_ - 1)),
        after_(std::min(problem.size / 2, channels_ - 1)),
        threads_(problem.x.layout.size() < lrn_small_work ? 1 : threads) {
    Layout const x = without_channels(problem.x), y = without_channels(problem.y);
    nest_ = make_loop_nest<3>({x, y, forward_ ? y : without_channels(problem.dx)});
    by_pixels_ = nest_.rank > 0 && nest_.inner_stride(0) < problem.x.layout.stride[1];
    Index const pitch = channels_ + before_ + after_;
    Index const fitting = std::max<Index>(block_elements / pitch, 1);
    block_pixels_ =
        by_pixels_ ? std::min(nest_.inner(), std::max<Index>(fitting, 16)) : std::min(nest_.size(), fitting);
    array_bytes_ = round_up(static_cast<std::size_t>(pitch * block_pixels_) * sizeof(double));
    if (lrn_exponent(problem.beta) == LrnExponent::any) {
      power_f32_ = std::make_unique<epilogue::VectorProgram<float>>(epilogue::parse("pow(acc, exponent)"));
      power_f64_ = std::make_unique<epilogue::VectorProgram<double>>(epilogue::parse("pow(acc, exponent)"));
      scratch_bytes_ = round_up(std::max(power_f32_->scratch_bytes(), power_f64_->scratch_bytes()));
    }
  }

  std::size_t workspace_bytes() const { return static_cast<std::size_t>(threads_) * part_bytes(); }

  void run(LrnProblem::Arguments const& arguments, std::byte* workspace) const override {
    Index const pieces = by_pixels_ ? pieces_of(nest_.inner()) : pieces_of(nest_.size());
    Index const blocks = by_pixels_ ? nest_.rows() * pieces : pieces;
    parallel_parts(threads_, [&](int part, int parts) {
      std::byte* const memory = workspace + static_cast<std::size_t>(part) * part_bytes();
      auto const [begin, end] = share(blocks, part, parts);
      for (Index i = begin; i < end; ++i) {
        Index const length = by_pixels_ ? nest_.inner() : nest_.size();
        Index const start = i % pieces * block_pixels_;
        Index const count = std::min(block_pixels_, length - start);
        Index const first = i / pieces * length + start;
        LrnBlock const block = by_pixels_ ? LrnBlock{first, 1, count} : LrnBlock{first, count, 1};
        if (problem_.x.type != DataType::f64 && compute<float>(arguments, block, memory)) continue;
        compute<double>(arguments, block, memory);
      }
    });
  }

 private:
  Layout without_channels(TensorDescription const& t) const {
    Layout layout = t.layout;
    layout.shape[1] = 1;
    return layout;
  }
  std::size_t part_bytes() const { return lrn_arrays * array_bytes_ + scratch_bytes_; }
  Index pieces_of(Index pixels) const { return (pixels + block_pixels_ - 1) / block_pixels_; }
  Index pitch() const { return channels_ + before_ + after_; }
  // The number of elements from the first to the last result of a block, including the gaps between pixels.
  Index results(LrnBlock const& b) const {
    return b.pixels == 1 ? channels_ * b.step : (b.pixels - 1) * pitch() + channels_;
  }

  // Calls visit(pointer to elements of t, their stride, their offset in the block's array, their number) per
  // row.
  template <class Data, class Visit>
  void for_each_row(LrnBlock const& b, int tensor, TensorDescription const& t, Data* data,
                    Visit const& visit) const {
    Index const along = t.layout.stride[1];
    if (b.step > 1 || by_pixels_) {
      Index const at = nest_.offset(tensor, b.first);
      for (Index c = 0; c < channels_; ++c)
        visit(element(t.type, data, at + c * along), nest_.inner_stride(tensor), c * b.step, b.step);
    } else {
      for (Index p = 0; p < b.pixels; ++p)
        visit(element(t.type, data, nest_.offset(tensor, b.first + p)), along, p * pitch(), channels_);
    }
  }
  // Clears the padding before, between and after the channels of each pixel; `before` channels precede the
  // first.
  template <class Real>
  void clear_edges(LrnBlock const& b, Index before, Real* array) const {
    Index const gap = pitch() - channels_;
    std::fill_n(array, before * b.step, Real(0));
    for (Index p = 0; p < b.pixels; ++p)
      std::fill_n(array + (p * pitch() + before + channels_) * b.step,
                  (p + 1 < b.pixels ? gap : gap - before) * b.step, Real(0));
  }
  template <class Real>
  void load(LrnBlock const& b, int tensor, TensorDescription const& t, void const* data, Real* array) const {
    bool const plain = t.type == type_of<Real>;
    for_each_row(b, tensor, t, data, [&](void const* from, Index stride, Index at, Index count) {
      if (plain && stride == 1)  // skips read_row()'s dispatch: one pixel's channels are a short row
        std::memcpy(array + at, from, static_cast<std::size_t>(count) * sizeof(Real));
      else
        read_row(t.type, from, stride, array + at, count);
    });
  }
  template <class Real>
  void store(LrnBlock const& b, int tensor, TensorDescription const& t, Real const* array, void* data) const {
    bool const plain = t.type == type_of<Real>;
    for_each_row(b, tensor, t, data, [&](void* to, Index stride, Index at, Index count) {
      if (plain && stride == 1)
        std::memcpy(to, array + at, static_cast<std::size_t>(count) * sizeof(Real));
      else
        write_row(array + at, t.type, to, stride, count);
    });
  }

  // powers = bases to the power of -beta
  template <class Real>
  void raise(Real const* bases, Real* powers, Index count, std::byte* scratch) const {
    auto const exponent = lrn_exponent(problem_.beta);
    if (exponent != LrnExponent::any) return lrn_powers(exponent, bases, powers, count);
    Real const number = static_cast<Real>(-problem_.beta);
    epilogue::VectorArguments<Real> arguments;
    arguments.accumulator = {bases, 1};
    arguments.scalars = &number;
    arguments.result = powers;
    if constexpr (std::is_same_v<Real, float>)
      power_f32_->run(count, arguments, scratch);
    else
      power_f64_->run(count, arguments, scratch);
  }

  // Returns false, without having written a result, if an intermediate value does not fit in a float.
  template <class Real>
  bool compute(LrnProblem::Arguments const& arguments, LrnBlock const& b, std::byte* memory) const {
    auto const array = [&](std::size_t i) { return reinterpret_cast<Real*>(memory + i * array_bytes_); };
    std::byte* const scratch = memory + lrn_arrays * array_bytes_;
    Real *const padded = array(0), *const squares = array(1), *const bases = array(2),
                *const powers = array(3), *const dy = array(4), *const sums = array(5);
    Index const count = results(b), terms = before_ + after_ + 1;
    Real const* const x = padded + before_ * b.step;
    clear_edges(b, before_, padded);
    load(b, 0, problem_.x, arguments.x, padded + before_ * b.step);
    Real const k = static_cast<Real>(problem_.k),
               share = static_cast<Real>(problem_.alpha / static_cast<double>(problem_.size));
    if (auto const exponent = lrn_exponent(problem_.beta); forward_ && lrn_is_one_pass(exponent, terms)) {
      bool const one_held = lrn_forward(exponent, padded, b.step, terms, before_, k, share, sums, count);
      if (std::is_same_v<Real, float> && !one_held) return false;
      store(b, 1, problem_.y, sums, arguments.y);
      return true;
    }
    lrn_squares(padded, squares, count + (terms - 1) * b.step);
    lrn_window_sums(squares, b.step, terms, sums, count);
    bool const held = lrn_bases(sums, k, share, bases, count);
    if (std::is_same_v<Real, float> && !held) return false;
    raise(bases, powers, count, scratch);
    if (forward_) {
      lrn_products(x, powers, sums, count);
      store(b, 1, problem_.y, sums, arguments.y);
      return true;
    }
    // The window of the gradient is mirrored: it has after_ channels before its own and before_ after it.
    std::fill_n(dy, count, Real(0));
    load(b, 1, problem_.y, arguments.dy, dy);
    Real* const parts = squares;
    lrn_gradient_parts(dy, x, powers, bases, parts + after_ * b.step, count);
    clear_edges(b, after_, parts);
    lrn_window_sums(parts, b.step, terms, sums, count);
    double const factor = 2 * problem_.alpha * problem_.beta / static_cast<double>(problem_.size);
    bool const finite = lrn_gradients(dy, powers, x, static_cast<Real>(factor), sums, count);
    if (std::is_same_v<Real, float> && !finite) return false;
    store(b, 2, problem_.dx, sums, arguments.dx);
    return true;
  }

  LrnProblem problem_;
  bool forward_;
  Index channels_;
  Index before_, after_;  // extents of a channel's window before and after it
  int threads_;
  LoopNest<3> nest_;  // over pixels: x, y or dy, dx
  bool by_pixels_ = false;
  Index block_pixels_ = 1;
  std::size_t array_bytes_ = 0, scratch_bytes_ = 0;
  std::unique_ptr<epilogue::VectorProgram<float>> power_f32_;  // for unusual exponents
  std::unique_ptr<epilogue::VectorProgram<double>> power_f64_;
};

std::string violates_lrn_size(LrnProblem const& problem, Device const&) {
  return problem.x.layout.size() > 0 ? "" : "x " + to_string(problem.x.shape()) + " is empty";
}

}  // namespace

template <>
Candidate<LrnProblem> own_candidate() {
  return {"by_windows",
          {{violates_lrn_size}},
          [](LrnProblem const& problem, Device const& device) {
            return LrnKernel(problem, device.threads).workspace_bytes();
          },
          [](Plan<LrnProblem> const& plan) -> std::unique_ptr<Kernel<LrnProblem>> {
            return std::make_unique<LrnKernel>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
