// Writes in a separate thread, or on the thread of the caller.
#include "nets/dcgan/writer.h"

#include <chrono>
#include <utility>

namespace cosmati::dcgan {
namespace {

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

Writer::Writer(Dealer& dealer, Output& output, bool beside, Progress progress)
    : dealer_(dealer), output_(output), progress_(std::move(progress)) {
  if (beside) thread_ = std::thread([this] { write_all(); });
}

Writer::~Writer() {
  if (thread_.joinable()) thread_.join();
}

void Writer::deliver(Chunk const& chunk, Images images) {
  dealer_.put(output_.part(chunk, std::move(images)));
  if (thread_.joinable())
    dealer_.wait_for_writer(2);
  else
    write_some();
}

void Writer::write_some() {
  if (thread_.joinable()) return;
  std::lock_guard const lock(mutex_);
  while (auto const part = dealer_.next(false)) write(*part);
}

void Writer::written(Chunk const& chunk) {
  auto const all = dealer_.written(chunk);
  output_.note(all);
  progress_(output_.images());
}

void Writer::write(Part const& part) {
  double const begin = seconds_now();
  output_.write(part);
  written(part.chunk);
  spans_.push_back({part.chunk.number, begin, seconds_now()});
  busy_ += spans_.back().end - begin;
}

void Writer::write_all() {
  try {
    while (auto const part = dealer_.next()) write(*part);
  } catch (...) {
    failure_ = std::current_exception();
    dealer_.fail(failure_);
  }
}

void Writer::write_rest() {
  if (thread_.joinable())
    thread_.join();
  else
    write_all();
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace cosmati::dcgan
