// cosmati find: measures the candidate kernels of a plan.
#include <memory>

#include "cli/command.h"
#include "cli/options/problem_options.h"
#include "cli/options/shared_options.h"
#include "cli/verbs/commands.h"
#include "cli/verbs/find_job.h"

namespace cosmati::cli {
namespace {

void add_options(CLI::App& command, FindRequest& request) {
  Options options(command);
  add_size_options(options, *request.subject, request.size);
  options.group("Measurement")
      .text("--suite", request.suite, "NAME", "a list of problems (see: cosmati list suites)")
      .once()
      .text("--shapes", request.shapes, "FILE", "a file with a list of problems, as in bench/suites")
      .once()
      .text("--out", request.out, "FILE",
            "add the fastest kernel to this tuning file for --tuning; gemm and conv")
      .once()
      .number("--seconds", request.seconds, "for each kernel (default: 0.1)")
      .text("--fail-above", request.fail_above, "RATIO",
            "exit status 1 if a plan takes more than this times the time of the fastest choice")
      .once()
      .flag("--naive", request.naive,
            "include the reference loops, otherwise timed only when no other kernel applies");
  add_placement_options(options, request.placement);
  options.group("Parameters");
  request.subject->add_parameters(options);
  add_shared_options(options, request.common, "find", request.subject.get());
}

FindRequest find_with_options(FindRequest const& request, ProblemOptions const& problem) {
  FindRequest one = request.copy();
  one.size = request.size.for_suite();
  parse_problem(problem, [&one](CLI::App& command) { add_options(command, one); });
  return one;
}

void add_find_subject(CLI::App& verb, std::unique_ptr<Subject> subject) {
  Command const command = Command(verb).add_subcommand(subject->name(), subject->about());
  command.footer("Example: cosmati find " + subject->name() + ' ' + subject->size_example());
  auto const request = std::make_shared<FindRequest>();
  request->subject = std::move(subject);
  command.when_read([command, request] { add_options(command, *request); });
  command.callback([request] { find_job(*request, find_with_options); });
}

}  // namespace

void add_find_command(CLI::App& program) {
  Command const verb = Command(program).add_subcommand("find", "Measure every kernel that accepts a problem");
  verb.require_subcommand();
  verb.footer(
      "Respects --max-workspace, --max-error and --deterministic. Each kernel runs as the plan would "
      "run it, on generated data. Results are not verified: see cosmati verify.\nExample: cosmati "
      "find conv --size 16x64x56x56x64x3x3 --pad 1,1,1,1 --out tuning.txt");
  verb.when_read([verb] {
    for (auto& subject : make_subjects()) add_find_subject(verb, std::move(subject));
  });
}

}  // namespace cosmati::cli
