// Reads a kernel's resources from a cubin, which is an ELF file. NVIDIA does not document its sections; this
// code was checked against ptxas -v of CUDA 13.0 for sm_80, sm_90a and sm_100a.
#include "src/jit/resources.h"

#include <elf.h>

#include <algorithm>
#include <climits>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>

namespace cosmati::jit {
namespace {

using Bytes = std::span<std::byte const>;

constexpr std::string_view shared_prefix = ".nv.shared.", constant_prefix = ".nv.constant";
constexpr int first_with_reserve = 90;          // since sm_90, .nv.shared.KERNEL includes the driver's bytes
constexpr std::uint64_t reserved_bytes = 1024;  // per block

// Returns an empty span if the range is not within the file.
Bytes part_of(Bytes file, std::uint64_t offset, std::uint64_t bytes) {
  if (offset > file.size() || bytes > file.size() - offset) return {};
  return file.subspan(offset, bytes);
}

template <class Entry>
std::optional<Entry> entry_of(Bytes table, std::uint64_t index) {
  if (index >= table.size() / sizeof(Entry)) return std::nullopt;
  Entry entry;
  std::memcpy(&entry, table.data() + index * sizeof entry, sizeof entry);
  return entry;
}

// The text from `offset` up to a zero or the end.
std::string_view text_at(Bytes texts, std::uint64_t offset) {
  if (offset >= texts.size()) return {};
  std::string_view const rest(reinterpret_cast<char const*>(texts.data()) + offset, texts.size() - offset);
  return rest.substr(0, rest.find('\0'));
}

class Elf {
 public:
  explicit Elf(Bytes file) : file_(file) {
    auto const header = entry_of<Elf64_Ehdr>(file, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_machine != EM_CUDA ||
        header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_shentsize != sizeof(Elf64_Shdr))
      return;
    header_ = *header;
    sections_ = part_of(file, header->e_shoff, std::uint64_t{header->e_shnum} * sizeof(Elf64_Shdr));
  }

  // Returns 90 for sm_90 and sm_90a. CUDA 13 uses ABI version 8, which stores the number in another byte.
  int architecture() const {
    return static_cast<int>((header_.e_flags >> (header_.e_ident[EI_ABIVERSION] >= 8 ? 8 : 0)) & 0xff);
  }

  std::optional<Elf64_Shdr> section(std::uint64_t index) const {
    return entry_of<Elf64_Shdr>(sections_, index);
  }

  Bytes contents(std::uint64_t index) const {
    auto const found = section(index);
    return found ? part_of(file_, found->sh_offset, found->sh_size) : Bytes();
  }

  std::string_view name(Elf64_Shdr const& section) const {
    return text_at(contents(header_.e_shstrndx), section.sh_name);
  }

  std::string_view symbol_name(std::uint64_t table, std::uint64_t index) const {
    auto const symbols = section(table);
    auto const symbol = entry_of<Elf64_Sym>(contents(table), index);
    return symbols && symbol ? text_at(contents(symbols->sh_link), symbol->st_name) : std::string_view();
  }

 private:
  Bytes file_, sections_;
  Elf64_Ehdr header_{};
};

struct Counts {
  std::optional<std::uint32_t> registers;
  std::uint64_t local_bytes = 0, shared_bytes = 0, constant_bytes = 0;
};

// Reads the attributes of all functions. Each has a format, a number and a 16-bit value, which for format 4
// is the length of the data that follows; those read here contain a symbol and a count.
void add_attributes(Elf const& elf, std::uint64_t index, Elf64_Shdr const& section, std::string_view kernel,
                    Counts& counts) {
  constexpr std::uint8_t sized = 4;
  constexpr std::uint8_t frame_bytes = 0x11, min_stack_bytes = 0x12, register_count = 0x2f;
  struct Attribute {
    std::uint8_t format, number;
    std::uint16_t value;
  };
  struct Count {
    std::uint32_t symbol, count;
  };
  Bytes rest = elf.contents(index);
  while (auto const attribute = entry_of<Attribute>(rest, 0)) {
    rest = rest.subspan(sizeof *attribute);
    if (attribute->format != sized) continue;
    Bytes const value = part_of(rest, 0, attribute->value);
    rest = rest.subspan(std::min<std::size_t>(attribute->value, rest.size()));
    auto const pair = entry_of<Count>(value, 0);
    if (!pair || elf.symbol_name(section.sh_link, pair->symbol) != kernel) continue;
    if (attribute->number == register_count) counts.registers = pair->count;
    // The stack of a kernel that calls functions includes their frames.
    if (attribute->number == frame_bytes || attribute->number == min_stack_bytes)
      counts.local_bytes = std::max<std::uint64_t>(counts.local_bytes, pair->count);
  }
}

// True if `name` is ".nv.constantBANK.KERNEL" and the bank is not 0, which holds the parameters.
bool is_constants_of(std::string_view name, std::string_view kernel) {
  if (!name.starts_with(constant_prefix)) return false;
  std::string_view const bank = name.substr(constant_prefix.size());
  std::size_t const digits = std::min(bank.find('.'), bank.size());
  return bank.substr(0, digits) != "0" && digits < bank.size() && bank.substr(digits + 1) == kernel;
}

}  // namespace

bool read_resources(Cubin& cubin) {
  Elf const elf{cubin.image};
  std::string_view const kernel = cubin.lowered_name;
  if (kernel.empty()) return false;
  Counts counts;
  for (std::uint64_t index = 0; auto const section = elf.section(index); ++index) {
    std::string_view const name = elf.name(*section);
    if (name == ".nv.info") add_attributes(elf, index, *section, kernel, counts);
    if (name.starts_with(shared_prefix) && name.substr(shared_prefix.size()) == kernel)
      counts.shared_bytes = section->sh_size;
    if (is_constants_of(name, kernel))
      counts.constant_bytes += std::min<std::uint64_t>(section->sh_size, UINT32_MAX);
  }
  if (elf.architecture() >= first_with_reserve && counts.shared_bytes >= reserved_bytes)
    counts.shared_bytes -= reserved_bytes;
  if (!counts.registers || *counts.registers > INT_MAX || counts.local_bytes > INT_MAX ||
      counts.shared_bytes > INT_MAX || counts.constant_bytes > INT_MAX)
    return false;
  cubin.registers = static_cast<int>(*counts.registers);
  cubin.local_bytes = static_cast<int>(counts.local_bytes);
  cubin.static_shared_bytes = static_cast<int>(counts.shared_bytes);
  cubin.constant_bytes = static_cast<int>(counts.constant_bytes);
  return true;
}

}  // namespace cosmati::jit
