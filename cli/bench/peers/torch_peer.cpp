// Requests to the PyTorch process, and the memory shared with it.
#include "cli/bench/peers/torch_peer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "cli/data/result_sample.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {
namespace {

using Json = nlohmann::json;

constexpr Index sampled_places = 4096;  // per output

std::string how_to_give_one(std::string const& python) {
  return "peer torch requires a Python with PyTorch; " + python + " is not one (";
}
constexpr char const* where_to_name_one =
    "); select another with --python FILE or the environment variable COSMATI_PYTHON";

}  // namespace

// Owns the memory file that is also mapped by the PyTorch process.
class TorchProcess {
 public:
  TorchProcess(std::string const& python, int threads) : python_(python), file_(make_file()) {
    try {
      process_ = std::make_unique<PipedProcess>(
          python, std::vector<std::string>{python, "-c", std::string(torch_script())},
          environment_of_peers(threads), file_);
    } catch (Error const& error) {
      close(file_);
      throw Error(ErrorCode::unavailable, how_to_give_one(python) + error.what() + where_to_name_one);
    }
    Json greeting;
    try {
      greeting = answer();
    } catch (Error const&) {
      greeting = {{"refusal", "it exited without an answer"}};
    }
    if (greeting.contains("refusal")) {
      close(file_);
      throw Error(ErrorCode::unavailable,
                  how_to_give_one(python) + greeting["refusal"].get<std::string>() + where_to_name_one);
    }
    version = greeting["version"].get<std::string>();
    has_cuda = greeting["cuda"].get<bool>();
  }
  ~TorchProcess() {
    process_.reset();
    unmap();
    close(file_);
  }
  TorchProcess(TorchProcess const&) = delete;
  TorchProcess& operator=(TorchProcess const&) = delete;

  std::byte* share(std::size_t bytes) {
    unmap();
    void* mapped = MAP_FAILED;
    if (ftruncate(file_, static_cast<off_t>(bytes)) == 0)
      mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_, 0);
    if (mapped == MAP_FAILED)
      throw Error(ErrorCode::system, "peer torch: cannot allocate " + std::to_string(bytes) +
                                         " bytes of shared memory: " + std::strerror(errno));
    bytes_ = bytes;
    return memory_ = static_cast<std::byte*>(mapped);
  }
  std::byte* memory() const { return memory_; }

  Json ask(Json const& request) {
    (void)process_->write_line(request.dump());  // if the process has exited, reading the answer fails
    return answer();
  }

  std::string version;
  bool has_cuda = false;

 private:
  static int make_file() {
    int const file = memfd_create("cosmati", MFD_CLOEXEC);
    if (file < 0)
      throw Error(ErrorCode::system, std::string("cannot share memory with a peer: ") + std::strerror(errno));
    return file;
  }
  void unmap() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
    memory_ = nullptr;
  }
  Json answer() {
    Json const line = Json::parse(process_->read_line(), nullptr, false);
    if (!line.is_object())
      throw Error(ErrorCode::unavailable, "peer torch: " + python_ + " exited during a measurement");
    return line;
  }

  std::string python_;
  int file_;
  std::unique_ptr<PipedProcess> process_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

namespace {

std::shared_ptr<TorchProcess> torch_process_of(std::string const& python, int threads) {
  static std::map<std::string, std::shared_ptr<TorchProcess>> processes;
  auto& process = processes[python];
  if (!process) process = std::make_shared<TorchProcess>(python, threads);
  return process;
}

Json described(Slot const& slot, std::size_t offset) {
  Json extents = Json::array(), strides = Json::array();
  for (int d = 0; d < slot.description.layout.rank(); ++d) {
    extents.push_back(slot.description.extent(d));
    strides.push_back(slot.description.layout.stride[d]);
  }
  return {{"name", slot.name},  {"role", slot.role == Role::input ? "input" : "output"},
          {"offset", offset},   {"type", name_of(slot.description.type)},
          {"extents", extents}, {"strides", strides}};
}

std::vector<double> values_at(TensorDescription const& tensor, void const* data,
                              std::vector<Index> const& at) {
  std::vector<double> values;
  for (Index const place : at)
    values.push_back(load(tensor.type, data, tensor.layout.offset_of_linear(place)));
  return values;
}

Tensor copy_of(TensorDescription const& description, void const* data) {
  Tensor tensor(description);
  std::memcpy(tensor.data(), data, tensor.bytes());
  return tensor;
}

}  // namespace

