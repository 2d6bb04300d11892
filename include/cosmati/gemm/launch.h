// Launches a GEMM kernel from a user program without libcosmati: on a GPU under nvcc, in the emulator under
// any other compiler. Host code only.
#pragma once
#include "cosmati/gemm/kernel.h"

namespace cosmati {

enum class LaunchStatus : unsigned char {
  success,
  invalid,     // a negative extent, a grid that is too large, or splits that the policy or workspace does not
               // support
  misaligned,  // a pointer or stride that violates the width of a source or the destination
};

namespace launching {

inline constexpr Index max_matrices = 65535;  // the largest z extent of a grid

COSMATI_CONSTEXPR Index padded_to_256(Index bytes) { return (bytes + 255) / 256 * 256; }

template <class Traits>
COSMATI_CONSTEXPR Index tiles(Index m, Index n) {
  return ceiling_divide(m, Traits::policy.block_m) * ceiling_divide(n, Traits::policy.block_n);
}
// The blocks along z for `matrices` matrices.
template <class Traits>
COSMATI_CONSTEXPR unsigned matrix_blocks(Index matrices) {
  return static_cast<unsigned>(ceiling_divide(matrices, Traits::policy.matrices));
}
// Number of slots and flags for partial sums of one launch.
template <class Traits>
COSMATI_CONSTEXPR Index slots(Index m, Index n, Index batch, int splits) {
  Index const matrices = batch < max_matrices ? batch : max_matrices;
  return tiles<Traits>(m, n) * matrices * (splits - 1);
}
template <class Traits>
COSMATI_CONSTEXPR Index flag_bytes(Index slots) {
  return padded_to_256(slots * static_cast<Index>(sizeof(unsigned long long)));
}
template <class Traits>
COSMATI_CONSTEXPR Index slot_bytes(Index slots) {
  using Partial = PartialSums<typename Traits::Product, BlockTeam<Traits::threads>>;
  return flag_bytes<Traits>(slots) + slots * Partial::bytes;
}
template <class Traits>
void place_slots(ScheduleArguments& schedule, void* workspace, Index slots) {
  schedule.flags = static_cast<unsigned long long*>(workspace);
  schedule.partials = static_cast<char*>(workspace) + flag_bytes<Traits>(slots);
  schedule.tag = 1;
}
// Adapts the parameters to a launch of `matrices` matrices starting at `first`; returns the flags that must
// be zero.
template <class Traits>
Index prepare(typename Traits::Params& params, Index first, Index matrices) {
  ScheduleArguments& schedule = params.schedule;
  schedule.first_batch = first;
  schedule.batch = matrices;
  if (schedule.blocks == 0) return slots<Traits>(params.m, params.n, matrices, schedule.splits);
  schedule.streamed =
      static_cast<int>(tiles_to_stream(tiles<Traits>(params.m, params.n) * matrices, schedule.blocks));
  return schedule.blocks;
}

// Returns true if runs of `width` elements of `bytes` bytes begin at multiples of their size. `unit` is the
// stride within a run, `pitch` the stride between runs.
inline bool is_aligned(MatrixArguments const& matrix, Index unit, Index pitch, int width, Index bytes) {
  if (width == 1) return true;
  bool const base =
      matrix.pointers != nullptr ||
      reinterpret_cast<unsigned long long>(matrix.data) % static_cast<unsigned>(width * bytes) == 0;
  return base && unit == 1 && pitch % width == 0 && matrix.batch_stride % width == 0;
}
template <class Element, Along along, int width>
bool is_aligned(StridedSource<Element, along, width> const*, MatrixArguments const& matrix) {
  bool const deep = along == Along::k;
  return is_aligned(matrix, deep ? matrix.column_stride : matrix.row_stride,
                    deep ? matrix.row_stride : matrix.column_stride, width, sizeof(Element));
}
template <class Element, int width, Along along>
bool is_aligned(StridedDestination<Element, width, along> const*, MatrixArguments const& matrix) {
  return is_aligned(matrix, matrix.column_stride, matrix.row_stride, width, sizeof(Element));
}
template <class Own, class Arguments>
bool is_aligned(Own const*, Arguments const&) {  // user-defined types are responsible for their alignment
  return true;
}

template <class Traits>
LaunchStatus check(typename Traits::Params const& params, Index batch) {
  constexpr GemmPolicy policy = Traits::policy;
  ScheduleArguments const& schedule = params.schedule;
  if (params.m < 0 || params.n < 0 || params.k < 0 || batch < 0) return LaunchStatus::invalid;
  if (params.m == 0 || params.n == 0 || batch == 0) return LaunchStatus::success;
  if (tiles<Traits>(params.m, params.n) > 0x7fffffff) return LaunchStatus::invalid;
  if (policy.full_tiles &&
      (params.m % policy.block_m != 0 || params.n % policy.block_n != 0 || params.k % policy.block_k != 0))
    return LaunchStatus::invalid;
  if (schedule.splits < 1 || schedule.splits > 65535) return LaunchStatus::invalid;
  bool const streams = policy.partition == Partition::stream_k;
  if (schedule.blocks < 0 || (schedule.blocks > 0) != streams) return LaunchStatus::invalid;
  if (schedule.splits > 1 && policy.partition != Partition::split_k) return LaunchStatus::invalid;
  if ((schedule.splits > 1 || streams) && (schedule.partials == nullptr || schedule.flags == nullptr))
    return LaunchStatus::invalid;
  if (streams && tiles<Traits>(params.m, params.n) * (batch < max_matrices ? batch : max_matrices) *
                         ceiling_divide(params.k, policy.block_k) >
                     0x7fffffff)
    return LaunchStatus::invalid;
  bool const aligned = is_aligned(static_cast<typename Traits::SourceA*>(nullptr), params.a) &&
                       is_aligned(static_cast<typename Traits::SourceB*>(nullptr), params.b) &&
                       is_aligned(static_cast<typename Traits::Destination*>(nullptr), params.d);
  return aligned ? LaunchStatus::success : LaunchStatus::misaligned;
}

}  // namespace launching

// Returns the bytes of device workspace, 256-byte aligned, for `splits` parts of k; 0 for one part.
template <class Traits>
COSMATI_CONSTEXPR Index gemm_workspace_bytes(Index m, Index n, Index batch, int splits) {
  return splits <= 1 ? 0 : launching::slot_bytes<Traits>(launching::slots<Traits>(m, n, batch, splits));
}
// The same for partition stream_k with `blocks` resident blocks.
template <class Traits>
COSMATI_CONSTEXPR Index stream_workspace_bytes(int blocks) {
  return launching::slot_bytes<Traits>(blocks);
}

// Returns Params::schedule for `splits` parts of k, each computed by different blocks; requires partition
// split_k.
template <class Traits>
ScheduleArguments split_schedule(void* workspace, Index m, Index n, Index batch, int splits) {
  ScheduleArguments schedule;
  schedule.splits = splits;
  launching::place_slots<Traits>(schedule, workspace, launching::slots<Traits>(m, n, batch, splits));
  return schedule;
}
// Returns Params::schedule for partition stream_k; results depend on `blocks`.
template <class Traits>
ScheduleArguments stream_schedule(void* workspace, int blocks) {
  ScheduleArguments schedule;
  schedule.blocks = blocks;
  launching::place_slots<Traits>(schedule, workspace, blocks);
  return schedule;
}

#if defined(__CUDACC__)

namespace launching {

// Opts in to more than 48 KB of shared memory per block, once per kernel and device.
template <class Traits>
cudaError_t allow_shared_memory() {
  constexpr int bytes = static_cast<int>(sizeof(typename Traits::SharedStorage));
  if constexpr (bytes <= 48 * 1024) {
    return cudaSuccess;
  } else {
    static unsigned long long allowed = 0;  // bit i: device i
    int device = 0;
    if (cudaError_t const status = cudaGetDevice(&device); status != cudaSuccess) return status;
    unsigned long long const bit = device < 64 ? 1ull << device : 0;
    if ((__atomic_load_n(&allowed, __ATOMIC_RELAXED) & bit) != 0) return cudaSuccess;
    cudaError_t const status =
        cudaFuncSetAttribute(&gemm_kernel<Traits>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
    if (status == cudaSuccess) __atomic_fetch_or(&allowed, bit, __ATOMIC_RELAXED);
    return status;
  }
}

}  // namespace launching

// d(m, n) = epilogue(sum over k of a(m, k) * b(k, n)) for each matrix of the batch; all pointers are device
// pointers. Enqueues on `stream` and returns; can be captured in a graph. Does nothing if m, n or batch is 0.
// Returns the runtime's error, cudaErrorInvalidValue or cudaErrorMisalignedAddress according to LaunchStatus.
template <class Traits>
cudaError_t launch_gemm(typename Traits::Params params, Index batch = 1, cudaStream_t stream = nullptr) {
  LaunchStatus const status = launching::check<Traits>(params, batch);
  if (status != LaunchStatus::success)
    return status == LaunchStatus::misaligned ? cudaErrorMisalignedAddress : cudaErrorInvalidValue;
  if (params.m == 0 || params.n == 0 || batch == 0) return cudaSuccess;
  if (cudaError_t const error = launching::allow_shared_memory<Traits>(); error != cudaSuccess) return error;

  auto const tiles = static_cast<unsigned>(launching::tiles<Traits>(params.m, params.n));
  auto const splits = static_cast<unsigned>(params.schedule.splits);
  auto const blocks = static_cast<unsigned>(params.schedule.blocks);
  for (Index first = 0; first < batch; first += launching::max_matrices) {
    Index const left = batch - first;
    auto const matrices =
        static_cast<unsigned>(left < launching::max_matrices ? left : launching::max_matrices);
    Index const flags = launching::prepare<Traits>(params, first, matrices);
    if (flags > 0) {
      cudaError_t const error = cudaMemsetAsync(
          params.schedule.flags, 0, sizeof(unsigned long long) * static_cast<unsigned>(flags), stream);
      if (error != cudaSuccess) return error;
    }
    void* arguments[] = {&params};
    dim3 const grid =
        blocks > 0 ? dim3(blocks) : dim3(tiles, splits, launching::matrix_blocks<Traits>(matrices));
    cudaError_t const error = cudaLaunchKernel(&gemm_kernel<Traits>, grid, dim3(Traits::threads), arguments,
                                               sizeof(typename Traits::SharedStorage), stream);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

#else

// The same in the emulator, synchronously; throws cosmati::Error if the kernel violates a rule of the GPU.
template <class Traits>
LaunchStatus launch_gemm(typename Traits::Params params, Index batch = 1, int host_threads = 0) {
  LaunchStatus const status = launching::check<Traits>(params, batch);
  if (status != LaunchStatus::success || params.m == 0 || params.n == 0 || batch == 0) return status;
  auto const tiles = static_cast<int>(launching::tiles<Traits>(params.m, params.n));
  for (Index first = 0; first < batch; first += launching::max_matrices) {
    Index const left = batch - first;
    auto const matrices = static_cast<int>(left < launching::max_matrices ? left : launching::max_matrices);
    Index const flags = launching::prepare<Traits>(params, first, matrices);
    for (Index i = 0; i < flags; ++i) params.schedule.flags[i] = 0;
    emulator::Grid const grid =
        params.schedule.blocks > 0
            ? emulator::Grid{params.schedule.blocks}
            : emulator::Grid{tiles, params.schedule.splits,
                             static_cast<int>(launching::matrix_blocks<Traits>(matrices))};
    emulator::launch_kernel<&gemm_kernel<Traits>>(
        grid, Traits::threads, sizeof(typename Traits::SharedStorage), params, host_threads);
  }
  return status;
}

#endif

}  // namespace cosmati
