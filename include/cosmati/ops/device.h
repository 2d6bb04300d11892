// What a plan needs to know of the machine: plain data, so that a plan can be made for a machine that is not
// here.
#pragma once
#include <string>

namespace cosmati {

enum class Backend : unsigned char { cuda, cpu, emulator, reference };

char const* name_of(Backend backend);
Backend parse_backend(std::string const& name);  // throws Error listing the legal names

struct Device {
  Backend backend = Backend::cpu;
  int threads = 1;           // host threads that one run uses
  bool avx2 = false;         // with FMA
  bool avx512 = false;       // F, BW, DQ, VL
  bool avx512_bf16 = false;  // products of bf16 without conversion
  bool avx512_vnni = false;  // products of 8-bit integers without saturation in between
  bool onednn = false;       // the module that links oneDNN can be loaded
  bool openblas = false;     // OpenBLAS can be loaded
};

// This machine, seen as `backend`. threads = 0: as many as there are cores.
// Throws Error(unavailable) if the backend is not here.
Device this_device(Backend backend, int threads = 0);

}  // namespace cosmati
