// Checks the declarations of src/parallel/nccl.h against NCCL's header; compiled if it is installed.
#include <gtest/gtest.h>

#include "src/parallel/nccl.h"
#include "tests/cuda/plain_of.h"
#if __has_include(<nccl.h>) && __has_include(<cuda_runtime_api.h>)
#include <nccl.h>
#endif

#if defined(NCCL_MAJOR)
namespace cosmati::cli {
// The only structure passed by value.
template <>
struct PlainOf<ncclUniqueId, false, true> {
  using type = parallel::nccl::UniqueId;
};
template <>
struct PlainOf<parallel::nccl::UniqueId, false, true> {
  using type = parallel::nccl::UniqueId;
};
}  // namespace cosmati::cli

namespace {

using namespace cosmati::parallel::nccl;
using cosmati::cli::equal;
using cosmati::cli::PlainOf;

#define COSMATI_SAME_FUNCTION(name, returned, parameters) \
  static_assert(std::is_same_v<PlainOf<returned parameters>::type, PlainOf<decltype(::name)>::type>, #name);
COSMATI_NCCL(COSMATI_SAME_FUNCTION)

static_assert(equal(Status::success, ncclSuccess));
static_assert(equal(Type::f32, ncclFloat32));
static_assert(equal(Operation::sum, ncclSum));
static_assert(equal(Residence::host_immediate, ncclScalarHostImmediate));
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId) && alignof(UniqueId) == alignof(ncclUniqueId));

}  // namespace
#endif

TEST(NcclHeader, IsAsDeclaredHere) {
#if !defined(NCCL_MAJOR)
  GTEST_SKIP() << "there is no nccl.h here";
#endif
}
