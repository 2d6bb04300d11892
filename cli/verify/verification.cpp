// Verifies one problem.
#include "cli/verify/verification.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <vector>

#include "cli/data/guarded.h"
#include "cli/data/staged.h"
#include "cli/options/placement.h"
#include "cli/output/table.h"

namespace cosmati::cli {
namespace {

using Tensors = std::vector<Tensor>;

constexpr unsigned char poisons[] = {0xff, 0x5a};

struct Runs {
  std::vector<Tensors> outputs;  // outputs of one run per poison value
};

// Runs once per poison value; reports writes outside the outputs and runs that differ.
Runs run_guarded(PreparedTask const& prepared, std::vector<Slot> const& slots, Tensors& inputs,
                 Index misalignment, Verdict& verdict) {
  Runs runs;
  std::deque<GuardedTensor> moved;  // inputs
  for (std::size_t i = 0; misalignment > 0 && i < slots.size(); ++i)
    if (slots[i].role == Role::input) {
      moved.emplace_back(slots[i].description, poisons[0], offset_of(slots[i].description, misalignment));
      moved.back().copy_from(inputs[i]);
    }
  for (unsigned char const poison : poisons) {
    std::vector<GuardedTensor> outputs;
    std::vector<void*> pointers;
    for (Slot const& slot : slots)
      if (slot.role != Role::input)
        outputs.emplace_back(slot.description, poison, offset_of(slot.description, misalignment));
    std::size_t next = 0, next_moved = 0;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      bool const written = slots[i].role != Role::input;
      if (slots[i].role == Role::in_out) outputs[next].copy_from(inputs[i]);
      pointers.push_back(written            ? outputs[next++].data()
                         : misalignment > 0 ? moved[next_moved++].data()
                                            : inputs[i].data());
    }
    Tensor workspace(DataType::u8, Shape(static_cast<Index>(prepared.choice().workspace_bytes)));
    std::memset(workspace.data(), poison, workspace.bytes());
    prepared.run(pointers, workspace.data());
    runs.outputs.emplace_back();
    next = 0;
    for (Slot const& slot : slots) {
      if (slot.role == Role::input) continue;
      runs.outputs.back().push_back(outputs[next].contents());
      // Gaps of copied inputs hold the caller's data, not poison.
      std::string const trespass = slot.role == Role::output ? outputs[next].trespass() : "";
      if (!trespass.empty() && verdict.correct) {
        verdict.correct = false;
        verdict.complaint = slot.name + ": " + trespass;
      }
      ++next;
    }
  }
  return runs;
}

// The largest magnitude of hard data. The gradient of softmax takes y or log y, which is exponentiated; the
// gradient of batch normalization is a product of five numbers; the RBF loss contains exponentials of
// squares; the gradient of a layer normalization is a product of seven.
double largest_of(std::vector<Slot> const& slots, Slot const& slot, bool derived) {
  auto const has = [&slots](char const* name) {
    return std::ranges::any_of(slots, [name](Slot const& other) { return other.name == name; });
  };
  if (slot.name == "y") return 16;
  if (has("centres") && has("labels")) return 4;
  if (derived) return 0x1p+16;
  return has("scale") ? 0x1p+18 : 0x1p+1023;
}

}  // namespace

Verdict verify_task(Task& task, Device const& device, PlanOptions const& options, Data const& data,
                    nets::Random& random) {
  promise_alignment(task, data.misalignment);
  auto const slots = task.slots();
  Tensors inputs;
  for (Slot const& slot : slots) {
    inputs.emplace_back(slot.role == Role::output ? describe(slot.description.type, Shape(0))
                                                  : slot.description);
    std::memset(inputs.back().data(), 0xff, inputs.back().bytes());  // NaN in the gaps
    fill_random(inputs.back(), slot.name, {data.small_integers, task.notes.classes}, random);
    if (!keeps_type(slot))
      fill_hard(inputs.back(), slot.name, data.hard, largest_of(slots, slot, task.notes.bounds != nullptr),
                random);
  }
  auto const prepared = for_host_arrays(task.prepare(device, options), device, slots,
                                        static_cast<std::size_t>(GuardedTensor::guard));
  Verdict verdict;
  verdict.kernel = prepared->choice().kernel;
  std::vector<void*> pointers;
  for (Tensor& input : inputs) pointers.push_back(input.data());
  Tensors const added = task.added_errors(device, options, pointers);
  verdict.exact = task.notes.terms == 0 || (data.small_integers && task.notes.exact && added.empty());
  Runs const runs = run_guarded(*prepared, slots, inputs, data.misalignment, verdict);

  judge(task, device.backend, inputs, runs.outputs, verdict, added, data.hard);
  return verdict;
}

}  // namespace cosmati::cli
