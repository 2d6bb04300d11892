// An operand of wgmma in shared memory, in the layout given by its descriptor.
#pragma once
#include <string>

#include "cosmati/tile/matrix_descriptor.h"
#include "src/backend/emulator/machine/ordinary_writes.h"
#include "src/backend/emulator/machine/shared_memory.h"

namespace cosmati::emulator {

class Block;

class MatrixReader {
 public:
  // Reads `outer` rows of A or columns of B, and 32 bytes along k.
  MatrixReader(unsigned long long descriptor, int outer, int element_bytes, bool along_outer);

  // Describes a mistake, if any: in the descriptor, in the addressed memory, ordinary writes without a fence,
  // or boxes that were not waited for or were copied with another swizzle.
  std::string mistake(Block const& block, OrdinaryWrites const& writes, char const* name) const;
  // Whether a part of it is in [offset, offset + bytes) of shared memory.
  bool meets(std::ptrdiff_t offset, int bytes) const;
  // Sets bytes[i][j] to byte j of the depth of row i.
  void read(SharedMemory const& memory, unsigned char* bytes, void const* caller) const;

 private:
  static constexpr int chunk = 16;
  // Returns the offset in shared memory of the 16 bytes from byte `byte` of line `line`.
  std::ptrdiff_t place(int line, int byte) const;
  std::string mistake_of_descriptor() const;
  int lines() const { return along_outer_ ? 32 / element_bytes_ : outer_; }
  int line_bytes() const { return along_outer_ ? outer_ * element_bytes_ : 32; }

  MatrixDescriptor descriptor_;
  int outer_, element_bytes_;
  bool along_outer_;
};

}  // namespace cosmati::emulator
