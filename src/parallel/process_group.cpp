// Detects from the environment whether mpirun started this process, and opens the module that links MPI.
#include "src/parallel/process_group.h"

#include <dlfcn.h>
#include <sched.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "cosmati/ops/error.h"
#include "src/ops/module_file.h"

namespace cosmati::parallel {
namespace {

bool number_from(char const* name, int& value) {
  char const* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return false;
  char* end = nullptr;
  long const number = std::strtol(text, &end, 10);
  if (*end != '\0' || number < 0 || number > 1 << 24) return false;
  value = static_cast<int>(number);
  return true;
}

// The variables that launchers set: rank, number of processes, and both within this machine.
struct Names {
  char const *rank, *size, *local_rank, *local_size;
};
constexpr Names launchers[] = {{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                                "OMPI_COMM_WORLD_LOCAL_SIZE"},
                               {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
                               {"PMIX_RANK", "SLURM_NTASKS", "SLURM_LOCALID", "SLURM_NTASKS_PER_NODE"}};

// By default, Open MPI binds each of up to two processes of a machine to one core, which leaves the other
// cores idle while that core formats and writes files. A rank bound this way instead takes its even share of
// the processors that mpirun may use. A binding that the user requested (--bind-to, --cpu-set, a rank file)
// stays.
void undo_default_binding(Place const& place) {
  if (std::getenv("OMPI_MCA_orte_bound_at_launch") == nullptr) return;
  for (char const* const request : {"hwloc_base_binding_policy", "hwloc_base_cpu_set", "hwloc_base_cpu_list",
                                    "orte_rankfile", "rmaps_base_mapping_policy"})
    if (std::getenv((std::string("OMPI_MCA_") + request).c_str()) != nullptr) return;
  cpu_set_t own, all, share;
  CPU_ZERO(&share);
  if (sched_getaffinity(0, sizeof own, &own) != 0 || sched_getaffinity(getppid(), sizeof all, &all) != 0)
    return;
  int const count = CPU_COUNT(&all) / place.local_size;
  if (count <= CPU_COUNT(&own)) return;
  int number = -count * place.local_rank;  // of the processors of `all`; the share's are 0 to count - 1
  for (int processor = 0; processor < CPU_SETSIZE; ++processor) {
    if (!CPU_ISSET(processor, &all)) continue;
    if (number >= 0 && number < count) CPU_SET(processor, &share);
    ++number;
  }
  sched_setaffinity(0, sizeof share, &share);
}

ProcessGroup* open_module() {
  Place const place = place_of_this_process();
  if (!place.launched) return nullptr;
  undo_default_binding(place);
  std::string reason = "libcosmati_mpi.so is neither beside the library nor in ../lib";
  if (ModuleFile const file = module_file("libcosmati_mpi.so"); !file.path.empty()) {
    // RTLD_GLOBAL: Open MPI's own modules look up its symbols among the global ones.
    void* const handle = dlopen(file.path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    auto const entry = handle == nullptr
                           ? nullptr
                           : reinterpret_cast<ProcessGroup* (*)()>(dlsym(handle, "cosmati_mpi_group"));
    if (entry != nullptr) return entry();
    reason = dlerror();
  }
  throw Error(ErrorCode::unavailable, "mpirun started this process, but MPI cannot be opened: " + reason);
}

}  // namespace

Place place_of_this_process() {
  for (Names const& names : launchers) {
    Place place;
    if (!number_from(names.rank, place.rank)) continue;
    place.launched = true;
    if (!number_from(names.size, place.size)) place.size = 0;
    number_from(names.local_rank, place.local_rank);
    number_from(names.local_size, place.local_size);
    return place;
  }
  return {};
}

ProcessGroup* process_group() {
  static ProcessGroup* const group = open_module();
  return group;
}

}  // namespace cosmati::parallel
