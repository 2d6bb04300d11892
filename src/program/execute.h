// Runs programs: declared here, so that plans can prepare theirs, and defined above the backends
// (src/candidates/execute.cpp).
#pragma once
#include <memory>

#include "src/program/program.h"

namespace cosmati::program {

// A program whose kernels are compiled or found. Immutable; run() is thread-safe.
class LoadedProgram {
 public:
  virtual ~LoadedProgram() = default;
  // Enqueues the steps on `stream` (cuda), or performs them before it returns (emulator). Sets
  // Run::constants and Run::encode.
  virtual void run(Run run, Stream stream) const = 0;
};

// Throws Error(unavailable) where the device's backend cannot run here.
std::unique_ptr<LoadedProgram> load(Program program, Device const& device);

// Returns the kernel that runs `program`, loaded for the plan's device: for ConvolutionProblem, GemmProblem
// and GroupedGemmProblem.
template <class Problem>
std::unique_ptr<Kernel<Problem>> prepare(Plan<Problem> const& plan, Program program);

}  // namespace cosmati::program
