// Run by mpirun in tests/parallel/check_ranks.py: every call of a ProcessGroup, checked in each rank.
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
  if (argc > 1 && std::strcmp(argv[1], "lose") == 0) {  // the last rank ends; the others wait for it
    group->barrier();
    if (rank == size - 1) std::abort();
    group->receive(size - 1, 7);
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
  group->send((rank + 1) % size, 3, &rank, sizeof rank);  // small enough to be on its way at once
  Message const message = group->receive(any, 3);
  int from = -1;
  std::memcpy(&from, message.bytes.data(), sizeof from);
  require(message.bytes.size() == sizeof from && from == message.from && from == (rank + size - 1) % size,
          "a message of the neighbour");
  require(!group->arrived(any, 3), "a message comes once");
  std::vector<std::byte> large(1 << 20, std::byte(rank));  // all send before anybody receives
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
