// The program declares the options of the requested verb and subject, and no others.
#include <gtest/gtest.h>

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "cli/verbs/commands.h"

namespace cosmati::cli {
namespace {

TEST(Options, OnlyWhatTheCommandLineNamesIsDeclared) {
  CLI::App program("", "cosmati");
  add_run_command(program);
  add_verify_command(program);
  program.allow_extras();
  auto const all = [](CLI::App const*) { return true; };
  EXPECT_TRUE(program.get_subcommand("run")->get_subcommands(all).empty());

  EXPECT_THROW(program.parse("verify softmax --help", false), CLI::CallForHelp);
  CLI::App const* const verify = program.get_subcommand("verify");
  EXPECT_GT(verify->get_subcommands(all).size(), 10U);
  EXPECT_NE(verify->get_subcommand("softmax")->get_option_no_throw("--count"), nullptr);
  EXPECT_EQ(verify->get_subcommand("gemm")->get_option_no_throw("--count"), nullptr);
  EXPECT_TRUE(program.get_subcommand("run")->get_subcommands(all).empty());
}

}  // namespace
}  // namespace cosmati::cli
