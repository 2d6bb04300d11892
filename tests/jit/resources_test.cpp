// The resources of a kernel, read from intact, foreign or damaged machine code.
#include "src/jit/resources.h"

#include <elf.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "src/jit/nvrtc.h"
#include "tests/jit/testing.h"

namespace cosmati::jit {
namespace {

using namespace testing;

struct Section {
  std::string name;
  std::string contents;
  std::uint32_t type = SHT_PROGBITS, link = 0;
  std::uint64_t size = 0;  // size of a section without contents
};

template <class Value>
void append(std::string& file, Value const& value) {
  file.append(reinterpret_cast<char const*>(&value), sizeof value);
}

void append_attribute(std::string& list, std::uint8_t number, std::uint32_t symbol, std::uint32_t count) {
  for (std::uint8_t const byte : {std::uint8_t{4}, number, std::uint8_t{8}, std::uint8_t{0}})
    append(list, byte);
  append(list, symbol);
  append(list, count);
}

// Sections, then their headers, in the order of NVIDIA's assembler. The names come first.
std::string elf_of(std::vector<Section> sections, std::uint32_t flags, std::uint8_t version) {
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_ABIVERSION] = version;
  header.e_machine = EM_CUDA;
  header.e_flags = flags;
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<Elf64_Half>(sections.size());
  header.e_shstrndx = 1;
  std::vector<std::uint32_t> names;
  for (Section const& section : sections) {
    names.push_back(static_cast<std::uint32_t>(sections[1].contents.size()));
    sections[1].contents += section.name + '\0';
  }
  std::string file(sizeof header, '\0'), table;
  for (std::size_t i = 0; i < sections.size(); ++i) {
    Elf64_Shdr entry{};
    entry.sh_name = names[i];
    entry.sh_type = sections[i].type;
    entry.sh_link = sections[i].link;
    entry.sh_offset = file.size();
    entry.sh_size = sections[i].type == SHT_NOBITS ? sections[i].size : sections[i].contents.size();
    append(table, entry);
    file += sections[i].contents;
  }
  header.e_shoff = file.size();
  std::memcpy(file.data(), &header, sizeof header);
  return file + table;
}

// A cubin with the kernels "ours" and "other", and a function that ours calls.
std::string small_cubin(std::uint32_t flags = 0x6005a04, std::uint8_t version = 8) {
  std::string const names("\0other\0ours\0", 12);
  std::string symbols, info;
  for (std::uint32_t const name : {0u, 1u, 7u, 3u}) {
    Elf64_Sym symbol{};
    symbol.st_name = name;
    append(symbols, symbol);
  }
  constexpr std::uint8_t registers = 0x2f, frame = 0x11, stack = 0x12;
  append_attribute(info, registers, 1, 22);
  append_attribute(info, frame, 1, 8);
  info.append("\3\x1b\xff\0", 4);  // an attribute of another format
  append_attribute(info, registers, 2, 96);
  append_attribute(info, frame, 2, 16);
  append_attribute(info, frame, 3, 400);
  append_attribute(info, stack, 2, 416);
  return elf_of({{"", "", SHT_NULL},
                 {".shstrtab", "", SHT_STRTAB},
                 {".strtab", names, SHT_STRTAB},
                 {".symtab", symbols, SHT_SYMTAB, 2},
                 {".nv.info", info, SHT_LOPROC, 3},
                 {".nv.info.ours", info.substr(0, 24), SHT_LOPROC, 3},
                 {".nv.shared.other", "", SHT_NOBITS, 0, 2048},
                 {".nv.shared.ours", "", SHT_NOBITS, 0, 5120},
                 {".nv.constant2.ours", std::string(24, '.')},
                 {".nv.constant3", std::string(160, '.')},
                 {".nv.constant0.ours", std::string(536, '.')},
                 {".nv.constant2.other", std::string(8, '.')}},
                flags, version);
}

struct Reading {
  Cubin cubin;
  bool read = false;
};

Reading read(std::string const& image, std::string const& kernel) {
  Reading reading;
  reading.cubin.image = io::testing::exact_copy(image);
  reading.cubin.lowered_name = kernel;
  reading.read = read_resources(reading.cubin);
  return reading;
}

// The values read from a damaged cubin are arbitrary, but either all of them are read or none.
void expect_sane(Reading const& reading) {
  Cubin const& cubin = reading.cubin;
  EXPECT_GE(std::min({cubin.registers, cubin.local_bytes, cubin.static_shared_bytes, cubin.constant_bytes}),
            0);
  if (!reading.read) {
    EXPECT_EQ(cubin.registers + cubin.local_bytes + cubin.static_shared_bytes + cubin.constant_bytes, 0);
  }
}

void expect_damage_is_survived(std::string const& image, std::string const& kernel) {
  for (std::size_t length = 0; length < image.size(); ++length) {
    expect_sane(read(image.substr(0, length), kernel));
    expect_sane(read(image.substr(0, length) + std::string(image.size() - length, '\xff'), kernel));
  }
  std::mt19937 random(7);
  for (int round = 0; round < 4000; ++round) {
    std::string damaged = image;
    // Most of a file is instructions, so half of the rounds target its headers.
    std::size_t const first = round % 2 == 0 ? 0 : image.size() - std::min<std::size_t>(image.size(), 1024);
    for (int change = 0; change < 1 + round % 8; ++change)
      damaged[first + random() % (round % 4 == 2 ? sizeof(Elf64_Ehdr) : image.size() - first)] =
          static_cast<char>(random());
    expect_sane(read(damaged, kernel));
  }
}

TEST(Resources, AreThoseOfTheKernelAsked) {
  Reading const ours = read(small_cubin(), "ours"), other = read(small_cubin(), "other");
  ASSERT_TRUE(ours.read && other.read);
  EXPECT_EQ(ours.cubin.registers, 96);
  EXPECT_EQ(ours.cubin.local_bytes, 416);
  EXPECT_EQ(ours.cubin.static_shared_bytes, 4096);
  EXPECT_EQ(ours.cubin.constant_bytes, 24);
  EXPECT_EQ(other.cubin.registers, 22);
  EXPECT_EQ(other.cubin.local_bytes, 8);
  EXPECT_EQ(other.cubin.static_shared_bytes, 1024);
  EXPECT_EQ(other.cubin.constant_bytes, 8);
}

TEST(Resources, TheDriversSharedMemoryIsCountedSinceHopper) {
  EXPECT_EQ(read(small_cubin(0x6005004), "ours").cubin.static_shared_bytes, 5120);    // sm_80
  EXPECT_EQ(read(small_cubin(0x5a055a, 7), "ours").cubin.static_shared_bytes, 4096);  // sm_90, CUDA 12
  EXPECT_EQ(read(small_cubin(0x500550, 7), "ours").cubin.static_shared_bytes, 5120);  // sm_80, CUDA 12
  EXPECT_EQ(read(small_cubin(0x6006402), "other").cubin.static_shared_bytes, 1024);   // sm_100
}

TEST(Resources, OfKernelsAndFilesThatAreNoneAreNotTold) {
  for (char const* kernel : {"", "our", "ours2", "nothing", "urs"})
    EXPECT_FALSE(read(small_cubin(), kernel).read) << kernel;
  EXPECT_FALSE(read("", "ours").read);
  EXPECT_FALSE(read(std::string(5000, '\xff'), "ours").read);
  for (std::size_t const at : {0u, 4u, 5u, 18u, 58u}) {  // magic, class, byte order, machine, header size
    std::string foreign = small_cubin();
    foreign[at] = static_cast<char>(foreign[at] + 1);
    EXPECT_FALSE(read(foreign, "ours").read) << at;
  }
}

TEST(Resources, CountsBeyondAllReasonAreNotTold) {
  for (char const count : {'\x60', '\x10'}) {  // sizes of the register and frame records
    std::string const small{'\2', 0, 0, 0, count, 0, 0, 0}, large{'\2', 0, 0, 0, count, 0, 0, '\x80'};
    std::string image = small_cubin();
    std::size_t const at = image.find(small);
    ASSERT_NE(at, std::string::npos);
    expect_sane(read(image.replace(at, large.size(), large), "ours"));
    EXPECT_FALSE(read(image, "ours").read);
  }
}

TEST(Resources, DamageIsSurvived) { expect_damage_is_survived(small_cubin(), "ours"); }

TEST(Resources, RandomBytesAreSurvived) {
  std::mt19937 random(11);
  std::string const whole = small_cubin();
  for (int round = 0; round < 2000; ++round) {
    std::string noise(1 + random() % 3000, '\0');
    for (char& byte : noise) byte = static_cast<char>(random());
    if (round % 2 == 1) noise.replace(0, std::min<std::size_t>(64, noise.size()), whole, 0, 64);
    expect_sane(read(noise, "ours"));
  }
}

constexpr char const* memory_text = R"(
template <int extent> __global__ void kept(float* data, int i) {
  volatile float local[extent];
  __shared__ float shared[2 * extent];
  for (int k = 0; k < extent; ++k) local[k] = data[k];
  shared[threadIdx.x] = local[i];
  __syncthreads();
  data[threadIdx.x] = shared[i];
}
template <int values> __global__ void crowded(float* data) {
  float value[values];
#pragma unroll
  for (int k = 0; k < values; ++k) value[k] = data[k * 256 + threadIdx.x];
  __syncthreads();
#pragma unroll
  for (int k = 0; k < values; ++k) data[k * 768 + threadIdx.x] = value[k] * value[(k * 17 + 3) % values];
}
)";

