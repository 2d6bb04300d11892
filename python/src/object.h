// References to Python objects, and Python's errors as C++ exceptions. Everything here needs the GIL.
#pragma once
#include <Python.h>

#include <string>
#include <utility>

namespace cosmati::python {

// Python's error is set; the function that Python called returns null.
struct Raised {};

[[noreturn]] inline void raise(PyObject* type, std::string const& sentence) {
  PyErr_SetString(type, sentence.c_str());
  throw Raised();
}

// A strong reference, or null.
class Object {
 public:
  Object() = default;
  Object(Object const& other) : pointer_(other.pointer_) { Py_XINCREF(pointer_); }
  Object(Object&& other) noexcept : pointer_(std::exchange(other.pointer_, nullptr)) {}
  Object& operator=(Object other) noexcept {
    std::swap(pointer_, other.pointer_);
    return *this;
  }
  ~Object() { Py_XDECREF(pointer_); }

  // Takes over a new reference; throws Raised if it is null.
  static Object checked(PyObject* created) {
    if (created == nullptr) throw Raised();
    return Object(created);
  }
  static Object borrowed(PyObject* object) {
    Py_XINCREF(object);
    return Object(object);
  }

  PyObject* get() const { return pointer_; }
  PyObject* release() { return std::exchange(pointer_, nullptr); }
  explicit operator bool() const { return pointer_ != nullptr; }

 private:
  explicit Object(PyObject* owned) : pointer_(owned) {}
  PyObject* pointer_ = nullptr;
};

inline Object attribute(PyObject* object, char const* name) {
  return Object::checked(PyObject_GetAttrString(object, name));
}

inline Object imported(char const* module) { return Object::checked(PyImport_ImportModule(module)); }

// The text of a str, in UTF-8; valid as long as the object.
inline char const* text_of(PyObject* string) {
  char const* const text = PyUnicode_AsUTF8AndSize(string, nullptr);
  if (text == nullptr) throw Raised();
  return text;
}

inline long long integer_of(PyObject* object) {
  long long const value = PyLong_AsLongLong(object);
  if (value == -1 && PyErr_Occurred() != nullptr) throw Raised();
  return value;
}

inline double number_of(PyObject* object) {
  double const value = PyFloat_AsDouble(object);
  if (value == -1 && PyErr_Occurred() != nullptr) throw Raised();
  return value;
}

// Releases the GIL during its lifetime.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  WithoutGil(WithoutGil const&) = delete;
  WithoutGil& operator=(WithoutGil const&) = delete;
  ~WithoutGil() { PyEval_RestoreThread(state_); }

 private:
  PyThreadState* state_;
};

}  // namespace cosmati::python
