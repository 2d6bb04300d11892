// cuBLASLt as a peer.
#include "cli/cublaslt_peer.h"

#include <cstring>

#include "cosmati/core/number.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {
namespace {

using cublaslt::Compute;
using cublaslt::Number;
using cublaslt::Status;

Number number_of(DataType type) {
  switch (type) {
    case DataType::f64: return Number::f64;
    case DataType::f32: return Number::f32;
    case DataType::f16: return Number::f16;
    case DataType::bf16: return Number::bf16;
    case DataType::s8: return Number::s8;
    case DataType::s32: return Number::s32;
    default: break;
  }
  throw Error(ErrorCode::unavailable,
              std::string("peer cublaslt is timed for f64, f32, f16, bf16, s8, not for ") + name_of(type));
}

Compute compute_of(DataType sum) {
  switch (sum) {
    case DataType::f64: return Compute::f64;
    case DataType::f16: return Compute::f16;
    case DataType::s32: return Compute::s32;
    default: return Compute::f32;
  }
}

template <class Handle, class Create, class... Arguments>
Handle* created(char const* call, Create create, Arguments... arguments) {
  Handle* handle = nullptr;
  cublaslt::check(call, create(&handle, arguments...));
  return handle;
}

}  // namespace

CublasLtPeer::Scalar CublasLtPeer::scalar(double value, DataType type) {
  Scalar result;
  store(type, result.bytes, 0, value);
  if (load(type, result.bytes, 0) != value)
    throw Error(ErrorCode::unavailable, "peer cublaslt takes alpha and beta as " +
                                            std::string(name_of(type)) + " here, which cannot hold " +
                                            std::to_string(value));
  return result;
}

CublasLtPeer::Owned<cublaslt::Matrix> CublasLtPeer::matrix(DataType type, Index rows, Index columns,
                                                           Index batch, PeerMatrix const& place) const {
  Index const leading = place.leading > 0 ? place.leading : rows;
  Owned<cublaslt::Matrix> result(
      created<cublaslt::Matrix>("cublasLtMatrixLayoutCreate", library_.cublasLtMatrixLayoutCreate,
                                number_of(type), static_cast<std::uint64_t>(rows),
                                static_cast<std::uint64_t>(columns), std::int64_t{leading}),
      library_.cublasLtMatrixLayoutDestroy);
  auto const count = static_cast<std::int32_t>(batch);
  std::int64_t const stride = place.batch_stride > 0 ? place.batch_stride : leading * columns;
  auto const set = [&](cublaslt::MatrixAttribute attribute, void const* value, std::size_t bytes) {
    cublaslt::check("cublasLtMatrixLayoutSetAttribute",
                    library_.cublasLtMatrixLayoutSetAttribute(result.get(), attribute, value, bytes));
  };
  set(cublaslt::MatrixAttribute::batch_count, &count, sizeof count);
  set(cublaslt::MatrixAttribute::batch_stride, &stride, sizeof stride);
  return result;
}

CublasLtPeer::CublasLtPeer(PeerProblem const& problem, int ordinal)
    : library_(cublaslt::library()),
      context_(created<cublaslt::Context>("cublasLtCreate", library_.cublasLtCreate),
               library_.cublasLtDestroy),
      product_(created<cublaslt::Product>("cublasLtMatmulDescCreate", library_.cublasLtMatmulDescCreate,
                                          compute_of(problem.sum), number_of(problem.sum)),
               library_.cublasLtMatmulDescDestroy),
      a_(problem.layout[0] == 't'
             ? matrix(problem.type, problem.k, problem.m, problem.batch, problem.place_a)
             : matrix(problem.type, problem.m, problem.k, problem.batch, problem.place_a)),
      b_(problem.layout[1] == 't'
             ? matrix(problem.type, problem.n, problem.k, problem.batch, problem.place_b)
             : matrix(problem.type, problem.k, problem.n, problem.batch, problem.place_b)),
      c_(matrix(problem.result, problem.m, problem.n, problem.batch, problem.place_d)),
      d_(matrix(problem.result, problem.m, problem.n, problem.batch, problem.place_d)),
      alpha_(scalar(problem.alpha, problem.sum)),
      beta_(scalar(problem.beta, problem.sum)),
      workspace_(ordinal, most_workspace_bytes) {
  ask_heuristics(problem);
}

void CublasLtPeer::ask_heuristics(PeerProblem const& problem) {
  auto const transpose = [&](cublaslt::ProductAttribute attribute, char letter) {
    std::int32_t const operation = letter == 't' ? cublaslt::operation_transposed : cublaslt::operation_plain;
    cublaslt::check(
        "cublasLtMatmulDescSetAttribute",
        library_.cublasLtMatmulDescSetAttribute(product_.get(), attribute, &operation, sizeof operation));
  };
  transpose(cublaslt::ProductAttribute::transposed_a, problem.layout[0]);
  transpose(cublaslt::ProductAttribute::transposed_b, problem.layout[1]);
  Owned<cublaslt::Preference> const preference(
      created<cublaslt::Preference>("cublasLtMatmulPreferenceCreate",
                                    library_.cublasLtMatmulPreferenceCreate),
      library_.cublasLtMatmulPreferenceDestroy);
  auto const prefer = [&](cublaslt::PreferenceAttribute attribute, auto value) {
    cublaslt::check(
        "cublasLtMatmulPreferenceSetAttribute",
        library_.cublasLtMatmulPreferenceSetAttribute(preference.get(), attribute, &value, sizeof value));
  };
  using Attribute = cublaslt::PreferenceAttribute;
  prefer(Attribute::most_workspace_bytes, std::uint64_t{most_workspace_bytes});
  auto const prefer_alignment = [&](Attribute attribute, PeerMatrix const& place) {
    if (place.alignment > 0) prefer(attribute, static_cast<std::uint32_t>(place.alignment));
  };
  prefer_alignment(Attribute::least_alignment_a, problem.place_a);
  prefer_alignment(Attribute::least_alignment_b, problem.place_b);
  prefer_alignment(Attribute::least_alignment_c, problem.place_d);
  prefer_alignment(Attribute::least_alignment_d, problem.place_d);
  found_.resize(most_algorithms);
  int count = 0;
  Status const status = library_.cublasLtMatmulAlgoGetHeuristic(
      context_.get(), product_.get(), a_.get(), b_.get(), c_.get(), d_.get(), preference.get(),
      most_algorithms, found_.data(), &count);
  found_.resize(static_cast<std::size_t>(status == Status::success ? count : 0));
  std::erase_if(found_, [](cublaslt::Heuristic const& one) { return one.state != Status::success; });
  if (found_.empty())
    refusal_ = std::string("cuBLASLt has no algorithm for this: ") +
               library_.cublasLtGetStatusName(status == Status::success ? Status::not_supported : status);
}

void CublasLtPeer::run(int algorithm, void const* a, void const* b, void const* c, void* d) const {
  cublaslt::Heuristic const& chosen = found_[static_cast<std::size_t>(algorithm)];
  cublaslt::check("cublasLtMatmul", library_.cublasLtMatmul(
                                        context_.get(), product_.get(), alpha_.bytes, a, a_.get(), b,
                                        b_.get(), beta_.bytes, c == nullptr ? d : c, c_.get(), d, d_.get(),
                                        &chosen.algorithm, workspace_.data(), most_workspace_bytes, nullptr));
}

}  // namespace cosmati::cli
