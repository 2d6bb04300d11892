// Policies and predicted times of gemv.
#include "src/plan/gemm/small/gemv.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cosmati/gemm/steps.h"
#include "src/plan/gemm/model.h"

namespace cosmati::plan {
namespace {

constexpr Index max_rows = 8;
constexpr int vector_bytes = 16;

// Whether the operand is contiguous, but not in aligned vectors of 16 bytes.
bool is_shifted(MatrixForm const& operand, Index outer) {
  OperandAccess const access = access_of(operand);
  bool const deep = access.along == Along::k;
  Index const unit = deep ? operand.column_stride : operand.row_stride,
              pitch = deep ? operand.row_stride : operand.column_stride;
  int const size = size_of(operand.type);
  int const width = vector_bytes / size;
  if (unit != 1 || (!deep && (pitch * size < vector_bytes || outer < width))) return false;
  return access.width < width || (!deep && outer % width != 0);
}

}  // namespace

std::string gemv_violation(CanonicalGemm const& form) {
  if (form.sum == DataType::f16) return "gemv adds in f32, f64 or s32; sums in f16 require another kernel";
  if (form.m <= max_rows) return {};
  return fmt::format("m = {}, n = {}; gemv is for at most {} rows or {} columns",
                     form.swapped ? form.n : form.m, form.swapped ? form.m : form.n, max_rows, max_rows);
}

bool gemv_side(GemmProblem const& problem) {
  Index const m = problem.m(), n = problem.n();
  return n < m || (n == m && canonical(problem).swapped);
}

bool gemv_shifts(MatrixForm const& operand, bool is_a, Index outer) {
  return is_shifted(operand, outer) && (!is_a || access_of(operand).along == Along::k);
}

OperandAccess gemv_access(MatrixForm const& operand, bool is_a, Index outer) {
  OperandAccess access = access_of(operand);
  // Vectors of A along m must not extend beyond the rows, since every one is loaded completely.
  while (is_a && access.along == Along::mn && access.width > 1 && outer % access.width != 0)
    access.width /= 2;
  return access;
}

std::vector<NamedPolicy> gemv_policies(CanonicalGemm const& form) {
  bool const deep = access_of(form.b).along == Along::k;
  int const size = size_of(form.b.type);
  bool const shifts = gemv_shifts(form.b, false, form.n);
  int const width = shifts ? vector_bytes / size : access_of(form.b).width;
  int rows = 1;
  while (rows < form.m && rows < max_rows) rows *= 2;
  std::vector<NamedPolicy> list;
  auto const add = [&](std::string name, int lanes_n, int columns, int warps_n, int warps_k, int depth,
                       int blocks) {
    GemmPolicy policy;
    policy.main_loop = MainLoop::gemv;
    policy.block_m = policy.warp_m = policy.thread_m = rows;
    policy.thread_n = columns;
    policy.warp_n = lanes_n * columns;
    policy.block_n = warps_n * policy.warp_n;
    policy.warps_k = warps_k;
    policy.block_k =
        std::min(4096, 32 / lanes_n * warps_k * depth);  // the largest that policies accept as text
    policy.blocks = blocks;
    policy.raster_width = 1;
    list.push_back({std::move(name), policy});
  };
  if (deep) {
    // A thread has eight vectors in flight; several rows share the loads of A.
    int const columns = rows <= 2 ? 4 : 2, vectors = rows <= 4 && !shifts ? 8 / columns : 2;
    int const depth = width * size == vector_bytes ? width * vectors : std::max(4, 32 / columns / size);
    int const fit = rows <= 2 && !shifts ? 3 : 2;  // blocks per multiprocessor that registers permit
    for (int const warps_k : {1, 2, 4, 8})
      add(fmt::format("k{}", warps_k), 1, columns, 8 / warps_k, warps_k, depth, fit);
    add("short_k", 8, columns, 4, 1, depth, 2 * fit);
    return list;
  }
  // Vectors along n; a thread has several depths in flight.
  int const columns = std::max(width, vector_bytes / std::max(4, size)), depth = rows <= 2 && !shifts ? 8 : 4;
  int const registers = rows * columns * (form.sum == DataType::f64 ? 2 : 1);  // for sums
  int const blocks = registers <= 16 && !shifts ? 3 : registers <= 32 ? 2 : 1;
  for (int const warps_k : {4, 8, 16}) {
    if (warps_k == 16 && registers > (shifts ? 16 : 32)) continue;
    int const fit = std::max(1, blocks * 8 / warps_k);
    add(fmt::format("k{}", warps_k), 32, columns, 1, warps_k, depth, fit);
    add(fmt::format("narrow_k{}", warps_k), 8, columns, 1, warps_k, depth, fit);
  }
  return list;
}

std::string gemv_policy_violation(GemmPolicy const& p, DataType sum) {
  if (p.multiply != Multiply::fma || sum == DataType::f16)
    return "gemv requires multiply fma, with sums in f32, f64 or s32";
  if (p.epilogue != EpilogueSchedule::direct) return "gemv requires epilogue direct";
  if (p.block_m != p.warp_m || p.warp_m != p.thread_m)
    return fmt::format(
        "block_m = {}, warp_m = {}, thread_m = {}; in gemv each thread has all rows, so they are equal",
        p.block_m, p.warp_m, p.thread_m);
  auto const is_power = [](int value) { return value > 0 && (value & (value - 1)) == 0; };
  if (p.warp_n % p.thread_n != 0 || p.warp_n / p.thread_n > 32 || !is_power(p.warp_n / p.thread_n) ||
      !is_power(p.thread_n) || p.block_n % p.warp_n != 0)
    return fmt::format(
        "block_n = {}, warp_n = {}, thread_n = {}; gemv needs block_n in multiples of warp_n, a power of two "
        "for thread_n, and 1, 2, 4, 8, 16 or 32 lanes along n, warp_n / thread_n",
        p.block_n, p.warp_n, p.thread_n);
  int const threads = p.lanes_k() * p.warps_k;
  if (p.block_k % threads != 0 || !is_power(p.block_k / threads))
    return fmt::format("block_k = {} is not {} times a power of two: {} threads share a column's k",
                       p.block_k, threads, threads);
  if (p.threads() > 1024)
    return fmt::format("{} warps are {} threads; a block has at most 1024", p.threads() / 32, p.threads());
  if (p.stages != 2 || p.matrices != 1 || p.cluster() != 1)
    return "gemv has no stages, clusters or several matrices per block";
  return {};
}

Index gemv_slot_sums(GemmPolicy const& policy) {
  return ceiling_divide(Index{policy.block_m} * policy.block_n, policy.threads()) * policy.threads();
}

double predict_gemv(GemmRecipe const& recipe, CanonicalGemm const& form, Gpu const& gpu, int resident) {
  constexpr double launch_seconds = 2e-6, latency_seconds = 0.9e-6, share_of_memory = 0.96;
  GemmPolicy const& p = recipe.policy;
  Volume const volume = volume_of(form, recipe);
  double const blocks = volume.tiles * recipe.splits;
  double const units = gpu.multiprocessors, clock = gpu.clock_hertz;
  double const waves = std::max(1.0, blocks / (units * resident));
  // Bytes in flight: each thread loads its share of a step of B, then waits.
  double const size = size_of(form.b.type);
  auto const n = static_cast<double>(form.n), k = static_cast<double>(form.k);
  double const running = std::min(blocks, units * resident);
  double const step_bytes =
      p.thread_n * p.thread_k() * size * std::min(1.0, n / p.block_n) * std::min(1.0, k / p.block_k);
  double const in_flight = 0.6 * running * p.threads() * step_bytes / latency_seconds;
  double const rate = std::min(
      {share_of_memory * gpu.memory_bytes_per_second, in_flight, 50.0 * clock * std::min(units, blocks)});
  double const bytes = volume.operand_bytes + volume.result_bytes;
  // Instructions per element of B: conversion, products, and its share of the vector loads of A and B.
  bool const shifts = gemv_shifts(form.b, false, form.n);
  double const width = shifts ? 16 / size / 3.0 : std::max(1, recipe.b.width);
  double const width_a = recipe.a.along == Along::k ? std::min(recipe.a.width, p.thread_k()) : recipe.a.width;
  double const per_element = (size == 4 || size == 8 ? 0 : 1) +
                             p.block_m * (recipe.sum == DataType::f64 ? 2.0 : 1.0) + 4 / width +
                             3.0 * p.block_m / (width_a * p.thread_n);
  double const columns = std::ceil(n / p.block_n) * p.block_n;
  double const rows = std::ceil(static_cast<double>(form.m) / p.block_m);
  double const elements = static_cast<double>(form.batch) * rows * columns * k;
  double const issue = elements * per_element / (0.6 * 128 * clock * std::min(units, blocks));
  // The last wave may be nearly empty, and the last step of each tile is loaded one vector after another.
  double const steps = std::ceil(std::max(1.0, volume.steps / recipe.splits));
  double const tail = form.k % p.block_k == 0 ? 0 : 0.6 * latency_seconds * std::min(1.0, 4 / steps);
  double const uneven = waves > 1 ? std::ceil(waves) / waves : 1;
  double const combine =
      recipe.splits > 1 ? 1.6 * latency_seconds + latency_seconds * std::ceil((recipe.splits - 1) / 8.0) : 0;
  double const fill = latency_seconds * (1 + 0.3 * std::ceil(waves));
  // Times measured on an H200 relative to this prediction: 2.7 for 8 rows of f32 along k, 0.8 for 2048 rows
  // with k = 64 in f16, and 1.2 to 1.4 for several columns in a warp with a large k.
  bool const in_turns = recipe.b.along == Along::k && p.warp_n > p.thread_n && steps > 2;
  double const measured = p.block_m == 8 ? 2.7 : steps == 1 && form.batch > 1 ? 0.8 : in_turns ? 1.25 : 1;
  constexpr double not_hidden = 0.5;  // share of the shorter of loading and issuing
  double const slower = std::max(bytes / rate, issue), faster = std::min(bytes / rate, issue);
  return launch_seconds + fill + tail + combine +
         measured * (slower + not_hidden * faster) * (1 + 0.3 * (uneven - 1) * std::min(1.0, 2 / waves));
}

}  // namespace cosmati::plan
