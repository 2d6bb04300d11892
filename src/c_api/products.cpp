// Matrix products and convolutions of the C interface.
#include <utility>

#include "cosmati/epilogue/parse.h"
#include "cosmati/ops/convolution.h"
#include "cosmati/ops/gemm.h"
#include "src/c_api/describe.h"
#include "src/c_api/problem_of.h"

using namespace cosmati;
using c_api::checked;
using c_api::guarded;

namespace {

static_assert(static_cast<int>(ConvolutionDirection::forward) == COSMATI_CONVOLUTION_FORWARD &&
              static_cast<int>(ConvolutionDirection::data) == COSMATI_CONVOLUTION_DATA &&
              static_cast<int>(ConvolutionDirection::filter) == COSMATI_CONVOLUTION_FILTER &&
              static_cast<int>(ConvolutionDirection::bias) == COSMATI_CONVOLUTION_BIAS);

// A matrix as a batch of `batch` matrices, all of which share its data.
TensorDescription batched(TensorDescription const& matrix, Index batch) {
  if (matrix.layout.rank() != 2) return matrix;
  TensorDescription result = matrix;
  result.layout = {{batch, matrix.extent(0), matrix.extent(1)},
                   {0, matrix.layout.stride[0], matrix.layout.stride[1]}};
  if (batch == 1) result.layout.stride[0] = matrix.layout.span();
  return result;
}

ComputeMode compute_of(char const* operation, cosmati_gemm const& gemm) {
  if (gemm.bf16_products != 0 && gemm.tf32_products != 0)
    c_api::refuse(std::string(operation) + ": only one of bf16_products and tf32_products can be set");
  if (gemm.fast_accumulation != 0) {
    if (gemm.bf16_products != 0 || gemm.tf32_products != 0)
      c_api::refuse(std::string(operation) +
                    ": fast_accumulation applies to 8-bit floats, which are not split");
    return ComputeMode::fast_accumulation;
  }
  bool const in_tf32 = gemm.tf32_products != 0;
  int32_t const products = in_tf32 ? gemm.tf32_products : gemm.bf16_products;
  if (products == 0) return ComputeMode::exact;
  for (int i = 1; i < compute_mode_count; ++i)
    if (auto const mode = static_cast<ComputeMode>(i); splits_factors(mode) &&
                                                       products_of(mode) == products &&
                                                       (piece_type(mode) == DataType::tf32) == in_tf32)
      return mode;
  c_api::refuse(std::string(operation) + (in_tf32 ? ": tf32_products is " : ": bf16_products is ") +
                std::to_string(products) + "; valid values: " + (in_tf32 ? "0, 3" : "0, 3, 6, 9"));
}

// The tensor names of a transposed convolution, which is the data gradient with x and y exchanged.
c_api::Names transposed_names() {
  return {" (of this transposed convolution x is dy, and y is dx)", [](char const* name) {
            std::string_view const inside = name;
            return inside == "dy" ? "x" : inside == "dx" ? "y" : name;
          }};
}

}  // namespace

GemmProblem c_api::gemm_of(char const* operation, cosmati_gemm const& gemm) {
  GemmProblem problem;
  problem.d = c_api::tensor_of(operation, "d", gemm.d);
  Index const batch = problem.d.layout.rank() == 3 ? problem.d.extent(0) : 1;
  problem.a = batched(c_api::tensor_of(operation, "a", gemm.a), batch);
  problem.b = batched(c_api::tensor_of(operation, "b", gemm.b), batch);
  problem.c = batched(c_api::tensor_of(operation, "c", gemm.c), batch);
  problem.d = batched(problem.d, 1);
  problem.epilogue = c_api::epilogue_of(operation, gemm.epilogue, gemm.epilogue_tensors,
                                        gemm.epilogue_tensor_count, epilogue::gemm_indices);
  for (TensorDescription& store : problem.epilogue.stores) store = batched(store, 1);
  if (gemm.accumulate_in_f16 != 0) problem.accumulator = DataType::f16;
  problem.by_pointers = gemm.by_pointers != 0;
  problem.compute = compute_of(operation, gemm);
  return problem;
}

cosmati_status cosmati_gemm_problem(cosmati_gemm const* gemm, cosmati_problem_t* problem) {
  return guarded([&] { c_api::give(problem, c_api::gemm_of("gemm", checked("gemm", gemm, problem))); });
}

cosmati_status cosmati_convolution_problem(cosmati_convolution const* convolution,
                                           cosmati_problem_t* problem) {
  return guarded([&] {
    char const* const operation = "convolution";
    cosmati_convolution const& given = checked(operation, convolution, problem);
    int const direction = c_api::choice_of(operation, "direction", given.direction, 5);
    bool const transposed = direction == COSMATI_CONVOLUTION_TRANSPOSED;
    ConvolutionProblem result;
    result.direction = transposed ? ConvolutionDirection::data : static_cast<ConvolutionDirection>(direction);
    result.x = c_api::tensor_of(operation, "x", given.x);
    result.w = c_api::tensor_of(operation, "w", given.w);
    result.y = c_api::tensor_of(operation, "y", given.y);
    if (transposed) std::swap(result.x, result.y);
    result.db = c_api::tensor_of(operation, "db", given.db);
    if (direction == COSMATI_CONVOLUTION_BIAS) {
      c_api::check_none(operation, "x", given.x, "a direction with a filter");
      c_api::check_none(operation, "w", given.w, "a direction with a filter");
    } else if (direction != COSMATI_CONVOLUTION_FILTER) {
      c_api::check_none(operation, "db", given.db, "FILTER or BIAS");
    }
    for (int i = 0; i < 2; ++i) {
      result.stride[i] = given.stride[i];
      result.pad_begin[i] = given.pad_begin[i];
      result.pad_end[i] = given.pad_end[i];
      result.dilation[i] = given.dilation[i];
    }
    if (result.has_depth())
      result.depth = {given.depth_stride, given.depth_pad_begin, given.depth_pad_end, given.depth_dilation};
    result.groups = given.groups;
    result.epilogue = c_api::epilogue_of(operation, given.epilogue, given.epilogue_tensors,
                                         given.epilogue_tensor_count, epilogue_indices(result));
    c_api::give(problem, std::move(result), transposed ? transposed_names() : c_api::Names());
  });
}

int64_t cosmati_convolution_extent(int64_t input, int64_t filter, int64_t stride, int64_t pad_begin,
                                   int64_t pad_end, int64_t dilation) {
  return stride < 1 ? 0 : convolution_extent(input, filter, stride, pad_begin, pad_end, dilation);
}
