// The body of `cosmati run`.
#include "cli/verbs/run_job.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <optional>

#include "cli/bench/timing.h"
#include "cli/data/arrays.h"
#include "cli/data/staged.h"
#include "cli/networks/output_files.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/output/text.h"

namespace cosmati::cli {
namespace {

constexpr char const* operand_prefix = "operand ";
constexpr char const* store_prefix = "store ";

using Tensors = std::map<std::string, Tensor>;
using Paths = std::map<std::string, std::string>;

void add_named(std::vector<std::string> const& assignments, std::string const& option,
               std::string const& prefix, Paths& paths) {
  for (std::string const& assignment : assignments) {
    auto const equals = assignment.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == assignment.size())
      throw Error(ErrorCode::bad_request,
                  option + " '" + assignment + "' is invalid; valid values: NAME=FILE, e.g. bias=b.npy");
    paths[prefix + assignment.substr(0, equals)] = assignment.substr(equals + 1);
  }
}

struct Files {
  Paths inputs, outputs;
};

// "a" -> "A0.npy,A1.npy" becomes "a[0]" -> "A0.npy", "a[1]" -> "A1.npy".
Paths lists_of(Paths const& paths) {
  Paths all;
  for (auto const& [name, list] : paths) {
    std::size_t number = 0;
    for (std::string const& path : split(list, ',')) all[name + '[' + std::to_string(number++) + ']'] = path;
  }
  return all;
}

// The input option ("--velocity") that the output "out-velocity" updates; empty if the output has its own
// file.
std::string updated_input(Subject const& subject, std::string const& output) {
  for (FileOption const& option : subject.files())
    if (option.output && option.name == output && !option.updates.empty()) return "--" + option.updates;
  return {};
}

Files files_of(RunRequest const& request) {
  Files files;
  for (FileOption const& option : request.subject->files()) {
    std::string const& path = request.files.at(option.name);
    if (!path.empty()) (option.output ? files.outputs : files.inputs)[option.name] = path;
  }
  add_named(request.operands, "--operand", operand_prefix, files.inputs);
  add_named(request.stores, "--store", store_prefix, files.outputs);
  if (request.subject->takes_lists()) files = {lists_of(files.inputs), lists_of(files.outputs)};
  std::vector<OutputFile> outputs;
  std::vector<InputFile> inputs;
  for (auto const& [option, path] : files.outputs)
    outputs.push_back({"--" + option, path, updated_input(*request.subject, option)});
  for (auto const& [option, path] : files.inputs) inputs.push_back({"--" + option, path});
  check_files(outputs, inputs_of(request.common, inputs));
  return files;
}

Tensors load_inputs(RunRequest const& request, Paths const& paths, Inputs& inputs) {
  Tensors tensors;
  auto const options = request.subject->files();
  for (auto const& entry : paths) {
    std::string const &name = entry.first, &path = entry.second;
    auto const option = std::find_if(options.begin(), options.end(), [&](FileOption const& candidate) {
      return candidate.name == name.substr(0, name.find('['));
    });
    bool const operand = option == options.end();
    LoadedArray array = load_array(path, operand ? TypeRole::operand : option->type, request.common.types);
    inputs.add(name, array.tensor.description(),
               (operand ? "--" + name : "--" + name + ' ') + (operand ? "=" + path : path), array.scalar);
    tensors.emplace(name, std::move(array.tensor));
  }
  return tensors;
}

[[noreturn]] void refuse_output(std::string const& option, std::string const& path) {
  throw Error(ErrorCode::bad_request, "--" + option + ' ' + path + ": this problem has no such output");
}

// Rejects a path for an output that this problem does not have.
void check_outputs(Job const& job, Paths const& outputs) {
  for (auto const& entry : outputs) {
    std::string const &option = entry.first, &path = entry.second;
    bool const known = std::any_of(job.outputs.begin(), job.outputs.end(),
                                   [&](Port const& port) { return port.option == option; });
    if (known) continue;
    if (option.starts_with(store_prefix))
      throw Error(ErrorCode::bad_request, "--store " + option.substr(6) + "=" + path +
                                              ": the epilogue has no store(" + option.substr(6) + ", ...)");
    refuse_output(option, path);
  }
}

class Execution {
 public:
  Execution(Task& task, Job const& job, Device const& device, PlanOptions const& options, Tensors& inputs)
      : prepared_(for_host_arrays(task.prepare(device, options), device, task.slots())),
        slots_(task.slots()) {
    for (Slot const& slot : slots_) pointers_.push_back(bind(slot, job, inputs).data());
  }

