// The message's name in the abstract namespace of Unix sockets: the process that binds it first prints the
// message and keeps the socket until it exits.
#include "cli/output/report_once_per_node.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>

#include "cli/output/sigterm_report.h"
#include "cli/output/table.h"
#include "src/parallel/process_group.h"

namespace cosmati::cli {
namespace {

// Returns false only if another process holds the name; if that cannot be determined, every process prints.
bool is_first(std::string const& sentence) {
  // The processes of one mpirun have the same parent on a machine.
  std::string const name = "cosmati failure " + std::to_string(getppid()) + ' ' +
                           std::to_string(std::hash<std::string>()(sentence));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path) return true;
  std::memcpy(address.sun_path + 1, name.data(),
              name.size());  // a leading zero byte selects the abstract namespace: no file is created
  int const held = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (held < 0) return true;
  auto const bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(held, reinterpret_cast<sockaddr*>(&address), bytes) == 0) return true;  // stays open until exit
  bool const taken = errno == EADDRINUSE;
  ::close(held);
  return !taken;
}

}  // namespace

void report_once_per_node(std::string const& sentence) {
  auto const place = parallel::place_of_this_process();
  bool const alone = !place.launched || place.size == 1;
  if (alone || is_first(sentence)) print_failure(sentence);
  if (alone) return;
  std::fflush(stdout);
  linger();
}

}  // namespace cosmati::cli
