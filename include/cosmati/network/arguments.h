// The parameters of the kernel that trains a fused network.
#pragma once
#include "cosmati/core/config.h"
#include "cosmati/core/delivery.h"

namespace cosmati {

// Devices that train together, each on its part of every batch. Each sends the gradients of all parameters
// for its part to all others. A member's `inbox`, zero before the first step, has two halves, for even and
// odd steps; each half has `pitch` deliveries per member: the gradients of all parameters, then the member's
// part of the loss. Two halves are enough: a member starts a step only after it has received all gradients of
// the previous one, which the others send only after they have read those of the step before that.
inline constexpr int max_fused_members = 8;
struct FusedTeamArguments {
  int members = 1, member = 0;
  int parameters = 0, pitch = 0;
  Delivery* inbox[max_fused_members] = {};
  unsigned step = 0;  // number of the launch's first step

  // The delivery of element `element` by member `from` for step `number`, in its inbox.
  COSMATI_CONSTEXPR Index at(int from, unsigned number, int element) const {
    return (Index{static_cast<int>(number % 2)} * members + from) * pitch + element;
  }
};

struct FusedTrainingArguments {
  unsigned char const* pixels = nullptr;  // images as bytes; an input is byte * scale + shift
  float scale = 1, shift = 0;
  // Each step has a row: the images of the batch (s32), their labels (s32), and the optimizer's numbers.
  unsigned char const* rows = nullptr;
  Index row_bytes = 0;
  int labels_at = 0, numbers_at = 0;  // bytes
  int size = 0, steps = 0;            // images per batch, number of batches
  int total = 0;                      // images per batch of all members of a team
  float* values = nullptr;            // all parameters
  float* velocity = nullptr;          // the optimizer's state: velocity (SGD) or first moment (Adam)
  float* second = nullptr;            // Adam's second moment
  float* losses = nullptr;            // per step, the mean over the batch
  float momentum = 0, weight_decay = 0;
  float beta1 = 0, beta2 = 0, rest1 = 0, rest2 = 0, epsilon = 0;  // rest1 = 1 - beta1
  // Scratch memory of the kernel, zero before the first launch. saved: FusedLayout::saved_rows rows of
  // `pitch` images, a multiple of fused_pitch; sums: FusedLayout::all_sums of each block.
  float* saved = nullptr;
  int pitch = 0;
  float* sums = nullptr;
  float* image_losses = nullptr;
  unsigned* counter = nullptr;  // of the grid barrier
  FusedTeamArguments team;
  // If not null, nothing is trained; the scores of the images of the first row are stored here.
  float* scores = nullptr;
};

}  // namespace cosmati
