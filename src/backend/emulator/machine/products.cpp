// PTX ISA, "wgmma": the threads of a warpgroup reach a product one by one. It is computed when the first of
// them waits for it, from the contents of its operands at that moment.
#include <fmt/format.h>

#include <algorithm>

#include "src/backend/emulator/machine/block.h"
#include "src/backend/emulator/machine/matrix_reader.h"
#include "src/backend/emulator/machine/report.h"
#include "src/backend/emulator/machine/sanitizers.h"

namespace cosmati::emulator {
namespace {

constexpr int warpgroup_threads = 128, depth_bytes = 32, rows = 64, max_columns = 256;
constexpr unsigned poison = ~0U;

template <class SomeWarpgroup>  // const or not const
auto& product_at(SomeWarpgroup& warpgroup, std::int64_t index) {
  return warpgroup.products[static_cast<std::size_t>(index % Warpgroup::max_in_flight)];
}

MatrixReader reader_of_a(Product const& product) {
  return {product.a, rows, product.what->element_bytes, product.what->a_along_outer};
}
MatrixReader reader_of_b(Product const& product) {
  return {product.b, product.what->n, product.what->element_bytes, product.what->b_along_outer};
}

void compute(Product& product, SharedMemory const& memory, void const* caller) {
  unsigned char a[rows * depth_bytes], b[max_columns * depth_bytes];
  if (product.a_in_registers) {
    for (int thread = 0; thread < warpgroup_threads; ++thread)
      for (int r = 0; r < 4; ++r) {
        int const row = thread / 32 * 16 + thread / 4 % 8 + r % 2 * 8, byte = r / 2 * 16 + thread % 4 * 4;
        __builtin_memcpy(a + row * depth_bytes + byte, &product.a_registers[thread][r], 4);
      }
  } else {
    reader_of_a(product).read(memory, a, caller);
  }
  reader_of_b(product).read(memory, b, caller);
  product.what->compute(a, b, product.sums, product.accumulate);
}

// The sums of this product: those in flight in these registers, or new ones; registers of new sums are
// poisoned.
Sums& sums_of(AsyncThread& thread, unsigned* registers, int count) {
  Sums* unused = nullptr;
  for (Sums& sums : thread.sums) {
    if (sums.group >= 0 && sums.registers == registers) return sums;
    if (sums.group < 0) unused = &sums;
  }
  if (unused == nullptr) unused = &thread.sums.emplace_back();
  unused->registers = registers;
  unused->count = count;
  unused->values.resize(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i) {
    unused->values[static_cast<std::size_t>(i)] = registers[i];
    registers[i] = poison;
  }
  return *unused;
}

// Notes that `registers` hold A of the thread's next product; returns the violation, empty if there is none.
std::string take_operand(AsyncThread& mine, unsigned const* registers) {
  auto known =
      std::find_if(mine.operands.begin(), mine.operands.end(),
                   [registers](OperandRegisters const& operand) { return operand.registers == registers; });
  if (known == mine.operands.end()) known = mine.operands.insert(known, {registers, {}, -1, -1});
  bool is_changed = false;
  for (int r = 0; r < 4; ++r) is_changed = is_changed || registers[r] != known->values[r];
  if (is_changed && known->group >= 0)
    return "whose registers of A were written while a product of them was in flight";
  if (is_changed && known->product >= mine.begun_at)
    return "without warpgroup_begin() since its registers of A were written";
  for (int r = 0; r < 4; ++r) known->values[r] = registers[r];
  known->product = mine.products;
  known->group = mine.product_groups;
  return {};
}

// Releases the registers of A of all groups before `before`, which have been waited for; returns the
// violation, empty if there is none.
std::string release_operands(AsyncThread& mine, std::int64_t before) {
  for (OperandRegisters& operand : mine.operands) {
    if (operand.group < 0 || operand.group >= before) continue;
    operand.group = -1;
    for (int r = 0; r < 4; ++r)
      if (operand.registers[r] != operand.values[r])
        return fmt::format("register {} of A was written while its product was in flight", r);
  }
  return {};
}

std::string tell_products(Thread const& thread) {
  Warpgroup const& warpgroup =
      thread.block.async()->warpgroups[static_cast<std::size_t>(thread.index / warpgroup_threads)];
  Product const& product = product_at(warpgroup, warpgroup.done);
  return fmt::format("{}, at which {} of 128 threads have arrived", product.what->name, product.arrived);
}

}  // namespace

int Async::reader_of(std::ptrdiff_t offset, int bytes) const {
  for (std::size_t i = 0; i < warpgroups.size(); ++i)
    for (std::int64_t at = warpgroups[i].done; at < warpgroups[i].started; ++at) {
      Product const& product = product_at(warpgroups[i], at);
      if ((!product.a_in_registers && reader_of_a(product).meets(offset, bytes)) ||
          reader_of_b(product).meets(offset, bytes))
        return static_cast<int>(i);
    }
  return -1;
}

void multiply_warpgroup(WarpgroupProduct const& what, void* d, unsigned const* a_registers,
                        unsigned long long a, unsigned long long b, bool accumulate) {
  Thread& thread = running_thread();
  Block& block = thread.block;
  if (!block.can_wait()) return;
  int const index = thread.index / warpgroup_threads, self = thread.index % warpgroup_threads;
  if ((index + 1) * warpgroup_threads > block.work().threads)
    return block.fail(thread, fmt::format("{} in an incomplete warpgroup: the block has {} threads",
                                          what.name, block.work().threads));
  Async& async = block.start_async();
  Warpgroup& warpgroup = async.warpgroups[static_cast<std::size_t>(index)];
  AsyncThread& mine = thread.async;
  if (!mine.begun)
    return block.fail(
        thread, fmt::format("{} without warpgroup_begin() since the kernel began or its sums were accessed",
                            what.name));
  if (mine.products >= warpgroup.done + Warpgroup::max_in_flight)
    return block.fail(thread, fmt::format("more than {} products in flight", Warpgroup::max_in_flight));
  Product& product = product_at(warpgroup, mine.products);
  if (mine.products == warpgroup.started) {
    ++warpgroup.started;
    product.what = &what;
    product.a = a;
    product.b = b;
    product.accumulate = accumulate;
    product.a_in_registers = a_registers != nullptr;
    product.group = mine.product_groups;
    product.arrived = 0;
    product.first = thread.index;
    async.writes.attribute(thread.writer());
    std::string wrong = product.a_in_registers ? "" : reader_of_a(product).mistake(block, async.writes, "A");
    if (wrong.empty()) wrong = reader_of_b(product).mistake(block, async.writes, "B");
    if (!wrong.empty()) return block.fail(thread, fmt::format("{}: {}", what.name, wrong));
  } else if (product.what != &what || product.b != b || product.accumulate != accumulate ||
             product.group != mine.product_groups || (a_registers == nullptr && product.a != a)) {
    return block.fail(
        thread,
        fmt::format("{} of descriptors 0x{:x} and 0x{:x}, accumulate {}, group {}, where thread {} of the "
                    "warpgroup has {} of 0x{:x} and 0x{:x}, accumulate {}, group {}",
                    what.name, a, b, accumulate, mine.product_groups, product.first, product.what->name,
                    product.a, product.b, product.accumulate, product.group));
  }
  Sums& sums = sums_of(mine, static_cast<unsigned*>(d), what.registers);
  sums.group = product.group;
  product.sums[self] = sums.values.data();
  if (a_registers != nullptr) {
    std::string const wrong = take_operand(mine, a_registers);
    if (!wrong.empty()) return block.fail(thread, fmt::format("{} {}", what.name, wrong));
    for (int r = 0; r < 4; ++r) product.a_registers[self][r] = a_registers[r];
  }
  ++product.arrived;
  ++mine.products;
}

void warpgroup_begin() {
  AsyncThread& mine = running_thread().async;
  mine.begun = true;
  mine.begun_at = mine.products;
}
void warpgroup_commit() { ++running_thread().async.product_groups; }

void warpgroup_wait(int in_flight) {
  Thread& thread = running_thread();
  Block& block = thread.block;
  AsyncThread& mine = thread.async;
  if (!block.can_wait() || mine.products == 0) return;
  Warpgroup& warpgroup =
      block.async()->warpgroups[static_cast<std::size_t>(thread.index / warpgroup_threads)];
  std::int64_t const before = mine.product_groups - in_flight;
  bool is_time = false;  // other threads have progressed as far as they can with the products in flight
  while (warpgroup.done < mine.products && product_at(warpgroup, warpgroup.done).group < before) {
    struct Context {
      Block& block;
      Warpgroup& warpgroup;
      std::int64_t product;
      bool& is_time;
    } context{block, warpgroup, warpgroup.done, is_time};
    thread.tell = tell_products;
    block.poll(
        thread, "a product",
        [](void* pointer) {
          Context& it = *static_cast<Context*>(pointer);
          if (it.warpgroup.done > it.product) return true;
          if (product_at(it.warpgroup, it.product).arrived < warpgroup_threads) return false;
          it.is_time = it.is_time || it.block.has_come_to_rest();
          return it.is_time;
        },
        &context);
    thread.tell = nullptr;
    if (warpgroup.done > context.product) continue;
    compute(product_at(warpgroup, context.product), block.shared_memory(), __builtin_return_address(0));
    ++warpgroup.done;
    sanitizers::release(&warpgroup.sync);
  }
  sanitizers::acquire(&warpgroup.sync);
  if (std::string const wrong = release_operands(mine, before); !wrong.empty())
    return block.fail(thread, wrong);
  for (Sums& sums : mine.sums) {
    if (sums.group < 0 || sums.group >= before) continue;
    for (int i = 0; i < sums.count; ++i) {
      if (sums.registers[i] != poison)
        return block.fail(thread, fmt::format("sum {} was written while its product was in flight", i));
      sums.registers[i] = sums.values[static_cast<std::size_t>(i)];
    }
    sums.group = -1;
    mine.begun = false;
  }
}

}  // namespace cosmati::emulator
