// Choice of main loop, policy and split for the product of a convolution.
#include "src/plan/conv/product_choice.h"
#include "src/plan/best_offer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "src/ops/architecture.h"
#include "src/plan/buffers.h"
#include "src/plan/conv/choice.h"
#include "src/plan/conv/filter/filter_copy.h"
#include "src/plan/conv/phases.h"
#include "src/plan/emulated/contents.h"
#include "src/plan/emulated/policy.h"
#include "src/plan/gemm/invariant.h"
#include "src/plan/gemm/model.h"
#include "src/plan/gemm/partition.h"
#include "src/plan/gemm/policies.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/integers.h"

namespace cosmati::plan {
namespace {

using Problem = ConvolutionProblem;

// The depth of a form when the channels of each tap are padded to full steps.
Index padded_depth(ConvolutionForm const& form, int block_k) { return stepwise(form, block_k).depth(); }

// Computes addresses once per step if the padding costs less than that saves.
bool steps_by_taps(Problem const& problem, ConvolutionForm const& form, int block_k) {
  if (problem.direction == ConvolutionDirection::filter) return false;
  return static_cast<double>(padded_depth(form, block_k)) <= 1.15 * static_cast<double>(form.depth());
}

struct Path {
  MainLoop main_loop;
  Multiply multiply;
};

std::vector<Path> ways_of(ConvolutionForm const& form, Gpu const& gpu) {
  bool const bytes = is_int8(form.a.type) && is_int8(form.b.type);
  Multiply const simple = bytes ? Multiply::dp4a : Multiply::fma;
  std::vector<Path> paths{{MainLoop::double_buffered, simple}};
  if (!features_of(gpu).async_copy) return paths;
  int const bytes_of_run = form.a.access.width * size_of(form.a.type);
  if (!bytes && bytes_of_run >= 4) paths.push_back({MainLoop::multistage, simple});
  bool const deep = form.a.access.along == Along::k && form.b.access.along == Along::k;
  if (mma_takes(form.a.type, form.b.type, form.sum) && (size_of(form.a.type) > 1 || deep) &&
      mma_device_violation(form.a.type, gpu).empty())
    paths.push_back({MainLoop::multistage, Multiply::mma});
  return paths;
}

// For few filters whose windows are loaded element by element: on an H100, 16 filters of 6x5x5 took 6.6 us,
// but 8.3 us with small (docs/decisions/0040).
NamedPolicy slim_of(NamedPolicy const& small) {
  GemmPolicy policy = small.policy;
  policy.block_n = 32;
  policy.warp_m = 16, policy.thread_m = 2;
  return {"slim", policy};
}

// The bytes of the tensors that a convolution reads.
double operand_bytes(Problem const& p) {
  double bytes = 0;
  for (auto const& [tensor, result] :
       {std::pair{&p.x, ConvolutionDirection::data}, std::pair{&p.w, ConvolutionDirection::filter},
        std::pair{&p.y, ConvolutionDirection::forward}})
    if (p.direction != result) bytes += static_cast<double>(tensor->bytes());
  return bytes;
}

class Search {
 public:
  Search(Problem const& problem, Device const& device, PlanOptions const& options,
         std::vector<ConvolutionForm> const& forms, ConvolutionRecipe const& base)
      : problem_(problem),
        device_(device),
        options_(options),
        policy_(options.policy),
        forms_(forms),
        base_(base),
        operand_bytes_(operand_bytes(problem)) {}

