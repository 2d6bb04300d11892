// cosmati tune: measures around the plan's choices, and writes a tuning file.
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
      .text("--shapes", request.shapes, "FILE", "a list of problems in a file, as those in bench/suites")
      .text("--out", request.out, "FILE", "the tuning file; lines are added to what it has")
      .number("--budget", request.budget_seconds, "seconds for each problem; 20 if not given")
      .flag("--hot", request.hot,
            "the same operands at each call, instead of sets in turn that pass the L2 caches twice");
  add_placement_options(options, request.placement);
  options.group("Parameters");
  request.subject->add_parameters(options);
  add_shared_options(options, request.common, "tune", request.subject.get());
}

TuneRequest with_options(TuneRequest const& request, ProblemOptions const& problem) {
  TuneRequest one = request.copy();
  one.size = request.size.for_suite();
  parse_problem(problem, [&one](CLI::App& command) { add_options(command, one); });
  return one;
}

void add_subject(CLI::App& verb, std::unique_ptr<Subject> subject) {
  Command const command = Command(verb).add_subcommand(subject->name(), subject->about());
  command.footer("Example: cosmati tune " + subject->name() + " --suite llm --out tuning.txt");
  auto const request = std::make_shared<TuneRequest>();
  request->subject = std::move(subject);
  add_options(command, *request);
  command.callback([request] { tune_job(*request, with_options); });
}

}  // namespace

void add_tune_command(CLI::App& program) {
  Command const verb =
      Command(program).add_subcommand("tune", "Measure which choices of the plan would be faster");
  verb.require_subcommand();
  verb.footer(
      "A line for each class of problems and GPU; run, verify, bench, explain and compile go by them with "
      "--tuning FILE. Small differences of size are one class (docs/decisions/0006-tuning.md).\n"
      "Example: cosmati tune gemm --suite squares --out tuning.txt");
  add_subject(verb, make_gemm());
}

}  // namespace cosmati::cli
