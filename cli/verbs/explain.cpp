// cosmati explain: which kernels were considered for a problem, and why.
#include <memory>

#include "cli/command.h"
#include "cli/options/placement.h"
#include "cli/options/problem_options.h"
#include "cli/options/shared_options.h"
#include "cli/options/sizes.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/verbs/commands.h"
#include "cli/verbs/run_job.h"
#include "cosmati/ops/processor.h"

namespace cosmati::cli {
namespace {

struct ExplainRequest {
  std::unique_ptr<Subject> subject;
  SizeRequest size;
  std::string suite, shapes;  // suite name, suite file
  Placement placement;
  Common common;

  ExplainRequest copy() const { return {subject->clone(), size, suite, shapes, placement, common}; }
};

std::string verdict_of(Considered const& entry, std::string const& chosen) {
  return entry.kernel == chosen ? "chosen" : entry.refusal.empty() ? "possible" : "refused";
}

struct Term {
  char const* word;  // a term of a recipe
  char const* meaning;
};
constexpr Term terms[] = {
    {" stages",
     "128x64x32: rows x columns of d per block x depth of a step; warp, thread: the tile of each; "
     "stages: steps in shared memory at the same time"},
    {", cluster ", "cluster: this number of blocks loads common parts of a and b once"},
    {"share a tile's k", "share a tile's k: each block of the cluster sums its part of k"},
    {"two tiles in turn", "two tiles in turn: half of a block stores while the other half multiplies"},
    {", raster ",
     "raster: the order in which blocks visit d, in bands of this many tiles, to share operands in L2"},
    {"full tiles", "full tiles: every extent is a multiple of the tile, so no edge is checked"},
    {" transposed, ",
     "transposed: the kernel computes transpose(b) * transpose(a), so that d is contiguous "
     "along its rows; a, b, m and n are the kernel's"},
    {"repacked first", "repacked first: copied into workspace with rows that TMA supports"},
    {"transposed first", "transposed first: copied into workspace as a K-major operand"},
    {"expected error",
     "expected error: standard deviation of rounding errors over that of the results, for random "
     "inputs of mean 0"},
    {"tiles of ", "tiles of 4x4: outputs computed from 6x6 products instead of 4x4x9"},
    {", d by ",
     "a along k by 8: read in runs of 8 contiguous elements along k; d by 8: written in such runs; "
     "by 1 is slow"},
    {" splits", "splits: parts of k that different blocks sum; their sums are added at the end"}};

// Explains the terms that occur in the recipes.
std::string meanings(std::vector<std::string> const& recipes) {
  std::string text;
  for (Term const& term : terms)
    for (std::string const& recipe : recipes)
      if (recipe.find(term.word) != std::string::npos) {
        text += std::string("\n  ") + term.meaning;
        break;
      }
  return text;
}

void print_choice(ExplainRequest const& request, Task& task, Device const& device, Choice const& choice) {
  bool const on_cpu = device.backend == Backend::cpu;
  if (!request.common.json) {
    print_line(
        request.subject->name() + ' ' + task.notes.label + " on " + name_of(device.backend) + ", " +
        (device.backend == Backend::cuda ? device.gpu.name : std::to_string(device.threads) + " threads") +
        (on_cpu ? " (" + processor_summary(device) + ')' : "") + ':');
    for (Slot const& slot : task.slots()) print_line("  " + slot.name + ": " + to_string(slot.description));
  }
  Table table({"kernel", "verdict", "predicted", "error", "workspace", "how, or why rejected"});
  std::vector<std::string> recipes;
  for (Considered const& entry : choice.considered) {
    std::string const verdict = verdict_of(entry, choice.kernel);
    if (entry.refusal.empty()) recipes.push_back(entry.recipe);
    auto const workspace = static_cast<long long>(entry.workspace_bytes);
    bool const predicted = entry.refusal.empty() && entry.predicted_seconds > 0;
    bool const stated = entry.refusal.empty() && entry.expected_error > 0;
    table.add({entry.kernel, verdict, predicted ? in_seconds(entry.predicted_seconds) : "",
               stated ? in_short(entry.expected_error) : "",
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
                     .add("instruction_set", on_cpu ? Value(instruction_set(device)) : Value())
                     .add("cores", on_cpu ? Value(static_cast<long long>(device.cores)) : Value())
                     .add("l1_bytes", on_cpu ? Value(device.l1_bytes) : Value())
                     .add("l2_bytes", on_cpu ? Value(device.l2_bytes) : Value())
                     .add("l3_bytes", on_cpu ? Value(device.l3_bytes) : Value())
                     .add("gpu", device.gpu.name.empty() ? Value() : Value(device.gpu.name))
                     .add("kernel", entry.kernel)
                     .add("verdict", verdict)
                     .add("reason", entry.refusal.empty() ? Value() : Value(entry.refusal))
                     .add("recipe", entry.recipe.empty() ? Value() : Value(entry.recipe))
                     .add("tuning", entry.note.empty() ? Value() : Value(entry.note))
                     .add("predicted_seconds", predicted ? Value(entry.predicted_seconds) : Value())
                     .add("expected_error", stated ? Value(entry.expected_error) : Value())
                     .add("workspace_bytes", entry.refusal.empty() ? Value(workspace) : Value())
                     .json());
  }
  if (request.common.json) return;
  table.print();
  if (std::string const text = meanings(recipes); !text.empty()) print_line("Terms:" + text);
}

void explain_sizes(ExplainRequest const& request, std::vector<std::vector<Index>> const& sizes) {
  Device const device = request.common.device_to_plan_for();
  for (auto const& size : sizes) {
    Job const job = made_job(*request.subject, size, request.common);
    place(*job.task, request.placement);
    print_choice(request, *job.task, device,
                 job.task->plan(device, plan_options(*request.subject, request.common)));
  }
}

void add_options(CLI::App& command, ExplainRequest& request) {
  Options options(command);
  add_size_options(options, *request.subject, request.size);
  options.text("--suite", request.suite, "NAME", "a list of problems (see: cosmati list suites)")
      .text("--shapes", request.shapes, "FILE", "a file with a list of problems, as in bench/suites");
  add_placement_options(options, request.placement);
  options.group("Parameters");
  request.subject->add_parameters(options);
  add_shared_options(options, request.common, "explain", request.subject.get());
}

void explain_job(ExplainRequest const& request) {
  check_options(request.common);
  auto const sizes = requested_sizes(*request.subject, request.size);
  auto const suites = requested_suites(request.subject->name(), request.suite, request.shapes);
  if (sizes.empty() && suites.empty())
    throw Error(ErrorCode::bad_request, "missing problem size, e.g. " + request.subject->size_example());
  explain_sizes(request, sizes);
  for (Suite const& suite : suites)
    for (ProblemOptions const& problem : suite.problems) {
      ExplainRequest one = request.copy();
      one.size = request.size.for_suite();
      parse_problem(problem, [&one](CLI::App& command) { add_options(command, one); });
      explain_sizes(one, requested_sizes(*one.subject, one.size));
    }
}

void add_subject(CLI::App& verb, std::unique_ptr<Subject> subject) {
  Command const command = Command(verb).add_subcommand(subject->name(), subject->about());
  command.footer("Example: cosmati explain " + subject->name() + ' ' + subject->size_example());
  auto const request = std::make_shared<ExplainRequest>();
  request->subject = std::move(subject);
  command.when_read([command, request] { add_options(command, *request); });
  command.callback([request] { explain_job(*request); });
}

}  // namespace

void add_explain_command(CLI::App& program) {
  Command const verb =
      Command(program).add_subcommand("explain", "Show which kernels were considered, and why");
  verb.require_subcommand();
  verb.footer("Example: cosmati explain conv --size 64x6x14x14x16x5x5 --layout chwn");
  verb.when_read([verb] {
    for (auto& subject : make_subjects()) add_subject(verb, std::move(subject));
  });
}

}  // namespace cosmati::cli
