// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The measuring loop and what is checked of the weights after it.

#include <bit>
#include <variant>

#include "runner/measure/measure_steps.hpp"
#include "runner/measure/step_checksums_and_soak.hpp"
#include "tests/mpi/point_runs.hpp"

namespace isoscale::runner {
namespace {

/// Training on all ranks of a communicator, its setup played; data-parallel if none are given.
struct Ready {
  explicit Ready(const comm::Communicator& point)
      : Ready(point, small_request_on("dp", {.dp = point.size()}).second) {}
  Ready(const comm::Communicator& point, program::ProgramSet programs)
      : set(std::move(programs)),
        executor(executor::make_host_executor({.streams = executor::HostStreams::folded})),
        session(executor->prepare(set, point)) {
    session->play({.section = program::Section::setup});
  }

  /// Returns what a check of the weights says now.
  [[nodiscard]] measure::Verdict weights(const comm::Communicator& point) const {
    measure::StepCheck now = check;
    now.weights(*session, point);
    return now.verdict();
  }
  [[nodiscard]] const program::Program& step() const { return set.programs.front().step(); }

  program::ProgramSet set;
  measure::StepCheck check{set};
  std::unique_ptr<executor::Executor> executor;
  executor::SessionPtr session;
};

/// Expects what every record must satisfy, and that all ranks have as many steps.
void expect_sound(const measure::Record& record, const comm::Communicator& active,
                  int trace_steps) {
  const auto steps = static_cast<double>(record.step_times.size());
  EXPECT_EQ(active.all_max(steps), active.all_min(steps));
  EXPECT_EQ(record.traced.size(), record.step_times.size());
  EXPECT_EQ(record.dropped.size(), record.step_times.size());
  EXPECT_THAT(record.step_times, Each(testing::Gt(0)));
  EXPECT_GT(record.warm_up_steps, 0U);
  EXPECT_LT(record.warm_up_steps, record.step_times.size());
  std::vector<std::uint32_t> kept, summed, flagged;
  for (const timeline::StepTrace& trace : record.traces) {
    kept.push_back(trace.step);
    EXPECT_FALSE(trace.spans.empty());
    EXPECT_LT(trace.begin, trace.end);
  }
  for (const measure::StepSums& sums : record.op_sums) {
    summed.push_back(sums.step);
    EXPECT_GT(sums.gemm, units::Nanoseconds{});
    EXPECT_GT(sums.other_compute, units::Nanoseconds{});
    EXPECT_GE(sums.communication, units::Nanoseconds{});  // a rank alone has nobody to talk to
  }
  for (std::uint32_t step = 0; step < record.traced.size(); ++step) {
    if (record.traced[step] != 0 && record.dropped[step] == 0) flagged.push_back(step);
  }
  EXPECT_TRUE(std::ranges::includes(flagged, kept));
  EXPECT_TRUE(std::ranges::includes(flagged, summed));
  EXPECT_EQ(summed.size(), std::min(flagged.size(), measure::most_op_sums));
  EXPECT_EQ(record.traces.size(), static_cast<std::size_t>(trace_steps));
  EXPECT_FALSE(record.warm_up_rule.empty());
  EXPECT_GE(record.looks.made, 1);
  EXPECT_LE(record.looks.made, record.looks.planned);
}

/// Blocks after warm-up: whether traced, and how many of their steps count.
std::vector<std::pair<bool, std::size_t>> blocks_of(const measure::Record& record) {
  std::vector<std::pair<bool, std::size_t>> blocks;
  for (std::size_t i = record.warm_up_steps; i < record.traced.size(); ++i) {
    if (record.dropped[i] != 0) {
      blocks.emplace_back(record.traced[i] != 0, 0);
    } else {
      ++blocks.back().second;
    }
  }
  return blocks;
}

class Measure : public testing::Test {
 protected:
  /// Collective.
  measure::Record measured(
      const plan::Effort& effort,
      const std::function<void(const plan::StepLoop&)>& block = [](auto&) {}) {
    return measure::measure(*ready_.session, ready_.step(), world_, measure::Share::in_point,
                            effort, block);
  }

