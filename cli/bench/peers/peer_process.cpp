// The parent's side of a CPU peer: starts this program again as a separate process.
#include <sstream>

#include "cli/bench/peers/peer.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {
namespace {

std::vector<std::string> arguments_of(PeerProblem const& problem) {
  auto const number = [](auto value) { return std::to_string(value); };
  return {"cosmati",   "bench-peer",           "--peer",  problem.peer,
          "--layout",  problem.layout,         "--type",  name_of(problem.type),
          "--m",       number(problem.m),      "--n",     number(problem.n),
          "--k",       number(problem.k),      "--batch", number(problem.batch),
          "--buffers", number(problem.buffers)};
}

}  // namespace

PeerProcess::PeerProcess(PeerProblem const& problem)
    : peer_(problem.peer),
      process_("/proc/self/exe", arguments_of(problem), environment_of_peers(problem.threads)) {
  std::string const greeting = process_.read_line();
  if (!greeting.starts_with("ready "))
    throw Error(ErrorCode::unavailable,
                "peer " + peer_ + ": " + (greeting.empty() ? "it exited without an answer" : greeting));
  version_ = greeting.substr(6);
}

PeerTimes PeerProcess::time(double seconds) {
  PeerTimes answer;
  std::istringstream reply(process_.write_line(std::to_string(seconds)) ? process_.read_line() : "");
  if (!(reply >> answer.minimum >> answer.median >> answer.samples))
    throw Error(ErrorCode::unavailable, "peer " + peer_ + ": it exited during a measurement");
  return answer;
}

}  // namespace cosmati::cli
