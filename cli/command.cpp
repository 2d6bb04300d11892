// Forwards the calls of verbs to CLI11.
#include "cli/command.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "src/ops/names.h"

namespace cosmati::cli {

Command Command::add_subcommand(std::string const& name, std::string const& about) const {
  CLI::App* const command = app_->add_subcommand(name, about);
  for (std::string const& alias : aliases_of(name)) command->alias(alias);
  return Command(*command);
}

void Command::require_subcommand() const { app_->require_subcommand(1); }

void Command::footer(std::string const& text) const { app_->footer(text); }

void Command::when_read(std::function<void()> const& fill) const {
  app_->preparse_callback([fill](std::size_t) { fill(); });
}

void Command::hide() const { app_->group(""); }

void Command::callback(std::function<void()> const& job) const { app_->callback(job); }

}  // namespace cosmati::cli
