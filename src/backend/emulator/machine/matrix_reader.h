// An operand of wgmma in shared memory, as its descriptor says that it lies.
#pragma once
#include <string>

#include "cosmati/tile/matrix_descriptor.h"
#include "src/backend/emulator/machine/ordinary_writes.h"
#include "src/backend/emulator/machine/shared_memory.h"

namespace cosmati::emulator {

class Block;

class MatrixReader {
 public:
  // Reads `outer` rows of A, or columns of B, and 32 bytes along k.
  MatrixReader(unsigned long long descriptor, int outer, int element_bytes, bool along_outer);

  // What is wrong with it, if anything: the descriptor; where it leads to; ordinary writes without a fence;
  // boxes that nobody has waited for, or that were copied with another swizzle.
  std::string mistake(Block const& block, OrdinaryWrites const& writes, char const* name) const;
  // Whether a part of it lies in [offset, offset + bytes) of shared memory.
  bool meets(std::ptrdiff_t offset, int bytes) const;
  // bytes[i][j] becomes byte j of the depth of row i.
  void read(SharedMemory const& memory, unsigned char* bytes, void const* caller) const;

 private:
  static constexpr int chunk = 16;
  // Where 16 bytes from byte `byte` of line `line` lie in shared memory.
  std::ptrdiff_t place(int line, int byte) const;
  std::string mistake_of_descriptor() const;
  int lines() const { return along_outer_ ? 32 / element_bytes_ : outer_; }
  int line_bytes() const { return along_outer_ ? outer_ * element_bytes_ : 32; }

  MatrixDescriptor descriptor_;
  int outer_, element_bytes_;
  bool along_outer_;
};

}  // namespace cosmati::emulator
