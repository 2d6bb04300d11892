// The epilogue options of the command line: --epilogue, --set, --operand, --store.
#pragma once
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/operations/subject.h"
#include "cosmati/ops/epilogue.h"

namespace cosmati::cli {

struct EpilogueText {
  std::string expression;             // empty: alpha*acc + beta*c
  std::vector<std::string> settings;  // "alpha=1.5"
};

// `has_source`: the operation accepts the matrix c.
void add_epilogue_options(Options& options, EpilogueText& text, bool has_source = false);

// An expression with the values of its scalars: alpha is 1 and beta 0 unless set; beta is 1 if the user
// passed c and no expression. Scalars equal to 0 or 1 are folded into the expression, so that 0*c needs no c;
// the others remain arguments.
class BoundEpilogue {
 public:
  BoundEpilogue(EpilogueText const& text, std::span<std::string_view const> indices, bool made_here,
                bool source_given = false);

  bool uses_source() const { return bound_.uses_source(); }
  // Binds operands by name; stores have the description of `result`. `extents` are those of the index
  // letters. Throws Error(bad_request) for a missing operand or a wrong shape.
  Epilogue complete(Inputs const& inputs, std::map<std::string, Index> const& extents,
                    TensorDescription const& result);

  std::vector<double> scalars() const;
  double slope() const;   // upper bound of the factor by which the scalars magnify an error of acc
  bool is_plain() const;  // the epilogue is alpha*acc + beta*c, the default
  double value_of(std::string const& scalar) const;  // 0 if there is no such scalar
  bool exact() const;  // small integers give exact values: no division, no root, no exponential
  std::vector<std::string> const& warnings() const { return warnings_; }
  std::string const& text() const { return original_.text(); }

 private:
  epilogue::Expression original_;
  epilogue::Expression bound_;
  std::map<std::string, double> values_;
  std::vector<std::string> warnings_;
  std::span<std::string_view const> indices_;  // indices of the result's dimensions
  bool made_here_;
};

}  // namespace cosmati::cli
