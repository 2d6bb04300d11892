// Declares the options of the command line with CLI11.
#include "cli/options/options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <cstdlib>

#include "cli/output/text.h"
#include "cosmati/ops/processor.h"
#include "src/io/tuning_file.h"
#include "src/ops/names.h"

namespace cosmati::cli {
namespace {

// In other programs a lone dash means a standard stream; here it would be taken as a file name.
void refuse_dash(std::string const& name, std::string const& word) {
  if (word != "-" && !word.ends_with("=-")) return;
  throw Error(ErrorCode::bad_request,
              name + ' ' + word +
                  ": '-' is not accepted as a file; use /dev/stdin or /dev/stdout for the standard streams, "
                  "./- for a file named '-'");
}

// The list of data types `text` with aliases replaced by canonical names: "half,f32" becomes "f16,f32".
// Unknown words are kept for the error message.
std::string canonical_types(std::string const& text) {
  std::vector<std::string> names;
  for (int i = 0; i < data_type_count; ++i) names.emplace_back(name_of(static_cast<DataType>(i)));
  std::string result;
  for (std::string const& word : split(text, ',')) {
    int const index = find_name(word, names);
    result += (index < 0 ? word : names[static_cast<std::size_t>(index)]) + ',';
  }
  result.pop_back();  // removes the last comma; split() returns at least one word
  return result;
}

// Adds refuse_dash() if the value is a file name, according to its placeholder in the help.
CLI::Option* with_value(CLI::Option* option, std::string const& name, std::string const& value_name) {
  for (char const* const kind : {"FILE", "OUTPUT", "PATH", "DIR"})
    if (value_name.find(kind) != std::string::npos) {
      option->each([name](std::string const& word) { refuse_dash(name, word); });
      break;
    }
  if (value_name == "TYPE") option->transform(canonical_types);
  return option->type_name(value_name);
}

}  // namespace

Options& Options::text(std::string const& name, std::string& value, char const* value_name,
                       std::string const& help) {
  last_ = with_value(app_.add_option(name, value, help), name, value_name)->group(group_);
  return *this;
}

Options& Options::texts(std::string const& name, std::vector<std::string>& values, char const* value_name,
                        std::string const& help) {
  last_ = with_value(app_.add_option(name, values, help), name, value_name)
              ->allow_extra_args(false)
              ->group(group_);
  return *this;
}

Options& Options::several(std::string const& name, std::vector<std::string>& values, char const* value_name,
                          std::string const& help) {
  last_ = with_value(app_.add_option(name, values, help), name, value_name)
              ->allow_extra_args(true)
              ->group(group_);
  return *this;
}

Options& Options::number(std::string const& name, double& value, std::string const& help) {
  last_ = app_.add_option_function<std::string>(
                  name, [&value, name](std::string const& word) { value = parse_number(word, name); }, help)
              ->type_name("NUMBER")
              ->group(group_);
  return *this;
}

Options& Options::integer(std::string const& name, long long& value, std::string const& help) {
  last_ = app_.add_option_function<std::string>(
                  name, [&value, name](std::string const& word) { value = parse_index(word, name); }, help)
              ->type_name("N")
              ->group(group_);
  return *this;
}

Options& Options::flag(std::string const& name, bool& value, std::string const& help) {
  last_ = app_.add_flag(name, value, help)->group(group_);
  return *this;
}

Options& Options::optional_text(std::string const& name, bool& given, std::string& value,
                                char const* value_name, std::string const& help) {
  last_ = app_.add_option_function<std::string>(
                  name,
                  [&given, &value, name](std::string const& word) {
                    refuse_dash(name, word);
                    given = word.empty();
                    value = word;
                  },
                  help)
              ->expected(0, 1)
              ->type_name(value_name)
              ->group(group_);
  return *this;
}

// CLI11's term: such an option is not allowed in a configuration file, and a suite is one.
Options& Options::once() {
  last_->configurable(false);
  return *this;
}

Options& Options::group(std::string title) {
  group_ = std::move(title);
  return *this;
}

DataType TypeChoice::type_of(std::string const& own, DataType otherwise) const {
  std::string const& chosen = own.empty() ? all : own;
  return chosen.empty() ? otherwise : parse_data_type(chosen);
}

Device Common::device_to_plan_for() const {
  if (threads < 0 || threads > 4096)
    throw Error(ErrorCode::bad_request, "--threads " + std::to_string(threads) +
                                            " is invalid; valid values: 1 to 4096, and 0 for all cores");
  if (device < 0 || device > 63)
    throw Error(ErrorCode::bad_request,
                "--device " + std::to_string(device) + " is invalid; valid values: 0 to 63");
  bool const automatic = backend == "auto";
  // --device has no effect if no installed GPU is used.
  auto const refuse_device = [this](std::string const& instead) {
    if (device != 0)
      throw Error(ErrorCode::bad_request,
                  "--device " + std::to_string(device) + " selects a GPU of this machine, but " + instead);
  };
  if (!device_description.empty())
    refuse_device("--device-description " + device_description + " names another one");
  if (device_description.empty()) {
    Backend const wanted = !automatic          ? parse_backend(backend)
                           : has_cuda_device() ? Backend::cuda
                                               : Backend::cpu;
    if (wanted != Backend::cuda)
      refuse_device(automatic ? "this machine has none" : "--backend " + backend + " uses none");
    return this_device(wanted, static_cast<int>(threads), static_cast<int>(device));
  }
  Backend const wanted = !automatic                         ? parse_backend(backend)
                         : is_processor(device_description) ? Backend::cpu
                                                            : Backend::cuda;
  if (wanted == Backend::reference)
    throw Error(ErrorCode::bad_request,
                "--device-description " + device_description +
                    " describes a GPU or a processor; it requires the backend cuda, emulator or cpu, not " +
                    backend);
  if (wanted == Backend::cpu) return describe_processor(device_description, static_cast<int>(threads));
  // The description of the host does not depend on the GPU.
  Device described = this_device(Backend::emulator, static_cast<int>(threads));
  described.backend = wanted;
  described.gpu = describe_gpu(device_description);
  return described;
}

Device Common::device_to_run_on() const {
  Device chosen = device_to_plan_for();
  if (!device_description.empty() && chosen.backend == Backend::cpu)
    throw Error(ErrorCode::bad_request,
                "--device-description " + device_description +
                    " only plans: a described processor cannot execute; COSMATI_MAX_CPU_ISA=AVX2 "
                    "runs this one without AVX-512");
  if (!device_description.empty() && chosen.backend == Backend::cuda)
    throw Error(ErrorCode::bad_request,
                "--device-description " + device_description +
                    " only plans: a described GPU cannot execute; --backend emulator runs its "
                    "kernels on this machine");
  return chosen;
}

PlanOptions Common::plan_options() const {
  PlanOptions options;
  options.kernel = kernel;
  options.policy = policy;
  if (!max_workspace.empty()) {
    Index const bytes = parse_index(max_workspace, "--max-workspace");
    if (bytes < 0) throw Error(ErrorCode::bad_request, "--max-workspace " + max_workspace + " is negative");
    options.max_workspace = static_cast<std::size_t>(bytes);
  }
  if (!max_error.empty()) {
    options.max_error = parse_number(max_error, "--max-error");
    if (!(*options.max_error > 0))
      throw Error(ErrorCode::bad_request,
                  "--max-error " + max_error + "; expected a positive number, such as 1e-5");
  }
  options.deterministic = deterministic;
  options.batch_invariant = batch_invariant;
  options.built_in_tuning = tuning != "none";
  if (!tuning.empty() && options.built_in_tuning)
    options.tuning = std::make_shared<TuningTable const>(io::read_tuning(tuning));
  return options;
}

void use_cache_of(Common const& common) {
  if (!common.cache.empty()) setenv("COSMATI_CACHE", common.cache.c_str(), 1);
}

}  // namespace cosmati::cli
