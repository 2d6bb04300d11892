// Arrays of numpy, PyTorch, CuPy, JAX and others: where their elements lie, and new ones of the same kind.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "cosmati.h"
#include "python/src/object.h"
#include "python/src/protocols.h"

namespace cosmati::python {

enum class Protocol { array_struct, exchange, dlpack, cuda_array };

// What is known of a Python type of arrays; never freed.
struct Family {
  Protocol protocol;
  std::string library;         // "numpy", "torch", ...: the package that defines the type
  DLExchange const* exchange;  // of Protocol::exchange
};

inline constexpr int host = -1;

struct Array {
  PyObject* object = nullptr;  // borrowed: the caller holds it
  Family const* family = nullptr;
  Object capsule;  // what keeps the data valid; null: `object` does
  cosmati_tensor tensor{};
  void* data = nullptr;
  int device = host;       // or the number of a GPU
  void* stream = nullptr;  // that of the family, on a GPU
  bool writable = false;
};

// Reads what `object` says of itself. `name` is that of the argument, for messages. TypeError: not an array,
// or elements of another type; ValueError: negative strides, or such that are no multiple of an element.
Array array_of(PyObject* object, char const* name);

bool is_number(PyObject* object);

// A new array without gaps in row-major order, of the same library and on the same device as `like`; contents
// undefined.
Object empty_like(Array const& like, std::span<std::int64_t const> shape, int type);

// "float32" of COSMATI_F32, ...; and the type of such a name, also of the library's own ("f32"). -1: there is
// none.
char const* name_of_type(int type);
int type_of_name(std::string const& name);
std::int64_t bytes_of_type(int type);

}  // namespace cosmati::python
