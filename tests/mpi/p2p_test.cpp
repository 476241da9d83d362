// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Every pair of ranks is measured and checked, and one that is silent fails alone. The sniff test
// that precedes a run measures all ranks.

#include "runner/microbench/rank_and_pair_speeds.hpp"
#include "runner/microbench/rows_and_link_classes.hpp"
#include "tests/mpi/point_runs.hpp"

namespace isoscale::runner {
namespace {

using results::PointData;
using results::PointStatus;
using results::RowData;

/// The host executor, with a program in which one rank forgets its messages to another.
class Forgetful final : public LikeHost {
 public:
  [[nodiscard]] executor::SessionPtr prepare(const program::ProgramSet& set,
                                             const comm::Communicator& point,
                                             const executor::SessionOptions& options) override {
    program::ProgramSet planted = set;
    if (forgets && point.rank() == forgets->first) {
      const auto program = planted.program_of_rank[static_cast<std::size_t>(point.rank())] =
          static_cast<std::uint32_t>(planted.programs.size());
      planted.programs.push_back(set.of(point.rank()));
      forget(planted.programs[program], point, forgets->second);
    }
    return inner_->prepare(planted, point, options);
  }

  std::optional<std::pair<int, int>> forgets{};  ///< who, whom

 private:
  static void forget(program::RankProgram& program, const comm::Communicator& point, int whom) {
    const int size = point.size();
    for (program::Program& step : program.steps) {
      for (program::Op& op : step.ops) {
        auto* const exchange = std::get_if<program::Exchange>(&op.payload);
        if (exchange == nullptr) continue;
        std::erase_if(exchange->transfers, [&](const program::Transfer& transfer) {
          return transfer.direction == program::Direction::send &&
                 (point.rank() + transfer.offset + size) % size == whom;
        });
      }
    }
  }
};

class P2p : public testing::Test {
 protected:
  void SetUp() override {
    if (world_.size() < 2) GTEST_SKIP() << "needs a second rank";
  }

  /// Collective. Rows on rank 0.
  PointData run(const workloads::Options& options) {
    settings::RunConfig config = config_of("p2p", {.options = options}, world_.size());
    return runs_.run(config, effort_of(0.2, 0.0, plan::Effort{}.trace_steps));
  }

  [[nodiscard]] std::string end(int rank) const {
    return microbench::rank_name(rank, runs_.facts.front().host);
  }

