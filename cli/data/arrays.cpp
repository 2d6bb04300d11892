// Arrays between .npy files and tensors.
#include "cli/data/arrays.h"

#include <cstring>
#include <optional>
#include <vector>

#include "src/io/file.h"
#include "src/io/npy.h"

namespace cosmati::cli {
namespace {

std::optional<DataType> asked_type(std::string const& own, TypeChoice const& types) {
  std::string const& name = own.empty() ? types.all : own;
  if (name.empty()) return std::nullopt;
  return parse_data_type(name);
}

// For c and operands, --type applies only if the file requires it: to interpret bit patterns, and for
// integers without a corresponding data type.
std::optional<DataType> needed_type(io::ElementKind kind, TypeChoice const& types) {
  if (types.all.empty()) return std::nullopt;
  DataType const type = parse_data_type(types.all);
  if (io::is_pattern(kind, type)) return type;
  if (io::natural_type(kind)) return std::nullopt;
  return is_integer(type) ? DataType::s32 : type;
}

// With --compute tf32, f32 factors become tf32.
std::optional<DataType> factor_type(std::optional<DataType> asked, io::ElementKind kind,
                                    TypeChoice const& types) {
  if (types.compute != name_of(DataType::tf32)) return asked;
  DataType const type = asked ? *asked : io::natural_type(kind).value_or(DataType::s32);
  return type == DataType::f32 ? std::optional(DataType::tf32) : asked;
}

std::optional<DataType> type_for(TypeRole role, io::ElementKind kind, TypeChoice const& types) {
  switch (role) {
    case TypeRole::a: return factor_type(asked_type(types.a, types), kind, types);
    case TypeRole::b: return factor_type(asked_type(types.b, types), kind, types);
    case TypeRole::c: return types.c.empty() ? needed_type(kind, types) : parse_data_type(types.c);
    case TypeRole::operand: return needed_type(kind, types);
    case TypeRole::labels: break;
  }
  return DataType::s32;
}

// The options that set the type of an array with this role.
char const* options_of(TypeRole role) {
  switch (role) {
    case TypeRole::a: return "--type or --a-type";
    case TypeRole::b: return "--type or --b-type";
    case TypeRole::c: return "--type or --c-type";
    default: return "--type";
  }
}

// Saves indices within image planes as an int64 array of indices into the full array of (n, c, plane)
// elements.
void save_places(std::string const& path, Port const& port, TensorDescription const& description,
                 void const* data) {
  Index const channels = description.extent(1);
  // int64 has no data type in this library: the bits are stored in an f64 tensor and written with an int64
  // header.
  Tensor places(describe(DataType::f64, description.shape()));
  Index const size = places.size(), per_image = size == 0 ? 1 : size / description.extent(0);
  for (Index i = 0; i < size; ++i) {
    Index const image = i / per_image, channel = i % per_image / (per_image / channels);
    auto in_plane =
        static_cast<long long>(load(description.type, data, description.layout.offset_of_linear(i)));
    if (port.plane_rows != 0) {
      Index const columns = port.plane / port.plane_rows;
      in_plane = in_plane % columns * port.plane_rows + in_plane / columns;
    }
    long long const place = in_plane + (image * channels + channel) * port.plane;
    std::memcpy(places.as<double>() + i, &place, sizeof(place));
  }
  std::string bytes = io::npy_bytes(reordered(places.description(), port.order), places.data());
  bytes.replace(bytes.find("<f8"), 3, "<i8");
  io::write_atomically(path, bytes);
}

}  // namespace

LoadedArray load_array(std::string const& path, TypeRole role, TypeChoice const& types) {
  io::RawArray const array = io::read_npy(path);
  auto const type = type_for(role, array.kind, types);
  if (!type && !io::natural_type(array.kind))
    throw Error(
        ErrorCode::bad_request,
        path + ": its elements are " + io::name_of(array.kind) + ", which has no corresponding data type; " +
            options_of(role) + " specifies the type to convert them to" +
            (array.kind == io::ElementKind::u16 ? ", or the type of the bit patterns (f16, bf16)" : ""));
  return {io::to_tensor(array, type), array.layout.rank() == 0};
}

void save_array(std::string const& path, Port const& port, TensorDescription const& description,
                void const* data) {
  if (port.plane != 0) return save_places(path, port, description, data);
  io::write_npy(path, reordered(description, port.order), data);
}

}  // namespace cosmati::cli
