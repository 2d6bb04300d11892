// The emulator's Fourier transforms by FFTW, opened on first use.
#pragma once
#include <memory>
#include <string>

#include "cosmati/core/number.h"

namespace cosmati::emulator {

// Empty if libfftw3f.so.3 and libfftw3.so.3 can be opened; otherwise the reason.
std::string const& fftw_failure();

// Like cuda::CufftPlan, on the host: many planes in place. Thread-safe.
class FftwPlan {
 public:
  // Throws Error(unavailable) if the library is not available.
  FftwPlan(int rows, int columns, int count, DataType real, bool inverse);
  ~FftwPlan();
  FftwPlan(FftwPlan const&) = delete;
  FftwPlan& operator=(FftwPlan const&) = delete;
  void run(void* planes) const;

 private:
  bool of_f64_, inverse_;
  void* plan_;
};

}  // namespace cosmati::emulator
