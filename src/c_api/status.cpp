// The last error message of each thread, and the version.
#include "src/c_api/status.h"

#include <cstring>
#include <memory>
#include <new>

namespace cosmati::c_api {
namespace {

// The maximum size of a message of cosmati_last_error(), including the terminating zero.
constexpr std::size_t message_bytes = 4096;

// The thread's message, allocated on the first failing call: directly in thread-local storage, its buffer
// would cost memory in every thread of the process.
class LastMessage {
 public:
  char const* text() const { return text_ == nullptr ? constant_ : text_.get(); }

  void keep(char const* text) noexcept {
    if (text_ == nullptr) text_.reset(new (std::nothrow) char[message_bytes]);
    if (text_ == nullptr) {
      constant_ = "a call failed, and the host is out of memory for the message";
      return;
    }
    constexpr char ending[] = " ...";
    std::size_t const length = std::strlen(text);
    if (length < message_bytes) {
      std::memcpy(text_.get(), text, length + 1);
      return;
    }
    std::size_t cut = message_bytes - sizeof ending;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80)
      --cut;  // not within a UTF-8 character
    std::memcpy(text_.get(), text, cut);
    std::memcpy(text_.get() + cut, ending, sizeof ending);
  }

 private:
  std::unique_ptr<char[]> text_;
  char const* constant_ = "";  // used if there is no text
};

thread_local LastMessage last_message;

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
    last_message.keep(error.what());
    return status_of(error.code());
  } catch (std::bad_alloc const&) {
    last_message.keep("the host is out of memory");
    return COSMATI_OUT_OF_MEMORY;
  } catch (std::exception const& error) {
    last_message.keep(error.what());
    return COSMATI_INTERNAL;
  } catch (...) {
    last_message.keep("an exception of unknown type");
    return COSMATI_INTERNAL;
  }
}

}  // namespace cosmati::c_api

int cosmati_version() { return COSMATI_VERSION_NUMBER; }

char const* cosmati_last_error() { return cosmati::c_api::last_message.text(); }

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
