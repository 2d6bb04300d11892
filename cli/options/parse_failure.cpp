// Explains why a command line does not parse.
#include "cli/options/parse_failure.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>

#include "cli/options/shared_options.h"
#include "cli/output/text.h"
#include "src/ops/names.h"

namespace cosmati::cli {
namespace {

std::vector<std::string> words_below(CLI::App const& command) {
  std::vector<std::string> names;
  for (CLI::App const* below : command.get_subcommands([](CLI::App const*) { return true; }))
    if (!below->get_group().empty()) names.push_back(below->get_name());
  return names;
}

std::vector<std::string> option_names(CLI::App const& command) {
  std::vector<std::string> names;
  for (CLI::Option const* option : command.get_options())
    for (std::string const& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

bool takes_words(CLI::App const& command) {
  for (CLI::Option const* option : command.get_options())
    if (option->get_positional()) return true;
  return false;
}

// The first argument that the command does not accept, neither as an option nor as an option's value; empty
// if it accepts all.
std::string unknown_argument(CLI::App const& command, std::vector<std::string> const& arguments,
                             std::size_t from) {
  for (std::size_t i = from; i < arguments.size(); ++i) {
    std::string const& argument = arguments[i];
    auto const equals = argument.find('=');
    std::string const name = argument.substr(0, equals);
    CLI::Option const* const option = name.starts_with('-') ? command.get_option_no_throw(name) : nullptr;
    if (option == nullptr && !argument.starts_with('-') && takes_words(command)) continue;
    if (option == nullptr) return argument.starts_with("--") ? name : argument;
    if (equals == std::string::npos && option->get_items_expected_max() > 0) ++i;
  }
  return {};
}

}  // namespace

std::string explain_parse_failure(CLI::App const& program, std::string const& reason,
                                  std::vector<std::string> const& arguments) {
  CLI::App const* command = &program;
  std::string path = program.get_name();
  std::size_t at = 0;
  for (auto below = words_below(*command); !below.empty(); below = words_below(*command)) {
    std::string const kind = command == &program ? "verb" : "subject";
    if (at == arguments.size())
      return path + ": missing " + kind + "; valid " + kind + "s: " + join(below, ", ") + "; see " + path +
             " --help";
    std::string const& word = arguments[at++];
    CLI::App const* next = nullptr;
    for (CLI::App const* candidate : command->get_subcommands([](CLI::App const*) { return true; }))
      if (candidate->check_name(word)) next = candidate;
    if (next == nullptr) {
      if (word.starts_with('-'))
        return path + ": unknown option " + word + did_you_mean(word, option_names(*command)) +
               "; expected a " + kind + " first: " + join(below, ", ");
      return path + ": " + unknown_name(kind, word, below, "valid " + kind + 's');
    }
    command = next;
    path += ' ' + next->get_name();
  }
  std::string const unknown = unknown_argument(*command, arguments, at);
  std::string const use =
      use_of_shared_option(unknown, path.substr(std::min(program.get_name().size() + 1, path.size())));
  if (unknown.starts_with('-') && !use.empty())
    return path + ": unknown option " + unknown + "; " + use + "; see " + path + " --help";
  if (unknown.starts_with('-'))
    return path + ": unknown option " + unknown +
           did_you_mean(unknown.starts_with("--") ? unknown : '-' + unknown, option_names(*command)) +
           "; see " + path + " --help";
  if (!unknown.empty())
    return path + ": unexpected argument '" + unknown + "'; options begin with --; see " + path + " --help";
  return path + ": " + reason;
}

}  // namespace cosmati::cli
