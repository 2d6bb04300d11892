// cuBLAS as a peer for groups of products.
#include "cli/bench/peers/cublas_group.h"

#include "cli/bench/peers/peer_library.h"
#include "cli/data/result_sample.h"
#include "cosmati/ops/error.h"
#include "src/ops/number_types.h"

namespace cosmati::cli {
namespace cublas {
namespace {

Library open_cublas() {
  PeerLibrary const file("cublas", "cuBLAS", "COSMATI_CUBLAS", {"libcublas.so.13", "libcublas.so.12"});
  Library library;
#define COSMATI_BIND(name, result, parameters) file.bind(library.name, #name);
  COSMATI_CUBLAS(COSMATI_BIND)
#undef COSMATI_BIND
  return library;
}

}  // namespace

Library const& library() {
  static Library const one = open_cublas();
  return one;
}

void check(char const* call, Status status) {
  if (status == Status::success) return;
  throw Error(ErrorCode::system,
              std::string("cuBLAS: ") + call + ": " + library().cublasGetStatusName(status));
}

}  // namespace cublas

namespace {

cublas::Number number_in_group(DataType type) { return static_cast<cublas::Number>(number_type(type).cuda); }

cublas::Compute compute_in_group(DataType type) {
  if (type == DataType::f64) return cublas::Compute::f64;
  return type == DataType::tf32 ? cublas::Compute::f32_of_tf32 : cublas::Compute::f32;
}

std::string violation_in_group(PeerProblem const& problem) {
  DataType const type = problem.type;
  if (is_integer(type) || is_float8(type))
    return std::string("cuBLAS supports groups of f64, f32, tf32, f16 and bf16, not of ") + name_of(type);
  if (number_in_group(problem.result) != number_in_group(type))
    return std::string("cuBLAS is timed only for groups of one type, not ") + name_of(type) + " and " +
           name_of(problem.result);
  if (problem.sum == DataType::f16) return "cuBLAS accumulates groups in f32, not in f16";
  if (problem.beta != 0) return "cuBLAS overwrites a group's c; only beta 0 is timed";
  return {};
}

}  // namespace

CublasGroup::CublasGroup(PeerProblem const& problem, GpuOperands const& operands, int ordinal)
    : library_(cublas::library()),
      context_(nullptr, library_.cublasDestroy_v2),
      type_(problem.type),
      refusal_(violation_in_group(problem)) {
  cublas::Context* context = nullptr;
  cublas::check("cublasCreate", library_.cublasCreate_v2(&context));
  context_.reset(context);
  int version = 0;
  cublas::check("cublasGetVersion", library_.cublasGetVersion_v2(context, &version));
  version_ = peer_version("cuBLAS", static_cast<std::size_t>(version)) + ", grouped call";
  if (!refusal_.empty()) return;
  describe(problem);
  make_arrays(operands, problem.slots_of_member, ordinal);
  workspace_ = cuda::DeviceBuffer(ordinal, workspace_size);
}

// A matrix with contiguous columns is passed as it is, one with contiguous rows as transposed.
CublasGroup::Matrix CublasGroup::matrix_of(TensorDescription const& tensor) {
  auto const& stride = tensor.layout.stride;
  bool const plain = stride[1] == 1 && stride[2] >= tensor.extent(1);
  return plain ? Matrix{cublas::Operation::plain, stride[2]}
               : Matrix{cublas::Operation::transposed, stride[1]};
}

void CublasGroup::describe(PeerProblem const& problem) {
  for (std::size_t i = 0; i < problem.group.size(); i += problem.slots_of_member) {
    TensorDescription const &a = problem.group[i], &b = problem.group[i + 1],
                            &d = problem.group[i + problem.slots_of_member - 1];
    m_.push_back(a.extent(1));
    n_.push_back(b.extent(2));
    k_.push_back(a.extent(2));
    Matrix const of_a = matrix_of(a), of_b = matrix_of(b);
    a_operations_.push_back(of_a.operation);
    a_leading_.push_back(of_a.leading);
    b_operations_.push_back(of_b.operation);
    b_leading_.push_back(of_b.leading);
    d_leading_.push_back(matrix_of(d).leading);
  }
  std::size_t const members = m_.size();
  ones_.assign(members, 1);
  alphas_.assign(members, static_cast<float>(problem.alpha));
  alphas_f64_.assign(members, problem.alpha);
  betas_.assign(members, 0);
  betas_f64_.assign(members, 0);
}

void CublasGroup::make_arrays(GpuOperands const& operands, std::size_t slots_of_member, int ordinal) {
  std::size_t const members = m_.size();
  for (std::size_t set = 0; set < operands.sets(); ++set)
    for (std::size_t const slot : {std::size_t{0}, std::size_t{1}, slots_of_member - 1}) {
      std::vector<void*> list;
      for (std::size_t i = 0; i < members; ++i)
        list.push_back(operands.pointers(set)[i * slots_of_member + slot]);
      arrays_.emplace_back(ordinal, members * sizeof(void*));
      cuda::copy_to_device(ordinal, arrays_.back().data(), list.data(), members * sizeof(void*), nullptr);
      cuda::wait(ordinal, nullptr);
    }
}

// cublasSetStream resets the workspace, so it is set again.
void CublasGroup::run(int, std::size_t set, Stream stream) const {
  auto* const context = context_.get();
  cublas::check("cublasSetStream", library_.cublasSetStream_v2(context, cuda::handle_of(stream)));
  cublas::check("cublasSetWorkspace",
                library_.cublasSetWorkspace_v2(context, workspace_.data(), workspace_size));
  bool const in_f64 = type_ == DataType::f64;
  auto const array = [&](std::size_t which) { return arrays_[3 * set + which].data(); };
  cublas::Number const number = number_in_group(type_);
  cublas::check("cublasGemmGroupedBatchedEx",
                library_.cublasGemmGroupedBatchedEx_64(
                    context, a_operations_.data(), b_operations_.data(), m_.data(), n_.data(), k_.data(),
                    in_f64 ? static_cast<void const*>(alphas_f64_.data()) : alphas_.data(),
                    static_cast<void const* const*>(array(0)), number, a_leading_.data(),
                    static_cast<void const* const*>(array(1)), number, b_leading_.data(),
                    in_f64 ? static_cast<void const*>(betas_f64_.data()) : betas_.data(),
                    static_cast<void* const*>(array(2)), number, d_leading_.data(),
                    static_cast<std::int64_t>(m_.size()), ones_.data(), compute_in_group(type_)));
}

// The sample is taken from the first member's result.
std::optional<double> CublasGroup::tolerance() const { return peer_tolerance(type_); }

}  // namespace cosmati::cli
