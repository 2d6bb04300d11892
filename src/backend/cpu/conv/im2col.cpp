// Convolution in double precision: im2col in slices, multiplied by OpenBLAS. The column matrix has a row for
// each (c, r, s) of a group and a column for each (p, q); only one slice of it exists at a time.
#include <algorithm>
#include <memory>
#include <optional>

#include "cosmati/epilogue/parse.h"
#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/converted.h"
#include "src/backend/cpu/gemm/openblas.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/pointwise.h"
#include "src/backend/cpu/pooling_lines.h"
#include "src/backend/cpu/reduce.h"
#include "src/backend/cpu/runtime/cache.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::cpu {
namespace {

// A slice of the column matrix stays in the L2 cache; limited to the largest size that was measured.
Index slice_elements(Device const& device) {
  return std::min<Index>(second_cache_bytes(device) / Index{sizeof(double)}, 1 << 17);
}

using Problem = ConvolutionProblem;

class Im2colKernel final : public HostKernel<Problem> {
 public:
  Im2colKernel(Problem const& problem, Device const& device)
      : problem_(problem),
        threads_(device.threads),
        rows_(axis(problem, 0)),
        columns_(axis(problem, 1)),
        channels_(problem.x.extent(1) / problem.groups),
        filters_(problem.y.extent(1) / problem.groups),
        taps_(rows_.taps * columns_.taps),
        depth_(channels_ * taps_),
        places_(rows_.outputs * columns_.outputs),
        slice_(std::clamp<Index>(slice_elements(device) / std::max<Index>(depth_, 1),
                                 std::min<Index>(places_, 16), places_)) {
    // The filter and the images are converted to dense double arrays in the workspace.
    auto const dense = [](TensorDescription const& t) { return describe(DataType::f64, t.shape()); };
    w_ = dense(problem.w);
    x_ = dense(problem.x);
    y_ = dense(problem.y);
    if (problem.direction == ConvolutionDirection::forward)
      tail_.emplace(
          epilogue_pointwise(problem.epilogue, epilogue::convolution_indices, y_, {}, problem.y, true),
          threads_);
    if (problem.direction == ConvolutionDirection::data)
      tail_.emplace(
          epilogue_pointwise(problem.epilogue, epilogue::convolution_indices, x_, {}, problem.x, true),
          threads_);
    if (problem.direction == ConvolutionDirection::filter && problem.db.present()) {
      ReduceProblem sum{ReduceOperation::sum, problem.y, {}};
      sum.y = {problem.db.type, {{1, problem.db.extent(0), 1, 1}, {0, problem.db.layout.stride[0], 0, 0}}};
      bias_.emplace(sum, threads_);
    }
  }

  std::size_t workspace_bytes() const {
    std::size_t const last =
        std::max(tail_ ? tail_->workspace_bytes() : 0, bias_ ? bias_->workspace_bytes() : 0);
    return bytes(w_) + bytes(x_) + bytes(y_) + static_cast<std::size_t>(threads_) * slice_bytes() + last;
  }

  void run(Problem::Arguments const& arguments, std::byte* workspace) const override {
    Memory const memory{reinterpret_cast<double*>(workspace),
                        reinterpret_cast<double*>(workspace + bytes(w_)),
                        reinterpret_cast<double*>(workspace + bytes(w_) + bytes(x_)),
                        workspace + bytes(w_) + bytes(x_) + bytes(y_)};
    std::byte* const last = memory.slices + static_cast<std::size_t>(threads_) * slice_bytes();
    bool const filter = problem_.direction == ConvolutionDirection::filter;
    bool const forward = problem_.direction == ConvolutionDirection::forward;
    if (!filter) convert_elements(problem_.w, arguments.w, w_, memory.w, threads_);
    if (!forward) convert_elements(problem_.y, arguments.dy, y_, memory.y, threads_);
    if (problem_.direction != ConvolutionDirection::data)
      convert_elements(problem_.x, arguments.x, x_, memory.x, threads_);
    if (forward) {
      run_forward(memory);
      tail_->run({memory.y, nullptr, arguments.operands, arguments.scalars, arguments.y, arguments.stores},
                 last);
    } else if (filter) {
      run_filter(memory);
      convert_elements(w_, memory.w, problem_.w, arguments.dw, threads_);
      if (bias_) bias_->run(arguments.dy, arguments.db, last);
    } else {
      run_data(memory);
      tail_->run({memory.x, nullptr, arguments.operands, arguments.scalars, arguments.dx, arguments.stores},
                 last);
    }
  }

