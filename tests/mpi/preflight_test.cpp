// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// These tests run the checks that precede a run, on the ranks of this program.
#include "runner/preflight.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "executor/host/host.hpp"
#include "preflight/job_facts.hpp"
#include "runner/microbench/rank_speeds.hpp"
#include "runner/plan/site.hpp"

namespace isoscale::runner {
namespace {

using preflight::JobFacts;
using results::CheckResult;

class Preflight : public testing::Test {
 protected:
  /// Collective.
  results::PreflightData look(const settings::RunConfig& config, executor::Executor* executor,
                              std::optional<std::string> problem = std::nullopt) {
    return preflight({.config = config,
                      .executor = executor,
                      .device_problem = std::move(problem),
                      .facts = facts_},
                     world_);
  }

  comm::Communicator world_ = comm::Communicator::world();
  std::vector<machine::MachineFacts> facts_ = plan::gather_facts(world_);
  std::unique_ptr<executor::Executor> executor_ = executor::make_host_executor({});
  settings::RunConfig config_;
};

TEST_F(Preflight, BringsTheFactsOfAllRanksToTheFirst) {
  const results::PreflightData found = look(config_, executor_.get());
  if (world_.rank() != 0) {
    EXPECT_TRUE(found.results.empty());
    return;
  }
  EXPECT_FALSE(found.results.empty());
  const JobFacts job = preflight::job_facts_from_json(found.facts);
  EXPECT_EQ(job.world, world_.size());
  EXPECT_EQ(job.device, "host");
  ASSERT_EQ(job.ranks.size(), static_cast<std::size_t>(world_.size()));
  ASSERT_EQ(job.nodes.size(), 1U);  // as far as tests go
  EXPECT_EQ(job.nodes.front().host, facts_.front().host);
  for (int rank = 0; rank < world_.size(); ++rank) {
    const preflight::CheckedRank& one = job.ranks[static_cast<std::size_t>(rank)];
    EXPECT_EQ(one.rank, rank);
    EXPECT_EQ(one.local_rank, rank);
    EXPECT_GT(one.pid, 0);
    EXPECT_EQ(one.versions.at("mpi"), comm::Environment::library_version());
  }
}

TEST_F(Preflight, LetsAStopPassThatIsAllowedAndRefusesNamesOfNoCheck) {
  config_.device = settings::Device::cuda;
  // Where tests run there may be fewer cores than ranks, and no GPUs.
  config_.allowed = {"device", "shared-cores", "gpus-per-node"};
  const results::PreflightData found = look(config_, nullptr, "no GPU far");
  EXPECT_NO_THROW(require_no_stop(found, world_));
  const bool is_recorded =
      std::ranges::any_of(found.results, [](const CheckResult& result) { return result.allowed; });
  EXPECT_EQ(is_recorded, world_.rank() == 0);
  config_.allowed = {"devise"};
  EXPECT_THROW(static_cast<void>(look(config_, nullptr, "no GPU")), base::UsageError);
}

TEST_F(Preflight, SniffsWhatEachRankComputesAndExchanges) {
  std::vector<int> nodes;  // two made-up nodes, as far as the ranks go
  for (int rank = 0; rank < world_.size(); ++rank) nodes.push_back(rank * 2 / world_.size());
  const microbench::Sniffed found = microbench::sniff(*executor_, world_, nodes);
  EXPECT_EQ(found.problem, std::nullopt);
  EXPECT_GT(found.gemm_rate.value_or(0), 1e6);
  std::vector<int> expected, measured;
  for (const microbench::Partners& partners : microbench::sniff_phases(nodes)) {
    const int partner = partners[static_cast<std::size_t>(world_.rank())];
    if (partner >= 0) expected.push_back(partner);
  }
  for (const preflight::CheckedNeighbour& neighbour : found.neighbours) {
    measured.push_back(neighbour.rank);
    EXPECT_GT(neighbour.bandwidth.value_or(0), 1e4);
  }
  EXPECT_EQ(measured, expected);
}

}  // namespace
}  // namespace isoscale::runner
