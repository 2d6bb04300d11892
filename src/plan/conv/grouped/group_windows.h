// Convolutions with groups of 16 to 64 channels by wgmma.
#pragma once
#include <array>
#include <string>

#include "cosmati/conv/grouped/group_windows_arguments.h"
#include "src/plan/conv/program.h"

namespace cosmati::plan {

Offer<ConvolutionProblem> group_windows(ConvolutionProblem const& problem, Device const& device,
                                        PlanOptions const& options);

program::Program group_windows_program(Plan<ConvolutionProblem> const& plan);

struct GroupWindowsTraits {
  GroupWindowsShape shape;
  DataType type = DataType::f16;
  std::string epilogue, destination;
  std::string print() const;
};

// The shapes of the emulator's catalogue, for f16.
inline constexpr std::array<GroupWindowsShape, 8> emulated_group_windows_shapes{{
    {{3, 1, 1}, {3, 1, 1}, 16, 16, 1, 1, 2, 2, 2, 1},
    {{3, 1, 1}, {3, 1, 1}, 32, 32, 1, 1, 1, 2, 1, 1},
    {{3, 1, 1}, {3, 1, 1}, 16, 16, 1, 1, 1, 2, 1, 1, true},
    {{3, 2, 1}, {3, 1, 1}, 64, 32, 1, 1, 1, 2, 1, 1},
    {{3, 1, 1}, {3, 1, 1}, 32, 32, 2, 1, 1, 2, 2, 1, true},
    {{3, 2, 1}, {3, 2, 1}, 16, 24, 1, 2, 1, 2, 1, 1},
    {{2, 1, 2}, {3, 1, 1}, 48, 8, 1, 1, 1, 3, 2, 1},
    {{3, 1, 1}, {3, 1, 1}, 32, 48, 1, 1, 1, 2, 1, 1, true},
}};

}  // namespace cosmati::plan
