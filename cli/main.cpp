// The program: one subcommand for each verb; every failure becomes one sentence on stderr and an exit status.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <csignal>
#include <cstdio>
#include <new>

#include "cli/failure.h"
#include "cli/options/parse_failure.h"
#include "cli/output/report_once_per_node.h"
#include "cli/output/table.h"
#include "cli/verbs/commands.h"

namespace {

using namespace cosmati;

void add_commands(CLI::App& program) {
  program.set_version_flag("--version", "cosmati " COSMATI_VERSION);
  program.require_subcommand(1);
  program.footer(
      "Exit status: 0 success; 1 wrong or too slow result; 2 malformed request or bad file; 3 not "
      "available on this machine.\nExample: cosmati run gemm --a A.npy --b B.npy --out D.npy");
  cli::add_info_command(program);
  cli::add_run_command(program);
  cli::add_verify_command(program);
  cli::add_bench_command(program);
  cli::add_bench_peer_command(program);
  cli::add_explain_command(program);
  cli::add_compile_command(program);
  cli::add_warm_command(program);
  cli::add_find_command(program);
  cli::add_tune_command(program);
  cli::add_replay_command(program);
  cli::add_plot_command(program);
  cli::add_list_command(program);
  cli::add_train_command(program);
  cli::add_predict_command(program);
  cli::add_generate_command(program);
}

int run_program(int argc, char** argv) {
  CLI::App program("Matrix multiplication, convolution and small neural networks.", "cosmati");
  add_commands(program);
  try {
    program.parse(argc, argv);
  } catch (CLI::Success const& help) {
    return program.exit(help);
  } catch (CLI::ParseError const& error) {
    cli::report_once_per_node(cli::explain_parse_failure(program, error.what(), {argv + 1, argv + argc}));
    return cli::exit_bad_request;
  }
  // Printed output may have been lost: a full disk, a closed pipe.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    cli::print_failure("standard output could not be written");
    return cli::exit_bad_request;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  try {
    return run_program(argc, argv);
  } catch (Error const& error) {
    cli::report_once_per_node(error.what());
    return cli::exit_status(error.code());
  } catch (std::bad_alloc const&) {
    cli::report_once_per_node("out of memory: the request needs more than this machine has");
  } catch (std::exception const& error) {
    cli::report_once_per_node(error.what());
  }
  return cli::exit_bad_request;
}
