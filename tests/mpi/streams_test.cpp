// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// How streams are played: what is folded, what spans mean, how a failure arrives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <thread>

#include "tests/mpi/points.hpp"

namespace isoscale::executor {
namespace {

using mesh::Axis;
using program::Direction;
using program::Exchange;
using program::Gemm;
using program::Matrix;
using program::Section;
using program::Slice;

constexpr std::uint64_t edge = 160;  // of square f64 matrices: 200 KiB, above any eager limit

Matrix square(const Slice& slice) { return Sketch::dense(slice, edge); }

/// A few layers of D = A * B, each reduced over the world on stream 1 while stream 0 goes on, then
/// sent around on stream 2, then used by stream 0 again.
struct Layers {
  static constexpr std::size_t count = 4;

  Layers() {
    a = sketch.buffer<double>(edge * edge);
    for (std::size_t i = 0; i < count; ++i) {
      weight[i] = sketch.buffer<double>(edge * edge);
      product[i] = sketch.buffer<double>(edge * edge);
      received[i] = sketch.buffer<double>(edge * edge);
    }
    sum = sketch.buffer<double>(edge * edge);
    std::array<std::uint32_t, count> multiplied{}, reduced{}, sent{};
    for (std::size_t i = 0; i < count; ++i) {
      multiplied[i] = sketch.emit(Gemm{.m = edge,
                                       .n = edge,
                                       .k = edge,
                                       .a = square(a),
                                       .b = square(weight[i]),
                                       .d = square(product[i])});
      reduced[i] = sketch.all_reduce(product[i], mesh::every_axis, 1,
                                     {{.stream = 0, .count = multiplied[i]}});
    }
    for (std::size_t i = 0; i < count; ++i) {
      sent[i] = sketch.emit(Exchange{{{Direction::receive, Axis::tp, -1, received[i]},
                                      {Direction::send, Axis::tp, 1, product[i]}}},
                            2, {{.stream = 1, .count = reduced[i]}});
    }
    for (std::size_t i = 0; i < count; ++i) {
      sketch.emit(program::Add{.rows = edge,
                               .columns = edge,
                               .a = square(received[i]),
                               .b = square(i == 0 ? a : sum),
                               .dst = square(sum)},
                  0, {{.stream = 2, .count = sent[i]}});
    }
  }

  /// A session with values that differ between ranks.
  [[nodiscard]] std::unique_ptr<Session> on(const Point& point) const {
    auto session = point.prepare(sketch);
    const auto rank = static_cast<std::uint64_t>(point.world.rank());
    put(*session, a, whole_values<double>(edge * edge, rank));
    for (std::size_t i = 0; i < count; ++i) {
      put(*session, weight[i], whole_values<double>(edge * edge, 50 + i));
    }
    return session;
  }

