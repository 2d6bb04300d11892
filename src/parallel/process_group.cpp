// Detects from the environment whether mpirun started this process, and opens the module that links MPI.
#include "src/parallel/process_group.h"

#include <dlfcn.h>

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

ProcessGroup* open_module() {
  if (!place_of_this_process().launched) return nullptr;
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
