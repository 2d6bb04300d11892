// A verb or subcommand, without the parser's header, which takes seconds to compile.
#pragma once
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace cosmati::cli {

// A reference to a CLI::App; the functions have the names of CLI11's.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}
  operator CLI::App&() const { return *app_; }

  Command add_subcommand(std::string const& name, std::string const& about) const;
  void require_subcommand() const;  // exactly one
  void footer(std::string const& text) const;
  // Calls `fill` once the command's name has been parsed. Declaring the options of all verbs and subjects
  // would dominate the program's start-up time.
  void when_read(std::function<void()> const& fill) const;
  void hide() const;                                      // omitted from the help
  void callback(std::function<void()> const& job) const;  // once the command line is parsed

 private:
  CLI::App* app_;
};

}  // namespace cosmati::cli
