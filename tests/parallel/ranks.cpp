// Run by mpirun in tests/parallel/check_ranks.py: checks every call of a ProcessGroup in each rank. With
// "sums" it prints how long sums take, for bench/scale.py; with "processors", on how many it may run.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cosmati/ops/error.h"
#include "src/parallel/process_group.h"

namespace {

void require(bool condition, char const* what) {
  if (condition) return;
  std::fprintf(stderr, "ranks: %s\n", what);
  std::exit(1);
}

// Prints a line for each size: the seconds of a sum of that many bytes over all ranks, the minimum (in which
// no rank waited for a processor) and the median.
void time_sums(cosmati::parallel::ProcessGroup& group) {
  for (std::size_t bytes = 64; bytes <= std::size_t{1} << 24; bytes *= 8) {
    std::vector<float> data(bytes / sizeof(float), 0);
    std::vector<double> samples;
    for (int i = 0; i < 41; ++i) {
      group.barrier();
      auto const start = std::chrono::steady_clock::now();
      group.sum(data.data(), data.size());
      samples.push_back(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(samples.begin(), samples.end());
    if (group.rank() == 0)
      std::printf("{\"ranks\": %d, \"bytes\": %zu, \"seconds\": %.9f, \"median_seconds\": %.9f}\n",
                  group.size(), bytes, samples.front(), samples[samples.size() / 2]);
  }
}

}  // namespace

int main(int argc, char** argv) {
  using namespace cosmati::parallel;
  bool const lone = argc > 1 && std::strcmp(argv[1], "alone") == 0;
  ProcessGroup* const group = process_group();
  if (lone) {
    require(group == nullptr, "a process without mpirun has no group");
    std::puts("alone");
    return 0;
  }
  require(group != nullptr, "mpirun started this process, but it has no group");
  int const rank = group->rank(), size = group->size();
  Place const place = place_of_this_process();
  require(place.launched && place.rank == rank && place.size == size, "the environment tells another place");
  require(group->local_rank() >= 0 && group->local_rank() < group->local_size(), "local rank");
  if (argc > 1 && std::strcmp(argv[1], "lose") == 0) {  // the last rank exits; the others wait for it
    group->barrier();
    if (rank == size - 1) std::abort();
    group->receive(size - 1, 7);
  }
  if (argc > 1 && std::strcmp(argv[1], "processors") == 0) {
    cpu_set_t own;
    require(sched_getaffinity(0, sizeof own, &own) == 0, "sched_getaffinity");
    std::printf("%d\n", CPU_COUNT(&own));
    group->finish();
    return 0;
  }
  if (argc > 1 && std::strcmp(argv[1], "sums") == 0) {
    time_sums(*group);
    group->finish();
    return 0;
  }
  std::vector<float> values{static_cast<float>(rank), 1, 0.5F};
  group->sum(values.data(), values.size());
  require(values[0] == static_cast<float>(size * (size - 1) / 2) && values[1] == static_cast<float>(size) &&
              values[2] == 0.5F * static_cast<float>(size),
          "sum");
  double wide = 1.0 / 3;
  group->sum(&wide, 1);
  require(wide > 0.33 * size && wide < 0.34 * size, "sum of doubles");
  int told = rank == 0 ? 42 : 0;
  group->broadcast(&told, sizeof told);
  require(told == 42, "broadcast");
  group->send((rank + 1) % size, 3, &rank, sizeof rank);  // small enough to be sent at once
  Message const message = group->receive(any, 3);
  int from = -1;
  std::memcpy(&from, message.bytes.data(), sizeof from);
  require(message.bytes.size() == sizeof from && from == message.from && from == (rank + size - 1) % size,
          "a message of the neighbor");
  require(!group->arrived(any, 3), "a message comes once");
  std::vector<std::byte> large(1 << 20, std::byte(rank));  // all ranks send before any rank receives
  for (int to = 0; to < size; ++to) group->post(to, 4, large);
  for (int other = 0; other < size; ++other) {
    Message const got = group->receive(other, 4);
    require(got.bytes.size() == large.size() && got.bytes.back() == std::byte(other), "a posted message");
  }
  bool late = false;
  try {
    group->receive(any, 5, 0.2);
  } catch (cosmati::Error const&) {
    late = true;
  }
  require(late, "a message that nobody sends");
  group->barrier();
  group->finish();
  std::printf("rank %d of %d\n", rank, size);
}
