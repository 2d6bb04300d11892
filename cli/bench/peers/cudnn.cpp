// Loads cuDNN.
#include "cli/bench/peers/cudnn.h"

#include "cli/bench/peers/peer_library.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli::cudnn {
namespace {

Library open() {
  PeerLibrary const file("cudnn", "cuDNN", "COSMATI_CUDNN", {"libcudnn.so.9"});
  Library library;
#define COSMATI_BIND(name, result, parameters) file.bind(library.name, #name);
  COSMATI_CUDNN(COSMATI_BIND)
#undef COSMATI_BIND
  return library;
}

}  // namespace

Library const& library() {
  static Library const one = open();
  return one;
}

std::string version() { return peer_version("cuDNN", library().cudnnGetVersion()); }  // 91900 is 9.19.0

void check(char const* call, Status status) {
  if (status == Status::success) return;
  throw Error(ErrorCode::system,
              std::string("cuDNN: ") + call + ": " + library().cudnnGetErrorString(status));
}

}  // namespace cosmati::cli::cudnn
