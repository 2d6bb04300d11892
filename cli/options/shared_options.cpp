// The table of shared options.
#include "cli/options/shared_options.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/operations/subject.h"
#include "cli/output/text.h"

namespace cosmati::cli {
namespace {

using Meaning = bool (*)(Subject const& subject, std::string const& command);

// Predicates for operations to which an option applies; others do not accept the option.
bool sums_products(Subject const& subject, std::string const&) { return subject.sums_products(); }
bool draws_numbers(Subject const& subject, std::string const& command) {
  return command != "run" || subject.name() == "dropout";
}
bool has_input(Subject const& subject, TypeRole role) {
  auto const files = subject.files();
  return std::any_of(files.begin(), files.end(),
                     [role](FileOption const& file) { return !file.output && file.type == role; });
}
bool has_second_operand(Subject const& subject, std::string const&) {
  return has_input(subject, TypeRole::b);
}
bool has_source(Subject const& subject, std::string const&) { return has_input(subject, TypeRole::c); }
bool chooses_output_type(Subject const& subject, std::string const&) {
  return subject.name() != "sgd" && subject.name() != "adam";  // their outputs keep the parameter's type
}

struct SharedOption {
  char const* name;
  std::string_view commands;  // commands that accept it, separated by bars
  Meaning meaning;            // null: applies to every operation
  char const* operations;     // the operations to which it applies, for messages
  void (*declare)(Options& options, Common& common);
};

constexpr std::string_view operation_verbs = "run|verify|bench|explain|compile|find|tune|";

SharedOption const machine_options[] = {
    {"--backend",
     "run|verify|bench|explain|compile|find|tune|replay|train lenet5|train dcgan|predict lenet5|generate "
     "dcgan",
     nullptr, "",
     [](Options& options, Common& common) {
       options
           .text("--backend", common.backend, "NAME",
                 "auto, cuda, cpu, emulator or reference; auto: cuda if a GPU is available, else cpu")
           .once();
     }},
    {"--device",
     "run|verify|bench|explain|find|tune|replay|train lenet5|train dcgan|predict lenet5|generate dcgan",
     nullptr, "",
     [](Options& options, Common& common) {
       options.integer("--device", common.device, "GPU of this machine (default: 0)").once();
     }},
    {"--device-description", "run|verify|bench|explain|compile|warm|find|replay|train lenet5|generate dcgan",
     nullptr, "",
     [](Options& options, Common& common) {
       options
           .text("--device-description", common.device_description, "NAME|FILE",
                 "plan for this GPU: h200, h100, a100, rtx4090, t4, b200, a10, l4, l40s, rtx3060, rtx3090, "
                 "rtx5090; or processor: sse2-only, avx2-laptop, avx512-server, 64-core-server; or a file "
                 "as printed by cosmati info --describe; plans only, except that --backend emulator runs a "
                 "GPU's kernels on this machine")
           .once();
     }},
    {"--kernel", "run|verify|bench|explain|compile|find|tune|replay|generate dcgan", nullptr, "",
     [](Options& options, Common& common) {
       options.text("--kernel", common.kernel, "NAME", "only this kernel (see: cosmati list kernels)");
     }},
    {"--policy", "run|verify|bench|explain|compile|find|replay|generate dcgan", sums_products,
     "gemm and conv",
     [](Options& options, Common& common) {
       options.text(
           "--policy", common.policy, "NAME|FIELD=VALUE,...",
           "policy (see: cosmati list policies; a tile of wgmma also by its extents: 128x80) or fields for generated "
           "kernels; the planner chooses the rest");
     }},
    {"--threads",
     "run|verify|bench|explain|compile|warm|find|tune|replay|train lenet5|train dcgan|predict lenet5|generate "
     "dcgan",
     nullptr, "",
     [](Options& options, Common& common) {
       options.integer("--threads", common.threads, "host threads (default: 0, one per core)").once();
     }},
    {"--max-workspace", "run|verify|bench|explain|compile|find|tune|replay|generate dcgan", nullptr, "",
     [](Options& options, Common& common) {
       options.text("--max-workspace", common.max_workspace, "BYTES",
                    "reject kernels that need more workspace");
     }},
    {"--max-error", "run|verify|bench|explain|compile|find|tune|replay|generate dcgan", nullptr, "",
     [](Options& options, Common& common) {
       options.text("--max-error", common.max_error, "RATIO",
                    "reject kernels whose expected relative error is larger");
     }},
    {"--tuning", "run|verify|bench|explain|compile|replay|generate dcgan", sums_products, "gemm and conv",
     [](Options& options, Common& common) {
       options.text(
           "--tuning", common.tuning, "FILE|none",
           "measured kernel choices, written by cosmati find and tune, which the plan prefers; none: "
           "predictions only, without the built-in measurements");
     }},
    {"--cache",
     "run|verify|bench|explain|compile|find|tune|replay|train lenet5|train dcgan|predict lenet5|generate "
     "dcgan",
     nullptr, "",
     [](Options& options, Common& common) {
       options.text("--cache", common.cache, "DIR", "folder of compiled kernels").once();
     }},
    {"--seed", "run|verify|bench|compile|tune|replay|train lenet5|train dcgan|generate dcgan", draws_numbers,
     "dropout",
     [](Options& options, Common& common) {
       options.integer("--seed", common.seed, "random seed (default: 1)").once();
     }},
    {"--deterministic", "run|verify|bench|explain|compile|find|tune|replay|generate dcgan", nullptr, "",
     [](Options& options, Common& common) {
       options.flag("--deterministic", common.deterministic,
                    "only kernels whose results are bit-identical from run to run (currently all)");
     }},
    {"--batch-invariant", "run|verify|bench|explain|compile|replay", nullptr, "",
     [](Options& options, Common& common) {
       options.flag("--batch-invariant", common.batch_invariant,
                    "only kernels whose result for a row, a matrix or an image does not depend on "
                    "the size of the batch");
     }},
};

SharedOption const type_options[] = {
    {"--type", operation_verbs, nullptr, "",
     [](Options& options, Common& common) {
       options.text("--type", common.types.all, "TYPE",
                    "type of all operands; interprets the bit patterns of u16 and u8 files");
     }},
    {"--type", "train lenet5", nullptr, "",
     [](Options& options, Common& common) {
       options.text("--type", common.types.all, "TYPE",
                    "activations and their gradients: f32, f16 or bf16 (default: f32)");
     }},
    {"--type", "train dcgan", nullptr, "",
     [](Options& options, Common& common) {
       options.text("--type", common.types.all, "TYPE", "f32, tf32 or bf16 (default: f32)");
     }},
    {"--type", "generate dcgan", nullptr, "",
     [](Options& options, Common& common) {
       options.text("--type", common.types.all, "TYPE",
                    "weights and activations: f32, tf32, f16 or bf16 (default: f32)");
     }},
    {"--a-type", operation_verbs, nullptr, "",
     [](Options& options, Common& common) {
       options.text("--a-type", common.types.a, "TYPE", "type of the first operand: a, x, dy");
     }},
    {"--b-type", operation_verbs, has_second_operand, "operations with a second operand",
     [](Options& options, Common& common) {
       options.text("--b-type", common.types.b, "TYPE",
                    "type of the second operand: b, w, centres, gradient");
     }},
    {"--c-type", operation_verbs, has_source, "gemm",
     [](Options& options, Common& common) {
       options.text("--c-type", common.types.c, "TYPE", "type of c, if the epilogue uses it");
     }},
    {"--d-type", operation_verbs, chooses_output_type, "operations other than sgd and adam",
     [](Options& options, Common& common) {
       options.text("--d-type", common.types.d, "TYPE",
                    "type of the output (default: the input type; s32 for sums of s8 or u8)");
     }},
    {"--accumulator", operation_verbs, sums_products, "gemm and conv",
     [](Options& options, Common& common) {
       options.text("--accumulator", common.types.accumulator, "TYPE",
                    "type of the sums: f32; f64 for f64 inputs, s32 for integers");
     }},
    {"--compute", operation_verbs, sums_products, "gemm and conv",
     [](Options& options, Common& common) {
       options.text(
           "--compute", common.types.compute, "TYPE",
           "tf32: round f32 factors to TF32 before multiplying; for gemm, bf16x3, bf16x6, bf16x9 or tf32x3: "
           "permit 3, 6 or 9 products of bf16 pieces, or 3 of tf32 pieces, instead of one of f32; "
           "fast_accumulation: permit sums of 8-bit floats with about 14 bits");
     }},
    {"--compute", "train lenet5|train dcgan", nullptr, "",
     [](Options& options, Common& common) {
       options.text("--compute", common.types.compute, "TYPE",
                    "tf32: round f32 factors to TF32 before multiplying");
     }},
};

struct Hint {
  std::string_view command, option, sentence;
};
constexpr Hint hints[] = {
    {"find", "--tuning", "find measures all candidates; --out FILE adds to a tuning file"},
    {"tune", "--tuning",
     "tune compares with the plan without measurements; --out FILE adds to a tuning file"},
    {"tune", "--policy", "tune chooses the policy; use --kernel instead"},
    {"compile", "--device",
     "compile needs no GPU; --arch or --device-description names the one to compile for"},
    {"find", "--batch-invariant",
     "find selects the fastest kernel, and --out FILE serves plans without the option"},
    {"tune", "--batch-invariant", "tune selects tiles and splits according to the number of rows"},
    {"train lenet5", "--batch-invariant", "train plans a network's layers for complete batches"},
    {"train dcgan", "--batch-invariant", "train plans a network's layers for complete batches"},
    {"predict lenet5", "--batch-invariant", "predict plans a network's layers for complete batches"},
    {"generate dcgan", "--batch-invariant", "generate plans a network's layers for complete batches"},
    {"generate dcgan", "--compute", "--type selects its data type: f32, tf32, f16 or bf16"},
};

bool takes(SharedOption const& option, std::string_view command) {
  auto const commands = split(option.commands, '|');
  return std::find(commands.begin(), commands.end(), command) != commands.end();
}

// Returns false if no option was declared.
template <std::size_t count>
void declare_those_of(SharedOption const (&table)[count], std::string const& title, Options& options,
                      Common& common, std::string const& command, Subject const* subject) {
  options.group(title);
  for (SharedOption const& option : table)
    if (takes(option, command) &&
        (subject == nullptr || option.meaning == nullptr || option.meaning(*subject, command)))
      option.declare(options, common);
}

}  // namespace

void add_shared_options(Options& options, Common& common, std::string const& command, Subject const* subject,
                        std::string* json_to_file) {
  declare_those_of(machine_options, "Execution", options, common, command, subject);
  if (json_to_file != nullptr)
    options
        .optional_text("--json", common.json, *json_to_file, "[FILE]",
                       "JSON Lines on stdout instead of tables, or appended to FILE in addition to the table")
        .once();
  else
    options.flag("--json", common.json, "JSON Lines on stdout instead of tables").once();
  declare_those_of(
      type_options,
      subject == nullptr
          ? "Types"
          : "Types: f64 f32 tf32 f16 bf16 e4m3 e5m2 s8 u8 s32, or an alias such as float32 (see: cosmati "
            "list aliases)",
      options, common, command, subject);
}

std::string use_of_shared_option(std::string const& option, std::string const& path) {
  // For "run gemm" the command is "run"; "train lenet5" is a separate command.
  std::string const verb = path.substr(0, path.find(' '));
  bool const network = verb == "train" || verb == "predict" || verb == "generate";
  std::string const& command = network ? path : verb;
  for (Hint const& hint : hints)
    if (hint.command == command && hint.option == option) return std::string(hint.sentence);
  std::vector<std::string> commands;
  std::string operations;
  auto const collect = [&](auto const& table) {
    for (SharedOption const& one : table) {
      if (one.name != option) continue;
      // If the verb accepts the option but not for this operation, the message names the operations.
      if (takes(one, command)) operations = one.operations;
      for (std::string const& taker : split(one.commands, '|'))
        if (!taker.empty() && taker != command) commands.push_back(taker);
    }
  };
  collect(machine_options);
  collect(type_options);
  if (!operations.empty()) return command + " accepts it for " + operations;
  return commands.empty() ? "" : "it applies to " + join(commands, ", ");
}

}  // namespace cosmati::cli
