// Matrix products in a tuning file: their classes, and the fields of a line.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "cosmati/ops/tuning.h"
#include "src/plan/gemm/canonical.h"

namespace cosmati::plan {

// Returns the extent that represents all extents with the same tiles: itself up to 16, where kernels that
// stream one operand depend on it, then 32 or the next multiple of 64.
Index extent_of_class(Index extent);

// Returns "gemm a=bf16/k8 b=bf16/k8 c=none d=bf16/8 sum=f32 epilogue=light m=4096 n=4096 k=4096 batch=1", for
// the product as computed by the kernel, with " only=multistage" if that kernel was requested. Empty if the
// problem is outside every class (nothing to compute, arrays of pointers, or products of pieces).
std::string gemm_class(GemmProblem const& problem, std::string const& only);

// Returns the line for this problem and the requested kernel if there is one, otherwise the line for any
// kernel; null if there is neither.
TuningLine const* find_line(PlanOptions const& options, GemmProblem const& problem, Device const& device);

// "4096x4096x4096x1", as in TuningLine::measured.
std::string extents_text(Index m, Index n, Index k, Index batch);
// Whether the line's time was measured for this problem on this GPU, not for another problem of the class or
// on a similar GPU.
bool is_measured(TuningLine const& line, GemmProblem const& problem, Gpu const& gpu);

// The policy of a line. Throws Error(bad_request).
GemmPolicy policy_of(TuningLine const& line);

// Throws Error(bad_file): "k=x; expected ...".
[[noreturn]] void refuse_word(std::string const& key, std::string const& value, std::string const& legal);
// Throws Error(bad_file) unless `type`, a part of `value`, is the name of a data type, not an alias.
void check_type_word(std::string const& key, std::string const& value, std::string const& type);

// Removes the words of a class from `words` and returns them as text, as gemm_class() does but without the
// operation. `measured`: the extents that were measured, as in TuningLine::measured. Throws Error(bad_file).
std::string take_gemm_class(std::vector<std::pair<std::string, std::string>>& words,
                            std::string const& measured);

// Reads the class, kernel, policy and splits of a line. Throws Error.
void parse_gemm_words(std::vector<std::pair<std::string, std::string>> const& words, TuningLine& line);

}  // namespace cosmati::plan
