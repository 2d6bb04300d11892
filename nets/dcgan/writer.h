// Writes computed chunks to the files of a process.
#pragma once
#include <exception>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "nets/dcgan/output.h"

namespace cosmati::dcgan {

// Writes the parts that `dealer` has placed. With `beside`, a separate thread writes until the last part, for
// devices that leave the CPU idle. Otherwise the thread that calls deliver() or write_some() writes the
// available parts; on the CPU, that is a thread that has just computed them.
class Writer {
 public:
  using Progress = std::function<void(Index images)>;  // images in the files
  Writer(Dealer& dealer, Output& output, bool beside, Progress progress);
  ~Writer();
  Writer(Writer const&) = delete;
  Writer& operator=(Writer const&) = delete;

  void deliver(Chunk const& chunk, Images images);  // from any thread
  void write_some();                                // does nothing if another thread is writing
  void written(Chunk const& chunk);                 // records that another process has written this chunk
  void write_rest();                                // writes the remaining parts; rethrows the thread's
                                                    // exceptions
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
  std::mutex mutex_;  // held while writing
  std::exception_ptr failure_;
  double busy_ = 0;
  std::vector<Span> spans_;
  std::thread thread_;
};

}  // namespace cosmati::dcgan