class CompiledResources : public ::testing::TestWithParam<char const*> {
 protected:
  void SetUp() override {
    if (!nvrtc_available()) GTEST_SKIP() << nvrtc_description();
  }
  static Cubin compiled(std::string const& name, std::vector<std::string> options = {}) {
    return compile({.text = memory_text,
                    .name_expression = name,
                    .options = std::move(options),
                    .architecture = GetParam()});
  }
};

TEST_P(CompiledResources, ArraysInLocalAndSharedMemoryAreCounted) {
  for (int const extent : {1000, 1500}) {  // small extents are kept in registers
    Cubin const cubin = compiled("kept<" + std::to_string(extent) + ">");
    EXPECT_EQ(cubin.local_bytes, 4 * extent);
    EXPECT_EQ(cubin.static_shared_bytes, 8 * extent);
    EXPECT_EQ(cubin.compiler_warnings, "");
  }
}

TEST_P(CompiledResources, SpillsAreLocalMemory) {
  Cubin const free = compiled("crowded<64>"), limited = compiled("crowded<64>", {"--maxrregcount=32"});
  EXPECT_GT(free.registers, 64);
  EXPECT_EQ(free.local_bytes, 0);
  EXPECT_EQ(free.static_shared_bytes, 0);
  EXPECT_EQ(limited.registers, 32);
  EXPECT_GE(limited.local_bytes, 4 * (64 - 32));
}

