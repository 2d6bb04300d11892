// cosmati tune: measures alternatives to the plan's choices, and writes a tuning file.
#include <memory>

#include "cli/command.h"
#include "cli/options/problem_options.h"
#include "cli/options/shared_options.h"
#include "cli/verbs/commands.h"
#include "cli/verbs/tune_job.h"

namespace cosmati::cli {
namespace {

void add_options(CLI::App& command, TuneRequest& request) {
  Options options(command);
  add_size_options(options, *request.subject, request.size);
  options.group("Measurement")
      .text("--suite", request.suite, "NAME", "a list of problems (see: cosmati list suites)")
      .once()
      .text("--shapes", request.shapes, "FILE", "a file with a list of problems, as in bench/suites")
      .once()
      .text("--out", request.out, "FILE", "the tuning file; lines are appended")
      .once()
      .number("--budget", request.budget_seconds, "seconds for each problem (default: 20)")
      .once()
      .text("--fail-above", request.fail_above, "RATIO",
            "exit status 1 if a plan takes more than this times the time of the fastest choice")
      .once()
      .flag("--hot", request.hot,
            "reuse the same operands in each call, instead of rotating over sets larger than twice "
            "the L2 cache")
      .once();
  add_placement_options(options, request.placement);
  options.group("Parameters");
  request.subject->add_parameters(options);
  add_shared_options(options, request.common, "tune", request.subject.get());
}

TuneRequest tune_with_options(TuneRequest const& request, ProblemOptions const& problem) {
  TuneRequest one = request.copy();
  one.size = request.size.for_suite();
  parse_problem(problem, [&one](CLI::App& command) { add_options(command, one); });
  return one;
}

void add_tune_subject(CLI::App& verb, std::unique_ptr<Subject> subject) {
  Command const command = Command(verb).add_subcommand(subject->name(), subject->about());
  command.footer("Example: cosmati tune " + subject->name() + " --suite llm --out tuning.txt");
  auto const request = std::make_shared<TuneRequest>();
  request->subject = std::move(subject);
  add_options(command, *request);
  command.callback([request] { tune_job(*request, tune_with_options); });
}

}  // namespace

void add_tune_command(CLI::App& program) {
  Command const verb = Command(program).add_subcommand("tune", "Measure alternatives to the plan's choices");
  verb.require_subcommand();
  verb.footer(
      "Writes a line per class of problems and GPU, which run, verify, bench, explain and compile "
      "use with --tuning FILE. Similar sizes form one class "
      "(docs/decisions/0006-tuning.md).\nExample: cosmati tune gemm --suite squares --out tuning.txt");
  add_tune_subject(verb, make_subject("gemm"));
}

}  // namespace cosmati::cli
