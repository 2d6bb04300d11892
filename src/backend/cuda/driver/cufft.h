// cuFFT, loaded on first use: its types and functions, declared here so that the build needs no toolkit, and
// in-place transforms of many planes.
#pragma once
#include <cstddef>
#include <mutex>
#include <string>

#include "cosmati/core/number.h"
#include "cosmati/ops/device.h"

struct CUstream_st;

namespace cosmati::cuda {

namespace cufft {

struct Complex;    // cufftComplex
struct Complex64;  // cufftDoubleComplex
using Handle = int;
enum class Status : unsigned { success = 0 };                                   // cufftResult
enum class Kind : unsigned { r2c = 0x2a, c2r = 0x2c, d2z = 0x6a, z2d = 0x6c };  // cufftType

// The functions in use, by the names that the library exports.
#define COSMATI_CUFFT(FUNCTION)                                                                           \
  FUNCTION(cufftCreate, Status, (Handle * handle))                                                        \
  FUNCTION(cufftDestroy, Status, (Handle handle))                                                         \
  FUNCTION(cufftGetVersion, Status, (int* version))                                                       \
  FUNCTION(cufftSetAutoAllocation, Status, (Handle handle, int allocates))                                \
  FUNCTION(cufftMakePlanMany, Status,                                                                     \
           (Handle handle, int rank, int* extents, int* from_extents, int from_stride, int from_distance, \
            int* to_extents, int to_stride, int to_distance, Kind kind, int count, std::size_t* bytes))   \
  FUNCTION(cufftSetWorkArea, Status, (Handle handle, void* work))                                         \
  FUNCTION(cufftSetStream, Status, (Handle handle, CUstream_st * stream))                                 \
  FUNCTION(cufftExecR2C, Status, (Handle handle, float* from, Complex* to))                               \
  FUNCTION(cufftExecC2R, Status, (Handle handle, Complex * from, float* to))                              \
  FUNCTION(cufftExecD2Z, Status, (Handle handle, double* from, Complex64* to))                            \
  FUNCTION(cufftExecZ2D, Status, (Handle handle, Complex64 * from, double* to))

}  // namespace cufft

// Returns an empty string if the library's file exists: the one named by COSMATI_CUFFT, otherwise
// libcufft.so.12 or .11 in the library path; else the reason why it cannot be used. Opens nothing.
std::string cufft_failure();
std::string const& cufft_file();  // empty if there is none

// In-place transforms of `count` consecutive planes: from rows of `columns` real numbers, each row padded to
// columns / 2 + 1 complex ones, to frequencies or, if `inverse`, back, multiplied by rows * columns. `real`:
// f32 or f64.
class CufftPlan {
 public:
  // Opens the library and runs once. Throws Error(unavailable) if that fails, Error(system) if cuFFT rejects
  // the plan or requires more than work_bytes.
  CufftPlan(int ordinal, int rows, int columns, int count, DataType real, bool inverse,
            std::size_t work_bytes);
  ~CufftPlan();
  CufftPlan(CufftPlan const&) = delete;
  CufftPlan& operator=(CufftPlan const&) = delete;

  // Enqueues; allocates nothing. Thread-safe if each thread has its own planes and work area: a cuFFT plan
  // stores both and the stream between calls, so a mutex admits one thread at a time.
  void run(void* planes, void* work, Stream stream) const;

 private:
  int ordinal_;
  bool of_f64_, inverse_;
  cufft::Handle handle_ = -1;
  mutable std::mutex enqueuing_;
};

}  // namespace cosmati::cuda