  Forgetful executor_;
  PointRuns runs_{executor_};
  const comm::Communicator& world_ = runs_.world;
};

void expect_measured(const RowData& row) {
  EXPECT_EQ(row.status, PointStatus::ok) << row.reason;
  EXPECT_EQ(row.wrong, 0);
  EXPECT_FALSE(row.times.empty());
  for (const auto& play : row.times)
    EXPECT_TRUE(row.ranks.empty() || play.size() == row.ranks.size());
  EXPECT_GT(microbench::median_bandwidth(row)->value(), 0);
}

TEST_F(P2p, MeasuresAndChecksEveryRow) {
  const auto ranks = static_cast<std::size_t>(world_.size());
  for (const char* options : {"size=100 renew=2", "size=64KiB renew=2", "size=1MB renew=2",
                              "size=3000 kinds=bandwidth,latency pairs=neighbours",
                              "size=3000 kinds=bandwidth,latency pairs=isolated",
                              "size=3000 kinds=bandwidth,latency pairs=sample:1"}) {
    SCOPED_TRACE(options);
    const PointData data = run(workloads::options_of(options));
    EXPECT_EQ(data.status, PointStatus::ok) << data.reason;
    EXPECT_EQ(data.rows.empty(), world_.rank() != 0);
    if (world_.rank() != 0) continue;
    EXPECT_EQ(data.verified, std::optional{true}) << data.verification;
    for (const RowData& row : data.rows) expect_measured(row);
    if (std::string_view{options}.ends_with("renew=2")) {
      EXPECT_EQ(data.rows.size(), 2 * ranks * (ranks - 1) + 2);
    }
  }
}

TEST_F(P2p, ThatIsSlowerThanExpectedFailsByName) {
  const PointData data = run({{"size", "4096"}, {"expect", "900TB"}, {"kinds", "bandwidth"}});
  EXPECT_EQ(run({{"size", "4096"}, {"expect", "1B"}, {"kinds", "bandwidth"}}).status,
            PointStatus::ok);
  EXPECT_EQ(data.status, PointStatus::failed);
  if (world_.rank() != 0) return;
  EXPECT_THAT(data.reason, testing::ContainsRegex("900 TB/s"));  // whichever pair was the slowest
  EXPECT_THAT(data.reason, testing::ContainsRegex("rank [0-9]+ \\(.+\\) to rank [0-9]+ \\("));
  for (const RowData& row : data.rows) {
    EXPECT_EQ(row.status, PointStatus::failed);
    EXPECT_FALSE(row.times.empty());  // what was measured is kept
  }
}

/// Rank 1 never sends to the last rank.
class Silent : public P2p {
 protected:
  void expect_all_but_the_pair(const PointData& data) {
    EXPECT_EQ(data.status, PointStatus::failed);
    const int last = world_.size() - 1;
    EXPECT_THAT(data.reason, AllOf(HasSubstr("no answer (time limit 300 ms)"), HasSubstr(end(1)),
                                   HasSubstr(end(last))));
    std::size_t failed = 0;
    for (const RowData& row : data.rows) {
      const bool is_pair = row.number.contains("src") && std::ranges::count(row.ranks, 1) == 1 &&
                           std::ranges::count(row.ranks, last) == 1;
      if (is_pair || !row.number.contains("src")) {
        ++failed;
        EXPECT_EQ(row.status, PointStatus::failed);
        EXPECT_THAT(row.reason, AllOf(HasSubstr("no answer (time limit 300 ms)"), HasSubstr(end(1)),
                                      HasSubstr(end(last))));
        EXPECT_TRUE(row.times.empty());
      } else {
        expect_measured(row);
      }
    }
    EXPECT_EQ(failed, 6U);  // latency, there and back, both at once; and of all
  }
};

TEST_F(Silent, PairsAreNamedAndTheOthersMeasured) {
  if (world_.size() < 3) GTEST_SKIP() << "needs a third rank";
  executor_.forgets = {1, world_.size() - 1};
  for (const char* renew : {"1", "8"}) {
    const PointData data = run({{"size", "200000"}, {"timeout", "300ms"}, {"renew", renew}});
    if (world_.rank() == 0) expect_all_but_the_pair(data);
    EXPECT_EQ(data.status, PointStatus::failed);
  }
  executor_.forgets.reset();
  const PointData next = run({{"size", "200000"}});  // and the next point is as if nothing had been
  EXPECT_EQ(next.status, PointStatus::ok) << next.reason;
}

TEST_F(Silent, MatchingsFailAsAWhole) {
  if (world_.size() < 4) GTEST_SKIP() << "needs two pairs at once";
  executor_.forgets = {1, 3};
  const PointData data = run({{"kinds", "bisection"}, {"timeout", "300ms"}});
  EXPECT_EQ(data.status, PointStatus::failed);
  if (world_.rank() != 0) return;
  ASSERT_EQ(data.rows.size(), 1U);
  EXPECT_THAT(data.reason, AllOf(HasSubstr("no answer (time limit 300 ms)"), HasSubstr(end(3))));
}

TEST(Sniff, MeasuresWhatEachRankComputesAndExchanges) {
  const comm::Communicator world = comm::Communicator::world();
  const auto executor = executor::make_host_executor({});
  std::vector<int> nodes;  // two made-up nodes, as far as the ranks go
  for (int rank = 0; rank < world.size(); ++rank) nodes.push_back(rank * 2 / world.size());
  const microbench::Sniffed found = microbench::sniff(*executor, world, nodes);
  EXPECT_EQ(found.problem, std::nullopt);
  EXPECT_GT(found.gemm_rate.value_or(0), 1e6);
  std::vector<int> expected, measured;
  for (const microbench::Partners& partners : microbench::sniff_phases(nodes)) {
    const int partner = partners[static_cast<std::size_t>(world.rank())];
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
