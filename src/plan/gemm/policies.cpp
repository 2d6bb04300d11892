// Parses and prints policies.
#include "src/plan/gemm/policies.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <span>

#include "cosmati/gemm/policies.h"
#include "cosmati/ops/error.h"
#include "src/ops/names.h"
#include "src/plan/gemm/canonical.h"
#include "src/plan/gemm/small/gemv.h"
#include "src/plan/gemm/small/tiny.h"
#include "src/plan/gemm/tiles/fitted_tiles.h"
#include "src/plan/gemm/warp_specialized.h"
#include "src/plan/gemm/warp_specialized_f64.h"

namespace cosmati::plan {
namespace {

struct Field {
  char const* name;
  int GemmPolicy::*member;
  std::optional<int> PolicyRequest::*requested;
};
constexpr Field fields[] = {
    {"block_m", &GemmPolicy::block_m, &PolicyRequest::block_m},
    {"block_n", &GemmPolicy::block_n, &PolicyRequest::block_n},
    {"block_k", &GemmPolicy::block_k, &PolicyRequest::block_k},
    {"warp_m", &GemmPolicy::warp_m, &PolicyRequest::warp_m},
    {"warp_n", &GemmPolicy::warp_n, &PolicyRequest::warp_n},
    {"thread_m", &GemmPolicy::thread_m, &PolicyRequest::thread_m},
    {"thread_n", &GemmPolicy::thread_n, &PolicyRequest::thread_n},
    {"stages", &GemmPolicy::stages, &PolicyRequest::stages},
    {"blocks", &GemmPolicy::blocks, &PolicyRequest::blocks},
    {"raster_width", &GemmPolicy::raster_width, &PolicyRequest::raster_width},
    {"cluster_m", &GemmPolicy::cluster_m, &PolicyRequest::cluster_m},
    {"cluster_n", &GemmPolicy::cluster_n, &PolicyRequest::cluster_n},
    {"cluster_k", &GemmPolicy::cluster_k, &PolicyRequest::cluster_k},
    {"warps_k", &GemmPolicy::warps_k, &PolicyRequest::warps_k},
    {"matrices", &GemmPolicy::matrices, &PolicyRequest::matrices},
};

std::vector<std::string> field_names() {
  std::vector<std::string> names;
  for (Field const& field : fields) names.emplace_back(field.name);
  names.insert(names.end(), {"raster", "epilogue", "multiply", "ping_pong", "partition"});
  return names;
}

[[noreturn]] void throw_unknown_field(std::string const& name) {
  throw Error(ErrorCode::bad_request,
              "--policy: " + unknown_name("field", name, field_names(), "valid fields"));
}

template <class Choice>
void choose(std::string const& field, std::string const& value, std::initializer_list<Choice> choices,
            std::optional<Choice>& to) {
  std::vector<std::string> names;
  for (Choice choice : choices) {
    if (value == name_of(choice)) {
      to = choice;
      return;
    }
    names.emplace_back(name_of(choice));
  }
  throw Error(ErrorCode::bad_request, "--policy: " + unknown_name(field, value, names));
}

// An integer from `minimum` to `maximum`; throws if the value is anything else.
int number_of(std::string const& value, int minimum, int maximum, std::string const& refusal) {
  int number = 0;
  auto const [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || number < minimum || number > maximum)
    throw Error(ErrorCode::bad_request, refusal);
  return number;
}

OperandKind operand_kind_of(std::string const& value) {
  if (value == "repacked") return OperandKind::repacked;
  if (value == "registers") return OperandKind::registers;
  if (value == "threads") return OperandKind::threads;
  throw Error(ErrorCode::bad_request,
              "--policy operands=" + value + " is invalid; valid values: repacked, registers, threads");
}

void set_field(PolicyRequest& request, std::string const& name, std::string const& value) {
  if (name == "raster") return choose(name, value, {Raster::along_m, Raster::along_n}, request.raster);
  if (name == "epilogue")
    return choose(name, value, {EpilogueSchedule::direct, EpilogueSchedule::staged}, request.epilogue);
  if (name == "partition")
    return choose(name, value,
                  {Partition::tiles, Partition::split_k, Partition::stream_k, Partition::split_k_parallel},
                  request.partition);
  if (name == "multiply")
    return choose(
        name, value,
        {Multiply::fma, Multiply::half2, Multiply::dp4a, Multiply::wmma, Multiply::mma, Multiply::wgmma},
        request.multiply);
  if (name == "main_loop")
    return choose(name, value, {MainLoop::warp_specialized, MainLoop::multistage, MainLoop::double_buffered},
                  request.main_loop);
  if (name == "operands") {
    request.operands = operand_kind_of(value);
  } else if (name == "tile") {
    if (value != "2" && value != "4")
      throw Error(ErrorCode::bad_request, "--policy tile=" + value + " is invalid; valid tiles: 2, 4");
    request.tile = value == "2" ? 2 : 4;
  } else if (name == "extent") {
    request.extent =
        number_of(value, 2, PolicyRequest::max_extent,
                  fmt::format("--policy extent={} is invalid; valid extents of transforms: 2 to {}", value,
                              PolicyRequest::max_extent));
  } else if (name == "ping_pong") {
    if (value != "true" && value != "false")
      throw Error(ErrorCode::bad_request,
                  fmt::format("--policy {}={} is invalid; valid values: true, false", name, value));
    request.ping_pong = value == "true";
  } else {
    auto const* const field = std::find_if(std::begin(fields), std::end(fields),
                                           [&](Field const& candidate) { return name == candidate.name; });
    if (field == std::end(fields)) throw_unknown_field(name);
    request.*field->requested = number_of(
        value, 1, 4096, fmt::format("--policy {}={}; expected an integer from 1 to 4096", name, value));
  }
}

// The form of an f32 operand b that is contiguous along k.
CanonicalGemm k_major_form() {
  CanonicalGemm form;
  form.b.column_stride = 1;
  form.b.alignment = 16;
  return form;
}

}  // namespace

bool mma_takes(DataType a, DataType b, DataType sum) {
  if (is_int8(a) && is_int8(b)) return sum == DataType::s32;
  if (a == DataType::f64 && b == DataType::f64) return sum == DataType::f64;
  bool const halves = a == b && (a == DataType::f16 || a == DataType::bf16 || a == DataType::tf32);
  if (sum == DataType::f16) return a == DataType::f16 && b == DataType::f16;
  return sum == DataType::f32 && (halves || (is_float8(a) && is_float8(b)));
}

bool wmma_takes(DataType a, DataType b, DataType sum) {
  return a == b && !is_float8(a) && mma_takes(a, b, sum);
}

std::vector<NamedPolicy> named_policies(MainLoop main_loop, Multiply multiply, DataType sum,
                                        int element_bytes) {
  if (main_loop == MainLoop::warp_specialized)
    return sum == DataType::f64 ? specialized_f64_policies() : warpgroup_policies(element_bytes, sum);
  if (main_loop == MainLoop::gemv) return gemv_policies(k_major_form());
  if (main_loop == MainLoop::tiny) return tiny_policies(multiply, sum, element_bytes);
  std::vector<NamedPolicy> list;
  for (int i = 0; i < policy_name_count; ++i) {
    auto const name = static_cast<PolicyName>(i);
    list.push_back({name_of(name), named_policy(name, main_loop, multiply, sum, element_bytes)});
  }
  if (multiply != Multiply::fma || sum != DataType::f32 || element_bytes != 4) return list;
  // For results of few rows or few columns: on an H100, 32 filters of 5x20 took 168 us with flat, 276 us with
  // small (docs/decisions/0040).
  GemmPolicy flat = list.front().policy, slim = flat;
  flat.block_m = slim.block_n = 32, flat.block_n = slim.block_m = 128;
  flat.warp_m = slim.warp_n = 16, flat.warp_n = slim.warp_m = 64;
  flat.thread_m = slim.thread_n = 4, flat.thread_n = slim.thread_m = 8;
  list.push_back({"flat", flat});
  list.push_back({"slim", slim});
  return list;
}

std::vector<NamedPolicy> product_policies(MainLoop main_loop, Multiply multiply, DataType sum,
                                          int element_bytes) {
  std::vector<NamedPolicy> list = named_policies(main_loop, multiply, sum, element_bytes);
  if (main_loop != MainLoop::multistage || multiply != Multiply::mma || sum == DataType::f64) return list;
  struct Deep {
    char const* name;
    PolicyName like;
    int warp_n, blocks;
  };
  // 128x128 has eight warps; with two resident blocks it would spill.
  for (Deep const& deep :
       {Deep{"small_deep", PolicyName::small, 32, 4}, Deep{"medium_deep", PolicyName::medium, 32, 2},
        Deep{"large_deep", PolicyName::large, 32, 1}, Deep{"tall_deep", PolicyName::tall, 32, 1}}) {
    GemmPolicy policy = named_policy(deep.like, main_loop, multiply, sum, element_bytes);
    policy.block_k *= 2;
    policy.stages = 3;
    policy.warp_n = deep.warp_n;
    policy.thread_n = deep.warp_n / 4;
    policy.blocks = deep.blocks;
    list.push_back({deep.name, policy});
  }
  return list;
}

bool has_policy(std::vector<NamedPolicy> const& list, std::string const& name) {
  return std::any_of(list.begin(), list.end(), [&](NamedPolicy const& named) { return named.name == name; });
}

PolicyRequest parse_policy_request(std::string list) {
  PolicyRequest request;
  for (std::size_t begin = 0; !list.empty() && begin <= list.size();) {
    std::size_t const end = std::min(list.find(',', begin), list.size());
    std::string const word = list.substr(begin, end - begin);
    begin = end + 1;
    std::size_t const equals = word.find('=');
    if (equals == std::string::npos)
      request.names.push_back(word);
    else
      set_field(request, word.substr(0, equals), word.substr(equals + 1));
  }
  request.text = std::move(list);
  return request;
}

std::string foreign_policy(PolicyRequest const& request, std::vector<NamedPolicy> const& known) {
  if (request.names.empty()) return {};
  std::string const& name = request.names.front();
  if (has_policy(known, name)) return {};
  bool const streams = !known.empty() && (known.front().policy.main_loop == MainLoop::gemv ||
                                          known.front().policy.main_loop == MainLoop::tiny);
  if (streams) return fmt::format("{} has no policy '{}'", name_of(known.front().policy.main_loop), name);
  if (has_policy(gemv_policies({}), name) || has_policy(gemv_policies(k_major_form()), name))
    return fmt::format("policy '{}' applies only to gemv", name);
  if (has_policy(tiny_policies(Multiply::fma, DataType::f32, 4), name))
    return fmt::format("policy '{}' applies only to tiny", name);
  if (has_policy(warpgroup_policies(2, DataType::f16), name) || tile_named(name, 2, 2))
    return fmt::format("policy '{}' applies only to products by wgmma", name);
  if (has_policy(window_policies(2), name))
    return fmt::format("policy '{}' applies only to convolutions by warp_specialized", name);
  if (has_policy(phase_policies(2), name))
    return fmt::format("policy '{}' applies only to dgrad_phases", name);
  if (has_policy(named_policies(MainLoop::double_buffered, Multiply::fma, DataType::f32), name))
    return fmt::format("policy '{}' applies only to f32 with multiply fma", name);
  if (has_policy(product_policies(MainLoop::multistage, Multiply::mma, DataType::f32, 2), name))
    return fmt::format("policy '{}' applies only to multistage with multiply mma", name);
  return {};
}

bool takes_any_policy(PolicyRequest request, Multiply multiply) {
  if (request.multiply == multiply && !request.partition) request.multiply.reset();
  request.partition.reset();
  return request.empty();
}

NamedPolicy requested_policy(PolicyRequest const& request, std::vector<NamedPolicy> const& named,
                             NamedPolicy const& otherwise) {
  if (request.operands) throw_unknown_field("operands");
  if (request.main_loop) throw_unknown_field("main_loop");
  if (request.tile) throw_unknown_field("tile");
  if (request.extent) throw_unknown_field("extent");
  NamedPolicy result = otherwise;
  for (std::string const& name : request.names) {
    std::vector<std::string> names;
    auto const found = std::find_if(named.begin(), named.end(), [&](NamedPolicy const& candidate) {
      names.push_back(candidate.name);
      return candidate.name == name;
    });
    if (found == named.end())
      throw Error(ErrorCode::bad_request, "--policy " + request.text + ": " +
                                              unknown_name("policy", name, names, "valid policies") +
                                              ", or field=value");
    result = *found;
  }
  auto const set = [&result](auto& field, auto const& requested) {
    if (!requested) return;
    field = *requested;
    result.name.clear();
  };
  GemmPolicy& policy = result.policy;
  for (Field const& field : fields) set(policy.*field.member, request.*field.requested);
  set(policy.raster, request.raster);
  set(policy.epilogue, request.epilogue);
  set(policy.multiply, request.multiply);
  set(policy.ping_pong, request.ping_pong);
  set(policy.partition, request.partition);
  return result;
}

EpilogueSchedule epilogue_schedule(epilogue::Expression const& expression) {
  int weight = 0;
  for (epilogue::Node const& node : expression.nodes()) {
    bool const is_long = node.op >= epilogue::Op::exp && node.op != epilogue::Op::relu &&
                         node.op != epilogue::Op::leaky_relu && node.op != epilogue::Op::clamp &&
                         node.op != epilogue::Op::round;
    weight += is_leaf(node.op) ? 0 : is_long ? 8 : 1;
  }
  return weight > 8 ? EpilogueSchedule::staged : EpilogueSchedule::direct;
}

std::string text_of(GemmPolicy const& policy) {
  std::string text;
  for (Field const& field : fields) {
    bool const is_rare = field.member == &GemmPolicy::warps_k || field.member == &GemmPolicy::matrices;
    if (!is_rare || policy.*field.member != 1)
      text += fmt::format("{}={},", field.name, policy.*field.member);
  }
  return text + fmt::format("raster={},epilogue={},multiply={},ping_pong={},partition={}",
                            name_of(policy.raster), name_of(policy.epilogue), name_of(policy.multiply),
                            policy.ping_pong, name_of(policy.partition));
}

namespace {

std::string wmma_policy_violation(GemmPolicy const& p, DataType a, DataType b, DataType sum) {
  if (!wmma_takes(a, b, sum))
    return fmt::format(
        "multiply wmma requires two operands of one type: f16 with sums in f32 or f16, bf16 or tf32 with f32, "
        "f64 "
        "with f64, s8 or u8 with s32; not {} and {} with {}",
        name_of(a), name_of(b), name_of(sum));
  if (p.warp_m % 16 != 0 || p.warp_n % 16 != 0 || p.thread_m * 8 != p.warp_m || p.thread_n * 4 != p.warp_n)
    return fmt::format(
        "multiply wmma needs a warp tile of multiples of 16 and thread_m = warp_m / 8, thread_n = warp_n / "
        "4; "
        "the warp tile is {}x{}, the thread's {}x{}",
        p.warp_m, p.warp_n, p.thread_m, p.thread_n);
  if (p.epilogue != EpilogueSchedule::staged)
    return "epilogue = direct; multiply wmma requires epilogue staged: the thread that holds an element of D "
           "is unspecified";
  if (is_int8(a) && (p.block_m % 32 != 0 || p.block_n % 32 != 0))
    return fmt::format("block_m = {}, block_n = {}; multiply wmma of {} requires multiples of 32", p.block_m,
                       p.block_n, name_of(a));
  if (p.block_k * size_of(a) % 32 != 0)
    return fmt::format("block_k = {} is {} bytes of {}; multiply wmma requires multiples of 32 bytes",
                       p.block_k, p.block_k * size_of(a), name_of(a));
  return {};
}

}  // namespace

std::string policy_violation(GemmPolicy const& p, DataType a, DataType b, DataType sum) {
  if (p.main_loop == MainLoop::warp_specialized) {
    if (a == DataType::f64 && b == DataType::f64) return specialized_f64_policy_violation(p);
    if (!wgmma_takes(a, b, sum))
      return fmt::format("multiply wgmma does not support {} and {} with sums in {}", name_of(a), name_of(b),
                         name_of(sum));
    return warpgroup_policy_violation(p, size_of(a), sum);
  }
  if (p.main_loop == MainLoop::gemv) return gemv_policy_violation(p, sum);
  bool const is_tiny = p.main_loop == MainLoop::tiny;
  if (p.warps_k != 1 || (!is_tiny && p.matrices != 1))
    return "warps_k is for the main loop gemv, matrices for tiny";
  if (is_tiny && (p.warps_m() != 1 || p.warps_n() != 1 || p.epilogue != EpilogueSchedule::direct))
    return "tiny multiplies a tile by one warp, with epilogue direct";
  if (p.multiply == Multiply::wgmma || p.ping_pong || p.cluster() != 1)
    return "multiply wgmma, ping_pong and clusters are for the warp_specialized main loop";
  auto const multiple = [](char const* what, int value, char const* of, int factor) -> std::string {
    if (factor > 0 && value % factor == 0) return {};
    int const nearest = factor > 0 ? std::max(1, (value + factor / 2) / factor) * factor : 1;
    return fmt::format("{} = {} is not a multiple of {} = {}; nearest: {}", what, value, of, factor, nearest);
  };
  for (std::string const& sentence : {multiple("block_m", p.block_m, "warp_m", p.warp_m),
                                      multiple("block_n", p.block_n, "warp_n", p.warp_n),
                                      multiple("warp_m", p.warp_m, "thread_m", p.thread_m),
                                      multiple("warp_n", p.warp_n, "thread_n", p.thread_n)})
    if (!sentence.empty()) return sentence;
  int const pack = pack_depth_of(p.multiply, size_of(a));
  if (p.lanes_m() * p.lanes_n() != 32 || (p.lanes_m() != 1 && p.lanes_m() % 2 != 0))
    return fmt::format("a warp has 32 lanes; warp_m / thread_m * warp_n / thread_n is {} * {}", p.lanes_m(),
                       p.lanes_n());
  if (p.threads() > 1024)
    return fmt::format("{} warps are {} threads; a block has at most 1024", p.threads() / 32, p.threads());
  if (p.block_k % (2 * pack) != 0)
    return fmt::format("block_k = {} is not a multiple of {}", p.block_k, 2 * pack);
  bool const many = p.main_loop == MainLoop::multistage;
  if (many ? p.stages < 3 || p.stages > 5 : p.stages != (is_tiny ? 1 : 2))
    return fmt::format("stages = {}; {} takes {}", p.stages, name_of(p.main_loop),
                       many      ? "3 to 5"
                       : is_tiny ? "1"
                                 : "2");
  if (p.multiply == Multiply::wmma) return wmma_policy_violation(p, a, b, sum);
  if (p.multiply == Multiply::mma) {
    if (!many && !is_tiny) return "multiply mma requires main loop multistage or tiny";
    if (!mma_takes(a, b, sum))
      return fmt::format(
          "multiply mma supports f16, bf16, tf32 or fp8 with sums in f32, f16 also with f16, f64 with f64, s8 "
          "and "
          "u8 with s32; not {} and {} with {}",
          name_of(a), name_of(b), name_of(sum));
    if (p.warp_m % 16 != 0 || p.warp_n % 16 != 0 || p.thread_m * 8 != p.warp_m || p.thread_n * 4 != p.warp_n)
      return fmt::format(
          "multiply mma needs a warp tile of multiples of 16 and thread_m = warp_m / 8, thread_n = "
          "warp_n / 4; the warp tile is {}x{}, the thread's {}x{}",
          p.warp_m, p.warp_n, p.thread_m, p.thread_n);
    return {};
  }
  if (p.multiply == Multiply::half2 && (sum != DataType::f16 || p.thread_n % 2 != 0))
    return "multiply half2 requires sums in f16 (--accumulator f16) and an even thread_n";
  if (p.multiply != Multiply::half2 && sum == DataType::f16)
    return "sums in f16 require multiply half2, mma or wmma";
  if (p.multiply == Multiply::dp4a && sum != DataType::s32) return "multiply dp4a sums in s32";
  return {};
}

std::string initializer(GemmPolicy const& policy) {
  std::string text;
  for (Field const& field : std::span(fields).first(9))  // up to blocks
    text += fmt::format(".{} = {}, ", field.name, policy.*field.member);
  text += fmt::format(
      ".main_loop = MainLoop::{}, .multiply = Multiply::{}, .raster = Raster::{}, {}.raster_width = {}, "
      ".cluster_m = {}, .cluster_n = {}, .cluster_k = {}, .ping_pong = {}, .partition = Partition::{}, "
      ".full_tiles = {}, "
      ".epilogue = EpilogueSchedule::{}",
      name_of(policy.main_loop), name_of(policy.multiply), name_of(policy.raster),
      policy.promotes    ? ".promotes = true, "
      : policy.fast_sums ? ".fast_sums = true, "
                         : "",
      policy.raster_width, policy.cluster_m, policy.cluster_n, policy.cluster_k, policy.ping_pong,
      name_of(policy.partition), policy.full_tiles, name_of(policy.epilogue));
  if (policy.warps_k != 1) text += fmt::format(", .warps_k = {}", policy.warps_k);
  if (policy.matrices != 1) text += fmt::format(", .matrices = {}", policy.matrices);
  return text;
}

}  // namespace cosmati::plan

namespace cosmati {

PolicyRequest::PolicyRequest(std::string list) : PolicyRequest(plan::parse_policy_request(std::move(list))) {}

bool PolicyRequest::empty() const {
  PolicyRequest fields_only = *this;
  fields_only.text.clear();
  return fields_only == PolicyRequest();
}

std::string PolicyRequest::refusal() const {
  return empty() ? std::string() : "does not take a policy; --policy " + text + " was requested";
}

}  // namespace cosmati