  comm::Communicator world_ = comm::Communicator::world();
  Ready ready_{world_};
};

TEST_F(Measure, StopsWhenPreciseEnough) {
  for (const int trace_steps : {0, 1, 5}) {
    // An hour: were it not for the precision, the test would time out.
    const measure::Record record = measured(effort_of(3600, 0.0, trace_steps));
    EXPECT_EQ(record.stopped_because, "precision");
    expect_sound(record, world_, trace_steps);
    EXPECT_EQ(record.looks.made, 1);
  }
}

TEST_F(Measure, SixStepsAndSixPairsOfLikeBlocksPrecedeTheFirstLook) {
  const measure::Record record = measured(effort_of(3600, 0.0, 4));
  auto blocks = blocks_of(record);
  ASSERT_EQ(blocks.size(), 13U);
  EXPECT_EQ(blocks.front(), (std::pair{false, std::size_t{6}}));
  blocks.erase(blocks.begin());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    EXPECT_EQ(blocks[i].first, i % 4 == 1 || i % 4 == 2) << "block " << i;
    EXPECT_EQ(blocks[i].second, blocks[0].second) << "block " << i;
  }
  // Kept ones reach from the first traced block to the last.
  ASSERT_EQ(record.traces.size(), 4U);
  const std::size_t block = blocks[0].second + 1, first = record.warm_up_steps + 7;
  EXPECT_LT(record.traces.front().step, first + 2 * block);
  EXPECT_GE(record.traces.back().step, first + 10 * block);
}

TEST_F(Measure, StopsWhenTimeIsUp) {
  constexpr double time = 0.4;
  for (const std::optional<double> half_width : {std::optional<double>{}, std::optional{0.5}}) {
    const units::Nanoseconds begin = comm::now();
    const measure::Record record = measured(effort_of(time, half_width, 2));
    EXPECT_EQ(record.stopped_because, "max-time");
    // The clock that counts is that of the rank which began first.
    EXPECT_GE(world_.all_max(units::to_seconds(comm::now() - begin).value()), time);
    expect_sound(record, world_, 2);
  }
}

TEST_F(Measure, BlocksAreReportedAndBeginFromAStandstill) {
  std::vector<std::size_t> reported;
  const measure::Record record =
      measured(effort_of(0.3, std::nullopt, 2),
               [&](const plan::StepLoop& at) { reported.push_back(at.steps()); });
  EXPECT_TRUE(std::is_sorted(reported.begin(), reported.end()));
  EXPECT_EQ(reported.back(), record.step_times.size());
  EXPECT_EQ(record.dropped[record.warm_up_steps], 1);
  for (std::size_t i = 0; i + 1 < reported.size(); ++i) {
    EXPECT_EQ(record.dropped[reported[i]], 1) << "first step after block " << i;
  }
  for (std::size_t i = 1; i < record.traced.size(); ++i) {
    const bool begins = record.traced[i] != record.traced[i - 1];
    EXPECT_TRUE(!begins || record.dropped[i] == 1) << i;
  }
}

TEST_F(Measure, ReplicasFollowThePoint) {
  const auto world = comm::Communicator::world();
  const bool in_point = world.rank() < world.size() / 2;
  const auto half = world.split(in_point ? 0 : 1, world.rank());
  const Ready ready{half};
  // Each look at the samples, on every rank: replicas see those of the point alone.
  std::vector<double> seen;
  plan::Effort effort = effort_of(0.3, std::nullopt, 2);
  effort.half_width = [&](std::span<const double> samples, double) -> std::optional<double> {
    seen.assign(samples.begin(), samples.end());
    return std::nullopt;
  };
  const measure::Record record = measure::measure(
      *ready.session, ready.step(), world,
      in_point ? measure::Share::in_point : measure::Share::replica, effort, [](auto&) {});
  expect_sound(record, world, 2);
  std::vector<double> slowest = record.step_times;
  if (!in_point) std::fill(slowest.begin(), slowest.end(), 0.0);
  world.all_max(slowest);
  std::vector<double> expected;
  for (std::size_t i = record.warm_up_steps; i < slowest.size(); ++i) {
    if (record.traced[i] == 0 && record.dropped[i] == 0) expected.push_back(slowest[i]);
  }
  EXPECT_EQ(seen, expected);
}

enum class Where : std::uint8_t { inside, at_the_end };

/// Changes one element of the weights on the last rank, and asks.
template <class Change>
measure::Verdict verdict_after(const comm::Communicator& world, const Change& change, Where where) {
  const Ready ready{world};
  const program::RankProgram& program = ready.set.of(world.rank());
  const program::BufferId weights = weights_of(program);
  const std::uint64_t last = program.buffers[weights].count - 1;
  const program::Slice element{
      .buffer = weights, .offset = where == Where::at_the_end ? last : last / 3, .count = 1};
  EXPECT_TRUE(ready.weights(world).ok);
  if (world.rank() == world.size() - 1) {
    float value = 0;
    ready.session->read(element, std::as_writable_bytes(std::span{&value, 1}));
    value = change(value);
    ready.session->write(element, std::as_bytes(std::span{&value, 1}));
  }
  return ready.weights(world);
}

TEST(Weights, ThatAreNotFiniteAreFound) {
  const auto world = comm::Communicator::world();
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    for (const Where where : {Where::inside, Where::at_the_end}) {
      const auto verdict = verdict_after(
          world, [&](float) { return bad; }, where);
      EXPECT_FALSE(verdict.ok);
      EXPECT_THAT(verdict.detail, HasSubstr("not finite"));
      EXPECT_THAT(verdict.detail, HasSubstr(where == Where::at_the_end ? "layer 0," : "layer "));
    }
  }
}

