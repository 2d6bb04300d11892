// Classes of matrix products (docs/decisions/0006-tuning.md).
#include "src/plan/gemm/tuning.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <map>

#include "cosmati/ops/error.h"
#include "src/plan/built_in_tuning.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::plan {
namespace {

constexpr char const* class_keys[] = {"a", "b", "c", "d", "sum", "epilogue", "m", "n", "k", "batch"};
constexpr MainLoop main_loops[] = {MainLoop::warp_specialized, MainLoop::multistage,
                                   MainLoop::double_buffered, MainLoop::gemv, MainLoop::tiny};

Index positive(std::string const& key, std::string const& value) {
  Index number = 0;
  auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < 1)
    refuse_word(key, value, "an integer from 1");
  return number;
}

MainLoop main_loop_of(std::string const& key, std::string const& name) {
  std::string names;
  for (MainLoop const main_loop : main_loops) {
    if (name == name_of(main_loop)) return main_loop;
    names += std::string(names.empty() ? "" : ", ") + name_of(main_loop);
  }
  refuse_word(key, name, names);
}

// Checks a value such as "bf16/k8": type, direction (one of `directions`, if there are any), width.
void check_matrix(std::string const& key, std::string const& value, std::string const& directions) {
  std::string const example = directions.empty() ? "bf16/8" : std::string("bf16/") + directions[0] + "8";
  std::size_t const slash = value.find('/');
  if (slash == std::string::npos) refuse_word(key, value, "a type and a width, such as " + example);
  check_type_word(key, value, value.substr(0, slash));
  std::string width = value.substr(slash + 1);
  if (!directions.empty()) {
    if (width.empty() || directions.find(width[0]) == std::string::npos)
      refuse_word(key, value, "a type, an index and a width, such as " + example);
    width.erase(0, 1);
  }
  for (char const* const known : {"1", "2", "4", "8", "16"})
    if (width == known) return;
  refuse_word(key, value, "a width of 1, 2, 4, 8 or 16 elements, such as " + example);
}

void check_class_word(std::string const& key, std::string const& value) {
  if (key == "a" || key == "b")
    check_matrix(key, value, key == "a" ? "mk" : "nk");
  else if (key == "d" || (key == "c" && value != "none"))
    check_matrix(key, value, "");
  else if (key == "sum")
    check_type_word(key, value, value);
  else if (key == "m" || key == "n" || key == "k") {
    Index const extent = positive(key, value);
    if (extent_of_class(extent) != extent)
      refuse_word(key, value,
                  fmt::format("1 to 16, 32 or a multiple of 64; nearest above: {}", extent_of_class(extent)));
  } else if (key == "batch") {
    (void)positive(key, value);
  } else if (key == "epilogue") {
    std::size_t const plus = value.find('+');
    std::string const weight = value.substr(0, plus);
    if (weight != "light" && weight != "long")
      refuse_word(key, value, "light or long, and +N for N more matrices");
    if (plus != std::string::npos) (void)positive(key, value.substr(plus + 1));
  }
}

// Replaces an extent of 16 by the one that was measured: in older files, a class had all extents up to 16.
void narrow_class(std::map<std::string, std::string>& values, std::string const& measured) {
  constexpr Index oldest = 16;
  long long a = 0, b = 0, k = 0;
  if (std::sscanf(measured.c_str(), "%lldx%lldx%lld", &a, &b, &k) != 3) return;
  auto const is_of = [&](char const* key, Index extent) {
    return std::to_string(std::max(oldest, extent_of_class(extent))) == values[key];
  };
  auto const narrow = [&](char const* key, Index extent) {
    if (values[key] == std::to_string(oldest)) values[key] = std::to_string(extent_of_class(extent));
  };
  if (is_of("k", k)) narrow("k", k);
  bool const exchanged = !is_of("m", a) || !is_of("n", b);
  if (exchanged && (!is_of("m", b) || !is_of("n", a))) return;
  narrow("m", exchanged ? b : a);
  narrow("n", exchanged ? a : b);
}

}  // namespace

void refuse_word(std::string const& key, std::string const& value, std::string const& legal) {
  throw Error(ErrorCode::bad_file, fmt::format("{}={}; expected {}", key, value, legal));
}

void check_type_word(std::string const& key, std::string const& value, std::string const& type) {
  std::string name;
  try {
    name = name_of(parse_data_type(type));
  } catch (Error const& error) {
    throw Error(ErrorCode::bad_file, key + "=" + value + ": " + error.what());
  }
  if (name != type) refuse_word(key, value, name);  // lines are compared as text: an alias would never match
}

Index extent_of_class(Index extent) {
  constexpr Index unit = 64, most = std::numeric_limits<Index>::max() / unit;
  if (extent <= 16) return extent;
  return extent <= 32 ? 32 : std::min(most, extent / unit + (extent % unit > 0 ? 1 : 0)) * unit;
}

