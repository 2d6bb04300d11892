// cosmati compile: fills the cache of compiled kernels.
#include <memory>

#include "cli/command.h"
#include "cli/options/problem_options.h"
#include "cli/options/shared_options.h"
#include "cli/verbs/commands.h"
#include "cli/verbs/compile_job.h"

namespace cosmati::cli {
namespace {

void add_options(CLI::App& command, CompileRequest& request) {
  Options options(command);
  add_size_options(options, *request.subject, request.size);
  options.group("Compilation")
      .text("--arch", request.architecture, "NAME",
            "target of NVRTC: sm_75, sm_80, sm_90a, ...; plans for a GPU of that architecture, or "
            "for --device-description")
      .once()
      .text("--out", request.out, "FILE", "write the machine code of one kernel, in addition to the cache")
      .once()
      .integer("--count", request.count, "random problems, as in verify, and larger ones")
      .once()
      .flag("--each-kernel", request.each_kernel,
            "every kernel that accepts the problem, not only the planned one")
      .text("--suite", request.suite, "NAME", "a list of problems (see: cosmati list suites)")
      .once()
      .text("--shapes", request.shapes, "FILE", "a file with a list of problems, as in bench/suites")
      .once()
      .text("--lines", request.lines, "N,...", "only these problems of the list, counted from 1")
      .once();
  add_placement_options(options, request.placement);
  options.group("Parameters");
  request.subject->add_parameters(options);
  add_shared_options(options, request.common, "compile", request.subject.get());
}

void add_compile_subject(CLI::App& verb, std::unique_ptr<Subject> subject) {
  Command const command = Command(verb).add_subcommand(subject->name(), subject->about());
  command.footer("Example: cosmati compile " + subject->name() + ' ' + subject->size_example() +
                 " --arch sm_90a");
  auto const request = std::make_shared<CompileRequest>();
  request->subject = std::move(subject);
  command.when_read([command, request] { add_options(command, *request); });
  command.callback([request] { compile_job(*request); });
}

}  // namespace

CompileRequest with_options(CompileRequest const& request, ProblemOptions const& problem) {
  CompileRequest one = request.copy();
  one.size = request.size.for_suite();
  parse_problem(problem, [&one](CLI::App& command) { add_options(command, one); });
  return one;
}

void add_compile_command(CLI::App& program) {
  Command const verb =
      Command(program).add_subcommand("compile", "Compile kernels for a GPU, which need not be present");
  verb.require_subcommand();
  verb.footer(
      "Kernels are stored in the cache, where `run` on such a GPU finds them. --threads N compiles N "
      "in parallel.\n--count N compiles the kernels of random problems and continues after a "
      "failure; --seed selects others.\nExample: cosmati compile gemm --suite figure9 --arch sm_90a");
  verb.when_read([verb] {
    for (auto& subject : make_subjects()) add_compile_subject(verb, std::move(subject));
  });
}

}  // namespace cosmati::cli
