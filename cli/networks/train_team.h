// The devices and processes that train together, as requested on the command line.
#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/options.h"
#include "nets/team.h"

namespace cosmati::cli {

// Uses `gpus` GPUs of this process; 0: the one device that `common` selects. Under mpirun each process has
// one device: with the backend cuda, the GPU whose number is its rank on the machine, otherwise its share of
// the cores. Throws Error if the machine does not have such a GPU.
nets::Team team_of(Common const& common, long long gpus, parallel::ProcessGroup* group);
std::string team_text(nets::Team const& team);  // ", 4 devices"; empty for one

// Prints a warning on stderr if training with factors in `compute` is the same as with f32.
void warn_of_tf32(DataType compute, nets::Team const& team);

// "to continue: cosmati train lenet5 --data photos --resume m.safetensors --threads 2": the options of
// `options`, and those of `common` and `gpus` that select devices, quoted for a shell. Options without a
// value are omitted.
std::string continuation_of(std::string const& network,
                            std::vector<std::pair<std::string, std::string>> const& options,
                            Common const& common, long long gpus);

// Runs training(); if a device of a team fails, appends `continuation` to the error's message.
bool run_or_tell(nets::Team const& team, std::string const& continuation,
                 std::function<bool()> const& training);

// Installs a handler for SIGTERM, which mpirun sends to the remaining processes if one is lost: it writes
// `text` to stderr and exits at once, since the process may be waiting for the lost one.
void when_lost(std::string text);

}  // namespace cosmati::cli
