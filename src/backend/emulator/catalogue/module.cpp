// The table of this module's contents. Linked only into libcosmati_emulator.so.
#include "src/backend/emulator/catalogue/entries.h"

cosmati::emulator::Catalogue const* cosmati_emulator_catalogue() {
  using namespace cosmati::emulator;
  static constexpr Catalogue all{&find_kernel};
  return &all;
}
