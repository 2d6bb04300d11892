// Who brings computed chunks into the files of a process.
#pragma once
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "nets/dcgan/output.h"

namespace cosmati::dcgan {

// Writes what `dealer` places. With `beside`, on a thread of its own that goes on until the last part: for
// devices that leave the processors alone. Else whoever delivers a chunk or calls write_some() writes what is
// there, on the processors that have just computed it.
class Writer {
 public:
  using Progress = std::function<void(Index images)>;  // that are in the files
  Writer(Dealer& dealer, Output& output, bool beside, Progress progress);
  ~Writer();
  Writer(Writer const&) = delete;
  Writer& operator=(Writer const&) = delete;

  void deliver(Chunk const& chunk, Images images);  // from any thread
  void write_some();                                // nothing where a thread writes
  void written(Chunk const& chunk);                 // by another process
  void write_rest();                                // until the last part; rethrows what a thread threw
  double busy() const { return busy_; }             // seconds; after write_rest()

  struct Span {
    Index chunk;
    double begin, end;  // seconds of the steady clock
  };
  std::vector<Span> const& spans() const { return spans_; }  // after write_rest()

 private:
  void write(Part const& part);
  void write_all();

  Dealer& dealer_;
  Output& output_;
  Progress progress_;
  std::mutex mutex_;  // who writes
  std::exception_ptr failure_;
  double busy_ = 0;
  std::vector<Span> spans_;
  std::thread thread_;
};

}  // namespace cosmati::dcgan
