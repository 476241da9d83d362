// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// A GPU that does not come to an end is located by the marks that its streams have made.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "base/error.hpp"
#include "executor/cuda/stream_words.hpp"
#include "tests/cuda/devices.hpp"
#include "tests/executor/sketch.hpp"

namespace isoscale::standin {
namespace {

using executor::Sketch;
using executor::Trace;
using executor::Whereabouts;
using program::OutlineOp;
using program::Section;
using program::Slice;
using testing::ElementsAre;
using testing::IsEmpty;

/// GEMMs on stream 0 that take at least so many milliseconds each, on any GPU.
program::Outline gemms(const std::vector<double>& milliseconds) {
  program::Outline outline;
  outline.streams = {"compute"};
  for (const double time : milliseconds) outline.ops.emplace_back().flop = time * 3.6e12;
  return outline;
}

OutlineOp small_all_reduce() {
  OutlineOp op;
  op.kind = program::OpKind::all_reduce;
  op.stream = 1;
  op.bytes = 1'000;
  return op;
}

constexpr units::Seconds usual_cost{1e-6};  // 200 us of work for each mark

TEST(Marks, AreSoFarApartThatTheyTakeHalfAPercentOfTheTime) {
  const auto marked =
      executor::cuda::choose_marks(gemms({0.3, 0.1, 0.09, 0.02, 0.3, 0.01, 0.4}), usual_cost);
  EXPECT_THAT(marked, ElementsAre(true, true, false, false, true, true, false));
}

TEST(Marks, AreNotPutInWhatIsOverSoon) {
  EXPECT_THAT(executor::cuda::choose_marks(gemms({0.2, 0.2, 0.1}), usual_cost), IsEmpty());
  EXPECT_THAT(executor::cuda::choose_marks(gemms({0.2, 0.2, 0.3}), usual_cost),
              ElementsAre(true, true, true));
}

TEST(Marks, AreCountedByStream) {
  program::Outline outline = gemms({0.5, 0.5, 0.5});
  outline.streams.emplace_back("comm");
  outline.ops.insert(outline.ops.begin() + 1, small_all_reduce());
  outline.ops.push_back(small_all_reduce());
  EXPECT_THAT(executor::cuda::choose_marks(outline, usual_cost),
              ElementsAre(true, true, true, true, false));
}

TEST(Marks, ThatCostNothingAreEverywhere) {
  EXPECT_THAT(executor::cuda::choose_marks(gemms({0, 0, 0.1}), units::Seconds{0}),
              ElementsAre(true, true, true));
}

/// fill, all_reduce on stream 1, fill that waits for it, all_reduce on stream 1.
Sketch alternating() {
  Sketch sketch;
  const Slice all = sketch.buffer<float>(64), other = sketch.buffer<float>(64);
  const std::uint32_t first = sketch.emit(program::Fill{.dst = all, .shard = {}});
  const std::uint32_t reduced =
      sketch.all_reduce(all, mesh::Axis::dp, 1, {{.stream = 0, .count = first}});
  sketch.emit(program::Fill{.dst = other, .shard = {}}, 0, {{.stream = 1, .count = reduced}});
  sketch.all_reduce(all, mesh::Axis::dp, 1);
  return sketch;
}

struct Stuck {
  Gpus gpus{};
  std::optional<Whereabouts> seen;

  std::unique_ptr<executor::Executor> executor(settings::Graph graph,
                                               std::optional<units::Seconds> cost) const {
    executor::CudaOptions options = Gpus::options(graph);
    options.mark_cost = cost;
    return gpus.executor(options);
  }

  /// Plays one pass, then three together, of which the communicator does no more than `calls`
  /// calls; looks where the session is once nothing moves any more.
  void play(executor::Executor& executor, std::uint64_t calls) {
    Settings& settings = machine().settings;
    settings.failing_communicator = "dp on stream1";
    settings.failing_result = ncclSuccess;
    settings.failing_after = 1 + calls;  // the first is made when the session is
    const mesh::Shape mesh{.dp = gpus.world.size()};
    const auto session = executor.prepare(alternating().on(mesh), gpus.world);
    EXPECT_EQ(session->whereabouts(), (Whereabouts{.plays = 0}));
    session->play(Section::step, Trace::off);
    EXPECT_EQ(session->whereabouts(), (Whereabouts{.plays = 1}));
    int polls = 0;
    settings.when_asked_why = [&] {
      constexpr int long_enough = 100;  // all is done by then that can be
      if (++polls < long_enough) return;
      seen = session->whereabouts();
      settings.failing_result = ncclRemoteError;
    };
    EXPECT_THROW(session->play({.times = 3}), base::Error);
    settings.when_asked_why = nullptr;
  }
};

TEST(Marks, TellPassAndOpOfEveryStream) {
  for (const auto graph : {settings::Graph::off, settings::Graph::on}) {
    Stuck stuck;
    const auto executor = stuck.executor(graph, units::Seconds{0});
    stuck.play(*executor, 2 + 2 + 1);  // the third pass stands at its last op
    EXPECT_EQ(stuck.seen,
              (Whereabouts{.plays = 3, .playing = true, .begun = {2, 3}, .next = {4, 4}}));
    EXPECT_GT(machine().marks, 0);
    stuck.play(*executor, 2 + 2);  // at its second
    EXPECT_EQ(stuck.seen,
              (Whereabouts{.plays = 3, .playing = true, .begun = {0, 1}, .next = {2, 3}}));
  }
}

TEST(Marks, AreNotWrittenWhereNobodyWatches) {
  Stuck stuck;
  stuck.play(*stuck.executor(settings::Graph::off, std::nullopt), 2 + 1);
  EXPECT_EQ(stuck.seen, (Whereabouts{.plays = 2, .playing = true}));
  EXPECT_EQ(machine().marks, 0);
}

TEST(Marks, AreNotWrittenByADriverThatCannot) {
  Stuck stuck;
  machine().settings.writes_values = false;
  testing::internal::CaptureStderr();
  stuck.play(*stuck.executor(settings::Graph::off, units::Seconds{0}), 2 + 1);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::HasSubstr("GPUs could not tell at which op"));
  EXPECT_EQ(stuck.seen, (Whereabouts{.plays = 2, .playing = true}));
  EXPECT_EQ(machine().marks, 0);
}

}  // namespace
}  // namespace isoscale::standin
