// The sentence's name in the abstract namespace of Unix sockets: who binds it first speaks, and holds it
// until it ends.
#include "cli/output/told_once.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>

#include "cli/output/farewell.h"
#include "cli/output/table.h"
#include "src/parallel/process_group.h"

namespace cosmati::cli {
namespace {

// False only if another process holds the name; where that cannot be told, everybody speaks.
bool is_first(std::string const& sentence) {
  // Processes of one mpirun have one parent on a machine.
  std::string const name = "cosmati failure " + std::to_string(getppid()) + ' ' +
                           std::to_string(std::hash<std::string>()(sentence));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() + 1 > sizeof address.sun_path) return true;
  std::memcpy(address.sun_path + 1, name.data(), name.size());  // behind a 0: no file
  int const held = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (held < 0) return true;
  auto const bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(held, reinterpret_cast<sockaddr*>(&address), bytes) == 0) return true;  // open until the end
  bool const taken = errno == EADDRINUSE;
  ::close(held);
  return !taken;
}

}  // namespace

void print_failure_once(std::string const& sentence) {
  auto const place = parallel::place_of_this_process();
  bool const alone = !place.launched || place.size == 1;
  if (alone || is_first(sentence)) print_failure(sentence);
  if (alone) return;
  std::fflush(stdout);
  linger();
}

}  // namespace cosmati::cli
