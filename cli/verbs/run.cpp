// cosmati run: one operation on arrays from .npy files.
#include <memory>

#include "cli/command.h"
#include "cli/options/shared_options.h"
#include "cli/verbs/commands.h"
#include "cli/verbs/run_job.h"

namespace cosmati::cli {
namespace {

void add_options(CLI::App& command, RunRequest& request) {
  Options options(command);
  options.group("Files (.npy)");
  for (FileOption const& file : request.subject->files())
    options.text("--" + file.name, request.files[file.name], file.output ? "OUTPUT" : "FILE", file.help);
  if (request.subject->has_epilogue()) {
    options
        .texts("--operand", request.operands, "NAME=FILE", "an array that the epilogue uses; may be repeated")
        .texts("--store", request.stores, "NAME=OUTPUT", "output of store(NAME, ...) in the epilogue");
  }
  options.flag("--time", request.time,
               "after writing the outputs, repeat the operation for 0.2 s and print the median time");
  options.group("Parameters");
  request.subject->add_parameters(options);
  add_shared_options(options, request.common, "run", request.subject.get());
}

void add_run_subject(CLI::App& verb, std::unique_ptr<Subject> subject) {
  Command const command = Command(verb).add_subcommand(subject->name(), subject->about());
  command.footer("Example: cosmati run " + subject->name() + ' ' + subject->run_example());
  auto const request = std::make_shared<RunRequest>();
  request->subject = std::move(subject);
  command.when_read([command, request] { add_options(command, *request); });
  command.callback([request] { run_job(*request); });
}

}  // namespace

void add_run_command(CLI::App& program) {
  Command const verb = Command(program).add_subcommand("run", "Compute one operation on .npy files");
  verb.require_subcommand();
  verb.footer("Example: cosmati run gemm --a A.npy --b B.npy --layout nt --out D.npy");
  verb.when_read([verb] {
    for (auto& subject : make_subjects()) add_run_subject(verb, std::move(subject));
  });
}

}  // namespace cosmati::cli
