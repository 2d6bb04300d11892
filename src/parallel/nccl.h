// NVIDIA's collectives between GPUs, opened on first use: the types and functions in use, declared here so
// that the build needs no toolkit.
#pragma once
#include <cstddef>
#include <memory>
#include <vector>

#include "src/parallel/all_reduce.h"

// NCCL's and CUDA's own names: a program that includes <nccl.h> sees the same types.
struct ncclComm;
struct CUstream_st;

namespace cosmati::parallel::nccl {

enum class Status : unsigned { success = 0, in_progress = 7 };       // ncclResult_t
enum class Type : unsigned { f32 = 7 };                              // ncclDataType_t
enum class Operation : unsigned { sum = 0 };                         // ncclRedOp_t
enum class Residence : unsigned { device = 0, host_immediate = 1 };  // ncclScalarResidence_t
struct UniqueId {                                                    // ncclUniqueId
  char bytes[128];
};

// The functions in use, by the names that the library exports, with their return types and parameters.
// clang-format off
#define COSMATI_NCCL(FUNCTION)                                                                              \
  FUNCTION(ncclGetErrorString, char const*, (Status status))                                                \
  FUNCTION(ncclGetLastError, char const*, (ncclComm* communicator))                                         \
  FUNCTION(ncclGetUniqueId, Status, (UniqueId* id))                                                         \
  FUNCTION(ncclGroupStart, Status, ())                                                                      \
  FUNCTION(ncclGroupEnd, Status, ())                                                                        \
  FUNCTION(ncclCommInitRank, Status, (ncclComm** communicator, int size, UniqueId id, int rank))            \
  FUNCTION(ncclCommDestroy, Status, (ncclComm* communicator))                                               \
  FUNCTION(ncclCommAbort, Status, (ncclComm* communicator))                                                 \
  FUNCTION(ncclRedOpCreatePreMulSum, Status,                                                                \
           (Operation* operation, void* scalar, Type type, Residence residence, ncclComm* communicator))    \
  FUNCTION(ncclAllReduce, Status,                                                                           \
           (void const* from, void* to, std::size_t count, Type type, Operation operation,                  \
            ncclComm* communicator, CUstream_st* stream))
// clang-format on

struct Library {
#define COSMATI_NCCL_MEMBER(name, returned, parameters) returned(*name) parameters = nullptr;
  COSMATI_NCCL(COSMATI_NCCL_MEMBER)
#undef COSMATI_NCCL_MEMBER
};

// Opens the file named by COSMATI_NCCL, otherwise libnccl.so.2, on the first call, for the whole process.
// Throws Error(unavailable) with the reason.
Library const& library();

// See parallel::make_all_reduce.
std::vector<std::unique_ptr<AllReduce>> make_all_reduce(std::vector<Device> const& devices,
                                                        ProcessGroup* group);

}  // namespace cosmati::parallel::nccl
