// The parent's side of a peer: starts this program again, and talks to it through pipes.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <sstream>

#include "cli/peer.h"
#include "cosmati/ops/error.h"
#include "src/backend/cpu/onednn_isa.h"
#include "src/backend/cpu/openblas.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX has it in no header; glibc has

namespace cosmati::cli {
namespace {

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw Error(ErrorCode::system, std::string("no pipe for a peer: ") + std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
};

std::vector<std::string> arguments_of(PeerProblem const& problem) {
  auto const number = [](auto value) { return std::to_string(value); };
  return {"cosmati",   "bench-peer",           "--peer",  problem.peer,
          "--layout",  problem.layout,         "--type",  name_of(problem.type),
          "--m",       number(problem.m),      "--n",     number(problem.n),
          "--k",       number(problem.k),      "--batch", number(problem.batch),
          "--buffers", number(problem.buffers)};
}

std::vector<std::string> environment_of(PeerProblem const& problem) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, "OMP_NUM_THREADS=", 16) != 0 &&
        std::strncmp(*variable, "OPENBLAS_", 9) != 0 &&
        (cpu::onednn_isa() == nullptr || std::strncmp(*variable, "ONEDNN_MAX_CPU_ISA=", 19) != 0))
      variables.emplace_back(*variable);
  std::string const threads = std::to_string(problem.threads);
  variables.push_back("OMP_NUM_THREADS=" + threads);
  variables.push_back("OPENBLAS_NUM_THREADS=" + threads);
  // The peers keep to the instructions that we keep to, and to their best kernels for them.
  if (char const* const isa = cpu::onednn_isa())
    variables.push_back(std::string("ONEDNN_MAX_CPU_ISA=") + isa);
  if (char const* const core = cpu::openblas_core_type())
    variables.push_back(std::string("OPENBLAS_CORETYPE=") + core);
  return variables;
}

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

PeerProcess::PeerProcess(PeerProblem const& problem) : peer_(problem.peer) {
  Pipe to, from;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.read_end, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from.write_end, STDOUT_FILENO);
  auto arguments = arguments_of(problem);
  auto variables = environment_of(problem);
  pid_t process = -1;
  int const failure = posix_spawn(&process, "/proc/self/exe", &actions, nullptr,
                                  pointers_to(arguments).data(), pointers_to(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  close(to.read_end);
  close(from.write_end);
  to_ = to.write_end;
  from_ = from.read_end;
  if (failure != 0)
    throw Error(ErrorCode::system,
                std::string("the process of a peer did not start: ") + std::strerror(failure));
  process_ = process;
  std::string const greeting = read_line();
  if (!greeting.starts_with("ready "))
    throw Error(ErrorCode::unavailable,
                "peer " + peer_ + ": " + (greeting.empty() ? "it ended without a word" : greeting));
  version_ = greeting.substr(6);
}

PeerProcess::~PeerProcess() {
  if (to_ >= 0) close(to_);  // the end of its input ends it
  if (from_ >= 0) close(from_);
  if (process_ > 0) waitpid(process_, nullptr, 0);
}

std::string PeerProcess::read_line() {
  for (;;) {
    auto const end = pending_.find('\n');
    if (end != std::string::npos) {
      std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    char buffer[512];
    ssize_t const count = read(from_, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return {};
    pending_.append(buffer, static_cast<std::size_t>(count));
  }
}

PeerProcess::Answer PeerProcess::time(double seconds) {
  std::string const request = std::to_string(seconds) + '\n';
  Answer answer;
  bool const sent = write(to_, request.data(), request.size()) == static_cast<ssize_t>(request.size());
  std::istringstream reply(sent ? read_line() : "");
  if (!(reply >> answer.least >> answer.median >> answer.samples))
    throw Error(ErrorCode::unavailable, "peer " + peer_ + ": it ended in the middle of a measurement");
  return answer;
}

}  // namespace cosmati::cli
