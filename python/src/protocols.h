// The C protocols by which arrays describe themselves: numpy's array interface, version 3, and DLPack 1.x
// with its exchange table. Both are fixed binary interfaces.
#pragma once
#include <cstdint>

namespace cosmati::python {

// numpy's PyArrayInterface, from the capsule __array_struct__.
struct ArrayInterface {
  int two;
  int rank;
  char kind;
  int item_bytes;
  int flags;
  std::intptr_t* shape;
  std::intptr_t* strides;  // in bytes
  void* data;
  void* description;
};
inline constexpr int array_not_swapped = 0x200;
inline constexpr int array_writable = 0x400;

struct DLDevice {
  std::int32_t type;
  std::int32_t id;
};
inline constexpr std::int32_t dl_cpu = 1, dl_cuda = 2, dl_cuda_host = 3, dl_cuda_managed = 13;

struct DLDataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct DLTensor {
  void* data;
  DLDevice device;
  std::int32_t rank;
  DLDataType type;
  std::int64_t* shape;
  std::int64_t* strides;  // in elements; null: row-major without gaps
  std::uint64_t byte_offset;
};

// In capsules named "dltensor".
struct DLManagedTensor {
  DLTensor tensor;
  void* context;
  void (*deleter)(DLManagedTensor*);
};

struct DLVersion {
  std::uint32_t major, minor;
};

// In capsules named "dltensor_versioned".
struct DLManagedTensorVersioned {
  DLVersion version;
  void* context;
  void (*deleter)(DLManagedTensorVersioned*);
  std::uint64_t flags;
  DLTensor tensor;
};
inline constexpr std::uint64_t dl_read_only = 1;

// In the capsule "dlpack_exchange_api" of a type, __dlpack_c_exchange_api__ (DLPack 1.3).
struct DLExchange {
  DLVersion version;
  DLExchange* previous;
  int (*allocate)(DLTensor*, DLManagedTensorVersioned**, void*, void (*)(void*, char const*, char const*));
  int (*managed_of)(void*, DLManagedTensorVersioned**);
  int (*object_of)(DLManagedTensorVersioned*, void**);
  int (*view)(void*, DLTensor*);  // may be null
  int (*current_stream)(std::int32_t, std::int32_t, void**);
};

}  // namespace cosmati::python
