// The emulator's kernels of fused networks.
#include "cosmati/network/training.h"

#include "src/backend/emulator/catalogue/kernels.h"
#include "src/plan/network/emulated.h"
#include "src/plan/network/fused.h"

namespace cosmati::emulator {
namespace {

template <FusedNetwork network>
void add(KernelTable& table) {
  add_kernel<&fused_training_kernel<FusedTraits<network>>, FusedTrainingArguments>(
      table, "fused_training_kernel", plan::fused_traits(network));
}

}  // namespace

void add_networks(KernelTable& table) {
  add<plan::emulated_lenet5(false, false)>(table);
  add<plan::emulated_lenet5(false, true)>(table);
  add<plan::emulated_lenet5(true, false)>(table);
  add<plan::emulated_lenet5(true, true)>(table);
  add<plan::emulated_lenet5(false, false, true)>(table);
  add<plan::emulated_lenet5(false, true, true)>(table);
  add<plan::emulated_lenet5(true, false, true)>(table);
  add<plan::emulated_lenet5(true, true, true)>(table);
  add<plan::emulated_lenet5(false, false, false, true)>(table);
  add<plan::emulated_lenet5(true, false, false, true)>(table);
}

}  // namespace cosmati::emulator