TorchPeer::TorchPeer(Task& task, Device const& device, PlanOptions const& options, Rules const& rules,
                     std::span<void const* const> inputs)
    : task_(task),
      backend_(device.backend),
      process_(torch_process_of(rules.python, device.threads)),
      slots_(task.slots()) {
  bool const on_gpu = backend_ == Backend::cuda;
  if (on_gpu && !process_->has_cuda)
    throw Error(ErrorCode::unavailable,
                how_to_give_one(rules.python) + process_->version + " sees no GPU" + where_to_name_one);
  std::size_t bytes = 0;
  Json slots = Json::array();
  for (Slot const& slot : slots_) {
    if (slot.role == Role::in_out)
      refusal_ = "PyTorch is not timed for problems that update an array in place";
    slots.push_back(described(slot, bytes));
    offsets_.push_back(bytes);
    bytes += (static_cast<std::size_t>(slot.description.bytes()) + 255) / 256 * 256;
  }
  std::string const recorded = task.recorded(device, options);
  if (recorded.empty()) refusal_ = "PyTorch is not timed for groups of products";
  if (!refusal_.empty()) return;
  std::byte* const memory = process_->share(std::max<std::size_t>(bytes, 1));
  for (std::size_t i = 0; i < slots_.size(); ++i)
    if (slots_[i].role == Role::input)
      std::memcpy(memory + offsets_[i], inputs[i], static_cast<std::size_t>(slots_[i].description.bytes()));
  Json request = Json::parse(recorded);
  request["slots"] = std::move(slots);
  request["bytes"] = std::max<std::size_t>(bytes, 1);
  request["sets"] = rules.sets;
  request["threads"] = device.threads;
  request["device"] = on_gpu ? "cuda:" + std::to_string(device.gpu.ordinal) : "cpu";
  request["graphs"] = on_gpu && rules.graphs;
  Json const answer = process_->ask(request);
  if (answer.contains("refusal")) {
    refusal_ = answer["refusal"].get<std::string>();
    return;
  }
  algorithm_.interface = answer["way"].get<std::string>();
  algorithm_.layout = answer["layout"].get<std::string>();
  tried_ = answer["ways"].get<int>();
}

std::string const& TorchPeer::version() const { return process_->version; }

PeerTimes TorchPeer::time(double seconds) {
  Json const answer = process_->ask({{"time", seconds > 0 ? seconds : 0.2}});
  if (answer.contains("refusal"))
    throw Error(ErrorCode::unavailable, "peer torch: " + answer["refusal"].get<std::string>());
  return {answer["least"].get<double>(), answer["median"].get<double>(), answer["samples"].get<long long>()};
}

void TorchPeer::forget_graphs() { (void)process_->ask({{"forget_graphs", true}}); }

Verdict TorchPeer::verdict(std::span<void const* const> tensors, double max_verified) {
  Verdict verdict;
  Json const answer = process_->ask({{"result", true}});
  if (answer.contains("refusal")) {
    verdict.correct = false;
    verdict.complaint = answer["refusal"].get<std::string>();
    return verdict;
  }
  if (task_.notes.operations <= max_verified) {
    std::vector<Tensor> inputs;
    std::vector<std::vector<Tensor>> runs(1);
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      bool const is_input = slots_[i].role == Role::input;
      inputs.push_back(is_input ? copy_of(slots_[i].description, tensors[i])
                                : Tensor(slots_[i].description.type, Shape(0)));
      if (!is_input) runs[0].push_back(copy_of(slots_[i].description, process_->memory() + offsets_[i]));
    }
    verdict.exact = task_.notes.terms == 0;
    std::vector<Tensor> errors;
    if (task_.notes.bounds != nullptr) {
      std::vector<void*> pointers;
      for (Tensor& input : inputs) pointers.push_back(input.data());
      errors = task_.added_errors(this_device(Backend::reference), {}, pointers);
    }
    judge(task_, backend_, inputs, runs, verdict, errors);
    return verdict;
  }
  double const tolerance = peer_tolerance(slots_.front().description.type);
  for (std::size_t i = 0; i < slots_.size() && verdict.correct; ++i) {
    TensorDescription const& tensor = slots_[i].description;
    if (slots_[i].role == Role::input || keeps_type(slots_[i])) continue;
    std::vector<Index> places;
    Index const size = tensor.layout.size(), step = size / sampled_places | 1;
    for (Index place = 0; place < size; place += step) places.push_back(place);
    Verdict const one =
        compare_with_ours(slots_[i].name, places, values_at(tensor, tensors[i], places),
                          values_at(tensor, process_->memory() + offsets_[i], places), tolerance);
    Index const before = verdict.elements;
    verdict = one;
    verdict.elements += before;
  }
  return verdict;
}

}  // namespace cosmati::cli