  // Returns the seconds of the operation. State that the operation updates has changed afterwards.
  double run() {
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared_->choice().workspace_bytes)));
    return prepared_->timed_run(pointers_, workspace.data());
  }
  Choice const& choice() const { return prepared_->choice(); }

  struct Output {
    TensorDescription description;
    void const* data = nullptr;  // null if the problem has no such output
  };
  bool has_output(std::string const& slot) const { return output(slot).data != nullptr; }
  Output output(std::string const& slot) const {
    for (std::size_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].name == slot && slots_[i].role != Role::input)
        return {slots_[i].description, pointers_[i]};
    return {};
  }

 private:
  // An input slot describes a view of the loaded array; state that was not given is zero.
  Tensor& bind(Slot const& slot, Job const& job, Tensors& inputs) {
    if (slot.role != Role::output) {
      auto const renamed = job.input_options.find(slot.name);
      auto const loaded = inputs.find(renamed == job.input_options.end() ? slot.name : renamed->second);
      if (loaded != inputs.end()) {
        if (loaded->second.type() == slot.description.type) return loaded->second;
        return owned_.emplace_back(copy(loaded->second, {slot.description.type, loaded->second.layout()}));
      }
      if (slot.role == Role::input)
        throw Error(ErrorCode::bad_request, "missing required option --" + slot.name + " FILE");
    }
    Tensor& tensor = owned_.emplace_back(slot.description);
    if (slot.role == Role::in_out) tensor.fill(0);
    return tensor;
  }

  std::unique_ptr<PreparedTask> prepared_;
  std::vector<Slot> slots_;
  std::deque<Tensor> owned_;
  std::vector<void*> pointers_;
};

// The first call touches memory and starts threads, so its time is not representative of later calls.
struct Seconds {
  double setup = 0;  // planning and preparing; on a GPU also compiling or loading the kernel
  double first_call = 0;
  std::vector<double> later_calls;  // if --time requests them
};

std::vector<double> time_later_calls(Execution& execution) {
  constexpr double enough_seconds = 0.2;
  constexpr std::size_t max_calls = 1000;
  std::vector<double> seconds;
  for (double sum = 0; seconds.empty() || (sum < enough_seconds && seconds.size() < max_calls);
       sum += seconds.back())
    seconds.push_back(execution.run());
  return seconds;
}

void report(RunRequest const& request, Device const& device, Job const& job, Execution const& execution,
            Seconds const& seconds, std::vector<std::string> const& written) {
  std::string const subject = request.subject->name();
  if (request.common.json) {
    print_text(
        Record()
            .add("verb", "run")
            .add("subject", subject)
            .add("problem", job.task->notes.label)
            .add("backend", name_of(device.backend))
            .add("kernel", execution.choice().kernel)
            .add("threads", device.threads)
            .add("gpu", device.gpu.name.empty() ? Value() : Value(device.gpu.name))
            .add("workspace_bytes", static_cast<long long>(execution.choice().workspace_bytes))
            .add("setup_seconds", seconds.setup)
            .add("first_call_seconds", seconds.first_call)
            .add("seconds", seconds.later_calls.empty() ? Value() : Value(quantile(seconds.later_calls, 0.5)))
            .add("outputs", written)
            .json());
    return;
  }
  print_line(subject + ' ' + job.task->notes.label + ": " + name_of(device.backend) + ", kernel " +
             execution.choice().kernel + ", setup " + in_seconds(seconds.setup) + ", first call " +
             in_seconds(seconds.first_call) +
             (seconds.later_calls.empty()
                  ? ""
                  : ", later calls " + in_seconds(quantile(seconds.later_calls, 0.5)) + " (median of " +
                        std::to_string(seconds.later_calls.size()) + ')') +
             ", wrote " + join(written, ", "));
}

}  // namespace

void check_options(Common const& common) {
  use_cache_of(common);
  if (common.seed < 0)
    throw Error(ErrorCode::bad_request,
                "--seed " + std::to_string(common.seed) + " is negative; it must be at least 0");
}

void run_job(RunRequest const& request) {
  check_options(request.common);
  Files const files = files_of(request);
  if (!files.outputs.contains(request.subject->takes_lists() ? "out[0]" : "out"))
    throw Error(ErrorCode::bad_request, "missing required option --out FILE");
  // Reports an unavailable backend before any file is read.
  Device const device = request.common.device_to_run_on();
  Inputs inputs;
  Tensors tensors = load_inputs(request, files.inputs, inputs);
  for (auto const& [option, path] : files.outputs) inputs.wanted.insert(option);
  Job const job = request.subject->job(inputs, request.common);
  PlanOptions const options = plan_options(*request.subject, request.common);
  for (std::string const& warning : job.warnings) print_warning(warning);
  for (std::string const& name : inputs.unused())
    if (name != "c" && !name.starts_with("c[") && !name.starts_with(operand_prefix))
      print_warning(inputs.say(name) + ", is not used here");
  check_outputs(job, files.outputs);

  if (job.before) {
    Execution before(*job.before, job, device, options, tensors);
    before.run();
    auto const output = before.output(job.before_output);
    Tensor result(output.description);
    std::memcpy(result.data(), output.data, result.bytes());
    tensors.insert_or_assign(job.before_output, std::move(result));
  }
  Seconds seconds;
  std::optional<Execution> made;
  seconds.setup = seconds_of([&] { made.emplace(*job.task, job, device, options, tensors); });
  Execution& execution = *made;
  for (Port const& port : job.outputs)
    if (auto const path = files.outputs.find(port.option);
        path != files.outputs.end() && !execution.has_output(port.slot))
      refuse_output(port.option, path->second);
  seconds.first_call = execution.run();
  std::vector<std::string> written;
  for (Port const& port : job.outputs) {
    auto const path = files.outputs.find(port.option);
    if (path == files.outputs.end()) continue;
    auto const output = execution.output(port.slot);
    save_array(path->second, port, output.description, output.data);
    written.push_back(path->second);
  }
  if (request.time) seconds.later_calls = time_later_calls(execution);
  report(request, device, job, execution, seconds, written);
}

}  // namespace cosmati::cli
