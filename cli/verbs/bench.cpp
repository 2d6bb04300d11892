// cosmati bench, and the hidden verb that runs a peer in a separate process.
#include <algorithm>
#include <memory>
#include <sstream>

#include "cli/bench/bench_job.h"
#include "cli/bench/peers/peer.h"
#include "cli/bench/provenance.h"
#include "cli/command.h"
#include "cli/failure.h"
#include "cli/options/problem_options.h"
#include "cli/options/shared_options.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/verbs/commands.h"
#include "src/io/file.h"

namespace cosmati::cli {
namespace {

void add_options(CLI::App& command, BenchRequest& request) {
  Options options(command);
  add_size_options(options, *request.subject, request.size);
  options.group("Measurement")
      .text("--suite", request.suite, "NAME", "a list of problems (see: cosmati list suites)")
      .once()
      .text("--shapes", request.shapes, "FILE", "a file with a list of problems, as in bench/suites")
      .once()
      .text("--lines", request.lines, "N,...", "only these problems of the list, counted from 1")
      .once()
      .text("--peer", request.peers, "NAME,...",
            "timed interleaved with ours: onednn and openblas in separate processes; on the GPU "
            "cublaslt, cublas for groups, cudnn for convolutions; torch on either, for convolutions "
            "and most other operations but not matrix products")
      .text("--python", request.python, "FILE",
            "Python with PyTorch for the peer torch (default: COSMATI_PYTHON or python3)")
      .text("--peer-log", request.peer_log, "FILE",
            "JSON Lines with the time of every algorithm of a GPU peer, or why it was skipped")
      .once()
      .flag("--same-layout", request.same_layout,
            "cudnn computes only in the problem's layout, as for callers whose arrays have it; otherwise "
            "in the faster of nchw and nhwc, with arrays converted beforehand")
      .once()
      .text("--fail-below", request.fail_below, "RATIO", "exit status 1 if the ratio to a peer is lower")
      .once()
      .integer("--slices", request.slices, "slices per participant (default: 15)")
      .once()
      .number("--slice-seconds", request.slice_seconds, "(default: 0.2)")
      .once()
      .flag("--hot", request.hot,
            "reuse the same operands in each call, instead of rotating over sets larger than twice "
            "the L2 cache")
      .once()
      .flag("--single-calls", request.single_calls,
            "on a GPU: time single calls, where host time dominates short ones, instead of CUDA "
            "graphs of calls")
      .once()
      .flag("--digest", request.digest,
            "print plans and digests of their kernels as JSON, without timing; --device-description "
            "selects a GPU that is not present")
      .once();
  options
      .number("--verify-below", request.max_verified,
              "operations: larger problems are not verified completely (default: 2e8, about a second)")
      .once();
  add_placement_options(options, request.placement);
  options.group("Parameters");
  request.subject->add_parameters(options);
  add_shared_options(options, request.common, "bench", request.subject.get(), &request.json_file);
}

BenchRequest bench_with_options(BenchRequest const& request, ProblemOptions const& problem) {
  BenchRequest one = request.copy();
  one.size = request.size.for_suite();
  parse_problem(problem, [&one](CLI::App& command) { add_options(command, one); });
  return one;
}

void add_bench_subject(CLI::App& verb, std::unique_ptr<Subject> subject) {
  Command const command = Command(verb).add_subcommand(subject->name(), subject->about());
  command.footer("Example: cosmati bench " + subject->name() + ' ' + subject->size_example() +
                 (subject->name() == "gemm" ? " --peer onednn --fail-below 0.97" : ""));
  auto const request = std::make_shared<BenchRequest>();
  request->subject = std::move(subject);
  command.when_read([command, request] { add_options(command, *request); });
  command.callback([request] { bench_job(*request, bench_with_options); });
}

struct TableRequest {
  std::string file, json_file, backend, device_description;
  bool json = false, digest = false;
};

void add_words(std::vector<std::string>& words, std::string const& option, std::string const& value) {
  if (!value.empty()) words.insert(words.end(), {option, value});
}

// Runs all rows in this process: libraries load their kernels once, and a GPU's peaks are measured once. A
// failure ends only its own row.
void bench_table(TableRequest const& request) {
  std::istringstream table(io::read_file(request.file));
  std::vector<std::string> failures;
  int number = 0;
  for (std::string row; std::getline(table, row);) {
    ++number;
    row.resize(std::min(row.find('#'), row.size()));
    std::istringstream text(row);
    std::vector<std::string> words{"bench"};
    for (std::string word; text >> word;) words.push_back(word);
    if (words.size() == 1) continue;
    add_words(words, "--backend", request.backend);
    add_words(words, "--device-description", request.device_description);
    add_words(words, "--json", request.json_file);
    if (request.json && request.json_file.empty()) words.push_back("--json");
    if (request.digest) words.push_back("--digest");
    set_command(words);
    try {
      if (words[1] == "table") throw Error(ErrorCode::bad_file, "a table holds problems, not another table");
      parse_problem(words, add_bench_command);
    } catch (Error const& error) {
      print_failure(request.file + ", line " + std::to_string(number) + ": " + error.what());
      failures.push_back(std::to_string(number));
    }
  }
  if (!failures.empty())
    throw Error(ErrorCode::wrong_result, request.file + ": failed in line " + join(failures, ", "));
}

void add_table(CLI::App& verb) {
  Command const command =
      Command(verb).add_subcommand("table", "a file with one benchmark per line: gemm --size 64x64x64 ...");
  auto const request = std::make_shared<TableRequest>();
  Options options(command);
  options.text("--file", request->file, "FILE", "arguments of one benchmark per line; # begins a comment")
      .text("--backend", request->backend, "NAME", "backend of all rows")
      .text("--device-description", request->device_description, "NAME|FILE",
            "device of all rows, with --digest")
      .optional_text("--json", request->json, request->json_file, "FILE", "records as JSON Lines")
      .flag("--digest", request->digest, "print plans and digests without timing, as for one benchmark");
  command.footer(
      "Example: cosmati bench table --file bench/gpu/table.txt --digest --device-description h200");
  command.callback([request] {
    if (request->file.empty())
      throw Error(ErrorCode::bad_request,
                  "missing required option --file FILE: one benchmark per line, such as gemm --size "
                  "64x64x64");
    bench_table(*request);
  });
}

}  // namespace

void add_bench_command(CLI::App& program) {
  Command const verb =
      Command(program).add_subcommand("bench", "Benchmark an operation, alone or against peers");
  verb.require_subcommand();
  verb.footer(
      "On a GPU, all participants are timed as CUDA graphs of calls, interleaved (docs/measuring.md).\nhost "
      "(host_seconds) is the time per call that the calling thread spends outside the kernel: "
      "enqueueing on a GPU; checking and packing arguments on the CPU.\nData are normally "
      "distributed random numbers, column-major for gemm. Small problems are verified first; of "
      "large ones on a GPU, some rows and columns.\nExample: cosmati bench gemm --suite gemm-square "
      "--peer onednn,openblas --json results.jsonl");
  verb.when_read([verb] {
    for (auto& subject : make_subjects()) add_bench_subject(verb, std::move(subject));
    add_table(verb);
  });
}

void add_bench_peer_command(CLI::App& program) {
  Command const command = Command(program).add_subcommand("bench-peer", "Time a peer for bench");
  command.hide();
  struct Words {
    std::string peer, layout, type = "f32";
    long long m = 0, n = 0, k = 0, batch = 1, buffers = 1;
  };
  auto const words = std::make_shared<Words>();
  Options options(command);
  options.text("--peer", words->peer, "NAME", "onednn, openblas")
      .text("--layout", words->layout, "LETTERS", "nn, nt, tn, tt")
      .text("--type", words->type, "TYPE", "f32, f64")
      .integer("--m", words->m, "rows")
      .integer("--n", words->n, "columns")
      .integer("--k", words->k, "depth")
      .integer("--batch", words->batch, "products")
      .integer("--buffers", words->buffers, "sets of operands");
  command.callback([words] {
    one_of(words->layout, {"nn", "nt", "tn", "tt"}, "--layout");
    serve_peer({words->peer, words->layout, parse_data_type(words->type), words->m, words->n, words->k,
                words->batch, words->buffers, 1});
  });
}

}  // namespace cosmati::cli
