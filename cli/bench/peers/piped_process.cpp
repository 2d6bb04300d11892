// Child processes connected by two pipes.
#include "cli/bench/peers/piped_process.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cosmati/ops/error.h"
#include "src/backend/cpu/gemm/openblas.h"
#include "src/backend/cpu/runtime/onednn_isa.h"

extern char**
    environ;  // NOLINT(readability-redundant-declaration): glibc declares it, but no POSIX header does

namespace cosmati::cli {
namespace {

constexpr int number_of_inherited = 3;

struct Pipe {
  int read_end = -1, write_end = -1;
  Pipe() {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
      throw Error(ErrorCode::system, std::string("cannot create a pipe for a peer: ") + std::strerror(errno));
    read_end = ends[0];
    write_end = ends[1];
  }
};

std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

}  // namespace

std::vector<std::string> environment_of_peers(int threads) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable)
    if (std::strncmp(*variable, "OMP_NUM_THREADS=", 16) != 0 &&
        std::strncmp(*variable, "OPENBLAS_", 9) != 0 &&
        (cpu::onednn_isa() == nullptr || std::strncmp(*variable, "ONEDNN_MAX_CPU_ISA=", 19) != 0))
      variables.emplace_back(*variable);
  variables.push_back("OMP_NUM_THREADS=" + std::to_string(threads));
  variables.push_back("OPENBLAS_NUM_THREADS=" + std::to_string(threads));
  // Peers use the same instruction sets as our kernels, and their best kernels for them.
  if (char const* const isa = cpu::onednn_isa())
    variables.push_back(std::string("ONEDNN_MAX_CPU_ISA=") + isa);
  if (char const* const core = cpu::openblas_core_type())
    variables.push_back(std::string("OPENBLAS_CORETYPE=") + core);
  return variables;
}

PipedProcess::PipedProcess(std::string const& file, std::vector<std::string> arguments,
                           std::vector<std::string> environment, int inherited) {
  Pipe to, from;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, to.read_end, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, from.write_end, STDOUT_FILENO);
  if (inherited >= 0) posix_spawn_file_actions_adddup2(&actions, inherited, number_of_inherited);
  pid_t process = -1;
  int const failure = posix_spawnp(&process, file.c_str(), &actions, nullptr, pointers_to(arguments).data(),
                                   pointers_to(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  close(to.read_end);
  close(from.write_end);
  to_ = to.write_end;
  from_ = from.read_end;
  if (failure != 0) {
    close(to_);
    close(from_);
    throw Error(ErrorCode::system,
                "the process of a peer, " + file + ", did not start: " + std::strerror(failure));
  }
  process_ = process;
}

PipedProcess::~PipedProcess() {
  close(to_);  // closing its input makes it exit
  close(from_);
  waitpid(process_, nullptr, 0);
}

bool PipedProcess::write_line(std::string line) {
  line += '\n';
  for (std::size_t done = 0; done < line.size();) {
    ssize_t const count = write(to_, line.data() + done, line.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

std::string PipedProcess::read_line() {
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

}  // namespace cosmati::cli