TEST_P(CompiledResources, AreThoseThatTheAssemblerTells) {
  std::vector<std::string> const tell = {"--ptxas-options=-v"}, limit = {"--maxrregcount=32", tell[0]};
  for (Cubin const& cubin : {compiled("kept<1000>", tell), compiled("crowded<64>", tell),
                             compiled("crowded<64>", limit), compiled("crowded<48>", limit)}) {
    std::string const& told = cubin.compiler_warnings;
    EXPECT_TRUE(contains(told, " " + std::to_string(cubin.registers) + " registers")) << told;
    EXPECT_TRUE(contains(told, " " + std::to_string(cubin.local_bytes) + " bytes stack frame")) << told;
    EXPECT_EQ(contains(told, " " + std::to_string(cubin.static_shared_bytes) + " bytes smem"),
              cubin.static_shared_bytes > 0)
        << told;
  }
}

TEST_P(CompiledResources, DamageIsSurvived) {
  Cubin const cubin = compiled("kept<8>");
  expect_damage_is_survived({reinterpret_cast<char const*>(cubin.image.data()), cubin.image.size()},
                            cubin.lowered_name);
}

INSTANTIATE_TEST_SUITE_P(Architectures, CompiledResources,
                         ::testing::Values("sm_80", "sm_86", "sm_89", "sm_90a"),
                         [](auto const& instance) { return std::string(instance.param); });

}  // namespace
}  // namespace cosmati::jit
