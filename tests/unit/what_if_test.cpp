// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/question.hpp"

#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "predict_samples.hpp"

namespace isoscale::analysis {
namespace {

using simulate::Machine;
using simulate::TimedCommunication;

std::string refusal(const std::string& text) {
  try {
    (void)parse_what_if(text);
  } catch (const base::UsageError& error) {
    return error.what();
  }
  return "accepted";
}

Machine measured() {
  Machine machine{.name = "measured", .source = {}};
  machine.measured.gemms = {{.m = 8, .n = 8, .k = 8, .seconds = 3e-6}};
  machine.measured.locals = {{.bytes = 64, .seconds = 2e-6}};
  // 1 us of latency, then 10 us and 1 us of bytes.
  machine.measured.communication = {
      TimedCommunication{
          .members = 4,
          .nodes = 2,
          .samples = {{.bytes = 10, .seconds = 2e-6}, {.bytes = 1e4, .seconds = 11e-6}},
          .latency = 1e-6,
          .bandwidth = 1e9},
      TimedCommunication{
          .members = 2,
          .nodes = 1,
          .samples = {{.bytes = 0, .seconds = 1e-6}, {.bytes = 1e4, .seconds = 3e-6}}}};
  return machine;
}

TEST(WhatIf, ReadsChangesThatAreMadeTogether) {
  const WhatIf one = parse_what_if("link.inter=2x");
  EXPECT_EQ(one.title, "link.inter=2x");
  EXPECT_EQ(one.changes, (std::vector<Change>{{MachinePart::link_inter, 2}}));
  const WhatIf two = parse_what_if("gemm=1.3x,latency=0.5x");
  EXPECT_EQ(two.changes,
            (std::vector<Change>{{MachinePart::gemm, 1.3}, {MachinePart::latency, 0.5}}));
}

TEST(WhatIf, SaysWhatItWouldAccept) {
  EXPECT_NE(refusal("link.iner=2x").find("did you mean 'link.inter'"), std::string::npos);
  EXPECT_NE(refusal("gemm=2").find("from 0.001x to 1000x"), std::string::npos);
  EXPECT_NE(refusal("gemm=0x").find("must be a factor"), std::string::npos);
  EXPECT_NE(refusal("gemm=-2x").find("must be a factor"), std::string::npos);
  EXPECT_NE(refusal("gemm=nanx").find("must be a factor"), std::string::npos);
  EXPECT_NE(refusal("gemm").find("has no factor"), std::string::npos);
  EXPECT_NE(refusal("gemm=2x,gemm=3x").find("twice"), std::string::npos);
  EXPECT_NE(refusal("gemm=2x,").find("unknown part of a machine"), std::string::npos);
}

TEST(WhatIf, ChangesASheet) {
  const Machine base = samples::plain_sheet();
  const Machine after =
      changed(base, parse_what_if("link.inter=2x,link.intra=3x,latency=0.5x,gemm=1.5x,memory=4x"));
  EXPECT_DOUBLE_EQ(after.network->across.bandwidth, 2e10);
  EXPECT_DOUBLE_EQ(after.network->inside.bandwidth, 3e11);
  EXPECT_DOUBLE_EQ(after.network->across.latency, 2.5e-6);
  EXPECT_DOUBLE_EQ(after.network->inside.latency, 0.5e-6);
  EXPECT_DOUBLE_EQ(after.processor->matrix.front().peak, 1.5e12);
  EXPECT_DOUBLE_EQ(after.memory->bandwidth, 4e18);
  EXPECT_DOUBLE_EQ(after.memory->capacity, 1e12);
}

TEST(WhatIf, ChangesWhatWasMeasuredByTheLinksItCrosses) {
  const Machine inter = changed(measured(), parse_what_if("link.inter=2x"));
  const TimedCommunication& across = inter.measured.communication[0];
  EXPECT_NEAR(across.samples[0].seconds, 1.5e-6, 1e-18);
  EXPECT_NEAR(across.samples[1].seconds, 6e-6, 1e-18);
  EXPECT_DOUBLE_EQ(*across.bandwidth, 2e9);
  EXPECT_DOUBLE_EQ(*across.latency, 1e-6);
  EXPECT_NEAR(inter.measured.communication[1].samples[1].seconds, 3e-6, 1e-18);

  // Without a fitted latency that of the smallest message counts.
  const Machine intra = changed(measured(), parse_what_if("link.intra=2x"));
  EXPECT_NEAR(intra.measured.communication[0].samples[1].seconds, 11e-6, 1e-18);
  EXPECT_NEAR(intra.measured.communication[1].samples[0].seconds, 1e-6, 1e-18);
  EXPECT_NEAR(intra.measured.communication[1].samples[1].seconds, 2e-6, 1e-18);

  const Machine latency = changed(measured(), parse_what_if("latency=3x"));
  EXPECT_NEAR(latency.measured.communication[0].samples[1].seconds, 13e-6, 1e-18);
  EXPECT_DOUBLE_EQ(*latency.measured.communication[0].latency, 3e-6);
  EXPECT_NEAR(latency.measured.communication[1].samples[0].seconds, 3e-6, 1e-18);

  const Machine faster = changed(measured(), parse_what_if("gemm=1.5x,memory=2x"));
  EXPECT_NEAR(faster.measured.gemms[0].seconds, 2e-6, 1e-18);
  EXPECT_NEAR(faster.measured.locals[0].seconds, 1e-6, 1e-18);
}

TEST(WhatIf, RefusesPartsThatNobodyKnows) {
  Machine one_node = measured();
  one_node.measured.communication.erase(one_node.measured.communication.begin());
  EXPECT_THROW((void)changed(one_node, parse_what_if("link.inter=2x")), base::UsageError);
  EXPECT_NO_THROW((void)changed(one_node, parse_what_if("link.intra=2x")));
  const Machine nothing{.name = "empty", .source = {}};
  for (const char* const change : {"gemm=2x", "memory=2x", "latency=2x", "link.intra=2x"}) {
    EXPECT_THROW((void)changed(nothing, parse_what_if(change)), base::UsageError) << change;
  }
}

}  // namespace
}  // namespace isoscale::analysis
