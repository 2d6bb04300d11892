// PTX ISA, "cp.async.bulk.tensor" and "cp.async.bulk": the emulator completes a load when a thread waits for
// its barrier, and reads the shared memory of a store when the issuing thread waits for it.
#include <fmt/format.h>
#include <algorithm>
#include <utility>

#include "src/backend/emulator/machine/cluster.h"
#include "src/backend/emulator/machine/report.h"
#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {
namespace {

constexpr int chunk = 16;

// Volatile, so that the stores do not become memcpy; see copies.cpp.
void put(unsigned char* to, int value) {
  *static_cast<unsigned char volatile*>(to) = static_cast<unsigned char>(value);
}

// The offset in shared memory of byte `byte` of the box that begins at offset `start`.
std::ptrdiff_t place(std::ptrdiff_t start, int byte, Swizzle swizzle) {
  return static_cast<std::ptrdiff_t>(swizzled(static_cast<unsigned long long>(start + byte), swizzle));
}

// Returns what is wrong with a copy between `shared` and a box of `map`; empty if nothing is.
std::string mistake(Thread const& thread, arch::TensorMap const& map, void const* shared, int rank,
                    int const* coordinate, bool windowed) {
  if (!is_tensor_map(map)) return "whose tensor map was not made by encode_tensor_map()";
  if ((reinterpret_cast<std::uintptr_t>(&map) & 63) != 0)
    return "whose tensor map is not aligned to 64 bytes";
  std::string const of_change = mistake_of_change(thread.async, map);
  if (!of_change.empty()) return of_change;
  Tiling const tiling = tiling_of(map);
  if (tiling.rank != rank)
    return fmt::format("with {} coordinates, of a tensor map of rank {}", rank, tiling.rank);
  if (tiling.windowed != windowed)
    return windowed ? "in im2col mode, of a tensor map for tiles" : "of a tensor map for im2col mode";
  // Undocumented: an H200 stops with an illegal instruction at such boxes, loaded or stored, with and without
  // swizzle.
  if (coordinate[0] * tiling.element_bytes % 16 != 0)
    return fmt::format("whose first element is {}, of {} bytes; expected multiples of 16 bytes",
                       coordinate[0], tiling.element_bytes);
  SharedMemory const& memory = thread.block.shared_memory();
  std::ptrdiff_t const at = memory.offset(shared);
  if (!memory.reserves(shared) || at % 128 != 0)
    return fmt::format("at byte {} of shared memory, which is not a multiple of 128", at);
  if (!memory.holds(shared, tiling.bytes()))
    return fmt::format("of {} bytes at byte {} of the {} bytes of shared memory", tiling.bytes(), at,
                       memory.size());
  return {};
}

}  // namespace

void Async::land(TileLoad const& load, void const* caller) {
  Tiling const& tiling = load.tiling;
  unsigned char* const shared = block_.shared_memory().data();
  int const row_bytes = tiling.row_bytes();
  for (int row = 0; row < tiling.rows(); ++row) {
    BoxRow const existing = tiling.windowed ? row_of_windows(tiling, load.coordinate, load.offset, row)
                                            : row_of_box(tiling, load.coordinate, row);
    int const first = existing.first * tiling.element_bytes, last = existing.last * tiling.element_bytes;
    if (existing.data != nullptr) sanitizers::reads(existing.data, last - first, load.caller);
    for (int byte = 0; byte < row_bytes; byte += chunk) {
      unsigned char* const to = shared + place(load.to, row * row_bytes + byte, tiling.swizzle);
      sanitizers::writes(to, chunk, caller);
      for (int i = byte; i < byte + chunk; ++i)
        put(to + i - byte, existing.data != nullptr && i >= first && i < last ? existing.data[i - first] : 0);
    }
  }
  writes.take(load.to, tiling.bytes(), tiling.swizzle, false);
}