  Offer<Problem> best() {
    std::optional<MainLoop> const main_loop = options_.policy.main_loop;
    policy_.main_loop.reset();
    if (policy_.tile || policy_.extent) {
      refuse("has neither Winograd tiles nor FFT transforms; --policy " + options_.policy.text +
             " was requested");
      return std::move(best_).result();
    }
    refuse("--policy " + options_.policy.text + " selects no instruction that multiplies " +
           name_of(forms_.front().a.type) + " and " + name_of(forms_.front().b.type) + " here");
    for (Path const& path : ways_of(forms_.front(), device_.gpu)) {
      if (keeps_order(options_, forms_.front().sum)) {
        if (path.multiply != invariant_multiply()) continue;
        if (path.multiply == Multiply::mma && !is_side_kept()) {
          refuse(
              "with one pixel per image, the batch size determines whether images are rows of the product, "
              "and mma does not guarantee identical bits for both");
          continue;
        }
      }
      if (main_loop && main_loop != path.main_loop) continue;
      if (policy_.multiply && policy_.multiply != path.multiply) continue;
      if (emulated() && !emulator::multiplies_convolution(path.main_loop, path.multiply,
                                                          forms_.front().a.type, forms_.front().b.type))
        continue;
      try_way(path);
    }
    return std::move(best_).result();
  }

 private:
  bool emulated() const { return device_.backend == Backend::emulator; }

  // The multiply of a batch-invariant plan, which does not depend on the number of images.
  Multiply invariant_multiply() const {
    char const* const loop = name_of(MainLoop::multistage);
    return plan::invariant_multiply(gemm_view(forms_.front()), device_.gpu, loop);
  }
  // True if the major of the pixels does not depend on the number of images, which holds with more than one
  // pixel per image.
  bool is_side_kept() const {
    return std::all_of(forms_.begin(), forms_.end(), [](ConvolutionForm const& form) {
      ProductIndex const& pixels = form.image_is_a ? form.m : form.n;
      return std::any_of(pixels.begin(), pixels.end(), [](ProductDigit const& digit) {
        return (digit.letter == 'p' || digit.letter == 'q') && digit.extent > 1;
      });
    });
  }

  void try_way(Path const& path) {
    int const element_bytes = size_of(forms_.front().a.type);
    GemmPolicy const own = emulator::emulated_policy(path.main_loop, path.multiply, element_bytes);
    std::vector<NamedPolicy> policies =
        named_policies(path.main_loop, path.multiply, forms_.front().sum, element_bytes);
    if (path.multiply == Multiply::mma && element_bytes == 2) policies.push_back(slim_of(policies.front()));
    if (emulated()) policies = {{"emulated", own}};
    if (std::string foreign = foreign_policy(policy_, policies); !emulated() && !foreign.empty())
      return refuse(std::move(foreign));
    if (!policy_.empty()) policies = {requested_policy(policy_, policies, policies[emulated() ? 0 : 2])};
    if (emulated() && !(policies.front().policy == own)) {
      refuse("the emulator has one policy for each main loop and type: emulated");
      return;
    }
    for (NamedPolicy const& named : policies) try_policy(named);
  }

  void try_policy(NamedPolicy const& named) {
    ConvolutionForm const& front = forms_.front();
    ConvolutionRecipe recipe = base_;
    recipe.product = product_recipe(front);
    GemmRecipe& product = recipe.product;
    product.repack_a = base_.product.repack_a;
    product.repack_b = base_.product.repack_b;
    product.policy_name = named.name;
    product.policy = named.policy;
    // The staged epilogue finds rows by division only once per run.
    if (!emulated() && !policy_.epilogue) product.policy.epilogue = EpilogueSchedule::staged;
    // Index digits, positions and addresses of single elements need registers, so fewer blocks are resident.
    auto const is_short = [](OperandAccess const& access, DataType type) {
      return access.width == 1 || access.width * size_of(type) < 8;
    };
    bool const single = is_short(product.a, front.a.type) || is_short(product.b, front.b.type);
    recipe.stepwise = base_.algorithm == ConvolutionAlgorithm::implicit_gemm &&
                      steps_by_taps(problem_, front, product.policy.block_k);
    product.policy.full_tiles = has_full_tiles(product.policy, recipe.stepwise);
    if (!product.policy.full_tiles)
      product.policy.blocks = std::max(1, product.policy.blocks - (single ? 2 : 1));
    std::string sentence = policy_violation(product.policy, front.a.type, front.b.type, front.sum);
    int const shared = shared_storage_bytes(product, gemm_view(front));
    if (sentence.empty() && shared > device_.gpu.shared_bytes_per_block)
      sentence = fmt::format("needs {} bytes of shared memory per block; {} has {}", shared, device_.gpu.name,
                             device_.gpu.shared_bytes_per_block);
    if (!sentence.empty()) return refuse(sentence);
    bool const in_order = keeps_order(options_, front.sum);
    for (int splits : {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256})
      if (splits == 1 || (!in_order && may_split(product.policy, splits))) try_splits(recipe, splits);
  }