 private:
  struct Memory {
    double* w;
    double* x;
    double* y;
    std::byte* slices;
  };
  static PoolingAxis axis(Problem const& p, int i) {
    return {p.x.extent(2 + i), p.y.extent(2 + i), p.w.extent(2 + i), p.stride[i],
            p.pad_begin[i],    p.pad_end[i],      p.dilation[i]};
  }
  static std::size_t bytes(TensorDescription const& t) {
    return round_up(static_cast<std::size_t>(t.bytes()));
  }
  std::size_t slice_bytes() const {
    return round_up(static_cast<std::size_t>(depth_ * slice_) * sizeof(double));
  }
  double* slice_of(Memory const& memory, int part) const {
    return reinterpret_cast<double*>(memory.slices + static_cast<std::size_t>(part) * slice_bytes());
  }
  Index image_size() const { return rows_.image * columns_.image; }

  // Visits the elements of a slice: rows [first_row, last_row) = (c, r, s), output positions [first, last) =
  // (p, q). Calls inside(element of the slice, element of x, count) for each run within one row of y whose
  // input lies inside the image, and outside(element of the slice, count) for the rest, which is padding.
  template <class Inside, class Outside>
  void for_each_run(Range rows, Range places, Inside const& inside, Outside const& outside) const {
    Index const width = places.last - places.first;
    for (Index row = rows.first; row < rows.last; ++row) {
      Index const c = row / taps_, r = row % taps_ / columns_.taps, s = row % columns_.taps;
      Index q_first, q_last;
      columns_.windows_inside(s, q_first, q_last);
      Index const line = (row - rows.first) * width;
      for (Index at = places.first; at < places.last;) {
        Index const p = at / columns_.outputs, q = at % columns_.outputs;
        Index const end = std::min(columns_.outputs, q + places.last - at);
        Index const h = rows_.place(p, r);
        Index const low = rows_.inside(h) ? std::clamp(q_first, q, end) : end;
        Index const high = std::clamp(q_last, low, end);
        Index const start = line + at - places.first - q;
        outside(start + q, low - q);
        if (low < high)
          inside(start + low, c * image_size() + h * columns_.image + columns_.place(low, s), high - low);
        outside(start + high, end - high);
        at += end - q;
      }
    }
  }

  void unfold(double const* x, Range rows, Range places, double* slice) const {
    Index const step = columns_.stride;
    for_each_run(
        rows, places,
        [&](Index at, Index from, Index count) {
          for (Index i = 0; i < count; ++i) slice[at + i] = x[from + i * step];
        },
        [&](Index at, Index count) { std::fill(slice + at, slice + at + count, 0.0); });
  }

  void fold(double const* slice, Range rows, Range places, double* x) const {
    Index const step = columns_.stride;
    for_each_run(
        rows, places,
        [&](Index at, Index to, Index count) {
          for (Index i = 0; i < count; ++i) x[to + i * step] += slice[at + i];
        },
        [](Index, Index) {});
  }

  // y = w * columns for each image, group and slice of output positions.
  void run_forward(Memory const& memory) const {
    Index const slices = (places_ + slice_ - 1) / slice_;
    parallel_parts(threads_, [&](int part, int parts) {
      double* const slice = slice_of(memory, part);
      auto const [first, last] = share(problem_.x.extent(0) * problem_.groups * slices, part, parts);
      for (Index i = first; i < last; ++i) {
        Index const image_group = i / slices, group = image_group % problem_.groups;
        Range const places{i % slices * slice_, std::min(places_, (i % slices + 1) * slice_)};
        Index const width = places.last - places.first;
        unfold(memory.x + image_group * channels_ * image_size(), {0, depth_}, places, slice);
        openblas_product(false, false, filters_, width, depth_, 1, memory.w + group * filters_ * depth_,
                         depth_, slice, width, 0, memory.y + image_group * filters_ * places_ + places.first,
                         places_);
      }
    });
  }

