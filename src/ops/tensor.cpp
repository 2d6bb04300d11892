// Tensors that own host memory: sizes computed without overflow, allocation, printing, copying.
#include "cosmati/ops/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "src/ops/names.h"

namespace cosmati {
namespace {

constexpr std::size_t alignment = 64;
constexpr Index largest_bytes = Index{1} << 62;

std::string in_brackets(Index const* values, int count) {
  return fmt::format("({})", fmt::join(values, values + count, ", "));
}

}  // namespace

Index checked_bytes(TensorDescription const& description) {
  Layout const& layout = description.layout;
  if (checked_size(layout.shape, description.type) == 0) return 0;
  Index bytes = size_of(description.type);
  for (int d = 0; d < layout.rank(); ++d) {
    if (layout.stride[d] < 0)
      throw Error(ErrorCode::bad_request, fmt::format("stride {} of dimension {} of {} is negative",
                                                      layout.stride[d], d, to_string(layout.shape)));
    Index reach = 0;
    if (__builtin_mul_overflow(layout.extent(d) - 1, layout.stride[d], &reach) ||
        __builtin_mul_overflow(reach, Index{size_of(description.type)}, &reach) ||
        __builtin_add_overflow(bytes, reach, &bytes) || bytes > largest_bytes)
      throw Error(ErrorCode::bad_request,
                  fmt::format("{} spans more than 2^62 bytes", to_string(description)));
  }
  return bytes;
}

namespace {

// Calls row(at) with the index tuple of the first element of each run along the last dimension.
template <class Row>
void for_each_row(Shape const& shape, Row const& row) {
  if (shape.size() == 0) return;
  Index at[max_rank] = {};
  int d = 0;
  do {
    row(static_cast<Index const*>(at));
    for (d = shape.rank - 2; d >= 0 && ++at[d] == shape.extent[d]; --d) at[d] = 0;
  } while (d >= 0);
}

Index row_length(Layout const& layout) { return layout.rank() == 0 ? 1 : layout.extent(layout.rank() - 1); }
Index row_stride(Layout const& layout) { return layout.rank() == 0 ? 0 : layout.stride[layout.rank() - 1]; }

// Copies elements of the same type bit by bit.
void copy_elements(Tensor const& source, Tensor& result) {
  Index const length = row_length(source.layout());
  Index const in_step = row_stride(source.layout());
  Index const out_step = row_stride(result.layout());
  visit_type(source.type(), [&](auto tag) {
    using Number = typename decltype(tag)::type;
    for_each_row(source.shape(), [&](Index const* at) {
      Number const* const in = source.as<Number>() + source.layout().offset_of(at);
      Number* const out = result.as<Number>() + result.layout().offset_of(at);
      for (Index i = 0; i < length; ++i) out[i * out_step] = in[i * in_step];
    });
  });
}

// Converts through a row of doubles, which represent every data type exactly: 10 + 10 loops instead of 10 *
// 10.
void copy_converted(Tensor const& source, Tensor& result) {
  Index const length = row_length(source.layout());
  Index const in_step = row_stride(source.layout());
  Index const out_step = row_stride(result.layout());
  std::vector<double> row(static_cast<std::size_t>(length));
  for_each_row(source.shape(), [&](Index const* at) {
    visit_type(source.type(), [&](auto tag) {
      auto const* const in = source.as<typename decltype(tag)::type>() + source.layout().offset_of(at);
      for (Index i = 0; i < length; ++i)
        row[static_cast<std::size_t>(i)] = static_cast<double>(in[i * in_step]);
    });
    visit_type(result.type(), [&](auto tag) {
      using Number = typename decltype(tag)::type;
      Number* const out = result.as<Number>() + result.layout().offset_of(at);
      for (Index i = 0; i < length; ++i)
        out[i * out_step] = convert<Number>(row[static_cast<std::size_t>(i)]);
    });
  });
}

}  // namespace

std::string to_string(Shape const& shape) { return in_brackets(shape.extent, shape.rank); }

std::string to_string(TensorDescription const& description) {
  Layout const& layout = description.layout;
  std::string text = fmt::format("{} {}", name_of(description.type), to_string(layout.shape));
  if (!layout.is_row_major()) text += " strides " + in_brackets(layout.stride, layout.rank());
  if (description.alignment != TensorDescription::default_alignment)
    text += fmt::format(" aligned to {}", description.alignment);
  return text;
}

DataType parse_data_type(std::string const& name) {
  return parse_name<DataType>("data type", name, data_type_count, "valid types");
}

Index checked_size(Shape const& shape, DataType type) {
  if (shape.rank < 0 || shape.rank > max_rank)
    throw Error(ErrorCode::bad_request,
                fmt::format("a tensor has 0 to {} dimensions, not {}", max_rank, shape.rank));
  Index size = 1;
  Index limit =
      largest_bytes / size_of(type);  // checked even if an extent is 0: the strides must not overflow
  for (int d = 0; d < shape.rank; ++d) {
    Index const extent = shape.extent[d];
    if (extent < 0)
      throw Error(ErrorCode::bad_request,
                  fmt::format("extent {} of dimension {} of {} is negative", extent, d, to_string(shape)));
    if (extent > limit)
      throw Error(ErrorCode::bad_request,
                  fmt::format("{} {} has more than 2^62 bytes", name_of(type), to_string(shape)));
    limit /= std::max<Index>(extent, 1);
    size *= extent;
  }
  return size;
}

void Tensor::Free::operator()(std::byte* memory) const noexcept {
  ::operator delete[](memory, std::align_val_t{alignment});
}

Tensor::Tensor(TensorDescription description)
    : description_(description), bytes_(static_cast<std::size_t>(checked_bytes(description))) {
  // At least one byte, so that empty tensors have an address.
  std::size_t const allocated = std::max(bytes_, std::size_t{1});
  memory_.reset(
      static_cast<std::byte*>(::operator new[](allocated, std::align_val_t{alignment}, std::nothrow)));
  if (!memory_)
    throw Error(ErrorCode::out_of_memory,
                fmt::format("no memory for {}: {} bytes", to_string(description), bytes_));
}

void Tensor::fill(double value) {
  visit_type(type(), [&](auto tag) {
    using Number = typename decltype(tag)::type;
    Number const number = convert<Number>(value);
    Index const length = row_length(layout());
    Index const step = row_stride(layout());
    for_each_row(shape(), [&](Index const* at) {
      Number* const first = as<Number>() + layout().offset_of(at);
      for (Index i = 0; i < length; ++i) first[i * step] = number;
    });
  });
}

Tensor copy(Tensor const& source, TensorDescription description) {
  if (!(source.shape() == description.shape()))
    throw Error(ErrorCode::bad_request, fmt::format("cannot copy {} into {}: the shapes differ",
                                                    to_string(source.description()), to_string(description)));
  Tensor result(description);
  if (source.type() != description.type) {
    copy_converted(source, result);
  } else if (source.layout() == description.layout && source.layout().is_dense()) {
    std::memcpy(result.data(), source.data(), result.bytes());
  } else {
    copy_elements(source, result);
  }
  return result;
}

}  // namespace cosmati
