// Prints the traits of products.
#include "src/plan/gemm/program/product_kernel.h"

#include <fmt/format.h>

#include <algorithm>

#include "cosmati/epilogue/cuda_text.h"
#include "src/ops/number_types.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/warp_specialized.h"

namespace cosmati::plan {
namespace {

bool is_specialized(GemmPolicy const& policy) { return policy.main_loop == MainLoop::warp_specialized; }

std::string format_text(MatrixForm const& form) {
  return fmt::format("OperandFormat<{}, {}, {}, {}>", name_of(form.type), form.by_m, form.by_n, form.width);
}

std::string list_text(std::vector<MatrixForm> const& forms) {
  std::string text;
  for (MatrixForm const& form : forms) text += (text.empty() ? "" : ", ") + format_text(form);
  return "FormatList<" + text + ">";
}

GemmPolicy policy_in_emulator(GemmRecipe const& recipe, DataType type) {
  GemmPolicy const& p = recipe.policy;
  bool const tensor_cores =
      p.multiply == Multiply::mma || p.multiply == Multiply::wmma || p.multiply == Multiply::wgmma;
  bool const streams = p.main_loop == MainLoop::gemv;
  Multiply const simple = streams                       ? Multiply::fma
                          : is_int8(type)               ? Multiply::dp4a
                          : recipe.sum == DataType::f16 ? Multiply::half2
                                                        : Multiply::fma;
  GemmPolicy policy =
      emulator::emulated_policy(p.main_loop, tensor_cores ? p.multiply : simple, size_of(type),
                                p.partition == Partition::tiles ? Partition::split_k : p.partition);
  policy.promotes = p.promotes;
  policy.fast_sums = p.fast_sums;
  return policy;
}

int width_in_emulator(GemmRecipe const& recipe, DataType type, bool deep) {
  GemmPolicy const& p = recipe.policy;
  int const full = 16 / size_of(type), minimum = std::min(recipe.a.width, recipe.b.width);
  if (p.multiply == Multiply::wgmma) return type == DataType::bf16 && minimum >= 2 ? 2 : 1;
  bool wide = minimum >= full && deep && p.partition != Partition::stream_k;
  if (p.multiply == Multiply::mma && recipe.sum == DataType::f16) wide = false;
  if (p.multiply == Multiply::wmma)
    wide =
        wide && type == DataType::f16 && recipe.sum == DataType::f32 && p.main_loop == MainLoop::multistage;
  return wide ? full : 1;
}

}  // namespace

std::string SourceTraits::print() const {
  char const* const name = along == Along::k ? "k" : "mn";
  if (transposed) return fmt::format("TransposedSource<{}>", name_of(type));
  if (unaligned) return fmt::format("UnalignedSource<{}, Along::{}>", name_of(type), name);
  if (!by_tma) return fmt::format("StridedSource<{}, Along::{}, {}>", name_of(type), name, width);
  return fmt::format("TensorSource<{}, Along::{}{}{}>", name_of(type), name, maps.empty() ? "" : ", ", maps);
}

std::string ProductKernelTraits::print() const {
  return fmt::format("{}<GemmPolicy{{{}}},\n{}, {}, {},\n{},\n{}>",
                     !name.empty()            ? name
                     : is_specialized(policy) ? "WarpSpecializedTraits"
                                              : "GemmTraits",
                     initializer(policy), a, b, name_of(sum), epilogue, destination);
}

std::string epilogue_text(CanonicalGemm const& form) {
  if (form.identity) return fmt::format("IdentityEpilogue<{}>", name_of(form.evaluation));
  return fmt::format("ExpressionEpilogue<ComposedFunction, {}, {}, {}>",
                     form.c.present ? format_text(form.c) : "NoSource", list_text(form.operands),
                     list_text(form.stores));
}

std::string destination_text(CanonicalGemm const& form, GemmRecipe const& recipe, std::string const& maps) {
  bool const specialized = is_specialized(recipe.policy);
  std::string along = specialized && direction_of_result(form) == Along::mn ? ", Along::mn" : "";
  if (!specialized || !stores_by_tma(recipe.policy, form))
    return fmt::format("StridedDestination<{}, {}{}>", name_of(form.d.type), recipe.result_width, along);
  if (along.empty() && !maps.empty()) along = ", Along::k";
  return fmt::format("TensorDestination<{}{}{}{}>", name_of(form.d.type), along, maps.empty() ? "" : ", ",
                     maps);
}

program::KernelSpec product_kernel(CanonicalGemm const& form, GemmRecipe const& recipe,
                                   epilogue::Expression const& expression, ProductParts const& parts) {
  bool const specialized = is_specialized(recipe.policy);
  auto const shared =
      static_cast<unsigned>(parts.shared_bytes > 0 ? parts.shared_bytes : shared_storage_bytes(recipe, form));
  program::KernelSpec kernel{.headers = {specialized ? "gemm/warp_specialized.h" : "gemm/kernel.h"},
                             .entry = specialized ? "warp_specialized_kernel" : parts.entry,
                             .traits = ProductKernelTraits{recipe.policy, parts.a, parts.b, recipe.sum,
                                                           parts.epilogue, parts.destination, parts.traits}
                                           .print(),
                             .scheduler = specialized ? parts.scheduler : "",
                             .asserted = {{"sizeof(ComposedTraits::Params)", parts.parameter_bytes},
                                          {"sizeof(ComposedTraits::SharedStorage)", shared}},
                             .starts_early = specialized,
                             .threads = static_cast<unsigned>(recipe.policy.threads()),
                             .shared_bytes = shared};
  kernel.headers.insert(kernel.headers.end(), parts.headers.begin(), parts.headers.end());
  if (specialized && recipe.sum == DataType::f64) kernel.headers.push_back("gemm/f64/double_product.h");
  if (recipe.a.transposed || recipe.b.transposed)
    kernel.headers.push_back("gemm/operands/transposed_source.h");
  if (form.identity) return kernel;
  kernel.label = expression.text();
  kernel.declarations = epilogue_declarations(form, expression);
  return kernel;
}

std::string epilogue_declarations(CanonicalGemm const& form, epilogue::Expression const& expression) {
  if (form.identity) return {};
  return fmt::format(
      "struct ComposedFunction {{\n"
      "using Real = {};\n"
      "static constexpr int scalars = {};\n"
      "COSMATI_DEVICE static Real apply(Real acc, Real c, Real const* scalar, Real const* operand, Real* "
      "store) {{\n"
      "{}}}\n}};\n",
      name_of(form.evaluation), expression.scalars().size(), epilogue::to_cuda(expression));
}

program::KernelSpec emulated_product_kernel(GemmRecipe const& recipe, DataType a, DataType b,
                                            std::string const& maps, bool in_group) {
  bool const specialized = is_specialized(recipe.policy);
  bool const by_tma = specialized && !recipe.a.by_threads && !recipe.b.by_threads;
  bool const deep = recipe.a.along == Along::k && recipe.b.along == Along::k;
  int const width = width_in_emulator(recipe, a, deep || !in_group);
  GemmPolicy const policy = policy_in_emulator(recipe, a);
  // A tiled kernel for groups treats single-element operands as K-major, regardless of their layout.
  bool const as_deep = in_group && !specialized;
  auto const source = [&](DataType type, OperandAccess const& access) {
    return SourceTraits{type, as_deep ? Along::k : access.along, width, by_tma, maps, access.transposed}
        .print();
  };
  return {.entry = specialized ? "warp_specialized_kernel"
                   : in_group  ? "grouped_gemm_kernel"
                               : "gemm_kernel",
          .traits = ProductKernelTraits{policy, source(a, recipe.a), source(b, recipe.b), recipe.sum,
                                        "HostEpilogue", "HostDestination"}
                        .print(),
          .scheduler = specialized && in_group ? "GroupScheduler" : "",
          .threads = static_cast<unsigned>(policy.threads())};
}

}  // namespace cosmati::plan
