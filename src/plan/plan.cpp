// The parts of planning that do not depend on the kind of problem.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>

#include "cosmati/ops/epilogue.h"
#include "src/ops/names.h"
#include "src/plan/make_plan.h"

namespace cosmati {

void throw_no_candidate(std::vector<Considered> const& considered, std::string const& asked_for,
                        Backend backend) {
  if (considered.empty())
    throw Error(ErrorCode::unavailable,
                std::string("the backend ") + name_of(backend) + " has no kernel for this operation");
  std::vector<std::string> names;
  for (Considered const& entry : considered) {
    if (entry.kernel == asked_for)
      throw Error(ErrorCode::bad_request,
                  "the kernel '" + asked_for + "' does not support this problem: " + entry.refusal);
    names.push_back(entry.kernel);
  }
  if (!asked_for.empty())
    throw Error(
        ErrorCode::bad_request,
        unknown_name("kernel", asked_for, names,
                     std::string("valid kernels for this operation on the backend ") + name_of(backend)));
  throw Error(ErrorCode::bad_request, "no kernel supports this problem:\n" + explain(considered, ""));
}

void throw_sum_over_batch(char const* what) {
  throw Error(
      ErrorCode::bad_request,
      std::string(what) +
          " over the batch: no part of the result belongs to a single row or image, so batch-invariant has "
          "no effect");
}

std::string error_sentence(double expected, double limit) {
  auto const in_short = [](double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.2g", value);
    if (value > 0 && value < 0.01) {
      int const exponent = static_cast<int>(std::floor(std::log10(value)));
      std::snprintf(text, sizeof text, "%.2ge%d", value / std::pow(10, exponent), exponent);
    }
    return std::string(text);
  };
  return "expected relative error " + in_short(expected) + " exceeds the limit " + in_short(limit);
}

Considered const& entry_of(std::vector<Considered> const& considered, std::string const& kernel) {
  for (Considered const& entry : considered)
    if (entry.kernel == kernel) return entry;
  throw Error(ErrorCode::bad_request, "the plan has no entry for the kernel '" + kernel + "'");
}

std::string explain(std::vector<Considered> const& considered, std::string const& chosen) {
  std::string text;
  for (Considered const& entry : considered) {
    bool const refused = !entry.refusal.empty();
    text += "  " + entry.kernel + ": " +
            (entry.kernel == chosen ? "chosen"
             : refused              ? "refused: "
                                    : "possible");
    if (refused) text += entry.refusal;
    if (!refused && entry.workspace_bytes > 0)
      text += ", workspace " + std::to_string(entry.workspace_bytes) + " bytes";
    text += '\n';
  }
  return text;
}

TensorDescription array_of_pointers(TensorDescription const& description) {
  TensorDescription array = describe(DataType::f64, {description.extent(0)});  // as large as a pointer
  array.alignment = static_cast<int>(sizeof(void*));
  if (description.layout.size() == 0) array.layout.shape[0] = 0;
  return array;
}

void check_argument(char const* name, TensorDescription const& description, void const* pointer) {
  if (description.layout.size() == 0) return;
  if (pointer == nullptr)
    throw Error(
        ErrorCode::bad_request,
        std::string("argument ") + name + " is null; the problem describes it as " + to_string(description));
  auto const address = reinterpret_cast<std::uintptr_t>(pointer);
  auto const size = static_cast<std::uintptr_t>(size_of(description.type));
  auto const refuse = [&](std::uintptr_t alignment, std::string const& why) {
    throw Error(ErrorCode::bad_request, std::string("argument ") + name +
                                            " is misaligned: " + std::to_string(address % alignment) +
                                            " bytes past a multiple of " + std::to_string(alignment) + why);
  };
  if (address % size != 0) refuse(size, std::string(", the size of its type ") + name_of(description.type));
  auto const promised = static_cast<std::uintptr_t>(description.alignment);
  if (address % promised != 0)
    refuse(promised, ", the alignment that the problem declares; its description may declare less");
}

void check_pointers(char const* name, TensorDescription const& description, void const* array) {
  if (description.layout.size() == 0) return;
  auto const* const pointers = static_cast<void const* const*>(array);
  auto const alignment =
      static_cast<std::uintptr_t>(std::max(size_of(description.type), description.alignment));
  for (Index i = 0; i < description.extent(0); ++i)
    if (pointers[i] == nullptr || reinterpret_cast<std::uintptr_t>(pointers[i]) % alignment != 0)
      check_argument((name + ('[' + std::to_string(i) + ']')).c_str(), description, pointers[i]);
}

void check_workspace(std::size_t bytes, void const* workspace, Backend backend) {
  if (bytes == 0) return;
  unsigned const alignment = backend == Backend::cuda ? 256 : 64;
  if (workspace == nullptr)
    throw Error(ErrorCode::bad_request, "this plan needs a workspace of " + std::to_string(bytes) +
                                            " bytes, " + std::to_string(alignment) +
                                            "-byte aligned; none was given");
  if (reinterpret_cast<std::uintptr_t>(workspace) % alignment != 0)
    throw Error(ErrorCode::bad_request,
                "the workspace is not " + std::to_string(alignment) + "-byte aligned");
}

void check_epilogue_arguments(Epilogue const& epilogue, std::span<void const* const> operands,
                              std::span<double const> scalars, std::span<void* const> stores) {
  auto const require_count = [](char const* what, std::size_t given, std::size_t named) {
    if (given < named)
      throw Error(ErrorCode::bad_request, "the epilogue names " + std::to_string(named) + " " + what + "; " +
                                              std::to_string(given) + " were given");
  };
  require_count("scalars", scalars.size(), epilogue.expression.scalars().size());
  require_count("operands", operands.size(), epilogue.operands.size());
  require_count("stores", stores.size(), epilogue.stores.size());
  for (std::size_t i = 0; i < epilogue.operands.size(); ++i)
    check_argument(epilogue.expression.operands()[i].name.c_str(), epilogue.operands[i], operands[i]);
  for (std::size_t i = 0; i < epilogue.stores.size(); ++i)
    check_argument(epilogue.expression.stores()[i].name.c_str(), epilogue.stores[i], stores[i]);
}

}  // namespace cosmati
