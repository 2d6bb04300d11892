// cosmati verify: runs operations on random data and compares them with the reference.
#include <memory>

#include "cli/command.h"
#include "cli/options/problem_options.h"
#include "cli/options/shared_options.h"
#include "cli/verbs/commands.h"
#include "cli/verify/verify_job.h"

namespace cosmati::cli {
namespace {

void add_options(CLI::App& command, VerifyRequest& request) {
  Options options(command);
  add_size_options(options, *request.subject, request.size);
  options.group("Verification")
      .integer("--count", request.count,
               "random problems if no size is given; with --kernel those that it supports (default: 20)")
      .once()
      .flag("--integers", request.small_integers,
            "data from -3 to 3: if sums are exact, results must be bit-identical")
      .text(
          "--data", request.data, "NAME",
          "normal: normally distributed; hard: mixed magnitudes, one huge element, denormals, NaN and "
          "infinities, constant rows or exact cancellation; mixed: hard for a third of the problems (default: "
          "mixed for random problems, normal for sizes and suites)")
      .once()
      .flag("--gaps", request.gaps, "gaps between rows, planes and images, as in views of larger arrays")
      .integer("--misalign", request.misalignment,
               "offset of each array in bytes from a multiple of 64, rounded up to a multiple of its "
               "element size; known to the plan")
      .text("--suite", request.suite, "NAME", "a list of problems (see: cosmati list suites)")
      .once()
      .text("--shapes", request.shapes, "FILE", "a file with a list of problems, as in bench/suites")
      .once()
      .number("--most-operations", request.max_operations,
              "larger problems of a suite are skipped (default: 2e9, about ten seconds)")
      .group("Parameters");
  request.subject->add_parameters(options);
  add_shared_options(options, request.common, "verify", request.subject.get());
}

VerifyRequest verify_with_options(VerifyRequest const& request, ProblemOptions const& problem) {
  VerifyRequest one = request.copy();
  one.size = request.size.for_suite();
  parse_problem(problem, [&one](CLI::App& command) { add_options(command, one); });
  return one;
}

void add_verify_subject(CLI::App& verb, std::unique_ptr<Subject> subject) {
  Command const command = Command(verb).add_subcommand(subject->name(), subject->about());
  command.footer("Without a size, random problems are generated.\nExample: cosmati verify " +
                 subject->name() + ' ' + subject->size_example());
  auto const request = std::make_shared<VerifyRequest>();
  request->subject = std::move(subject);
  command.when_read([command, request] { add_options(command, *request); });
  command.callback([request] { verify_job(*request, verify_with_options); });
}

}  // namespace

void add_verify_command(CLI::App& program) {
  Command const verb =
      Command(program).add_subcommand("verify", "Compare an operation with the double-precision reference");
  verb.require_subcommand();
  verb.footer(
      "All outputs are compared within an error bound derived from the types and the number of summed "
      "terms; they are\npoisoned before the run and placed between guard bands. --type accepts a list, "
      "or all.\nExample: cosmati verify gemm --size 1:65:16x127x333 --type f32,bf16 --layout tn");
  verb.when_read([verb] {
    for (auto& subject : make_subjects()) add_verify_subject(verb, std::move(subject));
  });
}

}  // namespace cosmati::cli
