// Describes matrix products.
#include "python/src/product.h"

#include <algorithm>
#include <cstring>

namespace cosmati::python {
namespace {

// Whether the text of an epilogue contains the name `word`.
bool names(char const* text, char const* word) {
  auto const part_of_word = [](char c) {
    return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  };
  std::size_t const length = std::strlen(word);
  for (char const* at = std::strstr(text, word); at != nullptr; at = std::strstr(at + 1, word))
    if ((at == text || !part_of_word(at[-1])) && !part_of_word(at[length])) return true;
  return false;
}

int product_type(Array const& a) {
  switch (a.tensor.type) {
    case COSMATI_S8:
    case COSMATI_U8: return COSMATI_S32;
    case COSMATI_E4M3:
    case COSMATI_E5M2: return COSMATI_F32;
    default: return a.tensor.type;
  }
}

std::int64_t batch_of(Array const& array) { return array.tensor.rank == 3 ? array.tensor.extent[0] : 1; }

// A single matrix, or a batch of one, is used for every product of a larger batch.
void repeat(cosmati_tensor& tensor, std::int64_t batch) {
  if (tensor.rank == 3 && tensor.extent[0] == 1 && batch != 1) tensor.extent[0] = batch, tensor.stride[0] = 0;
}

}  // namespace

Object describe_product(Call& call, PyObject* const* given) {
  auto& problem = call.as<cosmati_gemm>();
  Array a = array_of(given[0], "a"), b = array_of(given[1], "b"), c;
  double const alpha = number_of(given[3]), beta = number_of(given[4]);
  bool has_c = given[2] != Py_None;
  char const* text = given[5] == Py_None ? nullptr : text_of(given[5]);
  bool has_alpha = alpha != 1, has_beta = beta != 1 && beta != 0;
  if (text == nullptr) {
    has_c = has_c && beta != 0;
    has_beta = has_beta && has_c;
    text = has_alpha ? (has_c ? (has_beta ? "alpha*acc + beta*c" : "alpha*acc + c") : "alpha*acc")
                     : (has_c ? (has_beta ? "acc + beta*c" : "acc + c") : "");
  } else {
    bool const names_alpha = names(text, "alpha"), names_beta = names(text, "beta");
    if ((has_alpha && !names_alpha) || (has_beta && !names_beta))
      raise(PyExc_ValueError, std::string("gemm: ") + (has_alpha && !names_alpha ? "alpha" : "beta") +
                                  " was given, and the epilogue '" + text + "' does not name it");
    has_alpha = names_alpha, has_beta = names_beta;
  }
  call.set_epilogue(text);
  if (a.tensor.rank < 2 || a.tensor.rank > 3 || b.tensor.rank < 2 || b.tensor.rank > 3)
    raise(PyExc_ValueError, "gemm: a has " + std::to_string(a.tensor.rank) + " dimensions, b " +
                                std::to_string(b.tensor.rank) +
                                "; expected 2, or 3 with a leading batch axis");
  std::int64_t const batch = std::max(batch_of(a), batch_of(b));
  std::int64_t const extent[] = {batch, a.tensor.extent[a.tensor.rank - 2],
                                 b.tensor.extent[b.tensor.rank - 1]};
  bool const batched = a.tensor.rank == 3 || b.tensor.rank == 3;
  repeat(a.tensor, batch);
  repeat(b.tensor, batch);
  Object result = given[6] != Py_None
                      ? Object::borrowed(given[6])
                      : empty_like(a, {batched ? extent : extent + 1, batched ? 3u : 2u}, product_type(a));
  Array const d = array_of(result.get(), "out");
  if (given[6] != Py_None) check_writable(d, "gemm", "out");
  if (given[8] != Py_None) {  // compute
    if (std::strcmp(text_of(given[8]), "tf32") == 0) {
      for (cosmati_tensor* const one : {&a.tensor, &b.tensor})
        if (one->type == COSMATI_F32) one->type = COSMATI_TF32;
    } else if (std::strncmp(text_of(given[8]), "bf16x", 5) == 0 && std::strlen(text_of(given[8])) == 6 &&
               std::strchr("369", text_of(given[8])[5]) != nullptr) {
      problem.bf16_products = text_of(given[8])[5] - '0';
    } else if (std::strcmp(text_of(given[8]), "tf32x3") == 0) {
      problem.tf32_products = 3;
    } else if (std::strcmp(text_of(given[8]), "fast_accumulation") == 0) {
      problem.fast_accumulation = 1;
    } else if (std::strcmp(text_of(given[8]), "f32") != 0) {
      raise(
          PyExc_ValueError,
          "gemm: compute = '" + std::string(text_of(given[8])) +
              "'; valid values: None, 'f32', 'tf32', 'bf16x3', 'bf16x6', 'bf16x9', 'tf32x3', 'fast_accumulation'");
    }
  }
  if (given[7] != Py_None) {  // accumulator
    char const* const type = text_of(given[7]);
    problem.accumulate_in_f16 = std::strcmp(type, "f16") == 0 ? 1 : 0;
    if (problem.accumulate_in_f16 == 0 && std::strcmp(type, "f32") != 0)
      raise(PyExc_ValueError,
            "gemm: accumulator = '" + std::string(type) + "'; valid values: None, 'f32', 'f16'");
  }
  problem.a = a.tensor;
  problem.b = b.tensor;
  call.add_array("a", a);
  call.add_array("b", b);
  if (has_c) {
    c = array_of(given[2], "c");
    repeat(c.tensor, batch);
    problem.c = c.tensor;
    call.add_array("c", c);
  }
  problem.d = d.tensor;
  call.add_array("d", d);
  if (has_alpha) call.set_number("alpha", alpha);
  if (has_beta) call.set_number("beta", beta);
  PyObject *name = nullptr, *operand = nullptr;
  for (Py_ssize_t at = 0; PyDict_Next(given[9], &at, &name, &operand) != 0;)
    call.set_operand(text_of(name), operand);
  return result;
}

}  // namespace cosmati::python
