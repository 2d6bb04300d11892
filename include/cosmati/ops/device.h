// What a plan needs to know of the machine: plain data, so that a plan can be made for a machine that is not
// here.
#pragma once
#include "cosmati/core/cxx20.h"

#include <string>
#include <vector>

namespace cosmati {

enum class Backend : unsigned char { cuda, cpu, emulator, reference };

char const* name_of(Backend backend);
Backend parse_backend(std::string const& name);  // throws Error listing the legal names

// A GPU, by what a plan depends on. Rates are operations a clock and multiprocessor.
struct Gpu {
  std::string name;
  int ordinal = 0;           // which of this machine's devices
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // the most that a kernel may opt in to
  int shared_bytes_per_multiprocessor = 0;
  int registers_per_multiprocessor = 65536;
  int threads_per_multiprocessor = 2048;
  int blocks_per_multiprocessor = 32;
  long long l2_bytes = 0;
  long long memory_bytes = 0;
  double clock_hertz = 0;
  double memory_bytes_per_second = 0;
  int fma_f32 = 128, fma_f64 = 64, fma_half2 = 128, dp4a = 64;  // instructions of one lane
};

// A CUstream of the device's primary context; null: its default stream. Host backends ignore it.
using Stream = void*;

struct Device {
  Backend backend = Backend::cpu;
  int threads = 1;           // host threads that one run uses
  int cores = 1;             // of the host that this process may use
  bool avx2 = false;         // with FMA
  bool avx512 = false;       // F, BW, DQ, VL
  bool avx512_bf16 = false;  // products of bf16 without conversion
  bool avx512_vnni = false;  // products of 8-bit integers without saturation in between
  bool onednn = false;       // the module that links oneDNN can be loaded
  bool openblas = false;     // OpenBLAS can be loaded
  // Bytes of the host's caches for data: the first and the second of one core, the third of all cores that
  // share it. 0: not known.
  long long l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  Gpu gpu = {};  // of the backends cuda and emulator
};

// This machine, seen as `backend`. threads = 0: as many as there are cores; ordinal: which GPU, of the
// backend cuda. The emulator stands for an H200. Throws Error(unavailable), with the reason, if the backend
// or that GPU is not here.
Device this_device(Backend backend, int threads = 0, int ordinal = 0);

// The GPUs of this machine. Throws Error(unavailable) with the reason if there is no driver or no GPU. The
// driver is opened by the first call of this kind (COSMATI_LIBCUDA names another library than libcuda.so.1).
std::vector<Gpu> devices();
// True if there is at least one; where there is no driver, this is known at once.
bool has_cuda_device();

// A GPU that need not be here: h200, h100, a100, rtx4090, t4 (by their data sheets), or a file of lines
// "key = value" as to_text() writes them; # begins a comment. Keys are the fields of Gpu, but for ordinal,
// and compute_capability; those that are not given follow from the compute capability or are as in struct
// Gpu. Throws Error: bad_request for a name that is neither, bad_file with the line and the legal keys.
Gpu describe_gpu(std::string const& name_or_file);
std::string to_text(Gpu const& gpu);  // such a file
void set_rates(Gpu& gpu);             // fma_f32, fma_f64, fma_half2 and dp4a from major and minor

}  // namespace cosmati
