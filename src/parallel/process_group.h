// The processes that mpirun started together: messages, sums, and the end of all when one is lost. MPI itself
// is linked by a module (libcosmati_mpi.so) that is opened only in a process that mpirun started.
#pragma once
#include <cstddef>
#include <vector>

namespace cosmati::parallel {

// This process's place by what mpirun (Open MPI, MPICH) or srun left in the environment; MPI is not opened.
// A process that was started alone is rank 0 of 1. `size` is 0 where a launcher told the rank alone.
struct Place {
  bool launched = false;  // by mpirun or srun
  int rank = 0, size = 1;
  int local_rank = 0, local_size = 1;  // among the processes of this machine
};
Place place_of_this_process();

struct Message {
  int from = 0;
  int tag = 0;
  std::vector<std::byte> bytes;
};

inline constexpr int any = -1;

// Calls are made by one thread at a time, those without a partner (barrier, broadcast, sum) by all processes
// in the same order. They throw Error(system) if MPI says that something failed. mpirun ends all processes
// when one of them ends without finish(): whoever waits for a lost peer does not wait for long.
class ProcessGroup {
 public:
  virtual ~ProcessGroup() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual int local_rank() const = 0;  // among the processes of this machine
  virtual int local_size() const = 0;

  virtual void barrier() = 0;
  // Returns when `data` may be changed again: of a long message, when it is being received. Tags are 0 to
  // 32767.
  virtual void send(int to, int tag, void const* data, std::size_t bytes) = 0;
  // Returns at once: for messages to who may be sending to this process. Goes on during later calls.
  virtual void post(int to, int tag, std::vector<std::byte> message) = 0;
  // Waits for a message, without keeping the processor busy; from and tag may be `any`. After `seconds` (if >
  // 0) throws Error(system) that names who was waited for.
  virtual Message receive(int from = any, int tag = any, double seconds = 0) = 0;
  // True if receive(from, tag) would return at once.
  virtual bool arrived(int from = any, int tag = any) = 0;
  virtual void broadcast(void* data, std::size_t bytes, int root = 0) = 0;
  // data[i] = the sum over all processes, in an order that depends on their number alone. Host memory.
  virtual void sum(float* data, std::size_t count) = 0;
  virtual void sum(double* data, std::size_t count) = 0;
  // Ends every process of the group, this one as well.
  [[noreturn]] virtual void abort(int status) = 0;
  // All processes, once, when their work is done; no call after it.
  virtual void finish() = 0;
};

// The group of this process; null if it was started alone. Opens the module and MPI when first called. Throws
// Error(unavailable) with the reason where mpirun started this process and the module cannot be opened.
ProcessGroup* process_group();

}  // namespace cosmati::parallel

// The module's one exported function; the group lives as long as the process.
extern "C" cosmati::parallel::ProcessGroup* cosmati_mpi_group();
