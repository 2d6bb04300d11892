// Selects the devices that train.
#include "cli/networks/train_team.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cosmati/ops/error.h"

namespace cosmati::cli {
namespace {

[[noreturn]] void refuse_missing(std::string const& asked, std::size_t there) {
  throw Error(ErrorCode::unavailable,
              fmt::format("{}: this machine has {} GPU{}", asked, there, there == 1 ? "" : "s"));
}

}  // namespace

nets::Team team_of(Common const& common, long long gpus, parallel::ProcessGroup* group) {
  if (gpus < 0 || gpus > 64)
    throw Error(ErrorCode::bad_request, fmt::format("--gpus {} is out of range; expected 0 to 64", gpus));
  if (group != nullptr && gpus > 1)
    throw Error(ErrorCode::bad_request,
                fmt::format("--gpus {}: under mpirun each process trains on one GPU; start {} processes",
                            gpus, gpus));
  Common where = common;
  if (gpus > 0 && where.backend == "auto") where.backend = "cuda";
  Device device = where.device_to_run_on();
  int const here = std::max(1, static_cast<int>(gpus)),
            sharers = group == nullptr ? here : group->local_size();
  if (where.threads == 0) device.threads = std::max(1, device.threads / sharers);
  nets::Team team(std::vector<Device>(static_cast<std::size_t>(here), device), group);
  if (device.backend != Backend::cuda || team.size() == 1) return team;
  auto const there = cosmati::devices().size();
  if (static_cast<std::size_t>(here) > there) refuse_missing(fmt::format("--gpus {}", here), there);
  if (group != nullptr && static_cast<std::size_t>(sharers) > there)
    refuse_missing(fmt::format("{} processes, each with its own GPU (or with --backend cpu)", sharers),
                   there);
  for (int i = 0; i < here; ++i)
    team.devices[static_cast<std::size_t>(i)] =
        this_device(Backend::cuda, device.threads, group == nullptr ? i : group->local_rank());
  return team;
}

std::string team_text(nets::Team const& team) {
  if (team.group != nullptr) return fmt::format(", {} processes", team.group->size());
  return team.size() == 1 ? "" : fmt::format(", {} devices", team.size());
}

void warn_of_tf32(DataType compute, nets::Team const& team) {
  Backend const backend = team.devices[0].backend;
  if (compute == DataType::tf32 && (backend == Backend::cpu || backend == Backend::reference))
    print_warning(
        fmt::format("tf32 has no effect: backend {} trains with full f32 factors", name_of(backend)));
}

std::string continuation_of(std::string const& network,
                            std::vector<std::pair<std::string, std::string>> const& options,
                            Common const& common, long long gpus) {
  std::string text = "to continue: cosmati train " + network;
  auto const add = [&text](std::string const& option, std::string const& value) {
    if (!value.empty()) text += ' ' + option + ' ' + shell_word(value);
  };
  auto const add_number = [&add](std::string const& option, long long value) {
    if (value != 0) add(option, std::to_string(value));
  };
  for (auto const& [option, value] : options) add(option, value);
  if (common.backend != Common().backend) add("--backend", common.backend);
  add_number("--device", common.device);
  add("--device-description", common.device_description);
  add_number("--gpus", gpus);
  add_number("--threads", common.threads);
  add("--cache", common.cache);
  return common.json ? text + " --json" : text;
}

bool run_or_tell(nets::Team const& team, std::string const& continuation,
                 std::function<bool()> const& training) {
  if (team.size() == 1) return training();
  try {
    return training();
  } catch (Error const& error) {
    throw Error(error.code(), error.what() + ("; " + continuation));
  }
}

}  // namespace cosmati::cli
