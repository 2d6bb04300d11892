// Dropout: the mask is generated a chunk at a time, in the row-major order of the indices.
#include <algorithm>
#include <memory>

#include "cosmati/core/philox.h"
#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/loop_nest.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu {
namespace {

constexpr Index dropout_chunk = 512;  // elements; a multiple of the four words of a Philox block

// Generates the random words of elements [first, first + dropout_chunk); `first` is a multiple of 4.
COSMATI_ALWAYS_INLINE void draw_words(PhiloxKeys const& seed, unsigned long long step,
                                      unsigned long long first, unsigned* words) {
  for (unsigned block = 0; block < dropout_chunk / 4; ++block) {
    PhiloxBlock const drawn = philox_block(seed, step, first / 4 + block);
    for (unsigned i = 0; i < 4; ++i) words[4 * block + i] = drawn.word[i];
  }
}

void draw(PhiloxKeys const& seed, unsigned long long step, unsigned long long first, unsigned* words) {
  Clones<draw_words>::call(seed, step, first, words);
}

template <class Real>
COSMATI_ALWAYS_INLINE void keep(unsigned const* words, unsigned long long threshold, Real divisor,
                                Real* values, Index count) {
  for (Index i = 0; i < count; ++i) values[i] = words[i] >= threshold ? values[i] / divisor : Real(0);
}
template <class Real>
void keep_elements(unsigned const* words, unsigned long long threshold, Real divisor, Real* values,
                   Index count) {
  Clones<keep<Real>>::call(words, threshold, divisor, values, count);
}

class DropoutKernel final : public HostKernel<DropoutProblem> {
 public:
  DropoutKernel(DropoutProblem const& problem, int threads)
      : problem_(problem),
        nest_(make_loop_nest<3>({row_major(problem.x.shape()), problem.x.layout, problem.y.layout})),
        threads_(nest_.size() < 4 * dropout_chunk ? 1 : threads) {}

  void run(DropoutProblem::Arguments const& arguments, std::byte*) const override {
    bool const in_double = problem_.x.type == DataType::f64 || problem_.x.type == DataType::s32;
    parallel_parts(threads_, [&](int part, int parts) {
      auto const [first, last] = share(nest_.size(), part, parts, dropout_chunk);
      for (Index at = first; at < last; at += dropout_chunk)
        in_double ? drop<double>(arguments, at, std::min(dropout_chunk, last - at))
                  : drop<float>(arguments, at, std::min(dropout_chunk, last - at));
    });
  }

 private:
  template <class Real>
  void drop(DropoutProblem::Arguments const& arguments, Index first, Index count) const {
    alignas(64) unsigned words[dropout_chunk];
    alignas(64) Real values[dropout_chunk];
    DropoutMask const mask(problem_.probability, problem_.seed, arguments.step);
    for_each_piece(first, count, [&](Index linear, Index at, Index length) {
      read_row(problem_.x.type, element(problem_.x.type, arguments.x, nest_.offset(1, linear)),
               nest_.inner_stride(1), values + at, length);
    });
    draw(mask.seed, mask.step, static_cast<unsigned long long>(first), words);
    keep_elements(words, mask.threshold, static_cast<Real>(1 - problem_.probability), values, count);
    for_each_piece(first, count, [&](Index linear, Index at, Index length) {
      write_row(values + at, problem_.y.type, element(problem_.y.type, arguments.y, nest_.offset(2, linear)),
                nest_.inner_stride(2), length);
    });
  }

  // Calls piece(linear index, position in the chunk, length) for each part of a row in the chunk.
  template <class Piece>
  void for_each_piece(Index first, Index count, Piece const& piece) const {
    for (Index done = 0; done < count;) {
      Index const linear = first + done;
      Index const length = std::min(nest_.inner() - linear % nest_.inner(), count - done);
      piece(linear, done, length);
      done += length;
    }
  }

  DropoutProblem problem_;
  LoopNest<3> nest_;  // row-major, x, y
  int threads_;
};

}  // namespace

template <>
Candidate<DropoutProblem> own_candidate() {
  return {"vectorized",
          {},
          nullptr,
          [](Plan<DropoutProblem> const& plan) -> std::unique_ptr<Kernel<DropoutProblem>> {
            return std::make_unique<DropoutKernel>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