namespace {

// Undocumented: a box that lies outside of the extents of a map completely is not loaded, but on an H200 it
// is an illegal access if the map begins where there is no memory. Nothing of such a box is stored.
bool accesses_no_memory(Tiling const& tiling, int rank, int const* coordinate) {
  constexpr std::uintptr_t first_memory = 4096;
  bool outside = false;
  for (int i = 0; i < rank; ++i)
    outside |= coordinate[i] >= tiling.extent[i] || std::int64_t{coordinate[i]} + tiling.box[i] <= 0;
  return outside && reinterpret_cast<std::uintptr_t>(tiling.address) < first_memory;
}

// Starts the load of a box, once its source and destination have been checked; `barrier` is in `block`.
void start(Thread& thread, Block& block, TransactionBarrier& barrier, TileLoad const& load) {
  Async& async = *block.async();
  block.cluster().attribute_writes(thread);
  int const bytes = load.tiling.bytes();
  if (auto const write = async.writes.unpublished(load.to, bytes))
    return thread.block.fail(thread, "copies a box over " + describe_unpublished(thread.block, *write));
  if (int const reader = async.reader_of(load.to, bytes); reader >= 0)
    return thread.block.fail(
        thread, fmt::format("copies a box over byte {} of shared memory, which products of warpgroup "
                            "{} of {} read; no thread waited for them (warpgroup_wait())",
                            load.to, reader, describe(block)));
  unsigned char* const destination = block.shared_memory().data() + load.to;
  sanitizers::writes(destination, bytes, load.caller);
  for (int i = 0; i < bytes; ++i) put(destination + i, 0xff);
  async.writes.take(load.to, bytes, load.tiling.swizzle, true);
  async.loads.push_back(load);
  barrier.in_flight += bytes;
  sanitizers::release(&barrier.sync[barrier.phase % 2]);
}

// Returns the published barrier of `block` at `address`; otherwise the thread fails.
TransactionBarrier* barrier_of_copy(Thread& thread, void const* address, Block& block) {
  TransactionBarrier* const barrier = find_barrier(thread, address, block, "copies a box for a barrier");
  if (barrier == nullptr || barrier->published) return barrier;
  thread.block.fail(thread,
                    fmt::format("copies a box for the barrier at byte {} of shared memory, which was not "
                                "published (publish_barriers()) after init()",
                                barrier->offset));
  return nullptr;
}

// `offset` is null for tiled mode. `caller` is the return address in device code.
void ask_for_box(void* shared, arch::TensorMap const& map, void* address, int rank, int const* coordinate,
                 int const* offset, unsigned blocks, void const* caller) {
  Thread& thread = running_thread();
  Block& own = thread.block;
  if (!own.can_wait()) return;
  std::string wrong = mistake(thread, map, shared, rank, coordinate, offset != nullptr);
  if (wrong.empty() && offset != nullptr) wrong = mistake_of_windows(tiling_of(map), coordinate, offset);
  if (wrong.empty() && offset == nullptr && accesses_no_memory(tiling_of(map), rank, coordinate))
    wrong = "outside of the extents of a tensor map whose address is not memory";
  if (!wrong.empty()) return own.fail(thread, "copies a box " + wrong);
  Cluster& cluster = own.cluster();
  if (blocks >> cluster.size() != 0)
    return own.fail(thread,
                    fmt::format("copies a box to blocks 0x{:x} of a cluster of {}", blocks, cluster.size()));
  for (int to = 0; to < cluster.size(); ++to) {
    Block& block = cluster.block(to);
    if (blocks != 0 ? (blocks >> to & 1) == 0 : &block != &own) continue;
    TransactionBarrier* const barrier = barrier_of_copy(thread, address, block);
    if (barrier == nullptr) return;
    TileLoad load{tiling_of(map),
                  {},
                  own.shared_memory().offset(shared),
                  static_cast<int>(barrier - block.async()->barriers.data()),
                  caller};
    for (int i = 0; i < rank; ++i) load.coordinate[i] = coordinate[i];
    for (int i = 0; i < 2 && offset != nullptr; ++i) load.offset[i] = offset[i];
    start(thread, block, *barrier, load);
  }
}

// Contiguous bytes, as a box.
Tiling tiling_of_bytes(void const* address, int bytes) {
  return {.address = static_cast<unsigned char*>(const_cast<void*>(address)),
          .rank = 1,
          .element_bytes = 1,
          .extent = {bytes, 1, 1, 1, 1},
          .stride = {1},
          .box = {bytes, 1, 1, 1, 1},
          .swizzle = Swizzle::none,
          .windowed = false,
          .lower = {},
          .upper = {},
          .step = {}};
}

// Returns what is wrong with a bulk copy; empty if nothing is.
std::string mistake_of_bytes(Thread const& thread, void const* shared, void const* global, int bytes) {
  SharedMemory const& memory = thread.block.shared_memory();
  if (bytes <= 0 || bytes % chunk != 0)
    return fmt::format("{} bytes; expected a positive multiple of 16", bytes);
  if (reinterpret_cast<std::uintptr_t>(global) % chunk != 0)
    return "bytes whose global address is not a multiple of 16";
  if (!memory.reserves(shared)) return "bytes from or to an address that is not in shared memory";
  if (memory.offset(shared) % chunk != 0)
    return fmt::format("bytes at byte {} of shared memory, which is not a multiple of 16",
                       memory.offset(shared));
  if (!memory.holds(shared, bytes))
    return fmt::format("{} bytes at byte {} of the {} bytes of shared memory", bytes, memory.offset(shared),
                       memory.size());
  return {};
}

}  // namespace