std::string gemm_class(GemmProblem const& problem, std::string const& only) {
  CanonicalGemm const form = canonical(problem);
  if (problem.compute != ComputeMode::exact) return {};
  if (form.m == 0 || form.n == 0 || form.k == 0 || form.batch == 0) return {};
  auto const operand = [](MatrixForm const& matrix, char outer) {
    OperandAccess const access = access_of(matrix);
    return fmt::format("{}/{}{}", name_of(matrix.type), access.along == Along::k ? 'k' : outer, access.width);
  };
  auto const result = [](MatrixForm const& matrix) {
    return matrix.present ? fmt::format("{}/{}", name_of(matrix.type), matrix.width) : "none";
  };
  auto const is_whole = [](MatrixForm const& matrix) { return matrix.by_m && matrix.by_n; };
  auto const more = std::count_if(form.operands.begin(), form.operands.end(), is_whole) +
                    static_cast<std::ptrdiff_t>(form.stores.size());
  bool const is_long = epilogue_schedule(problem.epilogue.expression) == EpilogueSchedule::staged;
  return fmt::format("gemm a={} b={} c={} d={} sum={} epilogue={}{} m={} n={} k={} batch={}{}",
                     operand(form.a, 'm'), operand(form.b, 'n'), result(form.c), result(form.d),
                     name_of(form.sum), is_long ? "long" : "light", more > 0 ? fmt::format("+{}", more) : "",
                     extent_of_class(form.m), extent_of_class(form.n), extent_of_class(form.k), form.batch,
                     only.empty() ? "" : " only=" + only);
}

TuningLine const* find_line(PlanOptions const& options, GemmProblem const& problem, Device const& device) {
  bool const may_be_built_in =
      options.built_in_tuning && has_built_in_extents(problem.m(), problem.n(), problem.k(), problem.batch());
  if (options.tuning == nullptr && !may_be_built_in) return nullptr;
  TuningLine const* const line =
      options.kernel.empty() ? nullptr : line_of_class(options, gemm_class(problem, options.kernel), device);
  return line != nullptr ? line : line_of_class(options, gemm_class(problem, ""), device);
}

std::string extents_text(Index m, Index n, Index k, Index batch) {
  return fmt::format("{}x{}x{}x{}", m, n, k, batch);
}

bool is_measured(TuningLine const& line, GemmProblem const& problem, Gpu const& gpu) {
  Index const m = problem.m(), n = problem.n(), k = problem.k(), batch = problem.batch();
  bool const same =
      line.measured == extents_text(m, n, k, batch) || line.measured == extents_text(n, m, k, batch);
  return same && line.seconds > 0 && line.gpu == tuning_name(gpu);
}

GemmPolicy policy_of(TuningLine const& line) {
  GemmPolicy policy = requested_policy(line.policy, {}, {}).policy;
  policy.main_loop = main_loop_of("kernel", line.kernel);
  if (policy.partition == Partition::stream_k) {
    if (line.splits > 1)
      throw Error(
          ErrorCode::bad_file,
          fmt::format("splits={} with partition=stream_k is invalid; valid values: splits=1", line.splits));
  } else if (policy.partition != Partition::split_k_parallel) {
    // Lines written before partitions existed have only the splits.
    policy.partition = line.splits > 1 ? Partition::split_k : Partition::tiles;
  }
  return policy;
}

std::string take_gemm_class(std::vector<std::pair<std::string, std::string>>& words,
                            std::string const& measured) {
  std::map<std::string, std::string> values;
  for (std::string const key : class_keys) {
    auto const found =
        std::find_if(words.begin(), words.end(), [&](auto const& word) { return word.first == key; });
    if (found == words.end()) throw Error(ErrorCode::bad_file, "the key " + key + " is missing");
    check_class_word(key, found->second);
    values[key] = found->second;
    words.erase(found);
  }
  narrow_class(values, measured);
  std::string text;
  for (std::string const key : class_keys) text += ' ' + key + '=' + values[key];
  return text;
}

void parse_gemm_words(std::vector<std::pair<std::string, std::string>> const& words, TuningLine& line) {
  auto left = words;
  line.problems = "gemm" + take_gemm_class(left, line.measured);
  std::map<std::string, std::string> values(left.begin(), left.end());
  auto const take = [&values](std::string const& key) {
    auto const found = values.find(key);
    if (found == values.end()) throw Error(ErrorCode::bad_file, "the key " + key + " is missing");
    std::string value = std::move(found->second);
    values.erase(found);
    return value;
  };
  if (values.contains("only"))
    line.problems += std::string(" only=") + name_of(main_loop_of("only", take("only")));
  line.kernel = take("kernel");
  line.policy = take("policy");
  std::string const splits = take("splits");
  if (positive("splits", splits) > 4096) refuse_word("splits", splits, "an integer from 1 to 4096");
  line.splits = static_cast<int>(positive("splits", splits));
  line.policy = text_of(policy_of(line));
  if (!values.empty())
    throw Error(ErrorCode::bad_file, "unknown key '" + values.begin()->first + "' in a line for gemm");
}

}  // namespace cosmati::plan
