// cosmati list: the names that other commands accept.
#include <functional>
#include <initializer_list>
#include <memory>
#include <utility>

#include "cli/command.h"
#include "cli/operations/subject.h"
#include "cli/options/placement.h"
#include "cli/options/problem_options.h"
#include "cli/options/shared_options.h"
#include "cli/options/sizes.h"
#include "cli/options/suites.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/verbs/commands.h"
#include "cosmati/epilogue/functions.h"
#include "src/ops/names.h"
#include "src/plan/gemm/policies.h"

namespace cosmati::cli {
namespace {

struct Listing {
  std::vector<std::string> heads;
  std::vector<std::vector<Value>> rows;
  std::string if_empty;
};

Listing list_kernels() {
  Listing listing{{"subject", "backend", "kernel"}, {}, {}};
  for (auto const& subject : make_subjects())
    for (Backend backend : {Backend::cuda, Backend::cpu, Backend::emulator, Backend::reference})
      for (std::string const& kernel : subject->kernels(backend))
        listing.rows.push_back({subject->name(), std::string(name_of(backend)), kernel});
  return listing;
}

// A line may contain lists and ranges.
std::size_t problems_in(Suite const& suite) {
  std::size_t count = 0;
  for (auto const& subject : make_subjects()) {
    if (subject->name() != suite.subject) continue;
    for (ProblemOptions const& problem : suite.problems) {
      auto const parsed = subject->clone();
      SizeRequest size;
      Placement placement;
      Common common;
      parse_problem(problem, [&](CLI::App& command) {
        Options options(command);
        add_size_options(options, *parsed, size);
        add_placement_options(options, placement);
        parsed->add_parameters(options);
        add_shared_options(options, common, "bench", parsed.get());
      });
      count += requested_sizes(*parsed, size).size() * requested_types(*parsed, common.types.all).size();
    }
  }
  return count;
}

Listing list_suites() {
  Listing listing{{"subject", "suite", "problems", "about"},
                  {},
                  "no suites: the folder bench/suites was not found next to this program"};
  for (Suite const& suite : all_suites())
    listing.rows.push_back(
        {suite.subject, suite.name, static_cast<long long>(problems_in(suite)), suite.about});
  return listing;
}

Listing list_policies() {
  Listing listing{{"kernel", "multiply", "sums", "policy", "block", "warp", "thread", "stages", "threads",
                   "blocks", "cluster", "ping_pong", "epilogue", "raster"},
                  {},
                  {}};
  constexpr std::pair<Multiply, DataType> kinds[] = {{Multiply::fma, DataType::f32},
                                                     {Multiply::fma, DataType::f64},
                                                     {Multiply::half2, DataType::f16},
                                                     {Multiply::dp4a, DataType::s32}};
  auto const tile = [](std::initializer_list<int> extents) {
    std::string text;
    for (int const extent : extents) text += (text.empty() ? "" : "x") + std::to_string(extent);
    return text;
  };
  auto const add = [&](MainLoop loop, Multiply multiply, DataType sum, int element_bytes) {
    for (plan::NamedPolicy const& named : plan::product_policies(loop, multiply, sum, element_bytes)) {
      GemmPolicy const& p = named.policy;
      listing.rows.push_back(
          {std::string(name_of(loop)), std::string(name_of(multiply)), std::string(name_of(sum)),
           std::string(named.name), tile({p.block_m, p.block_n, p.block_k}), tile({p.warp_m, p.warp_n}),
           tile({p.thread_m, p.thread_n}), static_cast<long long>(p.stages),
           static_cast<long long>(p.threads()), static_cast<long long>(p.blocks),
           tile({p.cluster_m, p.cluster_n, p.cluster_k}), p.ping_pong, std::string(name_of(p.epilogue)),
           std::string(name_of(p.raster)) + " by " + std::to_string(p.raster_width)});
    }
  };
  // Policies for tensor cores are listed for 16-bit operands; for other widths block_k scales accordingly.
  add(MainLoop::warp_specialized, Multiply::wgmma, DataType::f32, 2);
  add(MainLoop::warp_specialized, Multiply::mma, DataType::f64, 8);
  add(MainLoop::multistage, Multiply::mma, DataType::f32, 2);
  add(MainLoop::multistage, Multiply::mma, DataType::f64, 8);
  for (MainLoop const loop : {MainLoop::multistage, MainLoop::double_buffered}) {
    add(loop, Multiply::wmma, DataType::f32, 2);
    add(loop, Multiply::wmma, DataType::f64, 8);
  }
  for (MainLoop const loop : {MainLoop::multistage, MainLoop::double_buffered})
    for (auto const& [multiply, sum] : kinds) add(loop, multiply, sum, size_of(sum));
  add(MainLoop::gemv, Multiply::fma, DataType::f32, 4);
  add(MainLoop::tiny, Multiply::fma, DataType::f32, 4);
  add(MainLoop::tiny, Multiply::mma, DataType::f32, 2);
  return listing;
}

Listing list_functions() {
  Listing listing{{"function", "meaning"}, {}, {}};
  for (auto const& function : epilogue::function_table())
    listing.rows.push_back({std::string(function.name) + '(' + std::string(function.parameters) + ')',
                            std::string(function.description)});
  return listing;
}

Listing list_aliases() {
  Listing listing{{"name", "aliases"}, {}, {}};
  for (auto const& [name, aliases] : all_aliases()) listing.rows.push_back({name, join(aliases, ", ")});
  return listing;
}

std::string cell(Value const& value) {
  if (auto const* const number = std::get_if<long long>(&value)) return std::to_string(*number);
  if (auto const* const truth = std::get_if<bool>(&value)) return *truth ? "yes" : "no";
  return std::get<std::string>(value);
}

void print_listing(std::string const& what, Listing const& listing, bool json) {
  if (json) {
    for (auto const& row : listing.rows) {
      Record line;
      line.add("verb", "list").add("what", what);
      for (std::size_t i = 0; i < row.size(); ++i) line.add(listing.heads[i], row[i]);
      print_text(line.json());
    }
    return;
  }
  if (listing.rows.empty()) return print_line(listing.if_empty);
  Table table(listing.heads);
  for (auto const& row : listing.rows) {
    std::vector<std::string> cells;
    for (Value const& value : row) cells.push_back(cell(value));
    table.add(cells);
  }
  table.print();
}

void add_listing(CLI::App& verb, std::string const& name, std::string const& about, Listing (*list)()) {
  Command const command = Command(verb).add_subcommand(name, about);
  command.footer("Example: cosmati list " + name + " --json");
  auto const json = std::make_shared<bool>(false);
  Options(command).group("Options").flag("--json", *json, "JSON Lines instead of a table");
  command.callback([name, json, list] { print_listing(name, list(), *json); });
}

}  // namespace

void add_list_command(CLI::App& program) {
  Command const verb = Command(program).add_subcommand(
      "list", "List kernels, suites, policies, epilogue functions, aliases of names");
  verb.require_subcommand();
  verb.footer("Example: cosmati list kernels");
  add_listing(verb, "kernels", "Kernels of each backend, in order of preference", list_kernels);
  add_listing(verb, "suites", "Lists of problems for bench and verify", list_suites);
  add_listing(verb, "policies", "Named policies of the GPU kernels", list_policies);
  add_listing(verb, "epilogue-functions", "Functions of the epilogue language", list_functions);
  add_listing(verb, "aliases", "Names from other libraries that are accepted as aliases", list_aliases);
}

}  // namespace cosmati::cli
