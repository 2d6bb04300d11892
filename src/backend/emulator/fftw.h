// The emulator's Fourier transforms: FFTW's, opened by name when they are first needed.
#pragma once
#include <memory>
#include <string>

#include "cosmati/core/number.h"

namespace cosmati::emulator {

// Empty if libfftw3f.so.3 and libfftw3.so.3 can be opened; else why not.
std::string const& fftw_failure();

// As cuda::CufftPlan, on the host: many planes in place. May run on many threads at once.
class FftwPlan {
 public:
  // Throws Error(unavailable) without the library.
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
