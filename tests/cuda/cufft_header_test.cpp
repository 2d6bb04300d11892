// Checks the declarations of src/backend/cuda/driver/cufft.h against the toolkit's cufft.h; compiled if it is
// installed.
#include <gtest/gtest.h>

#include "src/backend/cuda/driver/cufft.h"
#include "tests/cuda/plain_of.h"
#if __has_include(<cufft.h>)
#include <cufft.h>
#endif

#if defined(CUFFT_VERSION)
namespace {

using namespace cosmati::cuda::cufft;
using cosmati::cli::equal;
using cosmati::cli::PlainOf;

#define COSMATI_SAME_FUNCTION(name, result, parameters) \
  static_assert(std::is_same_v<PlainOf<result parameters>::type, PlainOf<decltype(::name)>::type>, #name);
COSMATI_CUFFT(COSMATI_SAME_FUNCTION)

static_assert(equal(Status::success, CUFFT_SUCCESS));
static_assert(equal(Kind::r2c, CUFFT_R2C) && equal(Kind::c2r, CUFFT_C2R));
static_assert(equal(Kind::d2z, CUFFT_D2Z) && equal(Kind::z2d, CUFFT_Z2D));

TEST(CufftHeader, AgreesWithTheToolkit) { SUCCEED() << "cufft.h of cuFFT " << CUFFT_VERSION; }

}  // namespace
#else
TEST(CufftHeader, AgreesWithTheToolkit) { GTEST_SKIP() << "there is no cufft.h here"; }
#endif
