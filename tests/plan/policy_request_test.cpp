// The text of --policy as fields.
#include "cosmati/ops/policy_request.h"

#include <gtest/gtest.h>

#include "cosmati/ops/error.h"

namespace cosmati {
namespace {

TEST(PolicyRequest, HoldsWhatTheTextNames) {
  PolicyRequest const request =
      "large,block_m=64,stages=5,multiply=mma,epilogue=staged,ping_pong=false,main_loop=multistage,tile=4";
  EXPECT_EQ(request.names, std::vector<std::string>{"large"});
  EXPECT_EQ(request.block_m, 64);
  EXPECT_EQ(request.stages, 5);
  EXPECT_EQ(request.multiply, Multiply::mma);
  EXPECT_EQ(request.epilogue, EpilogueSchedule::staged);
  EXPECT_EQ(request.ping_pong, false);
  EXPECT_EQ(request.main_loop, MainLoop::multistage);
  EXPECT_EQ(request.tile, 4);
  EXPECT_FALSE(request.block_n || request.partition || request.operands || request.extent);
  EXPECT_EQ(PolicyRequest("partition=stream_k").partition, Partition::stream_k);
  EXPECT_EQ(PolicyRequest("operands=threads,huge").operands, OperandKind::threads);
  EXPECT_EQ(PolicyRequest("extent=32").extent, 32);
}

TEST(PolicyRequest, IsEmptyIfNothingIsAskedFor) {
  EXPECT_TRUE(PolicyRequest().empty());
  EXPECT_TRUE(PolicyRequest("").empty());
  EXPECT_EQ(PolicyRequest().refusal(), "");
  PolicyRequest request = "tile=2";
  EXPECT_FALSE(request.empty());
  EXPECT_EQ(request.refusal(), "does not take a policy; --policy tile=2 was requested");
  request.tile.reset();  // what a transform leaves to its product
  EXPECT_TRUE(request.empty());
  EXPECT_FALSE(PolicyRequest("large,").empty());
}

TEST(PolicyRequest, RefusesUnknownFieldsAndValues) {
  auto const complaint = [](char const* list) {
    try {
      PolicyRequest const request = list;
    } catch (Error const& error) {
      EXPECT_EQ(error.code(), ErrorCode::bad_request) << list;
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(complaint("stages=0"), "--policy stages=0; expected an integer from 1 to 4096");
  EXPECT_EQ(complaint("large,block_k=8x"), "--policy block_k=8x; expected an integer from 1 to 4096");
  EXPECT_EQ(complaint("tile=3"), "--policy tile=3 is invalid; valid tiles: 2, 4");
  EXPECT_EQ(complaint("extent=1"), "--policy extent=1 is invalid; valid extents of transforms: 2 to 4096");
  EXPECT_EQ(complaint("operands=none"),
            "--policy operands=none is invalid; valid values: repacked, registers, threads");
  EXPECT_EQ(complaint("partition=streams"),
            "--policy: unknown partition 'streams' (did you mean stream_k?); valid values: tiles, split_k, "
            "stream_k, split_k_parallel");
  EXPECT_EQ(complaint("main_loop=fast"),
            "--policy: unknown main_loop 'fast'; valid values: warp_specialized, multistage, "
            "double_buffered");
  EXPECT_NE(complaint("block_q=3").find("unknown field 'block_q' (did you mean block_m?); valid fields: "),
            std::string::npos);
}

}  // namespace
}  // namespace cosmati
