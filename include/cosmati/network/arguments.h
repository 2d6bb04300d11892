// The parameters of the kernel that trains a fused network.
#pragma once
#include "cosmati/core/config.h"

namespace cosmati {

// Devices that train together, each on its part of every batch. `gradients` of a member: two rows of `pitch`
// floats, used in alternate steps: the gradients of all parameters, then the member's part of the loss. Each
// member's kernel writes its own and reads those of all members. `arrivals` of a member counts the blocks of
// all members that have written the gradients of a step; both are zero before the first step.
inline constexpr int max_fused_members = 8;
struct FusedTeamArguments {
  int members = 1, member = 0;
  int parameters = 0, pitch = 0;
  float* gradients[max_fused_members] = {};
  unsigned* arrivals[max_fused_members] = {};
  unsigned blocks = 0;  // of all members
  unsigned step = 0;    // number of the launch's first step
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
};

}  // namespace cosmati
