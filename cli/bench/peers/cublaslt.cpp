// Loads cuBLASLt.
#include "cli/bench/peers/cublaslt.h"

#include "cli/bench/peers/peer_library.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli::cublaslt {
namespace {

Library open() {
  PeerLibrary const file("cublaslt", "cuBLASLt", "COSMATI_CUBLASLT",
                         {"libcublasLt.so.13", "libcublasLt.so.12"});
  Library library;
#define COSMATI_BIND(name, result, parameters) file.bind(library.name, #name);
  COSMATI_CUBLASLT(COSMATI_BIND)
#undef COSMATI_BIND
  return library;
}

}  // namespace

Library const& library() {
  static Library const one = open();
  return one;
}

std::string version() {
  return peer_version("cuBLASLt", library().cublasLtGetVersion());
}  // 130100 is 13.1.0

void check(char const* call, Status status) {
  if (status == Status::success) return;
  throw Error(ErrorCode::system,
              std::string("cuBLASLt: ") + call + ": " + library().cublasLtGetStatusName(status));
}

}  // namespace cosmati::cli::cublaslt
