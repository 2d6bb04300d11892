// The thread's last message, and the version.
#include "src/c_api/status.h"

#include <cstring>
#include <new>

namespace cosmati::c_api {
namespace {

// Of fixed size: to keep a message must not fail for want of memory.
constexpr std::size_t message_bytes = 4096;
thread_local char last_message[message_bytes] = "";

void keep(char const* text) noexcept {
  constexpr char ending[] = " ...";
  std::size_t const length = std::strlen(text);
  if (length < message_bytes) {
    std::memcpy(last_message, text, length + 1);
    return;
  }
  std::size_t cut = message_bytes - sizeof ending;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;  // not within a character
  std::memcpy(last_message, text, cut);
  std::memcpy(last_message + cut, ending, sizeof ending);
}

cosmati_status status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::bad_request: return COSMATI_BAD_REQUEST;
    case ErrorCode::bad_file: return COSMATI_BAD_FILE;
    case ErrorCode::unavailable: return COSMATI_UNAVAILABLE;
    case ErrorCode::out_of_memory: return COSMATI_OUT_OF_MEMORY;
    case ErrorCode::system: return COSMATI_SYSTEM;
    case ErrorCode::wrong_result: break;
  }
  return COSMATI_INTERNAL;
}

}  // namespace

cosmati_status report() noexcept {
  try {
    throw;
  } catch (Error const& error) {
    keep(error.what());
    return status_of(error.code());
  } catch (std::bad_alloc const&) {
    keep("the host has no memory left");
    return COSMATI_OUT_OF_MEMORY;
  } catch (std::exception const& error) {
    keep(error.what());
    return COSMATI_INTERNAL;
  } catch (...) {
    keep("an exception of unknown type");
    return COSMATI_INTERNAL;
  }
}

}  // namespace cosmati::c_api

int cosmati_version() { return COSMATI_VERSION_NUMBER; }

char const* cosmati_last_error() { return cosmati::c_api::last_message; }

char const* cosmati_status_text(cosmati_status status) {
  switch (status) {
    case COSMATI_SUCCESS: return "success";
    case COSMATI_BAD_REQUEST: return "bad request";
    case COSMATI_BAD_FILE: return "bad file";
    case COSMATI_UNAVAILABLE: return "unavailable";
    case COSMATI_OUT_OF_MEMORY: return "out of memory";
    case COSMATI_SYSTEM: return "the system refused";
    case COSMATI_INTERNAL: return "internal error";
  }
  return "no status";
}
