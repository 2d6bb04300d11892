// What the backends do alike for a group: the records of its problems, of the type that the kernel has for
// its parameters, and the launches that bind pointers in them.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "cosmati/gemm/group_arguments.h"
#include "cosmati/gemm/tensor_source.h"
#include "src/plan/gemm/group.h"
#include "src/plan/gemm/launch.h"

namespace cosmati::plan {

// Records as they are before a run binds its pointers in them, and where those go.
struct GroupImage {
  int record_bytes = 0, maps = 0;
  std::vector<unsigned short> offset;  // of each bound value in a record
  struct alignas(alignof(arch::TensorMapOfDevice)) Line {
    std::byte byte[alignof(arch::TensorMapOfDevice)];
  };
  std::vector<Line> lines;  // of the records
  std::vector<int> first_tile;

  std::size_t count() const { return first_tile.size() - 1; }
  std::byte* records() { return lines.data()->byte; }
  std::byte const* records() const { return lines.data()->byte; }
  std::size_t bytes() const { return lines.size() * sizeof(Line); }  // whole lines
};

// Collects the places of a record's values, in the order of BindParameters.
class SlotCollector {
 public:
  SlotCollector(GroupImage& image, void const* record)
      : image_(image), record_(static_cast<std::byte const*>(record)) {}
  void add(MatrixArguments const& matrix) { add_place(&matrix.data); }
  void add(TensorMapOfProblem const& map) {
    add_place(&map.bound.map);
    ++image_.maps;
  }
  void add_place(void const* place) {
    image_.offset.push_back(static_cast<unsigned short>(static_cast<std::byte const*>(place) - record_));
  }

 private:
  GroupImage& image_;
  std::byte const* record_;
};

// `fill(record, form)` writes what does not depend on pointers; `collect(slots, record)` adds the places that
// follow those of a, b and d, which are added here from Destination's matrix(record.d).
template <class Record, class Fill, class Collect>
GroupImage group_image(GemmPolicy const& policy, GroupForm const& group, Fill&& fill, Collect&& collect) {
  GroupImage image;
  image.record_bytes = static_cast<int>(sizeof(Record));
  static_assert(sizeof(Record) % 8 == 0);
  for (Index const tile : first_tiles(policy, group)) image.first_tile.push_back(static_cast<int>(tile));
  image.lines.resize((sizeof(Record) * group.problems.size() + sizeof(GroupImage::Line) - 1) /
                     sizeof(GroupImage::Line));
  Record record{};
  SlotCollector slots(image, &record);
  collect(slots, record);
  for (std::size_t i = 0; i < group.problems.size(); ++i) {
    CanonicalGemm const& form = group.problems[i];
    record = {};
    record.m = form.m;
    record.n = form.n;
    record.k = form.k;
    fill(record, form);
    std::memcpy(image.records() + sizeof(Record) * i, &record, sizeof(Record));
  }
  return image;
}

// Pointers and scalars of one record, one after the other.
class BoundValues {
 public:
  explicit BoundValues(unsigned long long* to) : to_(to) {}
  void add(void const* pointer) { *to_++ = reinterpret_cast<std::uintptr_t>(pointer); }
  void add(double scalar) {
    static_assert(sizeof(double) == sizeof(unsigned long long));
    std::memcpy(to_++, &scalar, sizeof(double));
  }
  // A problem with K = 0 reads nothing.
  void add_product(CanonicalGemm const& form, GemmProblem::Arguments const& arguments) {
    bool const reads = form.k > 0;
    add(reads ? form.swapped ? arguments.b : arguments.a : nullptr);
    add(reads ? form.swapped ? arguments.a : arguments.b : nullptr);
    add(arguments.d);
  }

 private:
  unsigned long long* to_;
};

// Calls launch(records, parameters) as often as it takes; write(i, values) gives those of record i.
// `image_at` and `to`: where the kernel finds the image and writes the records.
template <class Write, class Launch>
void bind_group(GroupImage const& image, void const* image_at, void* to, Write&& write, Launch&& launch) {
  BindParameters parameters;
  parameters.record_bytes = image.record_bytes;
  parameters.slots = static_cast<int>(image.offset.size());
  parameters.maps = image.maps;
  std::copy(image.offset.begin(), image.offset.end(), parameters.offset);
  std::size_t const slots = image.offset.size(), most = max_bound_values / slots;
  for (std::size_t first = 0; first < image.count(); first += most) {
    std::size_t const records = std::min(most, image.count() - first);
    std::size_t const begin = first * static_cast<std::size_t>(image.record_bytes);
    parameters.image = static_cast<std::byte const*>(image_at) + begin;
    parameters.to = static_cast<std::byte*>(to) + begin;
    for (std::size_t i = 0; i < records; ++i) write(first + i, BoundValues(parameters.value + i * slots));
    launch(static_cast<int>(records), parameters);
  }
}

}  // namespace cosmati::plan
