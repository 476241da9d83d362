// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <set>
#include <string>

#include "config/arguments.hpp"
#include "runner/plan.hpp"

namespace isoscale::runner {
namespace {

using workloads::Precision;

/// GPUs whose memory nobody has looked at, eight to a node.
Site gpus(int ranks) {
  Site site{.ranks = ranks,
            .node_of_rank = {},
            .precisions = {Precision::f64, Precision::f32, Precision::bf16},
            .device = "cuda",
            .memory_free = {},
            .memory_pool = executor::MemoryPool::rank};
  for (int rank = 0; rank < ranks; ++rank) site.node_of_rank.push_back(rank / 8);
  return site;
}

config::RunConfig suite(const std::string& name, int ranks) {
  const std::vector<std::string> arguments{"isoscale", "run",  "--suite", name,
                                           "--device", "cuda", "--ranks", std::to_string(ranks)};
  return std::get<config::RunConfig>(config::parse_arguments(arguments, workloads::registry()));
}

/// Experiments that have nothing to measure, by number.
std::set<std::size_t> left_out(const std::string& name, int ranks) {
  const config::RunConfig config = suite(name, ranks);
  const Plan plan = make_plan(config, gpus(ranks));
  std::set<std::size_t> out;
  for (std::size_t e = 0; e < plan.points.size(); ++e) {
    if (!plan.points[e].skip_reason.empty()) out.insert(e);
  }
  return out;
}

/// What fits into a GPU of 80 GB, but for the reserves of its libraries.
void expect_to_fit(const std::string& name, int ranks) {
  const config::RunConfig config = suite(name, ranks);
  for (const PlannedPoint& point : make_plan(config, gpus(ranks)).points) {
    if (!point.skip_reason.empty()) continue;
    EXPECT_LT(*point.memory_per_rank, units::Bytes{72'000'000'000})
        << name << " point " << point.index + 1 << " on " << ranks;
  }
}

TEST(Suites, OfEightGpusLeaveNothingOutAndFit) {
  for (const char* const name : {"quick", "standard", "acceptance"}) {
    EXPECT_TRUE(left_out(name, 8).empty()) << name;
    expect_to_fit(name, 8);
  }
}

TEST(Suites, OfManyGpusLeaveOutWhatAModelHasTooFewHeadsOrLayersFor) {
  // tp has the heads for 32 ranks, and strong pp the layers for 8.
  EXPECT_EQ(left_out("standard", 64), (std::set<std::size_t>{3}));
  const char* const given = std::getenv("ISOSCALE_SUITE_GPUS");  // 512 take long to plan
  const int many = given != nullptr ? std::stoi(given) : 128;
  EXPECT_EQ(left_out("standard", many), (std::set<std::size_t>{3}));
  EXPECT_EQ(left_out("acceptance", 64), (std::set<std::size_t>{6, 8}));
}

}  // namespace
}  // namespace isoscale::runner
