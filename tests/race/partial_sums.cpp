// Partial sums that blocks pass on through the workspace: with a flag, and with the two possible mistakes.
#include "cosmati/gemm/partial_sums.h"

#include <vector>

#include "tests/race/race.h"

namespace cosmati {
namespace {

constexpr int threads = 32, blocks = 4;

struct Sums {
  using Register = float;
  static constexpr int registers = 4;
  float value[4];
  template <class Visit>
  void for_each(Visit&& visit) {
    for (float& each : value) visit(each);
  }
  static void add(float& sum, float more) { sum += more; }
};

enum class Mistake { none, no_wait, flag_first };

struct Params {
  ScheduleArguments schedule;
  float* out;
  Mistake mistake;
};

// The last block adds the sums of the others.
template <class P>
COSMATI_KERNEL(threads, 1)
hand_on(COSMATI_PARAMETER P params) {
  using Team = BlockTeam<threads>;
  using Partial = PartialSums<Sums, Team>;
  Team const team;
  Sums sums{{1, 2, 3, 4}};
  int const slot = arch::block_x();
  if (slot + 1 < blocks) {
    if (params.mistake == Mistake::flag_first) {
      if (team.thread() == 0) arch::raise_flag(&params.schedule.flags[slot], params.schedule.tag);
      Partial::store(sums, params.schedule, slot, team);  // flag_first: one side
    } else {
      Partial::publish(sums, params.schedule, slot, team);  // no_wait: one side
    }
    return;
  }
  if (params.mistake == Mistake::no_wait)
    Partial::load(sums, params.schedule, 0, blocks - 1, team);  // no_wait: other side
  else
    Partial::add(sums, params.schedule, 0, blocks - 1, team);  // flag_first: other side
  params.out[team.thread()] = sums.value[0];
}

void run(Mistake mistake) {
  alignas(16) static float partials[blocks][threads][4];
  std::vector<unsigned long long> flags(blocks, 77);
  std::vector<float> out(threads);
  Params params{{}, out.data(), mistake};
  params.schedule.partials = partials;
  params.schedule.flags = flags.data();
  params.schedule.tag = 5;
  emulator::launch_kernel<hand_on<Params>>({blocks}, threads, 0, params, 2);
}

race::Registered const registered[] = {
    {"clean_partial_sums", [] { run(Mistake::none); }},
    {"planted_no_wait", [] { run(Mistake::no_wait); }},
    {"planted_flag_first", [] { run(Mistake::flag_first); }},
};

}  // namespace
}  // namespace cosmati
