// Declaration of options without the parser's header, and the values of the shared options
// (cli/options/shared_options.h).
#pragma once
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include "cosmati/ops/operation.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace cosmati::cli {

// Declares the options of one subcommand; the targets must outlive it.
class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}
  // `value_name` appears in the help: "--stride ROWS,COLUMNS". The target of an absent option is unchanged.
  Options& text(std::string const& name, std::string& value, char const* value_name, std::string const& help);
  Options& texts(std::string const& name, std::vector<std::string>& values, char const* value_name,
                 std::string const& help);  // may be given more than once
  // Several values for one `name`; with an empty name, positional values, which do not begin with a dash.
  Options& several(std::string const& name, std::vector<std::string>& values, char const* value_name,
                   std::string const& help);
  Options& number(std::string const& name, double& value, std::string const& help);
  Options& integer(std::string const& name, long long& value, std::string const& help);
  Options& flag(std::string const& name, bool& value, std::string const& help);
  // With a value, sets `value`; without one, sets `given`.
  Options& optional_text(std::string const& name, bool& given, std::string& value, char const* value_name,
                         std::string const& help);
  // The option declared last applies to all problems of a run; parse_problem() rejects it in a suite's line.
  Options& once();
  Options& group(std::string title);  // a heading in the help for the options that follow

 private:
  CLI::App& app_;
  CLI::Option* last_ = nullptr;
  std::string group_ = "Parameters";
};

// The value of an option that was not given, distinct from all valid values.
inline constexpr long long not_given = std::numeric_limits<long long>::lowest();
inline constexpr double no_number = std::numeric_limits<double>::lowest();

// Requested types; empty: not given.
struct TypeChoice {
  std::string all, a, b, c, d;
  std::string accumulator, compute;

  // The data type of an operand: its own option if given, else --type, else `otherwise`.
  DataType type_of(std::string const& own, DataType otherwise) const;
};

struct Common {
  std::string backend = "auto";
  std::string kernel;
  std::string policy;
  std::string max_workspace;
  std::string max_error;
  std::string device_description;  // a GPU by name or file; empty: the installed GPU
  std::string cache;               // folder of compiled kernels; empty: the default
  std::string tuning;              // file of measured choices; empty: none
  long long device = 0;            // number of the GPU
  long long threads = 0;
  long long seed = 1;
  bool deterministic = false;
  bool batch_invariant = false;
  bool json = false;
  TypeChoice types;

  // Throws Error(unavailable) if the backend is not available. --backend auto selects the GPU if there is
  // one, else the CPU.
  Device device_to_run_on() const;
  Device device_to_plan_for() const;  // possibly a described GPU that is not installed
  PlanOptions plan_options() const;
};

// Applies --cache; call before the first use of the cache.
void use_cache_of(Common const& common);

}  // namespace cosmati::cli
