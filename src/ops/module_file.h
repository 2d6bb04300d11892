// Modules of libcosmati: shared libraries that are loaded on first use.
#pragma once
#include <string>

namespace cosmati {

struct ModuleFile {
  std::string folder;  // the folder that contains libcosmati
  std::string path;    // empty if the module is neither there nor in ../lib beside it
};

// Finds the module with this file name, e.g. "libcosmati_mpi.so".
ModuleFile module_file(std::string const& name);

}  // namespace cosmati
