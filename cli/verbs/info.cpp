// cosmati info: the capabilities of this machine and this build.
#include <algorithm>
#include <memory>

#include "cli/command.h"
#include "cli/machine.h"
#include "cli/options/options.h"
#include "cli/output/record.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/verbs/commands.h"
#include "cosmati/epilogue/vector_level.h"
#include "cosmati/ops/device.h"
#include "cosmati/ops/error.h"
#include "cosmati/ops/processor.h"
#include "src/backend/cpu/gemm/openblas.h"
#include "src/backend/cpu/runtime/module.h"
#include "src/backend/cuda/driver/cufft.h"
#include "src/backend/emulator/catalogue.h"
#include "src/backend/emulator/fftw.h"

namespace cosmati::cli {
namespace {

struct Line {
  std::string kind, name, state;
  bool here = true;
};

Line backend_line(Backend backend) {
  if (backend == Backend::emulator && !emulator::catalogue_failure().empty())
    return {"backend", name_of(backend), "plans only: " + emulator::catalogue_failure(), false};
  try {
    Device const device = this_device(backend);
    std::string state = std::to_string(device.threads) + " threads";
    if (backend == Backend::cuda) state = device.gpu.name;
    if (backend == Backend::emulator) state += ", in place of an " + device.gpu.name;
    return {"backend", name_of(backend), state, true};
  } catch (Error const& error) {
    return {"backend", name_of(backend), error.what(), false};
  }
}

std::vector<Gpu> gpus_here() {
  try {
    return devices();
  } catch (Error const&) {
    return {};  // the line of the backend gives the reason
  }
}

std::vector<Line> lines() {
  std::vector<Line> list;
  for (Backend backend : {Backend::cuda, Backend::cpu, Backend::emulator, Backend::reference})
    list.push_back(backend_line(backend));
  list.push_back(
      {"device", "cpu", processor_model() + ", " + processor_summary(this_device(Backend::reference))});
  auto const limit = epilogue::vector_level_limit();
  list.push_back({"limit", "COSMATI_MAX_CPU_ISA",
                  limit ? std::string("our kernels, oneDNN and OpenBLAS use at most ") + name_of(*limit)
                        : "not set; SSE2, AVX2 or AVX512 limits our kernels, oneDNN and OpenBLAS",
                  limit.has_value()});
  for (Gpu const& gpu : gpus_here())
    list.push_back({"device", "cuda " + std::to_string(gpu.ordinal),
                    gpu.name + ", compute capability " + std::to_string(gpu.major) + '.' +
                        std::to_string(gpu.minor) + ", " + std::to_string(gpu.multiprocessors) +
                        " multiprocessors, " + in_bytes(static_cast<double>(gpu.memory_bytes))});
  auto const* const onednn = cpu::onednn_module();
  list.push_back({"library", "oneDNN", onednn != nullptr ? onednn->version : cpu::onednn_module_error(),
                  onednn != nullptr});
  list.push_back({"library", "OpenBLAS", cpu::openblas_description(), cpu::openblas_available()});
  std::string const &fftw = emulator::fftw_failure(), cufft = cuda::cufft_failure();
  list.push_back({"library", "FFTW", fftw.empty() ? "for the emulator's transforms" : fftw, fftw.empty()});
  list.push_back({"library", "cuFFT", cufft.empty() ? cuda::cufft_file() : cufft, cufft.empty()});
  for (Found const& peer : peers()) list.push_back({"peer", peer.name, peer.where, peer.here});
  for (Found const& part : toolkit()) list.push_back({"toolkit", part.name, part.where, part.here});
  Cache const cache = kernel_cache();
  list.push_back({"cache", "kernels",
                  cache.folder + ", " + std::to_string(cache.files) + " files, " +
                      in_bytes(static_cast<double>(cache.bytes))});
  return list;
}

// A number is an installed GPU; cpu is this processor.
std::string description_of(std::string const& text) {
  if (text == "cpu") return processor_text(this_device(Backend::cpu));
  if (is_processor(text)) return processor_text(describe_processor(text));
  if (text.find_first_not_of("0123456789") != std::string::npos) return to_text(describe_gpu(text));
  auto const ordinal = static_cast<int>(std::min<Index>(parse_index(text, "--describe"), 1000));
  return to_text(this_device(Backend::cuda, 1, ordinal).gpu);
}

void print_info(bool json) {
  Table table({"what", "name", "here", "state"});
  for (Line const& line : lines()) {
    table.add({line.kind, line.name, line.here ? "yes" : "no", line.state});
    if (json)
      print_text(Record()
                     .add("verb", "info")
                     .add("kind", line.kind)
                     .add("name", line.name)
                     .add("here", line.here)
                     .add("state", line.state)
                     .json());
  }
  if (json) return;
  print_line("cosmati " COSMATI_VERSION);
  table.print();
}

}  // namespace

void add_info_command(CLI::App& program) {
  Command const command =
      Command(program).add_subcommand("info", "Show backends, devices, libraries, peers, toolkit and cache");
  command.footer("Example: cosmati info --json");
  struct Words {
    bool json = false;
    std::string described;
  };
  auto const words = std::make_shared<Words>();
  Options(command)
      .group("Options")
      .flag("--json", words->json, "JSON Lines instead of a table")
      .text("--describe", words->described, "NAME|N|FILE",
            "only this GPU or processor, as a file for --device-description: a known name (h200, "
            "rtx4090, ...), the number of an installed GPU; sse2-only, avx2-laptop, avx512-server, "
            "64-core-server, or cpu for this processor; or a GPU's file");
  command.callback([words] {
    if (words->described.empty())
      print_info(words->json);
    else
      print_text(description_of(words->described));
  });
}

}  // namespace cosmati::cli
