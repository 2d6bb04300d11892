// Devices and processes that train together, as requested on the command line.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/options.h"
#include "nets/team.h"

namespace cosmati::cli {

// `gpus` of this process, 0: one device as `common` says; under mpirun each process has one, on the backend
// cuda the one of its number on its machine, else its share of the cores. Throws Error for a number that this
// machine does not have.
nets::Team team_of(Common const& common, long long gpus, parallel::ProcessGroup* group);
std::string team_text(nets::Team const& team);  // ", 4 devices"; nothing of one

// One sentence on stderr where a training with factors in `compute` is the same as with f32.
void warn_of_tf32(DataType compute, nets::Team const& team);

// "to continue: cosmati train lenet5 --data photos --resume m.safetensors --threads 2": what is in `options`
// and what `common` and `gpus` say of where to train, as words of a shell. Options without a value are left
// out.
std::string continuation_of(std::string const& network,
                            std::vector<std::pair<std::string, std::string>> const& options,
                            Common const& common, long long gpus);

// training(); if a device of a team fails, the error's sentence ends with `continuation`.
bool run_or_tell(nets::Team const& team, std::string const& continuation,
                 std::function<bool()> const& training);

// From now on SIGTERM, which mpirun sends to those that are left when a process is lost, writes `text` to
// stderr and ends this one at once: it may be waiting for the lost one.
void when_lost(std::string text);

}  // namespace cosmati::cli
