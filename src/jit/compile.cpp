// Compiles kernels with NVRTC.
#include "src/jit/compile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <algorithm>

#include <chrono>

#include "cosmati/ops/error.h"
#include "src/jit/compiler_log.h"
#include "src/jit/embedded.h"
#include "src/jit/nvrtc.h"
#include "src/jit/resources.h"

namespace cosmati::jit {
namespace {

class Program {
 public:
  Program(Nvrtc const& library, Source const& source) : library_(library) {
    std::vector<char const*> texts, names;
    for (Header const* header : reachable_headers(source.text)) {
      texts.push_back(header->text.data());
      names.push_back(header->path.data());
    }
    check(library.create(&program_, source.text.c_str(), composed_name, static_cast<int>(texts.size()),
                         texts.data(), names.data()));
  }
  ~Program() { library_.destroy(&program_); }
  Program(Program const&) = delete;
  Program& operator=(Program const&) = delete;

  Nvrtc::Program get() const { return program_; }

  std::string log() const {
    std::size_t size = 0;
    check(library_.log_size(program_, &size));
    std::string text(size, '\0');
    check(library_.log(program_, text.data()));
    text.resize(std::min(text.find('\0'), text.size()));
    while (text.ends_with('\n')) text.pop_back();
    return text;
  }

  void check(int result) const {
    if (result == 0) return;
    throw Error(result == Nvrtc::out_of_memory ? ErrorCode::out_of_memory : ErrorCode::system,
                fmt::format("{}: {}", library_.name, library_.error_string(result)));
  }

 private:
  Nvrtc const& library_;
  Nvrtc::Program program_ = nullptr;
};

std::string supported_architectures() {
  std::vector<int> const list = nvrtc_architectures();
  return list.empty() ? "unknown" : fmt::format("sm_{}", fmt::join(list, ", sm_"));
}

[[noreturn]] void refuse(Nvrtc const& library, int result, Source const& source, std::string const& log) {
  std::string const subject =
      source.label.empty() ? "the composed kernel" : "the kernel of \"" + source.label + "\"";
  if (result == Nvrtc::invalid_option)
    throw Error(ErrorCode::bad_request,
                fmt::format("{}: {} rejects an option of {}: {}\nit compiles for {}", subject, library.name,
                            fmt::join(compile_options(source), " "), log, supported_architectures()));
  if (result == Nvrtc::compilation_failed || result == Nvrtc::bad_name_expression)
    throw Error(ErrorCode::bad_request,
                fmt::format("{}, {}, does not compile for {} with {}:\n{}", subject, source.name_expression,
                            source.architecture, library.name, explain_log(log, source.text)));
  throw Error(result == Nvrtc::out_of_memory ? ErrorCode::out_of_memory : ErrorCode::system,
              fmt::format("{}: {}: {}\n{}", subject, library.name, library.error_string(result), log));
}

// A warning only: these numbers are informative, and the kernel runs without them.
std::string unknown_resources(Cubin const& cubin) {
  return fmt::format(
      "{}the machine code of {} does not state the registers and memory of {}; they are shown as 0",
      cubin.compiler_warnings.empty() ? "" : "\n", cubin.compiler, cubin.lowered_name);
}

}  // namespace

std::vector<std::string> compile_options(Source const& source) {
  // For the f32 GEMM with a 128x128 tile, NVRTC 13 takes 232 ms: 27 in the front end (12 for our headers),
  // 116 in the optimizer, 88 in the assembler. No option helps: -minimal saves 5 ms, but older libraries
  // reject it; --split-compile, -pch, --no-source-include and -default-device save nothing; -lineinfo costs
  // 3.
  std::vector<std::string> options = {"--gpu-architecture=" + source.architecture, "--std=c++20"};
  options.insert(options.end(), source.options.begin(), source.options.end());
  return options;
}

Cubin compile(Source const& source) {
  Nvrtc const& library = nvrtc();
  auto const start = std::chrono::steady_clock::now();
  Program const program(library, source);
  program.check(library.add_name_expression(program.get(), source.name_expression.c_str()));
  std::vector<std::string> const options = compile_options(source);
  std::vector<char const*> list;
  for (std::string const& option : options) list.push_back(option.c_str());
  int const result = library.compile(program.get(), static_cast<int>(list.size()), list.data());
  std::string const log = program.log();
  if (result != 0) refuse(library, result, source, log);

  Cubin cubin;
  char const* lowered = nullptr;
  program.check(library.lowered_name(program.get(), source.name_expression.c_str(), &lowered));
  cubin.lowered_name = lowered;
  std::size_t size = 0;
  program.check(library.cubin_size(program.get(), &size));
  cubin.image.resize(size);
  program.check(library.cubin(program.get(), reinterpret_cast<char*>(cubin.image.data())));
  cubin.compiler = library.name;
  cubin.compiler_warnings = log;
  if (!read_resources(cubin)) cubin.compiler_warnings += unknown_resources(cubin);
  cubin.compile_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return cubin;
}

}  // namespace cosmati::jit
