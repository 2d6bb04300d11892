// Pointwise: runs a VectorProgram on chunks of elements; streams that are not contiguous or have another data
// type pass through buffers.
#include "src/backend/cpu/pointwise.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cosmati/epilogue/vector_program.h"
#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/loop_nest.h"
#include "src/backend/cpu/runtime/parallel.h"

namespace cosmati::cpu {
namespace {

constexpr int max_streams =
    3 + max_epilogue_operands + max_epilogue_stores;  // 3: result, accumulator, source
constexpr Index largest_chunk = 1024;                 // elements
constexpr Index shortest_row = 128;                   // if rows are shorter, a chunk holds several
constexpr Index small_map = 1 << 13;  // elements processed in the time needed to start a second thread

// How the program accesses a chunk of a tensor.
enum class Access : unsigned char {
  direct,    // in place
  constant,  // one value
  periodic,  // the same for every row; loaded once
  buffered,  // copied, and converted if necessary
};

struct StreamPlan {
  DataType type = DataType::f32;
  Access access = Access::direct;
  int tensor = 0;
};

std::size_t round_up(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace

class Pointwise::Implementation {
 public:
  virtual ~Implementation() = default;
  virtual std::size_t workspace_bytes() const = 0;
  virtual void run(PointwiseArguments const& arguments, std::byte* workspace) const = 0;
};

namespace {

template <class Real>
class Evaluation final : public Pointwise::Implementation {
 public:
  Evaluation(PointwiseProblem const& problem, int threads)
      : program_(problem.expression), scalars_(problem.expression.scalars().size()), threads_(threads) {
    std::array<Layout, max_streams> layouts;
    layouts.fill(problem.result.layout);
    std::size_t next = 0;
    auto const add = [&](std::vector<StreamPlan>& list, TensorDescription const& description) {
      list.push_back({description.type, Access::direct, static_cast<int>(next)});
      layouts[next++] = description.layout;
    };
    add(outputs_, problem.result);
    for (auto const& description : problem.stores) add(outputs_, description);
    add(inputs_, problem.accumulator.present() ? problem.accumulator : problem.result);
    add(inputs_, problem.source.present() ? problem.source : problem.result);
    for (auto const& description : problem.operands) add(inputs_, description);
    nest_ = make_loop_nest<max_streams>(layouts);
    by_rows_ = nest_.inner() >= shortest_row;
    chunk_ = by_rows_ ? std::min(largest_chunk, nest_.inner())
                      : std::max<Index>(largest_chunk / std::max<Index>(nest_.inner(), 1), 1) * nest_.inner();
    for (StreamPlan& stream : inputs_) stream.access = access(stream);
    for (StreamPlan& stream : outputs_) stream.access = access(stream);
    if (nest_.size() < small_map) threads_ = 1;
    buffer_bytes_ = round_up(static_cast<std::size_t>(chunk_) * sizeof(Real));
    streams_bytes_ =
        round_up(inputs_.size() * sizeof(epilogue::Stream<Real>) + outputs_.size() * sizeof(Real*));
    part_bytes_ = streams_bytes_ + (inputs_.size() + outputs_.size()) * buffer_bytes_ +
                  round_up(program_.scratch_bytes());
  }

  std::size_t workspace_bytes() const override {
    return round_up(scalars_ * sizeof(Real)) + static_cast<std::size_t>(threads_) * part_bytes_;
  }

  void run(PointwiseArguments const& arguments, std::byte* workspace) const override {
    auto* const scalars = reinterpret_cast<Real*>(workspace);
    for (std::size_t i = 0; i < scalars_; ++i) scalars[i] = static_cast<Real>(arguments.scalars[i]);
    std::byte* const parts_memory = workspace + round_up(scalars_ * sizeof(Real));
    Index const per_row = (nest_.inner() + chunk_ - 1) / std::max<Index>(chunk_, 1);
    Index const chunks = nest_.size() == 0 ? 0
                         : by_rows_        ? nest_.rows() * per_row
                                           : (nest_.size() + chunk_ - 1) / chunk_;
    parallel_parts(threads_, [&](int part, int parts) {
      auto const [first, last] = share(chunks, part, parts);
      Part state(*this, arguments, scalars, parts_memory + static_cast<std::size_t>(part) * part_bytes_);
      for (Index i = first; i < last; ++i) {
        Index const begin = by_rows_ ? i / per_row * nest_.inner() + i % per_row * chunk_ : i * chunk_;
        Index const end = by_rows_ ? (i / per_row + 1) * nest_.inner() : nest_.size();
        state.run_chunk(begin, std::min(chunk_, end - begin), i == first);
      }
    });
  }

 private:
  Access access(StreamPlan const& stream) const {
    bool const real = stream.type == type_of<Real>;
    if (nest_.is_constant(stream.tensor)) return Access::constant;
    if (by_rows_) {
      if (nest_.inner_stride(stream.tensor) == 0) return Access::constant;
      return real && nest_.inner_stride(stream.tensor) == 1 ? Access::direct : Access::buffered;
    }
    if (real && nest_.is_run(stream.tensor)) return Access::direct;
    auto const& strides = nest_.stride[static_cast<std::size_t>(stream.tensor)];
    for (int d = 0; d + 1 < nest_.rank; ++d)
      if (strides[static_cast<std::size_t>(d)] != 0) return Access::buffered;
    return Access::periodic;
  }

  // Calls piece(offset in the tensor, position in the chunk, length) for each part of a row in the chunk.
  template <class Piece>
  void for_each_piece(int tensor, Index begin, Index count, Piece const& piece) const {
    auto const& stride = nest_.stride[static_cast<std::size_t>(tensor)];
    std::array<Index, max_rank> at{};
    Index rest = begin;
    for (int d = nest_.rank - 1; d >= 0; --d) {
      auto const dimension = static_cast<std::size_t>(d);
      at[dimension] = rest % nest_.extent[dimension];
      rest /= nest_.extent[dimension];
    }
    Index offset = nest_.offset(tensor, begin);
    Index const inner = nest_.inner();
    auto const last = static_cast<std::size_t>(nest_.rank - 1);
    for (Index done = 0; done < count;) {
      Index const length = std::min(inner - at[last], count - done);
      piece(offset, done, length);
      done += length;
      offset -= at[last] * stride[last];
      at[last] = 0;
      for (auto d = last; d-- > 0;) {
        offset += stride[d];
        if (++at[d] < nest_.extent[d]) break;
        offset -= at[d] * stride[d];
        at[d] = 0;
      }
    }
  }

  // The state of one thread.
  class Part {
   public:
    Part(Evaluation const& evaluation, PointwiseArguments const& arguments, Real const* scalars,
         std::byte* memory)
        : evaluation_(evaluation), arguments_(arguments), scalars_(scalars) {
      streams_ = reinterpret_cast<epilogue::Stream<Real>*>(memory);
      results_ = reinterpret_cast<Real**>(streams_ + evaluation.inputs_.size());
      buffers_ = memory + evaluation.streams_bytes_;
      scratch_ =
          buffers_ + (evaluation.inputs_.size() + evaluation.outputs_.size()) * evaluation.buffer_bytes_;
    }

    void run_chunk(Index begin, Index count, bool first) {
      auto const& inputs = evaluation_.inputs_;
      auto const& outputs = evaluation_.outputs_;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        void const* const data = i == 0   ? arguments_.accumulator
                                 : i == 1 ? arguments_.source
                                          : arguments_.operands[i - 2];
        if (data != nullptr)
          load(inputs[i], data, begin, count, first, buffer(i), streams_[i]);
        else
          streams_[i] = {};
      }
      for (std::size_t i = 0; i < outputs.size(); ++i)
        results_[i] = outputs[i].access == Access::direct ? place(outputs[i], output(i), begin)
                                                          : buffer(inputs.size() + i);
      epilogue::VectorArguments<Real> const run{streams_[0],  streams_[1], scalars_,
                                                streams_ + 2, results_[0], results_ + 1};
      evaluation_.program_.run(count, run, scratch_);
      for (std::size_t i = 0; i < outputs.size(); ++i)
        if (outputs[i].access != Access::direct) save(outputs[i], results_[i], output(i), begin, count);
    }

   private:
    Real* buffer(std::size_t i) const {
      return reinterpret_cast<Real*>(buffers_ + i * evaluation_.buffer_bytes_);
    }
    void* output(std::size_t i) const { return i == 0 ? arguments_.result : arguments_.stores[i - 1]; }
    Real* place(StreamPlan const& stream, void* data, Index begin) const {
      return static_cast<Real*>(data) + evaluation_.nest_.offset(stream.tensor, begin);
    }
    void load(StreamPlan const& stream, void const* data, Index begin, Index count, bool first, Real* buffer,
              epilogue::Stream<Real>& into) const {
      auto const& nest = evaluation_.nest_;
      into = {buffer, 1};
      switch (stream.access) {
        case Access::direct:
          into.data = static_cast<Real const*>(data) + nest.offset(stream.tensor, begin);
          return;
        case Access::constant:
          read_row(stream.type, element(stream.type, data, nest.offset(stream.tensor, begin)), 1, buffer, 1);
          into.stride = 0;
          return;
        case Access::periodic:
          if (!first) return;
          count = evaluation_.chunk_;
          begin = 0;
          break;
        case Access::buffered: break;
      }
      evaluation_.for_each_piece(stream.tensor, begin, count, [&](Index offset, Index at, Index length) {
        read_row(stream.type, element(stream.type, data, offset), nest.inner_stride(stream.tensor),
                 buffer + at, length);
      });
    }
    void save(StreamPlan const& stream, Real const* buffer, void* data, Index begin, Index count) const {
      auto const& nest = evaluation_.nest_;
      if (nest.rank == 0) return write_row(buffer, stream.type, data, 1, 1);
      evaluation_.for_each_piece(stream.tensor, begin, count, [&](Index offset, Index at, Index length) {
        write_row(buffer + at, stream.type, element(stream.type, data, offset),
                  nest.inner_stride(stream.tensor), length);
      });
    }

    Evaluation const& evaluation_;
    PointwiseArguments const& arguments_;
    Real const* scalars_;
    epilogue::Stream<Real>* streams_;
    Real** results_;
    std::byte* buffers_;
    std::byte* scratch_;
  };

  epilogue::VectorProgram<Real> program_;
  std::size_t scalars_;
  int threads_;
  std::vector<StreamPlan> inputs_, outputs_;
  LoopNest<max_streams> nest_;
  bool by_rows_ = false;
  Index chunk_ = 0;
  std::size_t buffer_bytes_ = 0, streams_bytes_ = 0, part_bytes_ = 0;
};

}  // namespace

Pointwise::Pointwise(PointwiseProblem const& problem, int threads) {
  if (problem.in_double)
    implementation_ = std::make_unique<Evaluation<double>>(problem, threads);
  else
    implementation_ = std::make_unique<Evaluation<float>>(problem, threads);
}
Pointwise::~Pointwise() = default;
Pointwise::Pointwise(Pointwise&&) noexcept = default;

std::size_t Pointwise::workspace_bytes() const { return implementation_->workspace_bytes(); }
void Pointwise::run(PointwiseArguments const& arguments, std::byte* workspace) const {
  implementation_->run(arguments, workspace);
}

Layout spread_operand(Epilogue const& epilogue, std::size_t i, Shape const& shape,
                      std::span<std::string_view const> indices) {
  Layout spread{shape, {}};
  auto const& letters = epilogue.expression.operands()[i].indices;
  for (std::size_t letter = 0; letter < letters.size(); ++letter)
    for (std::size_t d = 0; d < indices.size(); ++d)
      if (letters[letter] == indices[d]) spread.stride[d] += epilogue.operands[i].layout.stride[letter];
  return spread;
}

PointwiseProblem epilogue_pointwise(Epilogue const& epilogue, std::span<std::string_view const> indices,
                                    TensorDescription const& accumulator, TensorDescription const& source,
                                    TensorDescription const& result, bool in_double) {
  PointwiseProblem problem{epilogue.expression, in_double, accumulator, source, {}, epilogue.stores, result};
  for (std::size_t i = 0; i < epilogue.operands.size(); ++i)
    problem.operands.push_back(
        {epilogue.operands[i].type, spread_operand(epilogue, i, result.shape(), indices)});
  return problem;
}

bool is_plain(Epilogue const& epilogue) { return epilogue.expression == epilogue::Expression(); }

}  // namespace cosmati::cpu
