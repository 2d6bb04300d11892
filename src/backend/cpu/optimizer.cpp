// Optimizer steps, a chunk of parameters at a time.
#include "cosmati/ops/optimizer.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "src/backend/cpu/convert_row.h"
#include "src/backend/cpu/loop_nest.h"
#include "src/backend/cpu/own.h"
#include "src/backend/cpu/runtime/parallel.h"
#include "src/backend/cpu/runtime/vector_clones.h"

namespace cosmati::cpu {
namespace {

constexpr Index optimizer_chunk = 512;   // elements
constexpr Index small_update = 1 << 13;  // elements processed in the time needed to start a second thread

// The update of one parameter, with its constants in Real.
template <class Real>
struct Step {
  Real rate, weight_decay;
  Real momentum;  // sgd
  bool nesterov;
  Real beta1, beta2, correction1, correction2, epsilon;  // adam
  Real rest1, rest2;  // 1 - beta, computed in double: after rounding beta, few digits would be left

  Step(OptimizerProblem const& p, StepNumbers const& now)
      : rate(static_cast<Real>(now.rate)),
        weight_decay(static_cast<Real>(p.weight_decay)),
        momentum(static_cast<Real>(p.momentum)),
        nesterov(p.nesterov),
        beta1(static_cast<Real>(p.beta1)),
        beta2(static_cast<Real>(p.beta2)),
        correction1(static_cast<Real>(now.correction1)),
        correction2(static_cast<Real>(now.correction2)),
        epsilon(static_cast<Real>(p.epsilon)),
        rest1(static_cast<Real>(1 - p.beta1)),
        rest2(static_cast<Real>(1 - p.beta2)) {}
};

template <class Real>
COSMATI_ALWAYS_INLINE void plain_loop(Step<Real> const& step, Real* parameter, Real const* gradient,
                                      Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i)
    parameter[i] -= step.rate * (gradient[i] + step.weight_decay * parameter[i]);
}

template <class Real>
COSMATI_ALWAYS_INLINE void momentum_loop(Step<Real> const& step, Real* parameter, Real const* gradient,
                                         Real* velocity, Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) {
    Real const g = gradient[i] + step.weight_decay * parameter[i];
    Real const v = step.momentum * velocity[i] + g;
    velocity[i] = v;
    parameter[i] -= step.rate * (step.nesterov ? g + step.momentum * v : v);
  }
}

template <class Real>
COSMATI_ALWAYS_INLINE void adam_loop(Step<Real> const& step, Real* parameter, Real const* gradient,
                                     Real* first, Real* second, Index count) {
  COSMATI_INDEPENDENT
  for (Index i = 0; i < count; ++i) {
    Real const g = gradient[i] + step.weight_decay * parameter[i];
    Real const m = step.beta1 * first[i] + step.rest1 * g;
    Real const v = step.beta2 * second[i] + step.rest2 * g * g;
    first[i] = m;
    second[i] = v;
    parameter[i] -= step.rate * (m / step.correction1) / (std::sqrt(v / step.correction2) + step.epsilon);
  }
}

template <class Real>
COSMATI_ALWAYS_INLINE void any_loop(OptimizerKind kind, Step<Real> const& step, Real* parameter,
                                    Real const* gradient, Real* first, Real* second, Index count) {
  if (kind == OptimizerKind::adam) return adam_loop(step, parameter, gradient, first, second, count);
  if (first != nullptr) return momentum_loop(step, parameter, gradient, first, count);
  plain_loop(step, parameter, gradient, count);
}

template <class Real>
void take_step(OptimizerKind kind, Step<Real> const& step, Real* parameter, Real const* gradient, Real* first,
               Real* second, Index count) {
  Clones<any_loop<Real>>::call(kind, step, parameter, gradient, first, second, count);
}