  Sketch sketch;
  Slice a, sum;
  std::array<Slice, count> weight, product, received;
};

TEST(Streams, FoldedAndThreadedGiveTheSameBits) {
  const Layers layers;
  std::vector<std::vector<double>> results;
  for (const HostStreams how : {HostStreams::folded, HostStreams::threads}) {
    const Point point{{.streams = how}};
    const auto session = layers.on(point);
    EXPECT_EQ(session->facts().folded, how == HostStreams::folded);
    EXPECT_EQ(session->facts().folded_reason.empty(), how == HostStreams::threads);
    for (int play = 0; play < 5; ++play) session->play(Section::step, Trace::off);
    results.push_back(get<double>(*session, layers.sum));
  }
  EXPECT_TRUE(results[0] == results[1]);
  // Not all alike for a trivial reason.
  EXPECT_GT(std::set<double>(results[0].begin(), results[0].end()).size(), 10U);
}

/// Spans lie inside the play, follow each other on a stream, and begin after what they waited for.
void expect_orderly(const program::Program& step, std::span<const timeline::Span> spans,
                    PlayTime play) {
  EXPECT_EQ(spans.size(), step.ops.size());
  std::array<std::vector<std::size_t>, program::max_streams> of_stream;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const program::Op& op = step.ops[i];
    EXPECT_EQ(spans[i].op, i);
    EXPECT_LE(play.begin, spans[i].start) << i;
    EXPECT_LE(spans[i].start, spans[i].end) << i;
    EXPECT_LE(spans[i].end, play.end) << i;
    auto& mine = of_stream[op.stream];
    if (!mine.empty()) {
      EXPECT_LE(spans[mine.back()].end, spans[i].start) << i;
    }
    for (const program::Wait& wait : step.waits_of(op)) {
      const std::size_t awaited = of_stream[wait.stream][wait.count - 1];
      EXPECT_LE(spans[awaited].end, spans[i].start) << i << " waits for " << awaited;
    }
    mine.push_back(i);
  }
}

TEST(Streams, SpansAreOrderly) {
  const Layers layers;
  for (const HostStreams how : {HostStreams::folded, HostStreams::threads}) {
    const Point point{{.streams = how}};
    const auto session = layers.on(point);
    for (int play = 0; play < 3; ++play) {
      const PlayTime time = session->play(Section::step, Trace::on);
      expect_orderly(layers.sketch.program().step(), session->spans(), time);
      session->play(Section::step, Trace::off);
    }
  }
}

TEST(Streams, FoldedSpansFollowProgramOrderAndBeginWhenTheirOpsDo) {
  const Layers layers;
  const Point point{{.streams = HostStreams::folded}};
  const auto session = layers.on(point);
  // The clock may or may not move between two ops; but it must not stand still at all of them.
  int apart = 0, back = 0;
  for (int play = 0; play < 1000; ++play) {
    session->play(Section::step, Trace::on);
    const auto spans = session->spans();
    for (std::size_t i = 1; i < spans.size(); ++i) {
      apart += spans[i - 1].end < spans[i].start ? 1 : 0;
      back += spans[i - 1].end > spans[i].start ? 1 : 0;
    }
  }
  EXPECT_GT(apart, 0);
  EXPECT_EQ(back, 0);
}

TEST(Streams, FoldWithoutThreadsInMpiOrTwoCores) {
  const Layers layers;
  for (const auto& [options, why] :
       {std::pair{
            HostOptions{.streams = HostStreams::threads, .thread_level = MPI_THREAD_SERIALIZED},
            "MPI"},
        std::pair{HostOptions{.ranks_on_node = 100'000}, "two cores"}}) {
    const Point point{options};
    const auto session = point.prepare(layers.sketch);
    EXPECT_TRUE(session->facts().folded);
    EXPECT_THAT(session->facts().folded_reason, testing::HasSubstr(why));
  }
}

TEST(Streams, OneStreamIsNotCalledFolded) {
  Sketch sketch;
  sketch.emit(program::Fill{.dst = sketch.buffer<float>(1), .shard = {}});
  const Point point{{.streams = HostStreams::folded}};
  EXPECT_FALSE(point.prepare(sketch)->facts().folded);
}

/// While others have not begun the pass, only what does not need them has.
TEST(Streams, AreSeenWhereTheyAreInEveryPass) {
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
    std::jthread playing{[&] { session->play(Section::step, Trace::off); }};
    Whereabouts at;
    while (at.begun.size() < 2 || at.begun[0] != last_gemm || at.begun[1] != reduction) {
      at = *session->whereabouts();
    }
    at = *session->whereabouts();  // the first to see both ops may have looked at the rest before
    EXPECT_EQ(at.plays, 4);
    EXPECT_TRUE(at.playing);
    EXPECT_THAT(at.begun, testing::ElementsAre(last_gemm, reduction, Whereabouts::no_op));
    gate.barrier();
  } else {
    point.world.duplicate().barrier();
    session->play(Section::step, Trace::off);
  }
}

TEST(Streams, FactsTellStorageAndCommunicators) {
  const Layers layers;
  const Point point;
  const auto session = point.prepare(layers.sketch);
  const std::uint64_t bytes = layers.sketch.program().arena_bytes[0];
  EXPECT_EQ(session->facts().memory.value(), bytes);
  EXPECT_EQ(session->facts().blas_threads, 1);
  EXPECT_GT(session->facts().communicator_creation.value(), 0);
}

/// A message to oneself that is larger than what is received: MPI reports it as an error. (Of a
/// size that Open MPI 4.1 does report: it cuts shorter ones silently, and writes longer ones past
/// the end of the receive buffer.)
Exchange truncated(Sketch& sketch, Axis axis_of_one) {
  const Slice large = sketch.buffer<double>(500), small = sketch.buffer<double>(10);
  return {{{Direction::receive, axis_of_one, 0, small}, {Direction::send, axis_of_one, 0, large}}};
}

/// A failure reaches the caller from a worker that the caller waits for, and from the caller while
/// a worker waits for it. The op that waits never begins, and nobody may wait for it for ever.
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
    EXPECT_THAT(message_of<comm::MpiError>([&] { return session->play(Section::step, Trace::on); }),
                testing::HasSubstr("trunc"));
    EXPECT_THROW(session->play(Section::step, Trace::off), base::Error)
        << "a failed session played";
  }
  Sketch alone;
  alone.emit(truncated(alone, Axis::ep));
  const Point point;
  const auto session = point.prepare(alone);
  EXPECT_THROW(session->play(Section::step, Trace::off), comm::MpiError);
}

TEST(Failures, OpsThatTheHostCannotPlayAreRefusedByName) {
  Sketch sketch;
  const Matrix matrix = Sketch::dense(sketch.buffer(program::DType::bf16, 4), 2);
  sketch.emit(Gemm{.m = 2, .n = 2, .k = 2, .a = matrix, .b = matrix, .d = matrix});
  const Point point;
  EXPECT_THAT(message_of([&] { return point.prepare(sketch); }),
              testing::AllOf(testing::HasSubstr("op 0, gemm"), testing::HasSubstr("bf16"),
                             testing::HasSubstr("--dtype")));
}

TEST(Failures, TooLargeAProgramIsRefusedOnAllRanksWithTheNumbers) {
  Sketch sketch;
  std::ignore = sketch.buffer(program::DType::u8, std::uint64_t{1} << 50);
  const Point point;
  EXPECT_THAT(message_of([&] { return point.prepare(sketch); }),
              testing::AllOf(testing::HasSubstr("needs"), testing::HasSubstr("PiB"),
                             testing::HasSubstr("free")));
}

/// One program for all ranks: each takes its part of a tensor and fills it as the whole would be.
TEST(Shards, AreThePartsOfTheWhole) {
  constexpr std::uint64_t rows = 6, columns = 24;
  const Point point;
  const auto tp = static_cast<std::uint64_t>(point.shape.tp);
  const std::uint64_t local = columns / tp;
  Sketch sketch;
  const Slice whole = sketch.buffer<double>(rows * columns);
  const Slice part = sketch.buffer<double>(rows * local), cut = sketch.buffer<double>(rows * local);
  sketch.emit(program::Fill{
      .dst = whole,
      .shard = {.extents = {1, rows, columns}, .local = {0, columns, 1}, .global = {0, columns, 1}},
      .key = 3});
  sketch.emit(program::Fill{.dst = part,
                            .shard = {.extents = {1, rows, local},
                                      .local = {0, local, 1},
                                      .global = {0, columns, 1},
                                      .steps = {local, 0, 0, 0, 0}},
                            .key = 3});
  const Slice mine{.buffer = whole.buffer,
                   .axis = Axis::tp,
                   .count = (rows - 1) * columns + local,
                   .step = local};
  sketch.emit(program::Copy{.rows = rows,
                            .columns = static_cast<std::uint32_t>(local),
                            .batch = 1,
                            .src = {.slice = mine, .row_stride = columns},
                            .dst = {.slice = cut, .row_stride = local}});
  const auto session = point.prepare(sketch);
  session->play(Section::step, Trace::off);
  EXPECT_EQ(get<double>(*session, part), get<double>(*session, cut));
}

}  // namespace
}  // namespace isoscale::executor
