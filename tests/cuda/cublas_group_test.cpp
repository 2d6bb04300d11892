// Groups of products by cuBLAS as bench times them, with the fake driver and a fake cuBLAS; checks the
// declarations of cli/bench/peers/cublas.h against cuBLAS's header if it is installed.
#include "cli/bench/peers/cublas_group.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "cli/operations/group_task.h"
#include "cli/operations/notes.h"
#include "cli/verify/verification.h"
#include "tests/cuda/fake_libcuda.h"
#include "tests/cuda/plain_of.h"
#if __has_include(<cublas_v2.h>)
#include <cublas_v2.h>
#endif

namespace cosmati::cli {
namespace {

[[maybe_unused]] int const chosen =
    setenv("COSMATI_LIBCUDA", COSMATI_FAKE_LIBCUDA, 1) + setenv("COSMATI_CUBLAS", COSMATI_FAKE_CUBLAS, 1);

#if defined(CUBLAS_VERSION)
namespace declared {
using namespace cublas;
#define COSMATI_SAME_FUNCTION(name, result, parameters) \
  static_assert(std::is_same_v<PlainOf<result parameters>::type, PlainOf<decltype(::name)>::type>, #name);
COSMATI_CUBLAS(COSMATI_SAME_FUNCTION)
#undef COSMATI_SAME_FUNCTION
static_assert(equal(Operation::transposed, CUBLAS_OP_T));
}  // namespace declared
#endif

GemmProblem member_of(Index m, Index n, Index k, bool transposed) {
  GemmProblem one;
  auto const matrix = [](Index rows, Index columns, bool by_rows) {
    TensorDescription tensor = describe(DataType::f32, Shape(1, rows, columns));
    tensor.layout.stride[1] = by_rows ? columns : 1;
    tensor.layout.stride[2] = by_rows ? 1 : rows;
    return tensor;
  };
  one.a = matrix(m, k, transposed);
  one.b = matrix(k, n, false);
  one.d = matrix(m, n, false);
  return one;
}

PeerProblem problem_of(std::vector<GemmProblem> const& members) {
  PeerProblem problem{"cublas", "", DataType::f32};
  problem.beta = 0;
  problem.slots_of_member = 3;
  for (GemmProblem const& one : members)
    for (TensorDescription const& tensor : {one.a, one.b, one.d}) problem.group.push_back(tensor);
  return problem;
}

TEST(CublasGroup, MultipliesEveryMemberOfEverySet) {
  fake::reset();
  int const allocations = fake::allocations();
  Device const device = this_device(Backend::cuda, 1);
  cuda::Current const current(0);
  nets::Random random(1, 1);
  GroupedGemmProblem group{{member_of(5, 3, 7, false), member_of(4, 6, 2, true), member_of(1, 9, 8, true)}};
  auto const task = make_group_task(group, Notes{}, {});
  {
    GpuOperands const operands(*task, device, 2, 0, random);
    CublasGroup const peer(problem_of(group.members), operands, 0);
    ASSERT_EQ(peer.refusal(), "");
    EXPECT_EQ(peer.version(), "cuBLAS 13.1.2, grouped call");
    for (std::size_t set = 0; set < 2; ++set) {
      operands.poison_outputs(set);
      peer.run(0, set, nullptr);
      std::vector<Tensor> const tensors = operands.download(set);
      for (std::size_t g = 0; g < 3; ++g) {
        Tensor const &a = tensors[3 * g], &b = tensors[3 * g + 1], &d = tensors[3 * g + 2];
        Index const m = a.shape()[1], k = a.shape()[2], n = b.shape()[2];
        for (Index i = 0; i < m; ++i)
          for (Index j = 0; j < n; ++j) {
            double sum = 0;
            for (Index l = 0; l < k; ++l) sum += a.get(i * k + l) * b.get(l * n + j);
            EXPECT_NEAR(d.get(i * n + j), sum, 1e-5) << "set " << set << ", member " << g;
          }
      }
    }
  }
  EXPECT_EQ(fake::allocations(), allocations);
}

TEST(CublasGroup, SaysWhatItDoesNotCompute) {
  Device const device = this_device(Backend::cuda, 1);
  cuda::Current const current(0);
  nets::Random random(1, 1);
  GroupedGemmProblem group{{member_of(5, 3, 7, false)}};
  auto const task = make_group_task(group, Notes{}, {});
  GpuOperands const operands(*task, device, 1, 0, random);
  PeerProblem problem = problem_of(group.members);
  problem.beta = 1;
  EXPECT_EQ(CublasGroup(problem, operands, 0).refusal(),
            "cuBLAS overwrites a group's c; only beta 0 is timed");
  problem.beta = 0;
  problem.type = DataType::s8;
  EXPECT_EQ(CublasGroup(problem, operands, 0).refusal(),
            "cuBLAS supports groups of f64, f32, tf32, f16 and bf16, not of s8");
  problem.type = DataType::f16;
  EXPECT_EQ(CublasGroup(problem, operands, 0).refusal(),
            "cuBLAS is timed only for groups of one type, not f16 and f32");
}

}  // namespace
}  // namespace cosmati::cli
