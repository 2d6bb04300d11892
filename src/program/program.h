// The program that a plan makes for a problem on a GPU: launches of kernels, Fourier transforms and matrix
// products, in order. The backends cuda and emulator run the same programs, and contain no code for an
// algorithm.
#pragma once
#include <array>
#include <cstddef>
#include <functional>
#include <new>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "cosmati/arch/emulator_async.h"
#include "cosmati/arch/tensor_copy.h"
#include "cosmati/ops/grouped_gemm.h"

namespace cosmati::reference {
class ElementEpilogue;
}

namespace cosmati::program {

// A kernel: a template and the traits with which it is instantiated, printed as C++ by the algorithm. Two
// specifications with the same key() are the same kernel.
struct KernelSpec {
  std::vector<std::string> headers = {};  // below include/cosmati/
  std::string declarations = {};          // C++ that the traits use, such as an epilogue's function
  std::string entry = {};                 // the kernel's template
  std::string traits = {};                // its first argument, ComposedTraits in the composed text
  int phases = 0;                         // its second argument; 0: it has one argument
  std::string scheduler = {};  // or the second argument is a type that names cosmati::ComposedTraits
  // Assumptions of the host, as expressions and their values: the composed text asserts them.
  std::vector<std::pair<std::string, std::size_t>> asserted = {};
  bool is_composed = true;                 // else the arguments are values, or types of the headers
  bool keeps_roundings = false;            // the compiler does not fuse products and sums of an epilogue
  bool starts_early = false;               // may start while the previous kernel still runs, and waits for it
  unsigned threads = 0, shared_bytes = 0;  // per block
  std::string label = {};                  // for messages

  std::string key() const;
};

// Return the text for the run-time compiler, and the kernel's name in it.
std::string text_of(KernelSpec const& kernel);
std::string name_expression_of(KernelSpec const& kernel);

struct Grid {
  Index x = 1, y = 1, z = 1;
};

// Tensor maps (TMA, sm_90 and later) are described by the array and the box that a copy moves. `address` is a
// tensor of the run, or lies in its workspace. A launch's `fill` has its maps encoded, and stores them among
// the parameters.
using emulator::TiledTensor;
using emulator::WindowedTensor;  // in im2col mode

// Provided by the backend: the driver's function, or the emulator's model of it. Throws Error if the map
// exceeds a limit of the driver (src/program/tensor_map_limits.h).
struct TensorMapEncoder {
  arch::TensorMap (*tiled)(TiledTensor const& tensor) = nullptr;
  arch::TensorMap (*windowed)(WindowedTensor const& tensor) = nullptr;

  arch::TensorMap operator()(TiledTensor const& tensor) const;
  arch::TensorMap operator()(WindowedTensor const& tensor) const;
};

// The inputs of one run; everything else is decided when the plan is made.
struct Run {
  std::array<void*, 4> tensors{};                        // in the order of visit_tensors
  std::span<void* const> arguments = {};                 // for a primitive, which has no other tensors
  std::span<GemmProblem::Arguments const> members = {};  // for a group, which has no other tensors
  std::span<void const* const> operands = {};
  std::span<double const> scalars = {};
  std::span<void* const> stores = {};
  unsigned long long step = 0;  // for dropout's random numbers
  std::byte* workspace = nullptr;
  std::byte const* constants = nullptr;                  // Program::constants, on the device
  reference::ElementEpilogue const* epilogue = nullptr;  // for the emulator's kernels
  std::span<reference::ElementEpilogue const* const> member_epilogues = {};
  TensorMapEncoder encode;
};

template <class Problem>
Run run_of(Problem const& problem, typename Problem::Arguments const& arguments, std::byte* workspace) {
  Run run;
  run.workspace = workspace;
  if constexpr (requires { arguments.members; }) {
    run.members = arguments.members;
  } else {
    std::size_t count = 0;
    Problem::visit_tensors(problem, [&](char const*, Role, TensorDescription const&, auto member) {
      run.tensors[count++] = const_cast<void*>(static_cast<void const*>(arguments.*member));
    });
    run.operands = arguments.operands;
    run.scalars = arguments.scalars;
    run.stores = arguments.stores;
  }
  return run;
}

// One launch. `fill` writes the parameters to `room` bytes, of which the kernel receives the first `bytes`.
struct Launch {
  std::size_t kernel = 0;  // index in Program::kernels
  Grid grid;
  std::size_t bytes = 0, room = 0, alignment = 1;
  std::function<void(Run const& run, void* parameters)> fill;
  // Not 0: persistent clusters of this many blocks; along x the grid has at most as many clusters as can be
  // resident.
  int resident_cluster = 0;
};

// The maximum of GPU launches: parameters of 16 phases, of which a kernel receives fewer bytes.
inline constexpr std::size_t max_room = 16 * 4096 + 256;

// `write(run, parameters)` sets the fields that differ from Parameters{}.
template <class Parameters, class Write>
Launch launch_of(std::size_t kernel, Grid grid, Write write, std::size_t bytes = sizeof(Parameters)) {
  static_assert(std::is_trivially_destructible_v<Parameters>);
  return {kernel,
          grid,
          bytes,
          sizeof(Parameters),
          alignof(Parameters),
          [write = std::move(write)](Run const& run, void* to) { write(run, *new (to) Parameters); },
          0};
}

// In-place Fourier transforms of `count` planes by a library: from rows of `columns` real numbers of type
// `real`, each padded to columns / 2 + 1 complex ones, to frequencies or, if `inverse`, back, multiplied by
// rows * columns.
struct Transform {
  int rows = 0, columns = 0, count = 0;
  DataType real = DataType::f32;
  bool inverse = false;
  std::size_t work_bytes = 0;
  friend bool operator==(Transform const&, Transform const&) = default;
};
// A call of such a transform, with the offsets in the workspace of the planes, which are consecutive, and of
// the library's work area.
struct LibraryCall {
  std::size_t transform = 0;  // of Program::transforms
  std::size_t planes = 0, work = 0;
};

// A matrix product. Its own workspace is the beginning of the program's; its matrices are at these offsets.
struct ProductCall {
  std::size_t product = 0;  // of Program::products
  std::size_t a = 0, b = 0, d = 0;

  GemmProblem::Arguments arguments(std::byte* workspace) const {
    GemmProblem::Arguments given;
    given.a = workspace + a, given.b = workspace + b, given.d = workspace + d;
    return given;
  }
};

using Step = std::variant<Launch, LibraryCall, ProductCall>;

// The parts of a run's workspace, one after another.
struct Workspace {
  struct Slot {
    std::string name;
    std::size_t offset = 0, bytes = 0;
  };
  std::vector<Slot> slots;
  std::size_t bytes = 0;

  std::size_t add(std::string name, std::size_t size) { return add(std::move(name), bytes, size); }
  // Adds a slot at `offset`, possibly after a gap.
  std::size_t add(std::string name, std::size_t offset, std::size_t size) {
    slots.push_back({std::move(name), offset, size});
    bytes = offset + size;
    return offset;
  }
};

// Memory that all runs read and none writes; made once, when the program is prepared.
struct Constants {
  std::size_t bytes = 0;
  std::function<void(TensorMapEncoder const& encode, std::byte* to)> write = {};
};

struct Program {
  std::vector<KernelSpec> kernels;
  std::size_t main = 0;     // the kernel that computes the sums, if no product does
  std::vector<Step> steps;  // none: there is nothing to compute
  std::vector<Transform> transforms;
  std::vector<Plan<GemmProblem>> products;
  Workspace workspace;
  Constants constants = {};
};

}  // namespace cosmati::program