class OptimizerKernel final : public HostKernel<OptimizerProblem> {
 public:
  OptimizerKernel(OptimizerProblem const& problem, int threads)
      : problem_(problem),
        nest_(make_loop_nest<3>({problem.parameter.layout, problem.gradient.layout,
                                 problem.state.present() ? problem.state.layout : problem.parameter.layout})),
        threads_(nest_.size() < small_update ? 1 : threads) {
    wide_ = problem.parameter.type == DataType::f64 || problem.gradient.type == DataType::f64;
  }

  void run(OptimizerProblem::Arguments const& arguments, std::byte*) const override {
    auto const factor = gradient_factor(problem_, arguments);
    if (!factor) return;
    wide_ ? step<double>(arguments, *factor) : step<float>(arguments, static_cast<float>(*factor));
  }

 private:
  template <class Real>
  void step(OptimizerProblem::Arguments const& arguments, Real factor) const {
    Step<Real> const values(problem_, step_numbers(problem_, arguments));
    Index const inner = nest_.inner();
    Index const per_row = (inner + optimizer_chunk - 1) / optimizer_chunk;
    parallel_parts(threads_, [&](int part, int parts) {
      auto const [first, last] = share(nest_.rows() * per_row, part, parts);
      for (Index i = first; i < last; ++i) {
        Index const column = i % per_row * optimizer_chunk;
        step_chunk(values, arguments, factor, i / per_row * inner + column,
                   std::min(optimizer_chunk, inner - column));
      }
    });
  }

  template <class Real>
  void step_chunk(Step<Real> const& values, OptimizerProblem::Arguments const& arguments, Real factor,
                  Index linear, Index count) const {
    alignas(64) Real buffers[4][optimizer_chunk];
    bool const stateful = problem_.state.present();
    bool const second = problem_.kind == OptimizerKind::adam;
    // Accessed in place if the tensor is contiguous and has type Real; otherwise through a buffer.
    auto const load = [&](int buffer, TensorDescription const& tensor, int stream, void const* data) {
      void const* const from = element(tensor.type, data, nest_.offset(stream, linear));
      if (tensor.type == type_of<Real> && nest_.inner_stride(stream) == 1)
        return static_cast<Real*>(const_cast<void*>(from));
      read_row(tensor.type, from, nest_.inner_stride(stream), buffers[buffer], count);
      return static_cast<Real*>(buffers[buffer]);
    };
    auto const save = [&](Real const* values_now, int buffer, TensorDescription const& tensor, int stream,
                          void* data) {
      if (values_now == buffers[buffer])
        write_row(values_now, tensor.type, element(tensor.type, data, nest_.offset(stream, linear)),
                  nest_.inner_stride(stream), count);
    };
    Real* const parameter = load(0, problem_.parameter, 0, arguments.parameter);
    Real const* gradient = load(1, problem_.gradient, 1, arguments.gradient);
    if (factor != 1) {
      for (Index i = 0; i < count; ++i) buffers[1][i] = factor * gradient[i];
      gradient = buffers[1];
    }
    Real* const velocity = stateful ? load(2, problem_.state, 2, arguments.velocity) : nullptr;
    Real* const moment = second ? load(3, problem_.state, 2, arguments.second) : nullptr;
    take_step(problem_.kind, values, parameter, gradient, velocity, moment, count);
    save(parameter, 0, problem_.parameter, 0, arguments.parameter);
    if (stateful) save(velocity, 2, problem_.state, 2, arguments.velocity);
    if (second) save(moment, 3, problem_.state, 2, arguments.second);
  }

  OptimizerProblem problem_;
  LoopNest<3> nest_;  // parameter, gradient, state
  int threads_;
  bool wide_;
};

}  // namespace

template <>
Candidate<OptimizerProblem> own_candidate() {
  return {"vectorized",
          {},
          nullptr,
          [](Plan<OptimizerProblem> const& plan) -> std::unique_ptr<Kernel<OptimizerProblem>> {
            return std::make_unique<OptimizerKernel>(plan.problem, plan.device.threads);
          }};
}

}  // namespace cosmati::cpu
