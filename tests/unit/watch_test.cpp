// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <thread>

#include "base/text.hpp"
#include "matchers.hpp"
#include "runner/watch/supervisor.hpp"

namespace isoscale::runner {
namespace {

using testing::ExitedWithCode;
using units::Seconds;

watch::Group group_of(std::vector<int> ranks) {
  return {.name = "dp on comm, ranks " + base::ranges_text(ranks), .ranks = std::move(ranks)};
}

/// Waits in the call `number` of `group`, the last that it made there.
watch::RankState waiting(int rank, const watch::Group& group, std::uint32_t number) {
  const watch::Arrival at{.group = group, .call = {.play = 2, .number = number}};
  return {.rank = rank, .at = {{.op = "all_reduce", .meets = {at}}}, .arrivals = {at}};
}

watch::RankState computing(int rank, const watch::Group& group, std::uint32_t made) {
  return {.rank = rank,
          .at = {{.op = "gemm, forward, layer 1"}},
          .arrivals = {{.group = group, .call = {.play = 2, .number = made}}}};
}

/// The hang of so many ranks, of which some told where they are, expecting one culprit.
watch::Hang hang_of(int culprit, int ranks, const std::vector<watch::RankState>& told) {
  watch::Hang hang = watch::find_hang(told, ranks);
  EXPECT_EQ(hang.culprits.size(), 1U);
  if (hang.culprits.empty()) hang.culprits.emplace_back();
  EXPECT_EQ(hang.culprits[0].rank, culprit);
  return hang;
}

TEST(Hang, NamesTheRankThatNeverAnswersComputesOrFailed) {
  const watch::Group all = group_of({0, 1, 2});
  const watch::RankState first = waiting(0, all, 7), last = waiting(2, all, 7);
  const watch::Hang silent = hang_of(1, 3, {first, last});
  EXPECT_THAT(silent.silent, ElementsAre(1));
  EXPECT_THAT(silent.waiting, ElementsAre(0, 2));
  EXPECT_THAT(silent.sentence(),
              AllOf(HasSubstr("rank 1 never answered"), HasSubstr("all_reduce (play 2, call 7)")));
  watch::RankState busy = computing(1, all, 6);
  const watch::Hang computes = hang_of(1, 3, {first, busy, last});
  EXPECT_THAT(computes.silent, IsEmpty());
  EXPECT_THAT(computes.culprits[0].what, HasSubstr("gemm, forward, layer 1"));
  busy.failure = "no memory";
  EXPECT_EQ(hang_of(1, 3, {first, busy, last}).culprits[0].what, "failed: no memory");
}

TEST(Hang, FollowsAChainOfWaitingRanksToItsEnd) {
  const watch::Group near = group_of({0, 1}), far = group_of({1, 2});
  watch::RankState between = waiting(1, far, 4);
  between.arrivals.push_back({.group = near, .call = {.play = 2, .number = 2}});
  const watch::Hang hang = hang_of(2, 3, {waiting(0, near, 3), between, computing(2, far, 3)});
  EXPECT_THAT(hang.absent, ElementsAre(1));  // from the first call that somebody is absent from
}

/// Some ranks tell only from time to time where they are, so they may have arrived by now.
TEST(Hang, AccusesNobodyWhoMayHaveArrived) {
  const watch::Group all = group_of({0, 1, 2});
  watch::RankState vague = computing(1, all, 5);
  const auto absent = [&](std::uint32_t more) {
    vague.arrivals[0].more = more;
    return watch::find_hang({waiting(0, all, 7), vague, waiting(2, all, 7)}, 3).absent;
  };
  EXPECT_THAT(absent(1), ElementsAre(1));
  EXPECT_THAT(absent(2), IsEmpty());
}

TEST(Hang, NamesTheRankThatIsInNoCallOfTheRunner) {
  const auto collective = [](int rank) {
    return watch::RankState{.rank = rank, .doing = "preparing", .in_collective = true};
  };
  const watch::Hang hang =
      hang_of(1, 3, {collective(0), {.rank = 1, .doing = "preparing"}, collective(2)});
  EXPECT_THAT(hang.sentence(), HasSubstr("rank 1 is at: preparing"));
}

TEST(Hang, BlamesNobodyWhenAllHaveArrived) {
  const watch::Group all = group_of({0, 1});
  const watch::Hang hang = watch::find_hang({waiting(0, all, 7), waiting(1, all, 7)}, 2);
  EXPECT_THAT(hang.culprits, IsEmpty());
  EXPECT_THAT(hang.sentence(), HasSubstr("network"));
}

TEST(RankState, GoesThroughALetter) {
  watch::RankState state = waiting(3, group_of({1, 3, 4, 5, 8, 9}), 9);
  state.arrivals[0].more = 2;
  state.failure = "a \"quoted\" line\n\xff";
  state.still = 1.5;
  const auto read = watch::state_from_json(watch::to_json(state));
  EXPECT_EQ(read.value().rank, 3);
  EXPECT_EQ(read->still, 1.5);
  ASSERT_EQ(read->at.size(), 1);
  EXPECT_EQ(read->at[0].meets[0].call, (watch::CallNumber{.play = 2, .number = 9}));
  EXPECT_THAT(read->at[0].meets[0].group.ranks, ElementsAre(1, 3, 4, 5, 8, 9));
  EXPECT_EQ(read->arrivals[0].more, 2);
  EXPECT_FALSE(watch::state_from_json("{}"));
  EXPECT_FALSE(watch::state_from_json("nonsense"));
  EXPECT_FALSE(watch::state_from_json(R"({"rank": "x"})"));
}

/// dp=2 tp=2: rank 1 of the mesh has tp partner 0 and dp partner 3.
class CallsMade : public testing::Test {
 protected:
  CallsMade() {
    outline_.streams = {"compute", "dp"};
    outline_.ops = {op(program::OpKind::gemm, 0, {}),
                    op(program::OpKind::all_reduce, 0, mesh::Axis::tp),
                    op(program::OpKind::all_reduce, 1, mesh::Axis::dp),
                    op(program::OpKind::all_reduce, 0, mesh::Axis::tp)};
  }