  // Whether every element that a tile reads or writes exists: no window reaches beyond the image, all extents
  // are multiples of the tile, and steps by taps need no padding.
  bool has_full_tiles(GemmPolicy const& policy, bool by_taps) const {
    return !emulated() && std::all_of(forms_.begin(), forms_.end(), [&](ConvolutionForm const& form) {
      return !form.a.windowed && !form.b.windowed && form.a.access.width > 1 && form.b.access.width > 1 &&
             form.rows() % policy.block_m == 0 && form.columns() % policy.block_n == 0 &&
             form.depth() % policy.block_k == 0 &&
             (!by_taps || padded_depth(form, policy.block_k) == form.depth());
    });
  }

  bool may_split(GemmPolicy const& policy, int splits) const {
    Index tiles = 0, steps = max_int;
    for (ConvolutionForm const& form : forms_) {
      tiles = std::max(tiles, tiles_of(policy, gemm_view(form)) * form.groups);
      steps = std::min(steps, form.depth() / policy.block_k);
    }
    return tiles < 4 * Index{device_.gpu.multiprocessors} && steps / splits >= 8;
  }

  // The emulator computes phases in one launch whenever possible.
  void try_splits(ConvolutionRecipe const& recipe, int splits) {
    bool const may = may_run_together();
    if (!may || !emulated()) try_launches(recipe, splits, false);
    if (may) try_launches(recipe, splits, true);
  }

  // Elements that are loaded one by one take one L1 clock each if those of adjacent lanes are more than a
  // sector apart. Measured on an H200 (docs/decisions/0019).
  double scattered_seconds(GemmRecipe const& recipe, ConvolutionForm const& form, double tile_steps) const {
    if (recipe.policy.multiply == Multiply::mma) return 0;
    auto const of_step = [&](WindowForm const& operand, int extent) {
      bool const together =
          operand.access.width > 1 || operand.lane_stride * size_of(operand.type) < sector_bytes;
      return together ? 0 : extent * recipe.policy.block_k;
    };
    int const elements = of_step(form.a, recipe.policy.block_m) + of_step(form.b, recipe.policy.block_n);
    return tile_steps * elements / (device_.gpu.multiprocessors * device_.gpu.clock_hertz);
  }

  bool is_planar() const { return problem_.x.layout.stride[3] == 1; }

  // The slowdown of single-element loads where multiplying is fast. Measured on an H200: 2.4 to 3.6 times the
  // prediction for 16-bit types with multiply-adds, 1.6 to 4.6 times for tf32 on tensor cores, and 1.1 to 1.7
  // times for f32, in 64 convolutions of ResNet-50. First layers in f32, NCHW, whose k indices are decoded,
  // took 1.27 (k = 147), 1.24 (100) and 1.53 and 1.68 times (27) as long as that.
  double elements_factor(ConvolutionRecipe const& recipe, ConvolutionForm const& form) const {
    GemmRecipe const& product = recipe.product;
    int const size = size_of(form.a.type), run = std::min(product.a.width, product.b.width) * size;
    bool const halves = product.policy.multiply == Multiply::fma && size == 2 && run < 4;
    if (halves || (form.a.type == DataType::tf32 && run == 4)) return 3;
    bool const is_f32 = product.policy.multiply == Multiply::fma && form.a.type == DataType::f32;
    if (!is_f32 || form.image().access.width > 1) return 1;
    bool const decoded = problem_.direction == ConvolutionDirection::forward && is_planar() &&
                         form.image().windowed && !recipe.stepwise && !recipe.unrolls();
    return decoded ? 1.25 * (1.15 + 11 / to_double(std::max<Index>(1, form.depth()))) : 1.25;
  }

