// libcosmati's modules: shared libraries that it opens when they are first needed.
#pragma once
#include <string>

namespace cosmati {

struct ModuleFile {
  std::string folder;  // in which libcosmati lies
  std::string path;    // empty if the module is neither there nor in ../lib beside it
};

// Where the module of this file name, as "libcosmati_mpi.so", lies.
ModuleFile module_file(std::string const& name);

}  // namespace cosmati