  static program::OutlineOp op(program::OpKind kind, program::StreamId stream, mesh::AxisSet axes) {
    program::OutlineOp result;
    result.kind = kind;
    result.stream = stream;
    result.axes = axes;
    result.bytes = 4096;
    return result;
  }

  [[nodiscard]] watch::RankState described(const executor::Whereabouts& at) const {
    watch::RankState state;
    watch::describe_calls({.outline = outline_, .mesh = mesh_, .rank = 1, .world_ranks = world_},
                          at, state);
    return state;
  }

  static std::uint32_t calls_on(const watch::RankState& state, std::string_view group) {
    for (const watch::Arrival& arrival : state.arrivals) {
      if (arrival.group.name == group) return arrival.call.number;
    }
    return 0;
  }

  program::Outline outline_;
  mesh::Shape mesh_{.tp = 2, .dp = 2};
  std::vector<int> world_{4, 5, 6, 7};
};

TEST_F(CallsMade, AreCountedByCommunicator) {
  using At = executor::Whereabouts;
  for (const auto& [at, along_tp, along_dp, places] :
       {std::tuple{At{.plays = 3, .playing = true, .begun = {3, 2}}, 2U, 1U, 2U},
        {At{.plays = 3, .playing = true}, 0U, 0U, 0U},  // the play tells nothing
        {At{.plays = 3, .playing = false, .begun = {0, 2}}, 2U, 1U, 0U},
        {At{}, 0U, 0U, 0U},  // before the first play
        // In program order on one lane.
        {At{.plays = 1, .playing = true, .begun = {1}}, 1U, 0U, 1U}}) {
    const watch::RankState state = described(at);
    EXPECT_EQ(calls_on(state, "tp on compute, ranks 4-5"), along_tp);
    EXPECT_EQ(calls_on(state, "dp on dp, ranks 5, 7"), along_dp);
    EXPECT_THAT(state.at, SizeIs(places));
    if (along_tp + along_dp == 0) {
      EXPECT_THAT(state.arrivals, IsEmpty());
    }
  }
  EXPECT_THAT(described({.plays = 3, .playing = true, .begun = {3, 2}}).at[0].op,
              HasSubstr("all_reduce of 4.00 KiB"));
}

TEST_F(CallsMade, MayGoAsFarAsTheNextOpThatIsKnown) {
  using At = executor::Whereabouts;
  const watch::RankState state =
      described({.plays = 3, .playing = true, .begun = {0, 2}, .next = {3, 4}});
  ASSERT_EQ(state.arrivals.size(), 2);
  for (const watch::Arrival& arrival : state.arrivals) {
    EXPECT_EQ(arrival.latest(), (watch::CallNumber{.play = 3, .number = 1}));
  }
  EXPECT_EQ(state.arrivals[0].more, 0);  // along dp
  EXPECT_EQ(state.arrivals[1].more, 1);
  ASSERT_EQ(state.at.size(), 2);
  EXPECT_THAT(state.at[0].op, AllOf(HasSubstr("gemm"), HasSubstr("the op behind it")));
  ASSERT_EQ(state.at[0].meets.size(), 1);
  EXPECT_EQ(state.at[0].meets[0].call.number, 1);
  EXPECT_THAT(state.at[1].op, Not(HasSubstr("behind")));
  const watch::RankState vaguer =
      described({.plays = 3, .playing = true, .begun = {0, 2}, .next = {4, 4}});
  EXPECT_THAT(vaguer.at[0].op, HasSubstr("2 ops behind it"));
  EXPECT_EQ(vaguer.at[0].meets[0].call.number, 2);
  // No op of the second lane has begun for certain: it is at its own first, not at the program's.
  const watch::RankState unsure =
      described({.plays = 3, .playing = true, .begun = {0, At::no_op}, .next = {1, 4}});
  ASSERT_EQ(unsure.at.size(), 2);
  EXPECT_THAT(unsure.at[1].op, HasSubstr("along dp"));
}

TEST(ExpectedLeft, IsWhatIsPlannedThenAtThePaceOfPointsThatHaveEndedWithinTheBudget) {
  struct Case {
    double elapsed, done, planned_done, planned_left;
    std::optional<Seconds> until;
    std::optional<Seconds> left;
  };
  for (const Case& is : {
           Case{10, 0, 0, 0, {}, {}},
           Case{0, 0, 0, 40, {}, Seconds{40}},
           Case{10, 0, 0, 40, {}, Seconds{30}},
           // Twice as long as planned; of the next point, 4 s have passed.
           Case{24, 20, 10, 30, {}, Seconds{56}},
           Case{20, 20, 10, 0, {}, Seconds{0}},
           Case{10, 10, 10, 40, Seconds{9}, Seconds{9}},
           Case{10, 10, 10, 40, Seconds{100}, Seconds{40}},
           Case{10, 10, 10, 40, Seconds{-1}, Seconds{0}},
       }) {
    EXPECT_EQ(watch::expected_left(Seconds{is.elapsed}, Seconds{is.done}, Seconds{is.planned_done},
                                   Seconds{is.planned_left}, is.until),
              is.left)
        << is.elapsed << " s, " << is.done << " s";
  }
}

void wait() { std::this_thread::sleep_for(std::chrono::seconds{30}); }

/// Makes a full pipe the standard error; its other end is kept open and not read.
void use_full_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_NONBLOCK) != 0) _exit(1);
  dup2(ends[1], STDERR_FILENO);
  while (write(STDERR_FILENO, "x", 1) == 1) {
  }
  fcntl(STDERR_FILENO, F_SETFL, 0);  // who writes now waits
}