  // With 1x1 filters, runs of an image are predicted to be as fast as those of a matrix, but their positions
  // are found by digits. On an H100, three convolutions took 254, 228 and 49 us, but 193, 163 and 40 us as
  // batched products.
  double digits_factor(ConvolutionForm const& form) const {
    bool const runs = !form.image().windowed && form.image().access.width > 1;
    bool const one_tap = has_one_tap(problem_);
    return runs && one_tap && problem_.direction != ConvolutionDirection::filter ? 1.35 : 1;
  }

  // Windows of 16-bit types by mma.sync. On an H200, a forward convolution from 32 channels of 160x160 to 64
  // with stride 2 took 45.7 us (predicted: 26), a data gradient from 32 filters of 56x56 took 82 us (56), and
  // filter gradients of the suites took 1.2 to 1.7 times their prediction. Runs of 4 bytes (18 channels of
  // 56x56) took 106 us (31), single elements (3 channels of 512x512) 750 us (276). In tf32, by mma.sync or
  // multiply-adds: 24 channels of 112x112 took 346 and 386 us (209, 233), 26 of 56x56 136 us (59); filter
  // gradients of 1x1 with stride 2 took 174 us (106) and 149 (99), unrolled 199 (135) and 162 (115). Unrolled
  // 16-bit images of 3 channels took 254 and 107 us (176, 61), of 256 channels of 56x56 in NCHW 131 us (88);
  // in f32, 3 channels of 224x224 to 64 by 3x3 took 971 us (655).
  double windows_factor(GemmRecipe const& product, ConvolutionForm const& form, bool unrolled) const {
    if (!wgmma_device_violation(device_.gpu).empty()) return 1;
    WindowForm const& image = form.image();
    int const size = size_of(form.a.type), run = image.access.width * size;
    bool const of_filter = problem_.direction == ConvolutionDirection::filter;
    // elements_factor() corrects single elements of tf32.
    if (form.a.type == DataType::tf32) {
      bool const pixels = of_filter && has_one_tap(problem_) && problem_.stride[1] > 1;
      if (pixels && !is_planar()) return 1.55;
      return !image.windowed || of_filter || run < 8 ? 1 : run < 16 ? 2.3 : 1.65;
    }
    constexpr Index few_channels = 8;
    bool const few =
        problem_.w.extent(1) < few_channels && (size == 2 || (form.a.type == DataType::f32 && is_planar()));
    bool const planar = size == 2 && is_planar() && has_one_tap(problem_);
    if (unrolled && !of_filter && (few || planar)) return 1.45;
    if (size != 2) return 1;
    if (product.policy.multiply != Multiply::mma) return 1;
    if (of_filter) return 1.35;
    if (!image.windowed) return 1;
    return run >= 8 ? 1.5 : run == 4 ? 3.4 : 2.7;
  }

  // Data gradients with strides in NCHW store single elements, of which other phases fill the gaps. On an
  // H200, 1x1 convolutions with stride 2 from 256 channels of 56x56 and 512 of 28x28 took 238 and 211 us in
  // f16 (predicted: 82 and 72).
  double gaps_factor(GemmRecipe const& product) const {
    bool const gaps =
        problem_.direction == ConvolutionDirection::data && problem_.stride[1] > 1 && is_planar();
    return gaps && size_of(problem_.x.type) == 2 && product.policy.multiply == Multiply::mma ? 2.9 : 1;
  }

  bool may_run_together() const {
    return base_.algorithm == ConvolutionAlgorithm::implicit_gemm &&
           together_violation(problem_, forms_).empty();
  }