void load_tile(void* shared, arch::TensorMap const& map, void* barrier, int rank, int const* coordinate,
               unsigned blocks) {
  ask_for_box(shared, map, barrier, rank, coordinate, nullptr, blocks, __builtin_return_address(0));
}

void load_windows(void* shared, arch::TensorMap const& map, void* barrier, int const* coordinate,
                  int const* offset, unsigned blocks) {
  ask_for_box(shared, map, barrier, 4, coordinate, offset, blocks, __builtin_return_address(0));
}

void load_bytes(void* shared, void const* global, int bytes, void* address) {
  Thread& thread = running_thread();
  Block& block = thread.block;
  if (!block.can_wait()) return;
  if (std::string const wrong = mistake_of_bytes(thread, shared, global, bytes); !wrong.empty())
    return block.fail(thread, "copies " + wrong);
  TransactionBarrier* const barrier = barrier_of_copy(thread, address, block);
  if (barrier == nullptr) return;
  start(thread, block, *barrier,
        {tiling_of_bytes(global, bytes),
         {},
         block.shared_memory().offset(shared),
         static_cast<int>(barrier - block.async()->barriers.data()),
         __builtin_return_address(0)});
}

namespace {

constexpr int no_offset[2] = {0, 0};  // from the corner of a window of one element

// Adds a store whose source and destination have been checked to the thread's open group.
void start(Thread& thread, TileStore store) {
  Block& block = thread.block;
  OrdinaryWrites& writes = block.start_async().writes;
  block.cluster().attribute_writes(thread);
  if (auto const write = writes.unpublished(store.from, store.tiling.bytes()))
    return block.fail(thread, "stores a box that holds " + describe_unpublished(block, *write));
  thread.async.stores.push_back(std::move(store));
}

void store_box(arch::TensorMap const& map, void const* shared, int rank, int const* coordinate, bool windowed,
               void const* caller) {
  Thread& thread = running_thread();
  Block& block = thread.block;
  if (!block.can_wait()) return;
  std::string wrong = mistake(thread, map, shared, rank, coordinate, windowed);
  if (wrong.empty() && windowed) wrong = mistake_of_windows(tiling_of(map), coordinate, no_offset);
  if (!wrong.empty()) return block.fail(thread, "stores a box " + wrong);
  TileStore store{tiling_of(map), {}, block.shared_memory().offset(shared), thread.async.store_groups,
                  caller,         {}};
  for (int i = 0; i < rank; ++i) store.coordinate[i] = coordinate[i];
  start(thread, std::move(store));
}

}  // namespace

