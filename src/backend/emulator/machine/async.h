// The state of asynchronous instructions of a block and its threads: barriers, copies, products. Created by
// the first such instruction of a block.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cosmati/arch/emulator_async.h"
#include "src/backend/emulator/machine/ordinary_writes.h"
#include "src/backend/emulator/machine/tensor_map.h"

namespace cosmati::emulator {

class Block;
struct Thread;

// An mbarrier.
struct TransactionBarrier {
  std::ptrdiff_t offset;       // offset in shared memory
  int arrivals, missing;       // arrivals per phase; missing in this phase
  std::int64_t bytes = 0;      // expected in this phase, minus those that copies have completed
  std::int64_t in_flight = 0;  // bytes of issued copies
  int after_copies = 0;        // pending arrivals of copies by cp.async
  std::int64_t phase = 0;
  bool published = false;
  int maker = 0;          // the thread that initialized it
  char sync[2] = {0, 0};  // synchronization objects for ThreadSanitizer
};

// A box that TMA is loading into shared memory.
struct TileLoad {
  Tiling tiling;
  int coordinate[5];
  std::ptrdiff_t to;
  int barrier;
  void const* caller;
  int offset[2] = {0, 0};  // in im2col mode
};

// An arrival that waits for copies that a thread issued before it.
struct ArrivalAfterCopies {
  Thread* thread;
  std::int64_t copies;
  int barrier;
};

struct NamedBarrier {
  int threads = 0, arrived = 0;
  std::int64_t round = 0;
  char sync[2] = {0, 0};
};

// A wgmma of a warpgroup, at which its threads arrive one by one.
struct Product {
  WarpgroupProduct const* what = nullptr;
  unsigned long long a = 0, b = 0;
  bool accumulate = false, a_in_registers = false;
  std::int64_t group = 0;
  int arrived = 0, first = 0;  // first: the thread that arrived first
  unsigned* sums[128];
  unsigned a_registers[128][4];
};
// A change of a warpgroup's registers, at which its threads arrive one by one.
struct RegisterSetting {
  int registers, arrived = 0;
  bool is_made = false;
};
struct Warpgroup {
  static constexpr int max_in_flight = 64;
  std::vector<Product> products = std::vector<Product>(max_in_flight);  // product i at i % max_in_flight
  std::int64_t started = 0, done = 0;
  char sync = 0;  // synchronization object for ThreadSanitizer: operands have been read
  std::vector<RegisterSetting> settings;
  int registers = 0;  // per thread; 0: the initial number
};

class Async {
 public:
  explicit Async(Block& block);
  void reset();

  OrdinaryWrites writes;
  std::vector<TransactionBarrier> barriers;
  std::vector<TileLoad> loads;
  std::vector<ArrivalAfterCopies> arrivals;
  NamedBarrier named[16];
  std::vector<Warpgroup> warpgroups;

  // Returns the index of the barrier at `offset`, or -1.
  int find(std::ptrdiff_t offset) const;
  // Completes the phase of a barrier if only copies in flight are missing, which are then performed.
  void complete(TransactionBarrier& barrier, void const* caller);
  // Describes what is missing for the end of its phase: "1 of 2 arrivals and 4096 bytes".
  std::string missing(TransactionBarrier const& barrier) const;
  // Returns a warpgroup whose products in flight read [offset, offset + bytes) of shared memory, or -1.
  int reader_of(std::ptrdiff_t offset, int bytes) const;
  // Describes what the block leaves unfinished, if anything.
  std::optional<std::string> left_over() const;

 private:
  void land(TileLoad const& load, void const* caller);
  Block& block_;
};

// Returns the barrier of `block` at `address`, a pointer to the shared memory of the thread's own block. If
// there is none, the thread fails with `what` as the operation; null if it is being unwound.
TransactionBarrier* find_barrier(Thread& thread, void const* address, Block& block, char const* what);

// A box that TMA is storing to global memory.
struct TileStore {
  Tiling tiling;
  int coordinate[5];
  std::ptrdiff_t from;
  std::int64_t group;
  void const* caller;
  std::vector<unsigned char> bytes;  // the bytes read from shared memory, if any
};

// Registers with the sums of products in flight.
struct Sums {
  unsigned* registers = nullptr;  // the thread's own, poisoned
  int count = 0;
  std::int64_t group = -1;  // group of their last product; -1: none is in flight
  std::vector<unsigned> values;
};

// Registers with A of a product, and their values when it was started.
struct OperandRegisters {
  unsigned const* registers = nullptr;  // the thread's own
  unsigned values[4] = {};
  std::int64_t product = 0, group = -1;  // group: -1: none is in flight
};

// A map that a kernel modified, and the address that a thread acquired.
struct AcquiredMap {
  arch::TensorMap const* map;
  unsigned char const* address;
};

// The asynchronous state of a thread.
struct AsyncThread {
  std::vector<arch::TensorMap*> changed_maps;  // not released yet
  std::vector<AcquiredMap> acquired_maps;
  std::vector<TileStore> stores;
  std::int64_t store_groups = 0;
  std::vector<Sums> sums;
  std::vector<OperandRegisters> operands;
  std::int64_t begun_at = 0;  // products before the last warpgroup_begin()
  std::int64_t products = 0, product_groups = 0;
  bool begun = false;  // warpgroup_begin() was called since the last access to the sums
  int registers = 0, register_settings = 0;
  bool at_cluster = false;  // has arrived, not yet waited
  std::int64_t cluster_phase = 0;

  void reset();
  void read_stores(std::int64_t before, Block const& block);
  void write_stores(std::int64_t before);
};

// Describes an incorrect use of a map that a kernel may have modified; empty if it is correct.
std::string mistake_of_change(AsyncThread const& thread, arch::TensorMap const& map);

}  // namespace cosmati::emulator