  void try_launches(ConvolutionRecipe recipe, int splits, bool together) {
    GemmRecipe& product = recipe.product;
    Partition const partition = splits > 1 ? Partition::split_k : Partition::tiles;
    std::size_t flags = 0, partials = 0;
    double seconds = 0, products = 0;
    Volume volume;
    volume.of_convolution = true;
    std::vector<ConvolutionForm> stepped;
    for (ConvolutionForm const& form : forms_) {
      stepped.push_back(recipe.stepwise ? stepwise(form, product.policy.block_k) : form);
      CanonicalGemm const view = gemm_view(stepped.back());
      divide(product, {partition, splits}, view, 0);
      Volume own = volume_of(view, product);
      own.of_convolution = true;
      // Overlaps of windows are hits in the L2 cache; an unrolled image is read in full. Loads of single
      // elements were measured to be slower than that.
      if (!recipe.unrolls() && product.a.width > 1 && product.b.width > 1)
        own.operand_bytes = std::min(own.operand_bytes, operand_bytes_);
      volume.tiles += own.tiles;
      volume.longest = std::max(volume.longest, own.longest);
      volume.operand_bytes += own.operand_bytes;
      volume.result_bytes += own.result_bytes;
      products += own.tiles * own.steps;
      if (together) continue;
      seconds += predict_seconds(product, view, device_.gpu, own);
      flags = std::max(flags, product.flag_bytes);  // the launches run consecutively and share them
      partials = std::max(partials, product.partial_bytes);
    }
    if (together) {
      volume.steps = products / std::max(1.0, volume.tiles);
      seconds = predict_seconds(product, gemm_view(stepped.front()), device_.gpu, volume);
      Phases const phases = phases_of(stepped, recipe);
      if (phases.blocks > max_int) return;
      flags = phases.flag_bytes, partials = phases.partial_bytes;
      recipe.launches = 1;
    }
    seconds *= elements_factor(recipe, stepped.front()) * digits_factor(stepped.front()) *
               windows_factor(product, stepped.front(), recipe.unrolls()) * gaps_factor(product);
    seconds += predict_repack(product, device_.gpu) + scattered_seconds(product, stepped.front(), products);
    if (emulated()) product.policy.partition = Partition::split_k;
    product.flag_bytes = flags;
    product.partial_bytes = partials;
    RepackRecipe& copied = stepped.front().swapped ? product.repack_a : product.repack_b;
    if (copied.bytes > 0) copied.offset = padded_bytes(flags + partials);
    product.predicted_seconds = seconds;
    std::size_t own = copied.bytes > 0 ? copied.offset + copied.bytes : flags + partials;
    if (auto* const unroll = std::get_if<UnrollRecipe>(&recipe.own); unroll != nullptr && unroll->bytes > 0) {
      unroll->offset = padded_bytes(own);
      own = unroll->offset + unroll->bytes;
    }
    if (std::string no = workspace_violation(own, options_.max_workspace); !no.empty())
      return refuse(std::move(no));
    std::size_t const workspace =
        emulator::with_operands(own, emulated() ? emulator::widening_bytes(problem_, recipe) : 0);
    if (!best_.takes(product.predicted_seconds)) return;
    std::string text = fmt::format("{}, {}", name_of(product.policy.main_loop), to_string(product));
    if (recipe.algorithm == ConvolutionAlgorithm::implicit_gemm)
      text += recipe.stepwise ? ", one tap per step" : ", k indices decoded per element";
    if (together) text += fmt::format(", {} phases in one launch", forms_.size());
    if (recipe.launches > 1) text += fmt::format(", {} launches", recipe.launches);
    best_.take({{}, workspace, product.predicted_seconds, recipe, std::move(text)});
  }

  void refuse(std::string sentence) { best_.refuse(std::move(sentence)); }

  Problem const& problem_;
  Device const& device_;
  PlanOptions const& options_;
  PolicyRequest policy_;  // of the product
  std::vector<ConvolutionForm> const& forms_;
  ConvolutionRecipe const& base_;
  double operand_bytes_;
  BestOffer<Problem> best_;
};

}  // namespace

GemmRecipe product_recipe(ConvolutionForm const& form) {
  GemmRecipe recipe;
  recipe.swapped = form.swapped;
  recipe.a = form.a.access;
  recipe.b = form.b.access;
  recipe.result_width = form.d.width;
  recipe.sum = form.sum;
  return recipe;
}

Offer<Problem> best_product(Problem const& problem, Device const& device, PlanOptions const& options,
                            std::vector<ConvolutionForm> const& forms, ConvolutionRecipe const& base) {
  return Search(problem, device, options, forms, base).best();
}

}  // namespace cosmati::plan
