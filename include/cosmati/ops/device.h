// Description of a machine for planning: plain data, so that plans can be made for machines that are not
// present.
#pragma once
#include "cosmati/core/cxx20.h"

#include <string>
#include <vector>

namespace cosmati {

enum class Backend : unsigned char { cuda, cpu, emulator, reference };

char const* name_of(Backend backend);
Backend parse_backend(std::string const& name);  // throws Error(bad_request) listing the valid names

// The properties of a GPU that plans depend on. Rates are per clock and multiprocessor.
struct Gpu {
  std::string name;
  int ordinal = 0;           // device number on this machine
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  int shared_bytes_per_block = 0;  // the maximum that a kernel can opt in to
  int shared_bytes_per_multiprocessor = 0;
  int registers_per_multiprocessor = 65536;
  int threads_per_multiprocessor = 2048;
  int blocks_per_multiprocessor = 32;
  long long l2_bytes = 0;
  long long memory_bytes = 0;
  double clock_hertz = 0;
  double memory_bytes_per_second = 0;
  int fma_f32 = 128, fma_f64 = 64, fma_half2 = 128, dp4a = 64;  // FMA lanes
  std::string cufft_failure = {};                               // why cuFFT cannot be used; empty if it can
};

// A CUstream of the device's primary context; null: its default stream. Host backends ignore it.
using Stream = void*;

struct Device {
  Backend backend = Backend::cpu;
  int threads = 1;           // host threads per run
  int cores = 1;             // host cores available to this process
  bool avx2 = false;         // with FMA
  bool avx512 = false;       // F, BW, DQ, VL
  bool avx512_bf16 = false;  // products of bf16 without conversion
  bool avx512_vnni = false;  // products of 8-bit integers without intermediate saturation
  bool onednn = false;       // the module that links oneDNN can be loaded
  bool openblas = false;     // OpenBLAS can be loaded
  // Data cache sizes of the host in bytes: L1 and L2 of one core, L3 of all cores that share it. 0 if
  // unknown.
  long long l1_bytes = 0, l2_bytes = 0, l3_bytes = 0;
  Gpu gpu = {};  // for the backends cuda and emulator
  // Why FFTW, which computes the Fourier transforms of the emulator, cannot be used; empty if it can.
  std::string fftw_failure = {};
};

// Describes this machine for `backend`. `threads` = 0 selects one thread per core; `ordinal` selects the GPU
// of the backend cuda. The emulator models an H200. Throws Error(unavailable), with the reason, if the
// backend or the GPU is not available.
Device this_device(Backend backend, int threads = 0, int ordinal = 0);

// The GPUs of this machine. Throws Error(unavailable) with the reason if there is no driver or no GPU. The
// first call loads the driver, libcuda.so.1 or the library named by COSMATI_LIBCUDA.
std::vector<Gpu> devices();
// True if there is at least one GPU; returns immediately if there is no driver.
bool has_cuda_device();

// Describes a GPU that need not be present: h200, h100, a100, rtx4090, t4, ... (from data sheets), or a file
// of lines "key = value" as written by to_text(); # begins a comment. Keys are compute_capability and the
// fields of Gpu except ordinal; missing ones follow from the compute capability or have the defaults of Gpu.
// Throws Error(bad_request) for an unknown name, and Error(bad_file) with the line and the valid keys.
Gpu describe_gpu(std::string const& name_or_file);
std::string to_text(Gpu const& gpu);  // the contents of such a file
void set_rates(Gpu& gpu);             // sets fma_f32, fma_f64, fma_half2, dp4a from major, minor

}  // namespace cosmati
