// cuBLASLt as a peer.
#include "cli/bench/peers/cublaslt_peer.h"

#include <cstring>

#include "cosmati/core/number.h"
#include "cosmati/ops/error.h"
#include "src/ops/number_types.h"

namespace cosmati::cli {
namespace {

using cublaslt::Compute;
using cublaslt::Number;
using cublaslt::Status;

Number number_of(DataType type) { return static_cast<Number>(number_type(type).cuda); }

Compute compute_of(DataType factor, DataType sum) {
  switch (sum) {
    case DataType::f64: return Compute::f64;
    case DataType::f16: return Compute::f16;
    case DataType::s32: return Compute::s32;
    default: return factor == DataType::tf32 ? Compute::f32_of_tf32 : Compute::f32;
  }
}

std::string quoted_types(DataType a, DataType b) { return std::string(name_of(a)) + " and " + name_of(b); }

// Returns why the library does not support such fp8 products (see cublasLtMatmul in its manual); empty if it
// may support them.
std::string fp8_violation(PeerProblem const& problem, DataType b) {
  DataType const a = problem.type, d = problem.result;
  if (!is_float8(b)) return "cuBLASLt does not multiply " + quoted_types(a, b);
  if (a == DataType::e5m2 && b == DataType::e5m2)
    return "cuBLASLt multiplies e4m3 and e4m3, or e4m3 and e5m2, not e5m2 and e5m2";
  if (problem.layout != "tn")
    return "cuBLASLt multiplies only K-major fp8 (--layout tn), not " + problem.layout;
  bool const wide = d == DataType::f32 || d == DataType::f16 || d == DataType::bf16;
  bool const narrow = d == DataType::e4m3 || (d == DataType::e5m2 && (a == d || b == d));
  if (!wide && !narrow)
    return std::string("cuBLASLt stores products of ") + quoted_types(a, b) +
           " as f32, f16, bf16, e4m3, and e5m2 where a factor is e5m2, not as " + name_of(d);
  if (narrow && problem.beta != 0)
    return std::string("cuBLASLt does not support c of type ") + name_of(d) + "; use --d-type bf16 or beta 0";
  return {};
}

std::string violation(PeerProblem const& problem) {
  DataType const a = problem.type, b = problem.type_b.value_or(problem.type);
  if (is_float8(a)) return fp8_violation(problem, b);
  for (DataType const type : {a, b, problem.result})
    if (type == DataType::u8) return "cuBLASLt does not support u8; its only 8-bit integer type is s8";
  if (a != b) return "cuBLASLt requires operands of one type, not " + quoted_types(a, b);
  return {};
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
    throw Error(ErrorCode::unavailable, "peer cublaslt requires alpha and beta as " +
                                            std::string(name_of(type)) + ", which cannot represent " +
                                            std::to_string(value));
  return result;
}

CublasLtPeer::Owned<cublaslt::Matrix> CublasLtPeer::matrix(DataType type, Index rows, Index columns,
                                                           Index batch, PeerMatrix const& place,
                                                           bool by_pointers) const {
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
  if (by_pointers)
    set(cublaslt::MatrixAttribute::batch_mode, &cublaslt::batch_by_pointers,
        sizeof cublaslt::batch_by_pointers);
  else
    set(cublaslt::MatrixAttribute::batch_stride, &stride, sizeof stride);
  return result;
}

CublasLtPeer::CublasLtPeer(PeerProblem const& problem, int ordinal)
    : library_(cublaslt::library()),
      context_(nullptr, library_.cublasLtDestroy),
      product_(nullptr, library_.cublasLtMatmulDescDestroy),
      a_(nullptr, library_.cublasLtMatrixLayoutDestroy),
      b_(nullptr, library_.cublasLtMatrixLayoutDestroy),
      c_(nullptr, library_.cublasLtMatrixLayoutDestroy),
      d_(nullptr, library_.cublasLtMatrixLayoutDestroy),
      refusal_(violation(problem)) {
  if (!refusal_.empty()) return;
  workspace_ = cuda::DeviceBuffer(ordinal, max_workspace_bytes);
  try {
    describe(problem);
    ask_heuristics(problem);
  } catch (Error const& error) {  // older versions do not support arrays of pointers
    if (!problem.by_pointers || error.code() != ErrorCode::system) throw;
    refusal_ = cublaslt::version() + " does not support arrays of pointers: " + error.what();
  }
}

void CublasLtPeer::describe(PeerProblem const& problem) {
  context_.reset(created<cublaslt::Context>("cublasLtCreate", library_.cublasLtCreate));
  product_.reset(created<cublaslt::Product>("cublasLtMatmulDescCreate", library_.cublasLtMatmulDescCreate,
                                            compute_of(problem.type, problem.sum), number_of(problem.sum)));
  auto const operand = [&](DataType type, bool transposed, Index rows, Index columns,
                           PeerMatrix const& place) {
    return transposed ? matrix(type, columns, rows, problem.batch, place, problem.by_pointers)
                      : matrix(type, rows, columns, problem.batch, place, problem.by_pointers);
  };
  a_ = operand(problem.type, problem.layout[0] == 't', problem.m, problem.k, problem.place_a);
  b_ = operand(problem.type_b.value_or(problem.type), problem.layout[1] == 't', problem.k, problem.n,
               problem.place_b);
  // With an fp8 result, the source c has another type, even if it is never read.
  source_may_be_result_ = !is_float8(problem.result);
  DataType const source = source_may_be_result_ ? problem.result : DataType::bf16;
  c_ = matrix(source, problem.m, problem.n, problem.batch, problem.place_d, problem.by_pointers);
  d_ = matrix(problem.result, problem.m, problem.n, problem.batch, problem.place_d, problem.by_pointers);
  alpha_ = scalar(problem.alpha, problem.sum);
  beta_ = scalar(problem.beta, problem.sum);
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
  if (is_float8(problem.type)) {
    std::int8_t const fast = problem.fast_sums ? 1 : 0;
    cublaslt::check("cublasLtMatmulDescSetAttribute",
                    library_.cublasLtMatmulDescSetAttribute(
                        product_.get(), cublaslt::ProductAttribute::fast_sums, &fast, sizeof fast));
  }
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
  prefer(Attribute::max_workspace_bytes, std::uint64_t{max_workspace_bytes});
  auto const prefer_alignment = [&](Attribute attribute, PeerMatrix const& place) {
    if (place.alignment > 0) prefer(attribute, static_cast<std::uint32_t>(place.alignment));
  };
  prefer_alignment(Attribute::min_alignment_a, problem.place_a);
  prefer_alignment(Attribute::min_alignment_b, problem.place_b);
  prefer_alignment(Attribute::min_alignment_c, problem.place_d);
  prefer_alignment(Attribute::min_alignment_d, problem.place_d);
  found_.resize(max_algorithms);
  int count = 0;
  Status const status = library_.cublasLtMatmulAlgoGetHeuristic(
      context_.get(), product_.get(), a_.get(), b_.get(), c_.get(), d_.get(), preference.get(),
      max_algorithms, found_.data(), &count);
  found_.resize(static_cast<std::size_t>(status == Status::success ? count : 0));
  std::erase_if(found_, [](cublaslt::Heuristic const& one) { return one.state != Status::success; });
  if (found_.empty())
    refusal_ = std::string("cuBLASLt has no algorithm for this: ") +
               library_.cublasLtGetStatusName(status == Status::success ? Status::not_supported : status);
}

void CublasLtPeer::run(int algorithm, void const* a, void const* b, void const* c, void* d,
                       Stream stream) const {
  cublaslt::Heuristic const& chosen = found_[static_cast<std::size_t>(algorithm)];
  void const* const source = c != nullptr ? c : source_may_be_result_ ? d : nullptr;
  cublaslt::check(
      "cublasLtMatmul",
      library_.cublasLtMatmul(context_.get(), product_.get(), alpha_.bytes, a, a_.get(), b, b_.get(),
                              beta_.bytes, source, c_.get(), d, d_.get(), &chosen.algorithm,
                              workspace_.data(), max_workspace_bytes, cuda::handle_of(stream)));
}

}  // namespace cosmati::cli
