// The offers of products of bf16 and tf32 pieces, and the pass that makes the pieces.
#include "src/plan/gemm/pieces.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>

#include "src/ops/number_types.h"
#include "src/plan/best_offer.h"
#include "src/plan/buffers.h"
#include "src/plan/conv/winograd/winograd.h"
#include "src/plan/gemm/choice.h"
#include "src/plan/gemm/each_matrix.h"
#include "src/plan/gemm/launch.h"
#include "src/plan/gemm/program/program.h"
#include "src/plan/make_plan.h"

namespace cosmati::plan {
namespace {

Index segment_of(Index k) { return (k + PieceTile::run - 1) / PieceTile::run * PieceTile::run; }

std::size_t bytes_of(TensorDescription const& pieces) {
  return padded_bytes(static_cast<std::size_t>(pieces.layout.shape.size() * size_of(pieces.type)));
}

// Predicts a pass that reads every element once and writes one piece of it for each product.
double seconds_of_pass(TensorDescription const& operand, ComputeMode mode, Gpu const& gpu) {
  constexpr double launch_seconds = 3e-6, share_of_copy = 0.7;
  auto const elements = static_cast<double>(operand.layout.shape.size());
  auto const bytes = static_cast<double>(4 + size_of(piece_type(mode)) * products_of(mode));
  return launch_seconds + elements * bytes / (share_of_copy * gpu.memory_bytes_per_second);
}

Offer<GemmProblem> best_product(GemmProblem const& product, Device const& device,
                                PlanOptions const& options) {
  bool const takes_wgmma = product.a.type == DataType::bf16;
  BestOffer<GemmProblem> best;
  for (Candidate<GemmProblem> const& candidate : gemm_candidates(device.backend)) {
    if (std::string_view(candidate.name) == each_matrix_candidate().name) continue;  // it has no program
    Offer<GemmProblem> offer = offer_of(candidate, product, device, options);
    Multiply const multiply = offer.recipe.policy.multiply;
    if (offer.refusal.empty() && multiply != Multiply::mma && !(takes_wgmma && multiply == Multiply::wgmma))
      offer.refusal = fmt::format("{} {} with this policy on this GPU",
                                  takes_wgmma ? "no tensor cores multiply" : "mma.sync does not multiply",
                                  name_of(product.a.type));
    if (offer.refusal.empty() && best.takes(offer.predicted_seconds))
      best.take(std::move(offer));
    else if (!offer.refusal.empty() && !best.refused())  // the first reason is that of wgmma
      best.refuse(std::move(offer.refusal));
  }
  return std::move(best).result();
}

template <DataType type>
Offer<GemmProblem> offer_of_pieces(GemmProblem const& problem, Device const& device,
                                   PlanOptions const& options) {
  Offer<GemmProblem> offer;
  auto const refuse = [&offer](std::string reason) {
    offer.refusal = std::move(reason);
    return offer;
  };
  if (piece_type(problem.compute) != type)
    return refuse(fmt::format("splits f32 factors only on request: {}",
                              type == DataType::bf16 ? "bf16x3, bf16x6 or bf16x9" : "tf32x3"));
  if (problem.d.layout.shape.size() == 0 || problem.k() == 0) return refuse("there is nothing to multiply");
  GemmProblem const product = product_of_pieces(problem);
  std::size_t const bytes_a = bytes_of(product.a), bytes_b = bytes_of(product.b);
  if (bytes_a + bytes_b > options.max_workspace)
    return refuse(fmt::format("needs {} bytes of workspace for pieces; at most {}", bytes_a + bytes_b,
                              options.max_workspace));
  PlanOptions of_product = options;
  of_product.kernel.clear();
  of_product.max_workspace -= bytes_a + bytes_b;
  of_product.max_error.reset();
  of_product.tuning.reset();
  offer = best_product(product, device, of_product);
  if (!offer.refusal.empty()) return offer;
  offer.workspace_bytes = padded_bytes(offer.workspace_bytes) + bytes_a + bytes_b;
  offer.predicted_seconds += seconds_of_pass(problem.a, problem.compute, device.gpu) +
                             seconds_of_pass(problem.b, problem.compute, device.gpu);
  offer.recipe.predicted_seconds = offer.predicted_seconds;
  offer.expected_error = pieces_error(problem, offer.recipe);
  offer.text = fmt::format("{} products of {} pieces, split first; {}", products_of(problem.compute),
                           name_of(type), to_string(offer.recipe));
  offer.note.clear();
  return offer;
}

// Adds the pass that splits an operand to `copy`.
void add_pass(program::Program& program, GemmProblem const& problem, bool is_b, KernelOperand copy) {
  CanonicalGemm const form = canonical(problem, false);
  MatrixForm const operand = is_b ? form.b : form.a;
  Index const outer = is_b ? form.n : form.m, depth = form.k, segment = segment_of(depth);
  int const products = products_of(problem.compute);
  OperandAccess const access = access_of(operand);
  bool const transposed = access.along == Along::mn;
  PiecesTraits const traits{{.products = products,
                             .piece_bytes = static_cast<int>(size_of(piece_type(problem.compute))),
                             .is_b = is_b,
                             .width = access.width >= 4 ? 4 : 1,
                             .transposed = transposed}};
  std::size_t const kernel =
      add_kernel(program, {.headers = {"gemm/repack.h"},
                           .entry = "pieces_kernel",
                           .traits = traits.print(),
                           .is_composed = false,
                           .threads = PieceTile::threads,
                           .shared_bytes = static_cast<unsigned>(transposed ? PieceTile::shared_bytes : 4),
                           .label = "splitting"});
  auto const tiles = [](Index extent, Index tile) { return (extent + tile - 1) / tile; };
  launch_batch<PieceParameters>(
      program, kernel, {tiles(outer, PieceTile::outer) * tiles(segment, PieceTile::depth), 1, form.batch},
      [=](program::Run const& run, Index first, PieceParameters& to) {
        to.from = matrix_arguments(operand, run.tensors[copy.tensor]);
        to.to = copy.of(run);
        to.outer = outer;
        to.depth = depth;
        to.segment = segment;
        to.pitch = segment * products;
        to.matrix_pitch = to.pitch * outer;
        to.first_batch = first;
      });
}

}  // namespace

Candidate<GemmProblem> bf16_products_candidate() {
  Candidate<GemmProblem> candidate{"bf16_products", {}, nullptr, &prepare_program};
  candidate.offer = &offer_of_pieces<DataType::bf16>;
  return candidate;
}

Candidate<GemmProblem> tf32_products_candidate() {
  Candidate<GemmProblem> candidate{"tf32_products", {}, nullptr, &prepare_program};
  candidate.offer = &offer_of_pieces<DataType::tf32>;
  return candidate;
}

bool multiplies_pieces(GemmProblem const& problem, GemmRecipe const& recipe) {
  return splits_factors(problem.compute) && problem.a.type == DataType::f32 &&
         (recipe.policy.multiply == Multiply::wgmma || recipe.policy.multiply == Multiply::mma);
}

GemmProblem product_of_pieces(GemmProblem const& problem) {
  GemmProblem product = problem;
  Index const depth = segment_of(problem.k()) * products_of(problem.compute);
  Index const batch = problem.batch(), m = problem.m(), n = problem.n();
  DataType const type = piece_type(problem.compute);
  product.a = {type, {{batch, m, depth}, {m * depth, depth, 1}}, buffer_alignment};
  product.b = {type, {{batch, depth, n}, {n * depth, 1, depth}}, buffer_alignment};
  return product;
}

double pieces_error(GemmProblem const& problem, GemmRecipe const& recipe) {
  // Tensor cores truncate each sum of 16 products of bf16 or 8 of tf32, which shrinks it by 0.45 units on
  // average (measured on an H100): a sum whose terms have a mean of 0 loses half of that each time. Where
  // steps are added in f32, that is the loss of a step, and the sums of the steps are rounded to nearest.
  // Only the product of the largest pieces counts: the others have been summed before, at most 2^-8 times as
  // large.
  GemmPolicy const& policy = recipe.policy;
  auto const depth = static_cast<double>(policy.promotes ? policy.block_k : segment_of(problem.k()));
  double const terms = 32.0 / static_cast<double>(size_of(piece_type(problem.compute)));
  double const shrinks = 0.45 / 2 * unit_roundoff(DataType::f32) * std::max(1.0, depth / terms);
  double const of_products = expected_product_error(problem.compute);
  double const of_sums =
      policy.promotes ? sums_error(DataType::f32, problem.k() / policy.block_k + 1) : shrinks / 2;
  return std::sqrt(of_products * of_products + of_sums * of_sums + shrinks * shrinks);
}

std::string PiecesTraits::print() const {
  return fmt::format(
      "cosmati::PiecesPolicy{{.products = {}, .piece_bytes = {}, .is_b = {}, .width = {}, .transposed = {}}}",
      policy.products, policy.piece_bytes, policy.is_b, policy.width, policy.transposed);
}

SplitOperands split(program::Program& program, GemmProblem const& problem, std::size_t bytes) {
  GemmProblem const product = product_of_pieces(problem);
  std::size_t const bytes_a = bytes_of(product.a), bytes_b = bytes_of(product.b);
  std::size_t const first = bytes - bytes_a - bytes_b;
  SplitOperands const operands{{0, program.workspace.add("a, split", first, bytes_a), true},
                               {1, program.workspace.add("b, split", first + bytes_a, bytes_b), true}};
  add_pass(program, problem, false, operands.a);
  add_pass(program, problem, true, operands.b);
  return operands;
}

}  // namespace cosmati::plan
