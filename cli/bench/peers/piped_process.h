// A child process that is controlled by lines of text through pipes.
#pragma once
#include <string>
#include <vector>

namespace cosmati::cli {

class PipedProcess {
 public:
  // Starts `file`, which is looked up in PATH unless it contains a slash. The child gets the file descriptor
  // `inherited` as number 3; -1: none. Throws Error(system) if the process does not start.
  PipedProcess(std::string const& file, std::vector<std::string> arguments,
               std::vector<std::string> environment, int inherited = -1);
  ~PipedProcess();  // closes its input and waits for its exit
  PipedProcess(PipedProcess const&) = delete;
  PipedProcess& operator=(PipedProcess const&) = delete;

  bool write_line(std::string line);  // false if it has exited
  std::string read_line();            // empty if it has exited

 private:
  int to_ = -1, from_ = -1;
  int process_ = -1;
  std::string pending_;
};

// This process's environment, with the variables that peer libraries read for the number of threads and the
// instruction sets.
std::vector<std::string> environment_of_peers(int threads);

}  // namespace cosmati::cli
