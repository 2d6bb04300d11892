// Opens FFTW and serializes its planner, which is not thread-safe.
#include "src/backend/emulator/fftw.h"

#include <dlfcn.h>

#include <mutex>
#include <type_traits>
#include <vector>

#include "cosmati/ops/error.h"

namespace cosmati::emulator {
namespace {

// The signatures of fftw_plan_many_dft_r2c and _c2r, fftw_execute_dft_r2c and _c2r, and fftw_destroy_plan,
// for both precisions.
using MakePlan = void* (*)(int rank, int const* extents, int count, void* from, int const* from_extents,
                           int from_stride, int from_distance, void* to, int const* to_extents, int to_stride,
                           int to_distance, unsigned flags);
using Execute = void (*)(void* plan, void* from, void* to);
using Destroy = void (*)(void* plan);
constexpr unsigned unaligned = 1U << 1, estimate = 1U << 6;

struct Precision {
  MakePlan make[2] = {};  // forward, inverse
  Execute execute[2] = {};
  Destroy destroy = nullptr;
};
struct Library {
  Precision of_f32, of_f64;
  std::string failure;
};

void open(Precision& precision, std::string const& file, std::string const& prefix, std::string& failure) {
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    failure =
        "the emulator's transforms require FFTW, which was not found (libfftw3-single3, libfftw3-double3): " +
        std::string(dlerror());
    return;
  }
  auto const bind = [&](auto& function, std::string const& name) {
    function =
        reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(handle, (prefix + name).c_str()));
    if (function == nullptr) failure = file + " has no function " + prefix + name;
  };
  bind(precision.make[0], "plan_many_dft_r2c");
  bind(precision.make[1], "plan_many_dft_c2r");
  bind(precision.execute[0], "execute_dft_r2c");
  bind(precision.execute[1], "execute_dft_c2r");
  bind(precision.destroy, "destroy_plan");
}

Library const& library() {
  static Library const one = [] {
    Library made;
    open(made.of_f32, "libfftw3f.so.3", "fftwf_", made.failure);
    if (made.failure.empty()) open(made.of_f64, "libfftw3.so.3", "fftw_", made.failure);
    return made;
  }();
  return one;
}

std::mutex& planning() {
  static std::mutex one;
  return one;
}

}  // namespace

std::string const& fftw_failure() { return library().failure; }

FftwPlan::FftwPlan(int rows, int columns, int count, DataType real, bool inverse)
    : of_f64_(real == DataType::f64), inverse_(inverse) {
  if (!fftw_failure().empty()) throw Error(ErrorCode::unavailable, fftw_failure());
  int const extents[] = {rows, columns}, complex_extents[] = {rows, columns / 2 + 1},
            real_extents[] = {rows, 2 * (columns / 2 + 1)};
  int const complex_plane = rows * complex_extents[1], real_plane = rows * real_extents[1];
  // The planner examines the pointers; with FFTW_ESTIMATE it does not write to the arrays.
  std::vector<double> place(static_cast<std::size_t>(real_plane));
  std::lock_guard const lock(planning());
  plan_ = (of_f64_ ? library().of_f64 : library().of_f32)
              .make[inverse](2, extents, count, place.data(), inverse ? complex_extents : real_extents, 1,
                             inverse ? complex_plane : real_plane, place.data(),
                             inverse ? real_extents : complex_extents, 1,
                             inverse ? real_plane : complex_plane, estimate | unaligned);
  if (plan_ == nullptr) throw Error(ErrorCode::system, "FFTW could not create a plan");
}

FftwPlan::~FftwPlan() {
  std::lock_guard const lock(planning());
  (of_f64_ ? library().of_f64 : library().of_f32).destroy(plan_);
}

void FftwPlan::run(void* planes) const {
  (of_f64_ ? library().of_f64 : library().of_f32).execute[inverse_](plan_, planes, planes);
}

}  // namespace cosmati::emulator
