// Another process that is talked to in lines, through pipes.
#pragma once
#include <string>
#include <vector>

namespace cosmati::cli {

class PipedProcess {
 public:
  // Starts `file`, which is looked for in PATH unless it has a slash. `inherited` is a file descriptor that
  // is number 3 there; -1: there is none. Throws Error(system) if it does not start.
  PipedProcess(std::string const& file, std::vector<std::string> arguments,
               std::vector<std::string> environment, int inherited = -1);
  ~PipedProcess();  // closes its input and waits for its end
  PipedProcess(PipedProcess const&) = delete;
  PipedProcess& operator=(PipedProcess const&) = delete;

  bool write_line(std::string line);  // false: it has ended
  std::string read_line();            // empty: it has ended

 private:
  int to_ = -1, from_ = -1;
  int process_ = -1;
  std::string pending_;
};

// This process's, but for what libraries of peers read: so many threads, and the instructions that we keep
// to.
std::vector<std::string> environment_of_peers(int threads);

}  // namespace cosmati::cli
