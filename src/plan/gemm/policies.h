// The named policies of the GEMM kernels, and policies as text.
#pragma once
#include <string>
#include <vector>

#include "cosmati/epilogue/expression.h"
#include "cosmati/ops/gemm_recipe.h"
#include "cosmati/ops/policy_request.h"

namespace cosmati::plan {

struct NamedPolicy {
  std::string name;
  GemmPolicy policy;
  // A tile made for one problem: it covers D in one or two rounds, so that k is not split.
  bool is_fitted = false;
  // The share of the best prediction for other tiles, which precede it, that this one's must fall below: less
  // than 1 for fitted tiles unless they are large, so that products of other extents can use the same
  // kernels. Not where is_short_round().
  double share = 1;
};

// The policies small, medium, large, tall, wide and huge for sums of this type with this multiply and main
// loop. `element_bytes` is the size of an operand's element.
std::vector<NamedPolicy> named_policies(MainLoop main_loop, Multiply multiply, DataType sum,
                                        int element_bytes = 4);

// These, plus policies that exist only for plain products by mma.sync: small_deep, medium_deep, large_deep
// and tall_deep, with steps of 128 bytes and three stages. On an H100 they are faster than steps of 64 bytes
// in four stages for all but the largest tiles (docs/decisions/0044).
std::vector<NamedPolicy> product_policies(MainLoop main_loop, Multiply multiply, DataType sum,
                                          int element_bytes);

bool has_policy(std::vector<NamedPolicy> const& list, std::string const& name);

// The policy of `named` that the request names, or `otherwise`, with the request's fields applied. Throws
// Error(bad_request) if there is no such name, or if the request has a field that GemmPolicy lacks.
NamedPolicy requested_policy(PolicyRequest const& request, std::vector<NamedPolicy> const& named,
                             NamedPolicy const& otherwise);

// Rejects a policy that exists only for another main loop or multiply; empty if `known` or no list has its
// name.
std::string foreign_policy(PolicyRequest const& request, std::vector<NamedPolicy> const& known);

// True if only the partition or this multiply is requested, so that every policy is considered.
bool takes_any_policy(PolicyRequest request, Multiply multiply);

// All fields in the syntax of PolicyRequest: "block_m=128,...,partition=tiles". The main loop and
// `full_tiles` are omitted, since callers cannot choose them.
std::string text_of(GemmPolicy const& policy);

// Returns the epilogue schedule: staged, with a rolled loop, if the expression has many operations or a long
// one.
EpilogueSchedule epilogue_schedule(epilogue::Expression const& expression);

// The reason why this policy is invalid for these element types; empty if it is valid.
std::string policy_violation(GemmPolicy const& policy, DataType a, DataType b, DataType sum);

// Whether tensor cores support these types, for any major.
bool mma_takes(DataType a, DataType b, DataType sum);
bool wmma_takes(DataType a, DataType b, DataType sum);

// Returns ".block_m = 128, .block_n = 128, ...": the fields as a C++ initializer.
std::string initializer(GemmPolicy const& policy);

}  // namespace cosmati::plan
