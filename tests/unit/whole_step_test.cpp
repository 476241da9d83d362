// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "analysis/predict/step_estimate.hpp"

#include <gtest/gtest.h>

#include "predict_samples.hpp"

namespace isoscale::analysis {
namespace {

const workloads::Workload& hybrid() { return workloads::find_workload("hybrid"); }

TEST(WholeStepTest, IsTracedLaterAsItWouldHaveBeenAtOnce) {
  const simulate::Machine machine = samples::plain_sheet();
  const workloads::Request base{.model = workloads::load_model("tiny"),
                                .options = {{"batch", "64"}, {"schedule", "1f1b"}}};
  for (const mesh::Shape& shape : {mesh::Shape{.tp = 2, .dp = 4, .pp = 2}, mesh::Shape{.dp = 16}}) {
    const workloads::Request request = hybrid().scale(base, shape, workloads::Scaling::strong);
    const StepEstimate at_once = whole_step(hybrid(), request, machine, 4, Detail::trace);
    StepEstimate later = whole_step(hybrid(), request, machine, 4, Detail::play);
    EXPECT_FALSE(later.breakdown.has_value());
    ASSERT_TRUE(later.played.has_value());
    EXPECT_GT(op_count(*later.played), 0U);
    trace(hybrid(), request, later);
    EXPECT_FALSE(later.played.has_value());
    EXPECT_EQ(later.seconds(), at_once.seconds());
    ASSERT_TRUE(later.breakdown && at_once.breakdown && later.loss && at_once.loss);
    EXPECT_EQ(later.breakdown->compute, at_once.breakdown->compute);
    EXPECT_EQ(later.breakdown->bubble, at_once.breakdown->bubble);
    EXPECT_EQ(later.breakdown->step, at_once.breakdown->step);
    // Nothing of a step without noise is noise.
    const StepCosts& costs = later.loss->costs;
    ASSERT_TRUE(costs.imbalance && costs.noise);
    EXPECT_NEAR(*costs.imbalance, costs.waiting, 1e-12);
    EXPECT_NEAR(*costs.noise, 0, 1e-12);
  }
}

}  // namespace
}  // namespace isoscale::analysis
