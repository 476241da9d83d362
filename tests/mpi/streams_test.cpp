// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The host executor folds streams, passes failures on, and refuses what it cannot play.

#include <thread>

#include "tests/mpi/points.hpp"

namespace isoscale::executor {
namespace {

using mesh::Axis;
using namespace program;  // NOLINT: the ops

TEST(HostStreams, FoldedSpansFollowProgramOrderAndBeginWhenTheirOpsDo) {
  const Layers layers;
  const Point point{{.streams = HostStreams::folded}};
  const auto session = layers.on(point);
  // The clock may or may not move between two ops; but it must not stand still at all of them.
  int apart = 0, back = 0;
  for (int play = 0; play < 100; ++play) {
    session->play({.section = Section::step, .trace = Trace::on});
    const auto spans = session->spans();
    for (std::size_t i = 1; i < spans.size(); ++i) {
      apart += spans[i - 1].end < spans[i].start ? 1 : 0;
      back += spans[i - 1].end > spans[i].start ? 1 : 0;
    }
  }
  EXPECT_GT(apart, 0);
  EXPECT_EQ(back, 0);
}

TEST(HostStreams, FoldWithoutThreadsInMpiOrTwoCores) {
  const Layers layers;
  const HostOptions serial{.streams = HostStreams::threads, .threads_may_talk = false};
  for (const auto& [options, why] :
       {std::pair{serial, "MPI"}, std::pair{HostOptions{.ranks_on_node = 100'000}, "two cores"}}) {
    const auto session = Point{options}.prepare(layers.sketch);
    EXPECT_TRUE(session->facts().folded);
    EXPECT_THAT(session->facts().folded_reason, HasSubstr(why));
  }
}

TEST(HostStreams, OneStreamIsNotCalledFolded) {
  Sketch sketch;
  sketch.emit(program::Fill{.dst = sketch.buffer<float>(1), .shard = {}});
  EXPECT_FALSE(Point{{.streams = HostStreams::folded}}.prepare(sketch)->facts().folded);
}

/// While others have not begun the pass, only what does not need them has.
TEST(HostStreams, AreSeenWhereTheyAreInEveryPass) {
  const Layers layers;
  const Point point{{.streams = HostStreams::threads}};
  if (point.world.size() < 2) GTEST_SKIP() << "one rank waits for nobody";
  const auto session = layers.on(point);
  session->play({.times = 3});
  EXPECT_EQ(session->whereabouts()->plays, 3);
  EXPECT_FALSE(session->whereabouts()->playing);
  constexpr std::uint32_t reduction = 1, last_gemm = 2 * (Layers::count - 1);
  if (point.world.rank() == 0) {
    const comm::Communicator gate = point.world.duplicate();
    std::jthread playing{[&] { session->play({.section = Section::step}); }};
    Whereabouts at;
    while (at.begun.size() < 2 || at.begun[0] != last_gemm || at.begun[1] != reduction) {
      at = *session->whereabouts();
    }
    at = *session->whereabouts();  // the first to see both ops may have looked at the rest before
    EXPECT_EQ(at.plays, 4);
    EXPECT_TRUE(at.playing);
    EXPECT_THAT(at.begun, ElementsAre(last_gemm, reduction, Whereabouts::no_op));
    gate.barrier();
  } else {
    point.world.duplicate().barrier();
    session->play({.section = Section::step});
  }
}

/// A message to oneself of a length that Open MPI 4.1 reports to be larger than what is received.
Exchange truncated(Sketch& sketch, Axis axis_of_one) {
  const Slice large = sketch.buffer<double>(500), small = sketch.buffer<double>(10);
  return {{{Direction::receive, axis_of_one, 0, small}, {Direction::send, axis_of_one, 0, large}}};
}

/// From a worker that the caller waits for, and from the caller while a worker waits for it.
TEST(Failures, ReachTheCallerFromEveryStream) {
  for (const program::StreamId failing : {program::StreamId{1}, program::StreamId{0}}) {
    Sketch sketch;
    const Slice data = sketch.buffer<double>(10);
    const std::uint32_t failed = sketch.emit(truncated(sketch, Axis::ep), failing);
    sketch.emit(program::Fill{.dst = data, .shard = {}},
                static_cast<program::StreamId>(1 - failing),
                {{.stream = failing, .count = failed}});
    const Point point{{.streams = HostStreams::threads}};
    const auto session = point.prepare(sketch);
    EXPECT_THAT(message_of<comm::MpiError>(
                    [&] { return session->play({.section = Section::step, .trace = Trace::on}); }),
                HasSubstr("trunc"));
    EXPECT_THROW(session->play({.section = Section::step}), base::Error)
        << "a failed session played";
  }
  Sketch alone;
  alone.emit(truncated(alone, Axis::ep));
  const auto session = Point{}.prepare(alone);
  EXPECT_THROW(session->play({.section = Section::step}), comm::MpiError);
}

TEST(Failures, OpsThatTheHostCannotPlayAreRefusedByName) {
  Sketch sketch;
  const program::Matrix matrix = Sketch::dense(sketch.buffer(program::DType::bf16, 4), 2);
  sketch.emit(Gemm{.m = 2, .n = 2, .k = 2, .a = matrix, .b = matrix, .d = matrix});
  EXPECT_THAT(message_of([&] { return Point{}.prepare(sketch); }),
              AllOf(HasSubstr("op 0, gemm"), HasSubstr("bf16"), HasSubstr("--dtype")));
}

TEST(Failures, TooLargeAProgramIsRefusedOnAllRanksWithTheNumbers) {
  Sketch sketch;
  std::ignore = sketch.buffer(program::DType::u8, std::uint64_t{1} << 50);
  EXPECT_THAT(message_of([&] { return Point{}.prepare(sketch); }),
              AllOf(HasSubstr("needs"), HasSubstr("PiB"), HasSubstr("free")));
}

}  // namespace
}  // namespace isoscale::executor
