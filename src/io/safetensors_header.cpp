// A state machine on the events of a JSON parser: anything that the format does not define is rejected where
// it appears.
#include "src/io/safetensors_header.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "src/io/bad_file.h"

namespace cosmati::io {
namespace {

using Json = nlohmann::json;

class HeaderReader final : public nlohmann::json_sax<Json> {
 public:
  explicit HeaderReader(std::string const& file) : file_(file) {}

  SafetensorsHeader take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    if (level_ == Level::file) {
      level_ = Level::names;
    } else if (level_ == Level::names) {
      level_ = key_ == "__metadata__" ? Level::metadata : Level::fields;
      fields_.clear();
      if (level_ == Level::fields) header_.entries.push_back({key_, ElementKind::f32, {}, 0, 0});
    } else {
      unexpected("an object");
    }
    return true;
  }
  bool end_object() override {
    if (level_ == Level::fields && fields_.size() != 3)
      bad_file(file_, "tensor " + in_quotes(header_.entries.back().name) + " lacks " + missing_field());
    level_ = level_ == Level::names ? Level::end : Level::names;
    return true;
  }
  bool key(Json::string_t& name) override {
    std::set<std::string>& taken = level_ == Level::names ? names_ : fields_;
    if (level_ == Level::metadata ? header_.metadata.count(name) != 0 : !taken.insert(name).second)
      bad_file(file_, "the name " + in_quotes(name) + " appears twice in its header");
    if (level_ == Level::fields && name != "dtype" && name != "shape" && name != "data_offsets")
      bad_file(file_, "tensor " + in_quotes(header_.entries.back().name) + " has the field " +
                          in_quotes(name) + "; valid values: dtype, shape and data_offsets");
    key_ = name;
    return true;
  }
  bool start_array(std::size_t) override {
    if (level_ != Level::fields || key_ == "dtype") unexpected("an array");
    level_ = key_ == "shape" ? Level::shape : Level::offsets;
    offsets_ = 0;
    return true;
  }
  bool end_array() override {
    if (level_ == Level::offsets && offsets_ != 2) wrong_number_of_offsets();
    level_ = Level::fields;
    return true;
  }
  bool string(Json::string_t& value) override {
    if (level_ == Level::metadata) {
      header_.metadata.emplace(key_, value);
    } else if (level_ == Level::fields && key_ == "dtype") {
      header_.entries.back().kind = kind_named(value);
    } else {
      unexpected("the string " + in_quotes(value));
    }
    return true;
  }
  bool number_unsigned(Json::number_unsigned_t value) override {
    if (level_ == Level::shape) {
      Shape& shape = header_.entries.back().shape;
      if (shape.rank == max_rank)
        bad_file(file_, "tensor " + in_quotes(header_.entries.back().name) + " has more than " +
                            std::to_string(max_rank) + " dimensions");
      // Clamps values that do not fit in an Index; the check of the shape reports them as too large.
      Json::number_unsigned_t constexpr largest = ~0ULL >> 1;
      shape.extent[shape.rank++] = static_cast<Index>(std::min(value, largest));
    } else if (level_ == Level::offsets) {
      SafetensorsEntry& entry = header_.entries.back();
      if (offsets_ == 2) wrong_number_of_offsets();
      (offsets_++ == 0 ? entry.begin : entry.end) = value;
    } else {
      unexpected("the number " + std::to_string(value));
    }
    return true;
  }
  bool number_integer(Json::number_integer_t value) override {
    unexpected("the number " + std::to_string(value));
  }
  bool number_float(Json::number_float_t, Json::string_t const& text) override {
    unexpected("the number " + in_quotes(text));
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool value) override { unexpected(value ? "true" : "false"); }
  bool binary(Json::binary_t&) override { unexpected("binary data"); }
  bool parse_error(std::size_t position, std::string const&, Json::exception const&) override {
    bad_file(file_, "its header is not valid JSON at byte " + std::to_string(position));
  }

 private:
  enum class Level { file, names, metadata, fields, shape, offsets, end };

  [[noreturn]] void unexpected(std::string const& what) const {
    bool const in_tensor = level_ == Level::fields || level_ == Level::shape || level_ == Level::offsets;
    std::string where = "its header";
    if (level_ == Level::names) where = "its header at " + in_quotes(key_);
    if (level_ == Level::metadata) where = "__metadata__ at " + in_quotes(key_);
    if (in_tensor) where = "the " + key_ + " of tensor " + in_quotes(header_.entries.back().name);
    std::string legal = "an object";
    if (level_ == Level::metadata) legal = "a string";
    if (level_ == Level::fields) legal = key_ == "dtype" ? "the name of a type" : "an array";
    if (level_ == Level::shape || level_ == Level::offsets) legal = "a non-negative integer";
    bad_file(file_, where + " has " + what + " where " + legal + " should be");
  }
  [[noreturn]] void wrong_number_of_offsets() const {
    bad_file(file_,
             "tensor " + in_quotes(header_.entries.back().name) + " needs two data_offsets, begin and end");
  }
  std::string missing_field() const {
    for (char const* field : {"dtype", "shape"})
      if (fields_.count(field) == 0) return field;
    return "data_offsets";
  }
  ElementKind kind_named(std::string const& name) const {
    std::string legal;
    for (ElementFacts const& known : element_kinds) {
      if (name == known.safetensors) return known.kind;
      legal += (legal.empty() ? "" : ", ") + std::string(known.safetensors);
    }
    bad_file(file_, "tensor " + in_quotes(header_.entries.back().name) + " is of the unknown dtype " +
                        in_quotes(name) + "; valid values: " + legal);
  }

  std::string const& file_;
  SafetensorsHeader header_;
  Level level_ = Level::file;
  std::string key_;
  std::set<std::string> names_;
  std::set<std::string> fields_;
  int offsets_ = 0;
};

}  // namespace

SafetensorsHeader parse_safetensors_header(std::string_view json, std::string const& file) {
  HeaderReader reader(file);
  Json::sax_parse(json.begin(), json.end(), &reader);
  return reader.take();
}

std::string print_safetensors_header(SafetensorsHeader const& header) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) json["__metadata__"] = header.metadata;
  for (SafetensorsEntry const& entry : header.entries) {
    nlohmann::ordered_json fields;
    fields["dtype"] = facts_of(entry.kind).safetensors;
    fields["shape"] = std::vector<Index>(entry.shape.extent, entry.shape.extent + entry.shape.rank);
    fields["data_offsets"] = {entry.begin, entry.end};
    json[entry.name] = std::move(fields);
  }
  try {
    return json.dump();
  } catch (nlohmann::ordered_json::type_error const&) {
    throw Error(ErrorCode::bad_request, "a name or text for a safetensors file is not UTF-8");
  }
}

}  // namespace cosmati::io
