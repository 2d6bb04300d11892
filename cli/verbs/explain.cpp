// cosmati explain: which kernels were considered for a problem, and why.
#include <algorithm>
#include <limits>
#include <memory>
#include <set>

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

// The table's word for a verdict of --json.
std::string shown_verdict(std::string const& verdict) {
  return verdict == "possible" ? "accepted" : verdict == "refused" ? "rejected" : verdict;
}

struct Definition {
  RecipeTerm term;
  char const* text;
};
constexpr Definition definitions[] = {
    {RecipeTerm::tile,
     "128x64x32: rows x columns of d per block x k per step; warp, thread: tile of each warp, thread; "
     "stages: k steps held in shared memory at once"},
    {RecipeTerm::cluster, "cluster: this many blocks share their loads of a and b"},
    {RecipeTerm::cluster_reduction, "share a tile's k: each block of the cluster sums its share of k"},
    {RecipeTerm::ping_pong, "two alternating tiles: half of a block stores while the other half multiplies"},
    {RecipeTerm::raster,
     "raster: the order in which blocks visit d, in bands of this many tiles, to share operands in L2"},
    {RecipeTerm::full_tiles, "full tiles: every extent is a multiple of the tile, so no edge is checked"},
    {RecipeTerm::swapped,
     "transposed: the kernel computes transpose(b) * transpose(a), so that d is contiguous "
     "along its rows; a, b, m and n are the kernel's"},
    {RecipeTerm::repacked, "repacked first: copied into workspace with rows that TMA supports"},
    {RecipeTerm::transposed_first, "transposed first: copied into workspace as a K-major operand"},
    {RecipeTerm::winograd_tile, "tiles of 4x4: each tile of outputs takes 6x6 products instead of 4x4x9"},
    {RecipeTerm::access,
     "a along k by 8: loaded 8 contiguous elements along k at a time; d by 8: stored 8 at a time; "
     "by 1 is slow"},
    {RecipeTerm::splits, "splits: parts of k, summed by different blocks; their sums are added at the end"}};

// Defines the terms of the recipes.
std::string definitions_for(std::vector<Considered> const& considered) {
  std::set<RecipeTerm> used;
  bool has_error = false;
  for (Considered const& entry : considered) {
    used.insert(entry.terms.begin(), entry.terms.end());
    has_error = has_error || (entry.refusal.empty() && entry.expected_error > 0);
  }
  std::string text;
  for (Definition const& one : definitions)
    if (used.contains(one.term)) text += std::string("\n  ") + one.text;
  if (has_error)
    text +=
        "\n  error: expected standard deviation of rounding errors over that of the results, for random "
        "inputs of mean 0";
  return text;
}

// `plan_seconds`: the time of make_plan, printed with --json.
void print_choice(ExplainRequest const& request, Task& task, Device const& device, Choice const& choice,
                  double plan_seconds) {
  bool const on_cpu = device.backend == Backend::cpu;
  if (!request.common.json) {
    print_line(
        request.subject->name() + ' ' + task.notes.label + " on " + name_of(device.backend) + ", " +
        (device.backend == Backend::cuda ? device.gpu.name : std::to_string(device.threads) + " threads") +
        (on_cpu ? " (" + processor_summary(device) + ')' : "") + ':');
    for (Slot const& slot : task.slots()) print_line("  " + slot.name + ": " + to_string(slot.description));
  }
  Table table({"kernel", "verdict", "predicted", "error", "workspace", "recipe, or why rejected"});
  for (Considered const& entry : choice.considered) {
    std::string const verdict = verdict_of(entry, choice.kernel);
    auto const workspace = static_cast<long long>(entry.workspace_bytes);
    bool const predicted = entry.refusal.empty() && entry.predicted_seconds > 0;
    bool const stated = entry.refusal.empty() && entry.expected_error > 0;
    table.add({entry.kernel, shown_verdict(verdict), predicted ? in_seconds(entry.predicted_seconds) : "",
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
                     .add("plan_seconds", verdict == "chosen" ? Value(plan_seconds) : Value())
                     .json());
  }
  if (request.common.json) return;
  table.print();
  if (std::string const text = definitions_for(choice.considered); !text.empty()) print_line("Terms:" + text);
  if (task.notes.compute != ComputeMode::exact && device.backend != Backend::cuda &&
      device.backend != Backend::emulator)
    print_line(std::string(name_of(task.notes.compute)) + " has no effect: backend " +
               name_of(device.backend) + " computes exactly");
}

// The shortest time of make_plan in a few calls.
double time_of_plan(Task& task, Device const& device, PlanOptions const& options) {
  double shortest = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 5; ++i) shortest = std::min(shortest, seconds_of([&] { task.plan(device, options); }));
  return shortest;
}

void explain_sizes(ExplainRequest const& request, std::vector<std::vector<Index>> const& sizes) {
  Device const device = request.common.device_to_plan_for();
  for (auto const& size : sizes) {
    Job const job = made_job(*request.subject, size, request.common);
    place(*job.task, request.placement);
    PlanOptions const options = plan_options(*request.subject, request.common);
    Choice const choice = job.task->plan(device, options);
    print_choice(request, *job.task, device, choice,
                 request.common.json ? time_of_plan(*job.task, device, options) : 0);
  }
}

void add_options(CLI::App& command, ExplainRequest& request) {
  Options options(command);
  add_size_options(options, *request.subject, request.size);
  options.text("--suite", request.suite, "NAME", "a list of problems (see: cosmati list suites)")
      .once()
      .text("--shapes", request.shapes, "FILE", "a file with a list of problems, as in bench/suites")
      .once();
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
