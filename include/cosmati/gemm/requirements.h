// Requirements on a policy, as static_assert messages; the type names in the messages contain the numbers.
#pragma once
#include "cosmati/arch/architecture.h"
#include "cosmati/core/number.h"
#include "cosmati/gemm/policy.h"

namespace cosmati {

namespace required {

// Later requirements may use numbers that violate an earlier one.
COSMATI_CONSTEXPR int quotient(int a, int b) { return b > 0 ? a / b : 0; }
COSMATI_CONSTEXPR bool divides(int b, int a) { return b > 0 && a % b == 0; }

template <class T, class... Arguments>
concept MadeFrom = requires(Arguments const&... arguments) {
  T(arguments...);
};

template <int block_m, int block_n, int block_k>
struct BlockTile {
  static_assert(block_m > 0 && block_n > 0 && block_k > 0,
                "block_m, block_n and block_k must be positive: the block's tile of D and its step along k");
};
template <int block_m, int warp_m>
struct BlockMOverWarpM {
  static_assert(warp_m > 0, "warp_m must be positive: the rows of D of a warp");
  static_assert(warp_m <= 0 || divides(warp_m, block_m), "block_m must be a multiple of warp_m");
};
template <int block_n, int warp_n>
struct BlockNOverWarpN {
  static_assert(warp_n > 0, "warp_n must be positive: the columns of D of a warp");
  static_assert(warp_n <= 0 || divides(warp_n, block_n), "block_n must be a multiple of warp_n");
};
template <int warp_m, int thread_m>
struct WarpMOverThreadM {
  static_assert(thread_m > 0, "thread_m must be positive: the rows of D in a thread's registers");
  static_assert(thread_m <= 0 || divides(thread_m, warp_m), "warp_m must be a multiple of thread_m");
};
template <int warp_n, int thread_n>
struct WarpNOverThreadN {
  static_assert(thread_n > 0, "thread_n must be positive: the columns of D in a thread's registers");
  static_assert(thread_n <= 0 || divides(thread_n, warp_n), "warp_n must be a multiple of thread_n");
};
template <int lanes_m, int lanes_n>
struct LanesOfAWarp {
  static_assert(lanes_m * lanes_n == 32,
                "a warp has 32 lanes: (warp_m / thread_m) * (warp_n / thread_n) must be 32");
  static_assert(lanes_m == 1 || lanes_m % 2 == 0,
                "the lanes along m, warp_m / thread_m, must be one or an even number");
};
template <int threads>
struct ThreadsOfABlock {
  static_assert(threads <= 1024,
                "a block has at most 1024 threads: use a larger warp tile or a smaller block tile");
};
template <int block_k, int pack_depth>
struct StepDepth {
  static_assert(
      divides(pack_depth, block_k),
      "block_k must be a multiple of the multiply's pack_depth (4 for dp4a; 32 bytes for mma; 4 f64, 8 tf32 "
      "or 16 others for wmma)");
  static_assert(quotient(block_k, pack_depth) % 2 == 0,
                "block_k / pack_depth must be even: fragments alternate between two sets of registers");
};
template <int blocks, int raster_width>
struct Scheduling {
  static_assert(blocks >= 1, "blocks must be positive: the resident blocks that registers must allow");
  static_assert(raster_width >= 1, "raster_width must be positive: the tiles across a band");
};
template <int stages>
struct StagesOfDoubleBuffered {
  static_assert(stages == 2, "main loop double_buffered requires stages = 2; multistage requires 3 to 5");
};
template <int stages>
struct StagesOfMultistage {
  static_assert(stages >= 3 && stages <= 5,
                "main loop multistage requires stages = 3, 4 or 5; double_buffered requires 2");
};
template <int stages, int architecture = arch::min_architecture()>
struct ArchitectureOfMultistage {
  static_assert(
      architecture >= 800,
      "main loop multistage requires cp.async, available on sm_80 and later; use double_buffered for sm_75");
};
template <class Sum>
struct SumsOfFma {
  static_assert(is_same<Sum, f32> || is_same<Sum, f64> || is_same<Sum, s32>,
                "multiply fma accumulates in f32, f64 or s32; half2 accumulates in f16");
};
template <class Sum>
struct SumsOfHalf2 {
  static_assert(is_same<Sum, f16>, "multiply half2 accumulates in f16; fma accumulates in f32");
};
template <int thread_n>
struct ColumnsOfHalf2 {
  static_assert(thread_n % 2 == 0, "multiply half2 keeps two columns in a register: thread_n must be even");
};
template <class ElementA, class ElementB, class Sum>
struct OperandsOfDp4a {
  static constexpr bool bytes_a = is_same<ElementA, s8> || is_same<ElementA, u8>;
  static constexpr bool bytes_b = is_same<ElementB, s8> || is_same<ElementB, u8>;
  static_assert(bytes_a && bytes_b, "multiply dp4a supports s8 and u8 operands; fma supports all others");
  static_assert(is_same<Sum, s32>, "multiply dp4a accumulates in s32");
};
template <class ElementA, class ElementB>
struct HalvesByCopies {
  static_assert(is_same<ElementA, f16> && is_same<ElementB, f16>,
                "multiply half2 requires f16 operands in main loop multistage; double_buffered converts "
                "other types");
};

template <Multiply multiply, MainLoop main_loop, int thread_n, class ElementA, class ElementB, class Sum>
struct Operands {
  static_assert(multiply == Multiply::fma, "unknown multiply; valid values: fma, half2, dp4a, wmma, mma");
};
template <MainLoop main_loop, int thread_n, class ElementA, class ElementB, class Sum>
struct Operands<Multiply::fma, main_loop, thread_n, ElementA, ElementB, Sum> : SumsOfFma<Sum> {};
template <MainLoop main_loop, int thread_n, class ElementA, class ElementB, class Sum>
struct Operands<Multiply::dp4a, main_loop, thread_n, ElementA, ElementB, Sum>
    : OperandsOfDp4a<ElementA, ElementB, Sum> {};
template <MainLoop main_loop, int thread_n, class ElementA, class ElementB, class Sum>
struct Operands<Multiply::half2, main_loop, thread_n, ElementA, ElementB, Sum> : SumsOfHalf2<Sum>,
                                                                                 ColumnsOfHalf2<thread_n> {};
template <int thread_n, class ElementA, class ElementB, class Sum>
struct Operands<Multiply::half2, MainLoop::multistage, thread_n, ElementA, ElementB, Sum>
    : SumsOfHalf2<Sum>, ColumnsOfHalf2<thread_n>, HalvesByCopies<ElementA, ElementB> {};

template <class Element>
inline constexpr bool is_byte = is_same<Element, s8> || is_same<Element, u8>;
template <class Element>
inline constexpr bool is_fp8 = is_same<Element, e4m3> || is_same<Element, e5m2>;
template <MainLoop main_loop>
struct LoopOfMma {
  static_assert(main_loop == MainLoop::multistage || main_loop == MainLoop::tiny,
                "multiply mma requires main loop multistage or tiny");
};
template <class ElementA, class ElementB, class Sum>
struct OperandsOfWmma {
  static constexpr bool floats =
      is_same<ElementA, f16> || is_same<ElementA, bf16> || is_same<ElementA, tf32> || is_same<ElementA, f64>;
  static_assert(is_same<ElementA, ElementB> && (floats || is_byte<ElementA>),
                "multiply wmma requires two operands of one type: f16, bf16, tf32, f64, s8 or u8");
  static_assert(!floats || is_same<ElementA, f64> || is_same<Sum, f32> ||
                    (is_same<ElementA, f16> && is_same<Sum, f16>),
                "multiply wmma accumulates f16 in f32 or f16, bf16 and tf32 in f32");
  static_assert(!is_same<ElementA, f64> || is_same<Sum, f64>, "multiply wmma accumulates f64 in f64");
  static_assert(!is_byte<ElementA> || is_same<Sum, s32>, "multiply wmma accumulates 8-bit integers in s32");
};
template <MainLoop main_loop, int thread_n, class ElementA, class ElementB, class Sum>
struct Operands<Multiply::wmma, main_loop, thread_n, ElementA, ElementB, Sum>
    : OperandsOfWmma<ElementA, ElementB, Sum> {};

template <class ElementA, class ElementB, class Sum>
struct OperandsOfMma {
  static constexpr bool floats =
      (is_same<ElementA, ElementB> &&
       (is_same<ElementA, f16> || is_same<ElementA, bf16> || is_same<ElementA, tf32>)) ||
      (is_fp8<ElementA> && is_fp8<ElementB>);
  static constexpr bool bytes = is_byte<ElementA> && is_byte<ElementB>;
  static_assert(floats || bytes,
                "multiply mma requires two operands of f16, bf16 or tf32, or of fp8, or of s8 and u8");
  static_assert(!floats || is_same<Sum, f32> || (is_same<ElementA, f16> && is_same<Sum, f16>),
                "multiply mma accumulates floating-point products in f32, and those of f16 also in f16");
  static_assert(!bytes || is_same<Sum, s32>, "multiply mma accumulates 8-bit integers in s32");
};
template <class ElementA, class ElementB>
struct OperandsOfMma<ElementA, ElementB, f64> {
  static_assert(is_same<ElementA, f64> && is_same<ElementB, f64>,
                "multiply mma with sums in f64 requires two operands of f64");
};
template <MainLoop main_loop, int thread_n, class ElementA, class ElementB, class Sum>
struct Operands<Multiply::mma, main_loop, thread_n, ElementA, ElementB, Sum>
    : LoopOfMma<main_loop>, OperandsOfMma<ElementA, ElementB, Sum> {};

// mma.sync determines the elements of a thread: 8 lanes along rows, 4 along columns.
template <bool by_mma, int warp_m, int warp_n, int thread_m, int thread_n>
struct WarpTileOfMma {};
template <int warp_m, int warp_n, int thread_m, int thread_n>
struct WarpTileOfMma<true, warp_m, warp_n, thread_m, thread_n> {
  static_assert(warp_m % 16 == 0 && warp_n % 16 == 0,
                "multiply mma: warp_m and warp_n must be multiples of 16");
  static_assert(thread_m * 8 == warp_m && thread_n * 4 == warp_n,
                "multiply mma: thread_m is warp_m / 8, thread_n is warp_n / 4");
};

// wmma does not specify the elements of a thread, only their number, which is the same as with mma.
template <bool by_wmma, int warp_m, int warp_n, int thread_m, int thread_n>
struct WarpTileOfWmma {};
template <int warp_m, int warp_n, int thread_m, int thread_n>
struct WarpTileOfWmma<true, warp_m, warp_n, thread_m, thread_n> {
  static_assert(warp_m % 16 == 0 && warp_n % 16 == 0,
                "multiply wmma: warp_m and warp_n must be multiples of 16");
  static_assert(thread_m * 8 == warp_m && thread_n * 4 == warp_n,
                "multiply wmma: thread_m is warp_m / 8, thread_n is warp_n / 4");
};
template <bool by_wmma>
struct EpilogueOfWmma {
  static_assert(!by_wmma,
                "multiply wmma requires epilogue staged: the thread that holds an element of D is "
                "unspecified");
};

template <MainLoop main_loop, int stages>
struct Stages {
  static_assert(main_loop == MainLoop::double_buffered,
                "unknown main loop; valid values: double_buffered, multistage, gemv, tiny");
};
template <int stages>
struct Stages<MainLoop::double_buffered, stages> : StagesOfDoubleBuffered<stages> {};
template <int stages>
struct Stages<MainLoop::multistage, stages> : StagesOfMultistage<stages>, ArchitectureOfMultistage<stages> {};
template <int stages>
struct Stages<MainLoop::tiny, stages> {
  static_assert(stages == 1, "main loop tiny requires stages = 1: a warp's loads are hidden by other warps");
};
template <bool is_tiny, int warps, int matrices>
struct WarpsOfTiny {
  static_assert(matrices >= 1 && (is_tiny || matrices == 1), "matrices is for the main loop tiny");
  static_assert(!is_tiny || warps == 1,
                "main loop tiny multiplies a tile by one warp: block_m = warp_m and block_n = warp_n");
};
template <int warps_k>
struct WarpsAlongK {
  static_assert(warps_k == 1, "warps_k, the warps that share a tile's k, is for the main loop gemv");
};
template <int block_m, int warp_m, int thread_m>
struct RowsOfGemv {
  static_assert(block_m == warp_m && warp_m == thread_m,
                "main loop gemv: each thread has all rows of the tile, block_m = warp_m = thread_m");
};
template <int lanes_n, int warps_k, int block_k>
struct DepthOfGemv {
  static_assert(lanes_n >= 1 && lanes_n <= 32 && 32 % (lanes_n > 0 ? lanes_n : 1) == 0,
                "main loop gemv: warp_n / thread_n, the lanes along n, must divide the 32 lanes of a warp");
  static_assert(warps_k >= 1, "warps_k must be positive: the warps that share a tile, each with a part of k");
  static constexpr int threads = 32 / (lanes_n > 0 ? lanes_n : 1) * warps_k;
  static constexpr int depth = quotient(block_k, threads);
  static_assert(
      divides(threads, block_k) && depth > 0 && (depth & (depth - 1)) == 0,
      "main loop gemv: block_k must be a power of two for each of the 32 / lanes_n * warps_k threads "
      "that share a column");
};
template <Multiply multiply, EpilogueSchedule epilogue>
struct MultiplyOfGemv {
  static_assert(multiply == Multiply::fma, "main loop gemv requires multiply fma");
  static_assert(epilogue == EpilogueSchedule::direct, "main loop gemv requires epilogue direct");
};

// The largest limit of all architectures, that of sm_90; the planner checks the limit of the plan's device.
template <int bytes>
struct SharedMemoryOfABlock {
  static_assert(bytes <= 227 * 1024,
                "a block has at most 232448 bytes of shared memory on any GPU: use fewer stages, a smaller "
                "block_k or a smaller block tile");
};

}  // namespace required

template <GemmPolicy p, class ElementA, class ElementB, class Sum>
struct ProductRequirements;

template <GemmPolicy p, class ElementA, class ElementB, class Sum>
requires(p.main_loop == MainLoop::gemv) struct ProductRequirements<p, ElementA, ElementB, Sum>
    : required::BlockTile<p.block_m, p.block_n, p.block_k>,
      required::RowsOfGemv<p.block_m, p.warp_m, p.thread_m>,
      required::BlockNOverWarpN<p.block_n, p.warp_n>,
      required::WarpNOverThreadN<p.warp_n, p.thread_n>,
      required::DepthOfGemv<required::quotient(p.warp_n, p.thread_n), p.warps_k, p.block_k>,
      required::ThreadsOfABlock<32 * required::quotient(p.block_n, p.warp_n) * p.warps_k>,
      required::Scheduling<p.blocks, p.raster_width>,
      required::MultiplyOfGemv<p.multiply, p.epilogue>,
      required::SumsOfFma<Sum> {
  static constexpr bool satisfied = true;
};

template <GemmPolicy p, class ElementA, class ElementB, class Sum>
requires(p.main_loop != MainLoop::gemv) struct ProductRequirements<p, ElementA, ElementB, Sum>
    : required::BlockTile<p.block_m, p.block_n, p.block_k>,
      required::BlockMOverWarpM<p.block_m, p.warp_m>,
      required::BlockNOverWarpN<p.block_n, p.warp_n>,
      required::WarpMOverThreadM<p.warp_m, p.thread_m>,
      required::WarpNOverThreadN<p.warp_n, p.thread_n>,
      required::LanesOfAWarp<required::quotient(p.warp_m, p.thread_m),
                             required::quotient(p.warp_n, p.thread_n)>,
      required::ThreadsOfABlock<32 * required::quotient(p.block_m, p.warp_m) *
                                required::quotient(p.block_n, p.warp_n) * p.matrices>,
      required::WarpsOfTiny<p.main_loop == MainLoop::tiny,
                            required::quotient(p.block_m, p.warp_m) * required::quotient(p.block_n, p.warp_n),
                            p.matrices>,
      required::WarpsAlongK<p.warps_k>,
      required::StepDepth<p.block_k, pack_depth_of(p.multiply, static_cast<int>(sizeof(ElementA)))>,
      required::Scheduling<p.blocks, p.raster_width>,
      required::WarpTileOfMma<p.multiply == Multiply::mma, p.warp_m, p.warp_n, p.thread_m, p.thread_n>,
      required::WarpTileOfWmma<p.multiply == Multiply::wmma, p.warp_m, p.warp_n, p.thread_m, p.thread_n>,
      required::Stages<p.main_loop, p.stages>,
      required::Operands<p.multiply, p.main_loop, p.thread_n, ElementA, ElementB, Sum> {
  static constexpr bool satisfied = true;
};

}  // namespace cosmati
