// The tables.
#include "python/src/operations.h"

namespace cosmati::python {
namespace {

using enum FieldKind;

template <class Struct, Struct (*defaults)(), cosmati_status (*make)(Struct const*, cosmati_problem_t*)>
constexpr Operation operation(char const* name, std::span<Field const> fields, std::size_t epilogue = 0) {
  return {name,
          sizeof(Struct),
          [](void* target) { *static_cast<Struct*>(target) = defaults(); },
          [](void const* given, cosmati_problem_t* problem) {
            return make(static_cast<Struct const*>(given), problem);
          },
          fields,
          epilogue};
}

constexpr Field gemm_fields[] = {{"a", offsetof(cosmati_gemm, a), tensor},
                                 {"b", offsetof(cosmati_gemm, b), tensor},
                                 {"c", offsetof(cosmati_gemm, c), tensor},
                                 {"d", offsetof(cosmati_gemm, d), tensor}};
constexpr Field convolution_fields[] = {{"direction", offsetof(cosmati_convolution, direction), integer32},
                                        {"x", offsetof(cosmati_convolution, x), tensor},
                                        {"w", offsetof(cosmati_convolution, w), tensor},
                                        {"y", offsetof(cosmati_convolution, y), tensor},
                                        {"db", offsetof(cosmati_convolution, db), tensor},
                                        {"stride", offsetof(cosmati_convolution, stride), pair},
                                        {"pad_begin", offsetof(cosmati_convolution, pad_begin), pair},
                                        {"pad_end", offsetof(cosmati_convolution, pad_end), pair},
                                        {"dilation", offsetof(cosmati_convolution, dilation), pair},
                                        {"groups", offsetof(cosmati_convolution, groups), integer64}};
constexpr Field pooling_fields[] = {{"direction", offsetof(cosmati_pooling, direction), integer32},
                                    {"mode", offsetof(cosmati_pooling, mode), integer32},
                                    {"x", offsetof(cosmati_pooling, x), tensor},
                                    {"y", offsetof(cosmati_pooling, y), tensor},
                                    {"indices", offsetof(cosmati_pooling, indices), tensor},
                                    {"window", offsetof(cosmati_pooling, window), pair},
                                    {"stride", offsetof(cosmati_pooling, stride), pair},
                                    {"pad_begin", offsetof(cosmati_pooling, pad_begin), pair},
                                    {"pad_end", offsetof(cosmati_pooling, pad_end), pair},
                                    {"dilation", offsetof(cosmati_pooling, dilation), pair}};
constexpr Field batch_norm_fields[] = {{"mode", offsetof(cosmati_batch_norm, mode), integer32},
                                       {"x", offsetof(cosmati_batch_norm, x), tensor},
                                       {"y", offsetof(cosmati_batch_norm, y), tensor},
                                       {"dx", offsetof(cosmati_batch_norm, dx), tensor},
                                       {"statistics", offsetof(cosmati_batch_norm, statistics), tensor},
                                       {"epsilon", offsetof(cosmati_batch_norm, epsilon), real}};
constexpr Field row_norm_fields[] = {{"direction", offsetof(cosmati_row_norm, direction), integer32},
                                     {"axis", offsetof(cosmati_row_norm, axis), integer32},
                                     {"x", offsetof(cosmati_row_norm, x), tensor},
                                     {"y", offsetof(cosmati_row_norm, y), tensor},
                                     {"dx", offsetof(cosmati_row_norm, dx), tensor},
                                     {"weight", offsetof(cosmati_row_norm, weight), tensor},
                                     {"bias", offsetof(cosmati_row_norm, bias), tensor},
                                     {"dweight", offsetof(cosmati_row_norm, dweight), tensor},
                                     {"dbias", offsetof(cosmati_row_norm, dbias), tensor},
                                     {"statistics", offsetof(cosmati_row_norm, statistics), tensor},
                                     {"epsilon", offsetof(cosmati_row_norm, epsilon), real}};
constexpr Field softmax_fields[] = {{"direction", offsetof(cosmati_softmax, direction), integer32},
                                    {"logarithm", offsetof(cosmati_softmax, logarithm), integer32},
                                    {"axis", offsetof(cosmati_softmax, axis), integer32},
                                    {"x", offsetof(cosmati_softmax, x), tensor},
                                    {"y", offsetof(cosmati_softmax, y), tensor},
                                    {"dy", offsetof(cosmati_softmax, dy), tensor}};
constexpr Field cross_entropy_fields[] = {
    {"direction", offsetof(cosmati_cross_entropy, direction), integer32},
    {"x", offsetof(cosmati_cross_entropy, x), tensor},
    {"labels", offsetof(cosmati_cross_entropy, labels), tensor},
    {"loss", offsetof(cosmati_cross_entropy, loss), tensor},
    {"dx", offsetof(cosmati_cross_entropy, dx), tensor}};
constexpr Field reduce_fields[] = {{"operation", offsetof(cosmati_reduce, operation), integer32},
                                   {"x", offsetof(cosmati_reduce, x), tensor},
                                   {"y", offsetof(cosmati_reduce, y), tensor}};
constexpr Field lrn_fields[] = {{"direction", offsetof(cosmati_lrn, direction), integer32},
                                {"x", offsetof(cosmati_lrn, x), tensor},
                                {"y", offsetof(cosmati_lrn, y), tensor},
                                {"dx", offsetof(cosmati_lrn, dx), tensor},
                                {"window", offsetof(cosmati_lrn, window), integer64},
                                {"alpha", offsetof(cosmati_lrn, alpha), real},
                                {"beta", offsetof(cosmati_lrn, beta), real},
                                {"k", offsetof(cosmati_lrn, k), real}};

constexpr Operation others[] = {
    operation<cosmati_convolution, cosmati_default_convolution, cosmati_convolution_problem>(
        "convolution", convolution_fields, offsetof(cosmati_convolution, epilogue)),
    operation<cosmati_pooling, cosmati_default_pooling, cosmati_pooling_problem>("pooling", pooling_fields),
    operation<cosmati_batch_norm, cosmati_default_batch_norm, cosmati_batch_norm_problem>("batch_norm",
                                                                                          batch_norm_fields),
    operation<cosmati_row_norm, cosmati_default_row_norm, cosmati_layer_norm_problem>("layer_norm",
                                                                                      row_norm_fields),
    operation<cosmati_row_norm, cosmati_default_row_norm, cosmati_rms_norm_problem>("rms_norm",
                                                                                    row_norm_fields),
    operation<cosmati_softmax, cosmati_default_softmax, cosmati_softmax_problem>("softmax", softmax_fields),
    operation<cosmati_cross_entropy, cosmati_default_cross_entropy, cosmati_cross_entropy_problem>(
        "cross_entropy", cross_entropy_fields),
    operation<cosmati_reduce, cosmati_default_reduce, cosmati_reduce_problem>("reduce", reduce_fields),
    operation<cosmati_lrn, cosmati_default_lrn, cosmati_lrn_problem>("lrn", lrn_fields)};

}  // namespace

constexpr Operation gemm_operation = operation<cosmati_gemm, cosmati_default_gemm, cosmati_gemm_problem>(
    "gemm", gemm_fields, offsetof(cosmati_gemm, epilogue));

Operation const* find_operation(std::string_view name) {
  for (Operation const& one : others)
    if (name == one.name) return &one;
  return nullptr;
}

}  // namespace cosmati::python
