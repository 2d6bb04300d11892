// ProcessGroup over MPI. Linked only into libcosmati_mpi.so.
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <list>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/parallel/process_group.h"

namespace cosmati::parallel {
namespace {

void check(int result, char const* call) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw Error(ErrorCode::system, std::string(call) + ": " + text);
}

// The maximum number of bytes per call; MPI's counts are of type int.
constexpr std::size_t max_at_once = std::size_t{1} << 30;

template <class Element, class Call>
void in_pieces(Element* data, std::size_t count, Call const& call) {
  constexpr std::size_t maximum = max_at_once / sizeof(Element);
  for (std::size_t first = 0; first < count; first += maximum)
    call(data + first, static_cast<int>(std::min(maximum, count - first)));
}

// Backs off while nothing happens, by default up to a millisecond: there may be more ranks than processors.
class Patience {
 public:
  explicit Patience(int longest = 1000) : longest_(longest) {}
  void wait() {
    if (++turns_ < 64) return std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::microseconds(std::min(longest_, (turns_ - 63) * 20)));
  }

 private:
  int longest_, turns_ = 0;  // us
};

// The maximum delay while a long message is in transit: MPI makes progress only when it is called.
constexpr int moving = 40;

class MpiGroup final : public ProcessGroup {
 public:
  MpiGroup() {
    int initialized = 0, provided = 0;
    MPI_Initialized(&initialized);
    if (initialized == 0)
      check(MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &provided), "MPI_Init_thread");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    check(MPI_Comm_rank(MPI_COMM_WORLD, &rank_), "MPI_Comm_rank");
    check(MPI_Comm_size(MPI_COMM_WORLD, &size_), "MPI_Comm_size");
    MPI_Comm local = MPI_COMM_NULL;
    check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &local),
          "MPI_Comm_split_type");
    MPI_Comm_rank(local, &local_rank_);
    MPI_Comm_size(local, &local_size_);
    MPI_Comm_free(&local);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int local_rank() const override { return local_rank_; }
  int local_size() const override { return local_size_; }

  void barrier() override { check(MPI_Barrier(MPI_COMM_WORLD), "MPI_Barrier"); }

  void send(int to, int tag, void const* data, std::size_t bytes) override {
    if (bytes > max_at_once)
      throw Error(ErrorCode::bad_request, "a message of " + std::to_string(bytes) +
                                              " bytes; valid values: up to " + std::to_string(max_at_once));
    MPI_Request request = MPI_REQUEST_NULL;
    check(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, to, tag, MPI_COMM_WORLD, &request), "MPI_Isend");
    int done = 0;
    for (Patience patience(moving);; patience.wait()) {
      check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
      if (done != 0) return;
    }
  }

  void post(int to, int tag, std::vector<std::byte> message) override {
    if (message.size() > max_at_once) send(to, tag, message.data(), message.size());  // which throws
    finish_posted(false);
    posted_.push_back({MPI_REQUEST_NULL, std::move(message)});
    Posted& posted = posted_.back();
    check(MPI_Isend(posted.message.data(), static_cast<int>(posted.message.size()), MPI_BYTE, to, tag,
                    MPI_COMM_WORLD, &posted.request),
          "MPI_Isend");
  }

  Message receive(int from, int tag, double seconds) override {
    finish_posted(false);
    auto const start = std::chrono::steady_clock::now();
    MPI_Message handle = MPI_MESSAGE_NULL;
    MPI_Status status;
    int found = 0;
    for (Patience patience;; patience.wait()) {
      check(MPI_Improbe(source(from), tag_of(tag), MPI_COMM_WORLD, &found, &handle, &status), "MPI_Improbe");
      if (found != 0) break;
      std::chrono::duration<double> const waited = std::chrono::steady_clock::now() - start;
      if (seconds > 0 && waited.count() > seconds)
        throw Error(ErrorCode::system,
                    "rank " + std::to_string(rank_) + " has waited " +
                        std::to_string(static_cast<long long>(seconds)) + " s for " +
                        (from == any ? std::string("any rank") : "rank " + std::to_string(from)));
    }
    int bytes = 0;
    MPI_Get_count(&status, MPI_BYTE, &bytes);
    Message message{status.MPI_SOURCE, status.MPI_TAG,
                    std::vector<std::byte>(static_cast<std::size_t>(bytes))};
    check(MPI_Mrecv(message.bytes.data(), bytes, MPI_BYTE, &handle, MPI_STATUS_IGNORE), "MPI_Mrecv");
    return message;
  }

  bool arrived(int from, int tag) override {
    finish_posted(false);
    int found = 0;
    check(MPI_Iprobe(source(from), tag_of(tag), MPI_COMM_WORLD, &found, MPI_STATUS_IGNORE), "MPI_Iprobe");
    return found != 0;
  }

  void broadcast(void* data, std::size_t bytes, int root) override {
    in_pieces(static_cast<std::byte*>(data), bytes, [root](std::byte* piece, int count) {
      check(MPI_Bcast(piece, count, MPI_BYTE, root, MPI_COMM_WORLD), "MPI_Bcast");
    });
  }

  void sum(float* data, std::size_t count) override { sum_of(data, count, MPI_FLOAT); }
  void sum(double* data, std::size_t count) override { sum_of(data, count, MPI_DOUBLE); }

  [[noreturn]] void abort(int status) override {
    MPI_Abort(MPI_COMM_WORLD, status);
    std::_Exit(status);
  }

  void finish() override {
    finish_posted(true);
    check(MPI_Finalize(), "MPI_Finalize");
  }

 private:
  struct Posted {
    MPI_Request request;
    std::vector<std::byte> message;
  };
  // Removes posted messages that have been sent; with `wait`, waits for all of them.
  void finish_posted(bool wait) {
    for (Patience patience(moving); !posted_.empty(); patience.wait()) {
      posted_.remove_if([](Posted& posted) {
        int done = 0;
        check(MPI_Test(&posted.request, &done, MPI_STATUS_IGNORE), "MPI_Test");
        return done != 0;
      });
      if (!wait) return;
    }
  }

  static int source(int from) { return from == any ? MPI_ANY_SOURCE : from; }
  static int tag_of(int tag) { return tag == any ? MPI_ANY_TAG : tag; }

  template <class Element>
  static void sum_of(Element* data, std::size_t elements, MPI_Datatype type) {
    in_pieces(data, elements, [type](Element* piece, int count) {
      check(MPI_Allreduce(MPI_IN_PLACE, piece, count, type, MPI_SUM, MPI_COMM_WORLD), "MPI_Allreduce");
    });
  }

  std::list<Posted> posted_;
  int rank_ = 0, size_ = 1, local_rank_ = 0, local_size_ = 1;
};

}  // namespace
}  // namespace cosmati::parallel

extern "C" cosmati::parallel::ProcessGroup* cosmati_mpi_group() {
  static auto* const group = new cosmati::parallel::MpiGroup;
  return group;
}
