// Arrays of numpy, PyTorch, CuPy, JAX and others: the addresses of their elements, and new arrays of the same
// kind.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cosmati.h"
#include "python/src/object.h"
#include "python/src/protocols.h"

namespace cosmati::python {

enum class Protocol { array_struct, exchange, dlpack, cuda_array };

// The properties of a Python array type; never freed.
struct Family {
  Protocol protocol;
  std::string library;         // "numpy", "torch", ...: the package that defines the type
  DLExchange const* exchange;  // of Protocol::exchange
  bool plain_tensor;           // torch.Tensor or torch.nn.Parameter, not a type derived from them
};

inline constexpr int host = -1;

struct Array {
  PyObject* object = nullptr;  // borrowed: the caller holds it
  Family const* family = nullptr;
  Object capsule;  // the owner of the data; null: `object`
  cosmati_tensor tensor{};
  void* data = nullptr;
  int device = host;       // or the number of a GPU
  void* stream = nullptr;  // the family's stream, on a GPU
  bool writable = false;
};

// Reads the description of the array `object`. `name` is the name of the argument in messages. TypeError: not
// an array, or an unsupported element type; ValueError: strides that are negative or not a multiple of the
// element size.
Array array_of(PyObject* object, char const* name);

// ValueError: the array is read-only. `name` is the name of the argument in messages.
void check_writable(Array const& array, char const* operation, char const* name);

bool is_number(PyObject* object);

// Returns a new contiguous row-major array of the same library and on the same device as `like`,
// uninitialized.
Object empty_like(Array const& like, std::span<std::int64_t const> shape, int type);

// The name of a type ("float32" for COSMATI_F32), and the type of such a name or of the library's own
// ("f32"). -1: there is none.
char const* name_of_type(int type);
int type_of_name(std::string const& name);
std::int64_t bytes_of_type(int type);

}  // namespace cosmati::python