void store_tile(arch::TensorMap const& map, void const* shared, int rank, int const* coordinate) {
  store_box(map, shared, rank, coordinate, false, __builtin_return_address(0));
}

void store_windows(arch::TensorMap const& map, void const* shared, int const* coordinate) {
  store_box(map, shared, 4, coordinate, true, __builtin_return_address(0));
}

void store_bytes(void* global, void const* shared, int bytes) {
  Thread& thread = running_thread();
  Block& block = thread.block;
  if (!block.can_wait()) return;
  if (std::string const wrong = mistake_of_bytes(thread, shared, global, bytes); !wrong.empty())
    return block.fail(thread, "stores " + wrong);
  start(thread, {tiling_of_bytes(global, bytes),
                 {},
                 block.shared_memory().offset(shared),
                 thread.async.store_groups,
                 __builtin_return_address(0),
                 {}});
}

void commit_stores() { ++running_thread().async.store_groups; }

void wait_stores(int in_flight, bool only_read) {
  Thread& thread = running_thread();
  if (!thread.block.can_wait()) return;
  std::int64_t const before = thread.async.store_groups - in_flight;
  thread.async.read_stores(before, thread.block);
  if (!only_read) thread.async.write_stores(before);
}

void publish_to_async() {
  Thread& thread = running_thread();
  if (!thread.block.can_wait()) return;
  thread.block.start_async();
  Cluster const& cluster = thread.block.cluster();
  for (auto const& block : cluster.blocks())
    if ((block.get() == &thread.block || cluster.reaches_others) && block->async() != nullptr)
      block->async()->writes.publish(thread.writer());
}

void permit_unwritten(void const* shared, int bytes) {
  Block& block = running_thread().block;
  if (block.can_wait()) block.start_async().writes.permit(block.shared_memory().offset(shared), bytes);
}

void AsyncThread::read_stores(std::int64_t before, Block const& block) {
  unsigned char const* const shared = block.shared_memory().data();
  for (TileStore& store : stores) {
    if (store.group >= before || !store.bytes.empty()) continue;
    int const bytes = store.tiling.bytes();
    sanitizers::reads(shared + store.from, bytes, store.caller);
    store.bytes.resize(static_cast<std::size_t>(bytes));
    for (int byte = 0; byte < bytes; ++byte)
      store.bytes[static_cast<std::size_t>(byte)] = shared[place(store.from, byte, store.tiling.swizzle)];
  }
}

void AsyncThread::write_stores(std::int64_t before) {
  for (TileStore const& store : stores) {
    if (store.group >= before || store.bytes.empty()) continue;
    Tiling const& tiling = store.tiling;
    for (int row = 0; row < tiling.rows(); ++row) {
      BoxRow const existing = tiling.windowed ? row_of_windows(tiling, store.coordinate, no_offset, row)
                                              : row_of_box(tiling, store.coordinate, row);
      if (existing.data == nullptr) continue;
      int const first = existing.first * tiling.element_bytes;
      // The hardware writes full 16-byte units, as seen on an H200: a row that ends within a unit overwrites
      // the bytes that follow.
      constexpr int unit = 16;  // bytes
      int const before_box = store.coordinate[0] * tiling.element_bytes;
      int const end = before_box + existing.last * tiling.element_bytes;
      int const last = std::min(tiling.row_bytes(), (end + unit - 1) / unit * unit - before_box);
      sanitizers::writes(existing.data, last - first, store.caller);
      for (int byte = first; byte < last; ++byte)
        put(existing.data + byte - first,
            store.bytes[static_cast<std::size_t>(row * tiling.row_bytes() + byte)]);
    }
  }
  std::erase_if(stores, [&](TileStore const& store) { return store.group < before && !store.bytes.empty(); });
}

}  // namespace cosmati::emulator
