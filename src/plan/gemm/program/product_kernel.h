// The specification of a product's kernel: its traits, printed as C++.
#pragma once
#include <string>
#include <vector>

#include "src/plan/gemm/canonical.h"
#include "src/program/program.h"

namespace cosmati::plan {

// TensorSource, which TMA loads through maps of the type `maps` (empty: its own), or StridedSource.
struct SourceTraits {
  DataType type = DataType::f32;
  Along along = Along::k;
  int width = 1;
  bool by_tma = false;
  std::string maps = {};
  bool transposed = false;
  bool unaligned = false;  // contiguous, but not in aligned vectors
  std::string print() const;
};

// GemmTraits, or WarpSpecializedTraits if the main loop of `policy` is warp_specialized.
struct ProductKernelTraits {
  GemmPolicy policy;
  std::string a, b;  // the sources
  DataType sum = DataType::f32;
  std::string epilogue, destination;
  std::string name = {};  // the name of the traits, if they are others
  std::string print() const;
};

std::string epilogue_text(CanonicalGemm const& form);
// Declares the function that epilogue_text() names.
std::string epilogue_declarations(CanonicalGemm const& form, epilogue::Expression const& expression);
// `maps` is the type of the maps through which TMA stores, if it is not TensorDestination's own.
std::string destination_text(CanonicalGemm const& form, GemmRecipe const& recipe,
                             std::string const& maps = {});

// The parameters of a kernel in addition to those of every product.
struct ProductParts {
  std::vector<std::string> headers = {};  // after that of the main loop
  std::string entry = "gemm_kernel";      // if the main loop is not warp_specialized
  std::string scheduler = {};             // if it is
  std::string a = {}, b = {}, epilogue = {}, destination = {};
  std::size_t parameter_bytes = 0;
  std::string traits = {};  // empty: GemmTraits, or WarpSpecializedTraits
  int shared_bytes = 0;     // 0: those of the recipe
};
program::KernelSpec product_kernel(CanonicalGemm const& form, GemmRecipe const& recipe,
                                   epilogue::Expression const& expression, ProductParts const& parts);

// The variant of a kernel in the emulator's catalogue for operands of types `a` and `b`. It has its own
// policy, with runs of 16 bytes or single elements; for groups, only with such runs along k. Sources read
// `maps`.
program::KernelSpec emulated_product_kernel(GemmRecipe const& recipe, DataType a, DataType b,
                                            std::string const& maps, bool in_group = false);

}  // namespace cosmati::plan
