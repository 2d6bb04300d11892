// A verb, or a word behind one, without the parser's header, which takes seconds to compile.
#pragma once
#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace cosmati::cli {

// Refers to a CLI::App, by whose names its functions go.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}
  operator CLI::App&() const { return *app_; }

  Command add_subcommand(std::string const& name, std::string const& about) const;
  void require_subcommand() const;  // one
  void footer(std::string const& text) const;
  // What fills it once its word has been read. The options of all verbs and subjects that nobody asked for
  // would be most of what the program does when it starts.
  void when_read(std::function<void()> const& fill) const;
  void hide() const;                                      // from the help
  void callback(std::function<void()> const& job) const;  // once the command line is parsed

 private:
  CLI::App* app_;
};

}  // namespace cosmati::cli
