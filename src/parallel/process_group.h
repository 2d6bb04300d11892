// The processes that mpirun started together: messages, sums, and termination of all if one is lost. MPI is
// linked by a module (libcosmati_mpi.so) that is opened only in processes that mpirun started.
#pragma once
#include <cstddef>
#include <vector>

namespace cosmati::parallel {

// This process's rank according to the environment set by mpirun (Open MPI, MPICH) or srun; MPI is not
// opened. A process without a launcher is rank 0 of 1. `size` is 0 if a launcher only set the rank.
struct Place {
  bool launched = false;  // by mpirun or srun
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the processes on this machine
};
Place place_of_this_process();

struct Message {
  int from = 0;
  int tag = 0;
  std::vector<std::byte> bytes;
};

inline constexpr int any = -1;

// Calls must be made by one thread at a time, and collectives (barrier, broadcast, sum) by all processes in
// the same order. They throw Error(system) if MPI reports a failure. mpirun terminates all processes if one
// ends without finish(), so waiting for a lost peer does not last long.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  // among the processes on this machine
  virtual int local_size() const = 0;

  virtual void barrier() = 0;
  // Returns when `data` may be modified: for a long message, when it is being received. Tags are 0 to 32767.
  virtual void send(int to, int tag, void const* data, std::size_t bytes) = 0;
  // Returns immediately: for messages to processes that may be sending to this one. Progresses during later
  // calls.
  virtual void post(int to, int tag, std::vector<std::byte> message) = 0;
  // Waits for a message without spinning; from and tag may be `any`. After `seconds` (if > 0) throws
  // Error(system) naming the awaited process.
  virtual Message receive(int from = any, int tag = any, double seconds = 0) = 0;
  // True if receive(from, tag) would return immediately.
  virtual bool arrived(int from = any, int tag = any) = 0;
  virtual void broadcast(void* data, std::size_t bytes, int root = 0) = 0;
  // data[i] = the sum over all processes, in an order that depends only on their number. Host memory.
  virtual void sum(float* data, std::size_t count) = 0;
  virtual void sum(double* data, std::size_t count) = 0;
  // Terminates every process of the group, including this one.
  [[noreturn]] virtual void abort(int status) = 0;
  // Must be called once by every process when its work is done; no calls may follow.
  virtual void finish() = 0;
};

// Returns the group of this process; null if it was started without a launcher. Opens the module and MPI on
// the first call. Throws Error(unavailable) with the reason if mpirun started this process and the module
// cannot be opened.
ProcessGroup* process_group();

}  // namespace cosmati::parallel

// The module's only exported function; the group exists until the process exits.
extern "C" cosmati::parallel::ProcessGroup* cosmati_mpi_group();