TEST(Weights, ThatDifferInOneBitAreFound) {
  const auto world = comm::Communicator::world();
  for (unsigned bit = 0; bit < 32; ++bit) {
    const auto flip = [&](float value) {
      return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) ^ (1U << bit));
    };
    const measure::Verdict verdict =
        verdict_after(world, flip, bit % 2 == 0 ? Where::inside : Where::at_the_end);
    EXPECT_FALSE(verdict.ok) << "bit " << bit;
    EXPECT_THAT(verdict.detail, AnyOf(HasSubstr("replicas differ"), HasSubstr("finite")));
  }
}

/// Errors planted in training whose states are sharded over ep, with a copy for each rank of dp.
enum class Planted : std::uint8_t {
  nothing,
  gradients_not_summed,  ///< the copies do not add up their gradients
  weights_not_gathered,  ///< ranks that share states do not send each other what they updated
};

program::ProgramSet sharded(const std::string& options, const mesh::Shape& mesh, Planted error) {
  constexpr mesh::AxisSet nobody_else = mesh::Axis::cp;
  workloads::Request base = small_request();
  base.options.merge(workloads::options_of(options));
  const workloads::Workload& hybrid = workloads::find_workload("hybrid");
  program::ProgramSet set = hybrid.build(hybrid.scale(base, mesh, workloads::Scaling::strong));
  int changed = 0;
  for (program::RankProgram& program : set.programs) {
    for (program::Op& op : program.step().ops) {
      auto* const collective = std::get_if<program::Collective>(&op.payload);
      if (collective == nullptr) continue;
      if (error == Planted::gradients_not_summed &&
          collective->kind == program::CollectiveKind::all_reduce) {
        collective->axes = nobody_else;
        ++changed;
      }
      if (error == Planted::weights_not_gathered &&
          collective->kind == program::CollectiveKind::all_gather) {
        *collective = {.kind = program::CollectiveKind::barrier, .axes = nobody_else};
        ++changed;
      }
    }
  }
  EXPECT_EQ(changed > 0, error != Planted::nothing) << options << ": nowhere to plant it";
  return set;
}

/// With zero=1|2 all ranks have all weights; with zero=3 those along dp have the same part.
TEST(Weights, OfHybridShardingAreComparedAlongDpAndEp) {
  const auto world = comm::Communicator::world();
  const mesh::Shape mesh{.ep = 2, .dp = world.size() / 2};
  for (const std::string options : {"zero=1", "zero=2", "zero=3"}) {
    std::vector<Planted> planted{Planted::nothing};
    if (mesh.dp > 1) planted.push_back(Planted::gradients_not_summed);
    if (options != "zero=3") planted.push_back(Planted::weights_not_gathered);
    for (const Planted error : planted) {
      const Ready ready{world, sharded(options, mesh, error)};
      ready.session->play({.section = program::Section::step});
      const measure::Verdict verdict = ready.weights(world);
      EXPECT_EQ(verdict.ok, error == Planted::nothing) << options << ": " << verdict.detail;
      EXPECT_THAT(verdict.detail, HasSubstr(error != Planted::nothing ? "weights of replicas differ"
                                            : options == "zero=3"     ? "and dp replicas"
                                                                      : "and dp and ep replicas"))
          << options;
    }
  }
}

}  // namespace
}  // namespace isoscale::runner
