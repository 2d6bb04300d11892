// cosmati explain: which kernels were considered for a problem, and why.
#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <memory>

#include "cli/commands.h"
#include "cli/record.h"
#include "cli/run_job.h"
#include "cli/sizes.h"
#include "cli/table.h"

namespace cosmati::cli {
namespace {

struct ExplainRequest {
  std::unique_ptr<Subject> subject;
  SizeRequest size;
  Common common;
};

std::string verdict_of(Considered const& entry, std::string const& chosen) {
  return entry.kernel == chosen ? "chosen" : entry.refusal.empty() ? "possible" : "refused";
}

void print_choice(ExplainRequest const& request, Task& task, Device const& device, Choice const& choice) {
  if (!request.common.json) {
    print_line(
        request.subject->name() + ' ' + task.notes.label + " on " + name_of(device.backend) + ", " +
        (device.backend == Backend::cuda ? device.gpu.name : std::to_string(device.threads) + " threads") +
        ':');
    for (Slot const& slot : task.slots()) print_line("  " + slot.name + ": " + to_string(slot.description));
  }
  Table table({"kernel", "verdict", "predicted", "workspace", "how, or why not"});
  for (Considered const& entry : choice.considered) {
    std::string const verdict = verdict_of(entry, choice.kernel);
    auto const workspace = static_cast<long long>(entry.workspace_bytes);
    bool const predicted = entry.refusal.empty() && entry.predicted_seconds > 0;
    table.add({entry.kernel, verdict, predicted ? in_seconds(entry.predicted_seconds) : "",
               entry.refusal.empty() ? in_bytes(static_cast<double>(workspace)) : "",
               (entry.refusal.empty() ? entry.recipe : entry.refusal) +
                   (entry.note.empty() ? "" : "; " + entry.note)});
    if (request.common.json)
      print_text(Record()
                     .add("verb", "explain")
                     .add("subject", request.subject->name())
                     .add("problem", task.notes.label)
                     .add("backend", name_of(device.backend))
                     .add("threads", device.threads)
                     .add("gpu", device.gpu.name.empty() ? Value() : Value(device.gpu.name))
                     .add("kernel", entry.kernel)
                     .add("verdict", verdict)
                     .add("reason", entry.refusal.empty() ? Value() : Value(entry.refusal))
                     .add("recipe", entry.recipe.empty() ? Value() : Value(entry.recipe))
                     .add("tuning", entry.note.empty() ? Value() : Value(entry.note))
                     .add("predicted_seconds", predicted ? Value(entry.predicted_seconds) : Value())
                     .add("workspace_bytes", entry.refusal.empty() ? Value(workspace) : Value())
                     .json());
  }
  if (!request.common.json) table.print();
}

void explain_job(ExplainRequest const& request) {
  check_options(*request.subject, request.common);
  Device const device = device_to_plan_for(*request.subject, request.common);
  auto const sizes = requested_sizes(*request.subject, request.size);
  if (sizes.empty())
    throw Error(ErrorCode::bad_request, "a size is needed, e.g. " + request.subject->size_example());
  for (auto const& size : sizes) {
    Job const job = made_job(*request.subject, size, request.common);
    print_choice(request, *job.task, device,
                 job.task->plan(device, plan_options(*request.subject, request.common)));
  }
}

void add_subject(CLI::App& verb, std::unique_ptr<Subject> subject) {
  CLI::App* const command = verb.add_subcommand(subject->name(), subject->about());
  command->footer("Example: cosmati explain " + subject->name() + ' ' + subject->size_example());
  auto const request = std::make_shared<ExplainRequest>();
  request->subject = std::move(subject);
  Options options(*command);
  add_size_options(options, *request->subject, request->size);
  options.group("Parameters");
  request->subject->add_parameters(options);
  add_common_options(options, request->common);
  command->callback([request] { explain_job(*request); });
}

}  // namespace

void add_explain_command(CLI::App& program) {
  CLI::App* const verb = program.add_subcommand("explain", "Say which kernels were considered, and why");
  verb->require_subcommand(1);
  verb->footer("Example: cosmati explain conv --size 64x6x14x14x16x5x5 --layout chwn");
  for (auto& subject : make_subjects()) add_subject(*verb, std::move(subject));
}

}  // namespace cosmati::cli