  // columns = w^T * dy, accumulated into dx (col2im); images, groups and channels are divided among the
  // threads.
  void run_data(Memory const& memory) const {
    Index const images = problem_.x.extent(0) * problem_.groups;
    Index const cuts = images >= threads_ ? 1 : std::min<Index>(channels_, threads_);
    parallel_parts(threads_, [&](int part, int parts) {
      double* const slice = slice_of(memory, part);
      auto const [first, last] = share(images * cuts, part, parts);
      for (Index i = first; i < last; ++i) {
        Index const image_group = i / cuts, group = image_group % problem_.groups;
        Range const own = share(channels_, static_cast<int>(i % cuts), static_cast<int>(cuts));
        Range const rows{own.first * taps_, own.last * taps_};
        double* const dx = memory.x + image_group * channels_ * image_size();
        std::fill(dx + own.first * image_size(), dx + own.last * image_size(), 0.0);
        for (Index at = 0; at < places_; at += slice_) {
          Range const places{at, std::min(places_, at + slice_)};
          Index const width = places.last - places.first;
          openblas_product(true, false, rows.last - rows.first, width, filters_, 1,
                           memory.w + group * filters_ * depth_ + rows.first, depth_,
                           memory.y + image_group * filters_ * places_ + at, places_, 0, slice, width);
          fold(slice, rows, places, dx);
        }
      }
    });
  }

  // dw = sum over images and output positions of dy * columns^T; the rows (c, r, s) are divided among the
  // threads.
  void run_filter(Memory const& memory) const {
    Index const images = problem_.x.extent(0);
    parallel_parts(threads_, [&](int part, int parts) {
      double* const slice = slice_of(memory, part);
      Range const rows = share(depth_, part, parts);
      if (rows.first == rows.last) return;
      for (Index group = 0; group < problem_.groups; ++group)
        for (Index n = 0; n < images; ++n)
          for (Index at = 0; at < places_; at += slice_) {
            Index const image_group = n * problem_.groups + group;
            Range const places{at, std::min(places_, at + slice_)};
            Index const width = places.last - places.first;
            unfold(memory.x + image_group * channels_ * image_size(), rows, places, slice);
            openblas_product(false, true, filters_, rows.last - rows.first, width, 1,
                             memory.y + image_group * filters_ * places_ + at, places_, slice, width,
                             n == 0 && at == 0 ? 0 : 1, memory.w + group * filters_ * depth_ + rows.first,
                             depth_);
          }
    });
  }

  Problem problem_;
  int threads_;
  PoolingAxis rows_, columns_;
  Index channels_, filters_, taps_, depth_, places_, slice_;
  TensorDescription w_, x_, y_;
  std::optional<Pointwise> tail_;
  std::optional<Reduction> bias_;
};

std::string violates_im2col(Problem const& p, Device const& device) {
  if (!device.openblas) return "OpenBLAS cannot be opened: " + openblas_description();
  if (p.direction == ConvolutionDirection::bias) return "the direction must be forward, data or filter";
  Index const places = p.y.extent(2) * p.y.extent(3), depth = p.w.extent(1) * p.w.extent(2) * p.w.extent(3);
  if (places > largest_blas_index || depth > largest_blas_index)
    return "an image of y has " + std::to_string(places) + " pixels, a filter " + std::to_string(depth) +
           " elements; each must be below 2^31";
  std::string violation;
  Problem::visit_tensors(p, [&](char const* name, Role, TensorDescription const& t, auto) {
    if (t.layout.size() == 0)
      violation = std::string("tensor ") + name + " " + to_string(t.shape()) + " is empty";
    for (int d = 0; d < t.layout.rank(); ++d)
      if (t.extent(d) > largest_blas_index)
        violation =
            std::string("tensor ") + name + " " + to_string(t.shape()) + ": each extent must be below 2^31";
  });
  return violation;
}

}  // namespace

Candidate<Problem> im2col_candidate() {
  return {"im2col_f64",
          {{violates_im2col}},
          [](Problem const& problem, Device const& device) {
            return Im2colKernel(problem, device).workspace_bytes();
          },
          [](Plan<Problem> const& plan) -> std::unique_ptr<Kernel<Problem>> {
            return std::make_unique<Im2colKernel>(plan.problem, plan.device);
          }};
}

}  // namespace cosmati::cpu