class MpiLimits : public testing::Test {
 protected:
  void SetUp() override { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(MpiLimits, AnMpiThatDoesNotEndEndsTheProcess) {
  EXPECT_EXIT(
      {
        watch::MpiLimit limit{units::Seconds{0.2}};
        limit.starts();
        limit.is_over();
        limit.ends();
        wait();
      },
      ExitedWithCode(4), "hang: .* 200 ms");
}

TEST_F(MpiLimits, OtherProcessesOfALaunchLeaveTheirEndToTheLauncherForAWhile) {
  EXPECT_EXIT(
      {
        watch::MpiLimit limit(units::Seconds{0.1}, false);
        limit.ends();
        std::this_thread::sleep_for(std::chrono::seconds{1});
        _exit(7);  // as the launcher would end it
      },
      ExitedWithCode(7), "");
}

TEST_F(MpiLimits, AlsoWhereNobodyReadsStandardError) {
  EXPECT_EXIT(
      {
        use_full_pipe();
        watch::MpiLimit limit{units::Seconds{0.5}};
        limit.starts();
        wait();
      },
      ExitedWithCode(4), "");
}

TEST_F(MpiLimits, IsOverWhenMpiIs) {
  watch::MpiLimit limit{units::Seconds{0.05}};
  limit.starts();
  limit.is_over();
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  limit.ends();
  limit.is_over();
}

}  // namespace
}  // namespace isoscale::runner
