// PTX ISA, "barrier.cluster": waits for all threads of the cluster that have not exited.
#include "src/backend/emulator/machine/cluster.h"

#include <string>

#include "src/backend/emulator/machine/report.h"
#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {

Cluster::Cluster(Work const& work) : work_(work) {
  int const blocks = work.cluster.x * work.cluster.y * work.cluster.z;
  for (int rank = 0; rank < blocks; ++rank) blocks_.push_back(std::make_unique<Block>(work, *this, rank));
}

void Cluster::start(std::int64_t index) {
  Grid const clusters = work_.clusters_along();
  Grid const size = work_.cluster;
  std::int64_t const x = index % clusters.x * size.x, y = index / clusters.x % clusters.y * size.y,
                     z = index / clusters.x / clusters.y * size.z;
  index_ = index;
  reaches_others = false;
  alive_ = work_.threads * this->size();
  arrived_ = left_ = 0;
  phase_ = 0;
  for (int rank = 0; rank < this->size(); ++rank) {
    std::int64_t const block_x = x + rank % size.x, block_y = y + rank / size.x % size.y,
                       block_z = z + rank / size.x / size.y;
    block(rank).start((block_z * work_.grid.y + block_y) * work_.grid.x + block_x);
  }
}

bool Cluster::take_turns() {
  bool progress = false;
  for (auto const& block : blocks_) {
    if (block->is_finished()) continue;
    progress |= block->take_turns();
    if (block->has_failed()) return true;
  }
  return progress;
}

bool Cluster::is_finished() const {
  for (auto const& block : blocks_)
    if (!block->is_finished()) return false;
  return true;
}

bool Cluster::has_failed() const {
  for (auto const& block : blocks_)
    if (block->has_failed()) return true;
  return false;
}

void Cluster::unwind() {
  for (auto const& block : blocks_) block->unwind();
}

void Cluster::arrive(Thread& thread) {
  if (thread.async.at_cluster)
    return thread.block.fail(thread, "cluster_arrive() a second time without cluster_wait()");
  thread.async.at_cluster = true;
  thread.async.cluster_phase = phase_;
  sanitizers::release(&sync_[phase_ % 2]);
  ++arrived_;
  complete();
}

void Cluster::wait(Thread& thread) {
  if (!thread.async.at_cluster)
    return thread.block.fail(thread, "cluster_wait() without cluster_arrive() before it");
  struct Context {
    Cluster const& cluster;
    std::int64_t phase;
  } context{*this, thread.async.cluster_phase};
  thread.block.poll(
      thread, "the other threads of the cluster at its barrier",
      [](void* pointer) {
        Context const& it = *static_cast<Context*>(pointer);
        return it.cluster.phase_ != it.phase;
      },
      &context);
  sanitizers::acquire(&sync_[context.phase % 2]);
  thread.async.at_cluster = false;
}

void Cluster::leave(Thread const& thread) {
  if (thread.async.at_cluster && thread.async.cluster_phase == phase_) {
    ++left_;  // it has arrived, so it still counts in this phase
    return;
  }
  --alive_;
  complete();
}

void Cluster::complete() {
  if (arrived_ < alive_ || arrived_ == 0) return;
  ++phase_;
  alive_ -= left_;
  arrived_ = left_ = 0;
}

void Cluster::attribute_writes(Thread const& thread) {
  if (!reaches_others) {
    if (thread.block.async() != nullptr) thread.block.async()->writes.attribute(thread.writer());
    return;
  }
  for (auto const& block : blocks_)
    if (block->async() != nullptr) block->async()->writes.attribute(thread.writer());
}

int block_of_cluster() { return running_thread().block.rank(); }
int blocks_of_cluster() { return running_thread().block.cluster().size(); }

void cluster_arrive() {
  Thread& thread = running_thread();
  if (thread.block.can_wait()) thread.block.cluster().arrive(thread);
}
void cluster_wait() {
  Thread& thread = running_thread();
  if (thread.block.can_wait()) thread.block.cluster().wait(thread);
}

void* in_block(void* shared, int rank) {
  Block& own = running_thread().block;
  Cluster& cluster = own.cluster();
  auto const fail = [&](std::string const& why) {
    own.fail(running_thread(),
             "takes an address in block " + std::to_string(rank) + " of the cluster, " + why);
    return shared;
  };
  if (rank < 0 || rank >= cluster.size()) return fail("which has " + std::to_string(cluster.size()));
  Block& block = cluster.block(rank);
  std::ptrdiff_t const offset = own.shared_memory().offset(shared);
  if (offset < 0 || offset > static_cast<std::ptrdiff_t>(own.shared_memory().size()))
    return fail("of an object outside shared memory");
  if (block.is_finished()) return fail("which has left the kernel");
  if (&block != &own) cluster.reaches_others = true;
  return block.shared_memory().data() + offset;
}

unsigned shared_address(void const* shared) {
  Block& block = running_thread().block;
  std::ptrdiff_t const offset = block.shared_memory().offset(shared);
  if (offset < 0 || offset > static_cast<std::ptrdiff_t>(block.shared_memory().size()))
    block.fail(running_thread(), "takes the shared-memory address of an object outside shared memory");
  return static_cast<unsigned>(offset);
}

}  // namespace cosmati::emulator
