// Requirements of the multiplies of the tiled main loops on types and layouts.
#include "src/plan/gemm/multiplies.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/ops/architecture.h"
#include "src/plan/gemm/invariant.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {
namespace {

// The reason why cp.async is unsuitable for an operand; empty if it is suitable. It copies 4, 8 or 16 bytes
// without changing them; anything else passes through registers and waits for the full latency in each step.
std::string not_copied(char const* name, MatrixForm const& operand, CanonicalGemm const& form) {
  OperandAccess const access = access_of(operand);
  int const size = size_of(operand.type);
  bool const packs = simple_multiply(form) == Multiply::dp4a;
  if (access.along == Along::mn && packs)
    return fmt::format(
        "operand {}: cp.async cannot interleave {} contiguous along m or n; double_buffered does", name,
        name_of(operand.type));
  int const bytes = access.along == Along::mn ? access.width * size
                    : packs                   ? std::min(access.width, 4)
                                              : size;
  if (bytes >= 4) return {};
  if (access.along == Along::mn || packs)
    return fmt::format("operand {}: aligned runs of {} bytes; cp.async needs a multiple of 4", name, bytes);
  return fmt::format("operand {}: cp.async cannot transpose elements of {} bytes; it needs 4", name, size);
}

}  // namespace

std::string copies_violation(CanonicalGemm const& form) {
  std::string sentence = not_copied("a", form.swapped ? form.b : form.a, form);
  return sentence.empty() ? not_copied("b", form.swapped ? form.a : form.b, form) : sentence;
}

std::string mma_violation(CanonicalGemm const& form, Gpu const& gpu) {
  if (!mma_takes(form.a.type, form.b.type, form.sum))
    return fmt::format("multiply mma does not support {} and {} with sums in {}", name_of(form.a.type),
                       name_of(form.b.type), name_of(form.sum));
  if (std::string sentence = mma_device_violation(form.a.type, gpu); !sentence.empty()) return sentence;
  if (size_of(form.a.type) > 1) return {};
  for (MatrixForm const* operand : {&form.a, &form.b})
    if (access_of(*operand).along == Along::mn)
      return fmt::format("multiply mma requires {} contiguous along k; operand {} is contiguous along {}",
                         name_of(operand->type), (operand == &form.a) == form.swapped ? 'b' : 'a',
                         (operand == &form.a) == form.swapped ? 'n' : 'm');
  return {};
}

std::string wmma_violation(CanonicalGemm const& form, Gpu const& gpu) {
  if (!wmma_takes(form.a.type, form.b.type, form.sum))
    return fmt::format("multiply wmma does not support {} and {} with sums in {}",
                       name_of(form.swapped ? form.b.type : form.a.type),
                       name_of(form.swapped ? form.a.type : form.b.type), name_of(form.sum));
  return wmma_device_violation(form.a.type, gpu);
}

}  // namespace cosmati::plan
