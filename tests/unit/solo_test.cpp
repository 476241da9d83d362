// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/added_sections.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "program/builder.hpp"
#include "program/check.hpp"
#include "program/outline.hpp"

namespace isoscale::program {
namespace {

using mesh::Axis;

constexpr std::uint64_t count = 64;

BufferId floats(Builder& builder) {
  return builder.allocate({.dtype = DType::f32, .role = Role::workspace, .count = count});
}

Fill fill(const Slice& dst) {
  return {.dst = dst, .shard = {.extents = {1, 1, dst.count}, .local = {0, 0, 1}}};
}

Copy copy(const Slice& src, const Slice& dst) {
  const auto columns = static_cast<std::uint32_t>(src.count);
  return {.rows = 1,
          .columns = columns,
          .src = {.slice = src, .row_stride = columns},
          .dst = {.slice = dst, .row_stride = columns}};
}

Collective all_reduce(const Slice& slice) {
  return {.kind = CollectiveKind::all_reduce, .axes = Axis::dp, .send = slice, .receive = slice};
}

/// "copy 0 <- 2:1" for a copy on stream 0 that waits for the first op of stream 2; "*" after the
/// kind where others wait for it.
std::vector<std::string> described(const Program& program) {
  std::vector<std::string> lines;
  for (const Op& op : program.ops) {
    std::string line{name(kind_of(op.payload))};
    line += (op.awaited ? "* " : " ") + std::to_string(op.stream);
    for (const Wait& wait : program.waits_of(op)) {
      line += " <- " + std::to_string(wait.stream) + ":" + std::to_string(wait.count);
    }
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

/// What steps are written with: buffers that setup has filled, and streams beside compute (0).
struct Pen {
  Builder& builder;
  StreamId network, side;  ///< 1, 2
  BufferId a, b, c;

  void emit(StreamId stream, const Payload& payload) const { builder.emit(stream, payload); }
  [[nodiscard]] Slice whole(BufferId buffer) const { return builder.whole(buffer); }
};

/// Writes a step for a mesh of two.
template <class Write>
RankProgram step_of(const Write& write) {
  Builder builder{{.dp = 2}};
  const StreamId network = builder.stream("network"), side = builder.stream("side");
  const Pen pen{.builder = builder,
                .network = network,
                .side = side,
                .a = floats(builder),
                .b = floats(builder),
                .c = floats(builder)};
  for (const BufferId buffer : {pen.a, pen.b, pen.c}) builder.emit(0, fill(builder.whole(buffer)));
  builder.begin(Section::step);
  write(pen);
  return builder.finish();
}

TEST(SoloStep, KeepsTheOrderOfWhatDoesNotCommunicate) {
  const RankProgram program = step_of([](const Pen& pen) {
    pen.builder.at({.phase = Phase::forward, .layer = 3});
    pen.emit(0, fill(pen.whole(pen.a)));
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(pen.side, fill(pen.whole(pen.c)));
    pen.emit(0, fill(pen.whole(pen.b)));
    pen.emit(pen.network, all_reduce(pen.whole(pen.b)));
    pen.emit(pen.side, copy(pen.whole(pen.c), pen.whole(pen.c)));
  });
  const Program solo = without_communication(program.step());
  EXPECT_EQ(described(solo), (Lines{"fill 0", "fill 2", "fill 0", "copy 2"}));
  EXPECT_EQ(solo.ops[0].place.phase, Phase::forward);
  EXPECT_EQ(solo.ops[0].place.layer, 3);
  EXPECT_EQ(solo_ops(program.step()), (std::vector<std::uint32_t>{0, 2, 3, 5}));
}

TEST(SoloStep, DropsAWaitThatLeadsBackToTheSameStream) {
  // A on stream 0, all_reduce of its result on stream 1, B on stream 0: stream order is enough.
  const RankProgram program = step_of([](const Pen& pen) {
    pen.emit(0, fill(pen.whole(pen.a)));
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(0, copy(pen.whole(pen.a), pen.whole(pen.b)));
  });
  ASSERT_EQ(described(program.step()), (Lines{"fill* 0", "all_reduce* 1 <- 0:1", "copy 0 <- 1:1"}));
  EXPECT_EQ(described(without_communication(program.step())), (Lines{"fill 0", "copy 0"}));
}

TEST(SoloStep, WaitsForWhatTheCommunicationWaitedFor) {
  // As above, but B is on stream 2: it waits for A itself.
  const RankProgram program = step_of([](const Pen& pen) {
    pen.emit(0, fill(pen.whole(pen.b)));
    pen.emit(0, fill(pen.whole(pen.a)));
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(pen.side, copy(pen.whole(pen.a), pen.whole(pen.b)));
  });
  ASSERT_EQ(described(program.step()),
            (Lines{"fill 0", "fill* 0", "all_reduce* 1 <- 0:2", "copy 2 <- 1:1"}));
  EXPECT_EQ(described(without_communication(program.step())),
            (Lines{"fill 0", "fill* 0", "copy 2 <- 0:2"}));
}

TEST(SoloStep, FollowsOneCommunicationToTheNext) {
  // Two collectives one after the other on different streams between A and B.
  const RankProgram program = step_of([](const Pen& pen) {
    const StreamId last = pen.builder.stream("last");
    pen.emit(0, fill(pen.whole(pen.a)));
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(pen.side, all_reduce(pen.whole(pen.a)));
    pen.emit(last, copy(pen.whole(pen.a), pen.whole(pen.b)));
  });
  EXPECT_EQ(described(without_communication(program.step())), (Lines{"fill* 0", "copy 3 <- 0:1"}));
}

TEST(SoloStep, CountsOnlyTheOpsThatAreLeft) {
  // Stream 1 has collectives between what it computes: its third op becomes its first, and its
  // fifth its second.
  const RankProgram program = step_of([](const Pen& pen) {
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(pen.network, fill(pen.whole(pen.b)));
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(0, copy(pen.whole(pen.b), pen.whole(pen.c)));
    pen.emit(pen.network, fill(pen.whole(pen.a)));
    pen.emit(0, copy(pen.whole(pen.a), pen.whole(pen.c)));
  });
  const Lines whole = described(program.step());
  ASSERT_EQ(whole[4], "copy 0 <- 1:3");
  ASSERT_EQ(whole[6], "copy 0 <- 1:5");
  EXPECT_EQ(described(without_communication(program.step())),
            (Lines{"fill* 1", "copy 0 <- 1:1", "fill* 1", "copy 0 <- 1:2"}));
}

TEST(SoloStep, DropsWaitsForCommunicationThatWaitedForNothing) {
  const RankProgram program = step_of([](const Pen& pen) {
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(0, copy(pen.whole(pen.a), pen.whole(pen.b)));
  });
  EXPECT_EQ(described(without_communication(program.step())), Lines{"copy 0"});
}

TEST(SoloStep, DoesNotWaitTwiceForTheSame) {
  // Both ops of stream 2 read what stream 0 wrote, through collectives.
  const RankProgram program = step_of([](const Pen& pen) {
    pen.emit(0, fill(pen.whole(pen.a)));
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(pen.side, copy(pen.whole(pen.a), pen.whole(pen.b)));
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(pen.side, copy(pen.whole(pen.a), pen.whole(pen.c)));
  });
  EXPECT_EQ(described(without_communication(program.step())),
            (Lines{"fill* 0", "copy 2 <- 0:1", "copy 2"}));
}

TEST(SoloStep, OfAStepOfCommunicationAloneIsEmpty) {
  const RankProgram program =
      step_of([](const Pen& pen) { pen.emit(pen.network, all_reduce(pen.whole(pen.a))); });
  EXPECT_TRUE(without_communication(program.step()).ops.empty());
  EXPECT_TRUE(solo_ops(program.step()).empty());
}

TEST(SoloStep, IsAppendedToEveryProgram) {
  const RankProgram program = step_of([](const Pen& pen) {
    pen.emit(0, fill(pen.whole(pen.a)));
    pen.emit(pen.network, all_reduce(pen.whole(pen.a)));
    pen.emit(pen.side, copy(pen.whole(pen.a), pen.whole(pen.b)));
  });
  ProgramSet set{.mesh = {.dp = 2}, .programs = {program, program}, .program_of_rank = {0, 1}};
  EXPECT_EQ(add_solo_step(set), step_section(1));
  for (const RankProgram& of_rank : set.programs) {
    ASSERT_EQ(of_rank.steps.size(), 2U);
    EXPECT_EQ(of_rank.steps[0].ops.size(), 3U);
    EXPECT_EQ(described(of_rank.steps[1]), (Lines{"fill* 0", "copy 2 <- 0:1"}));
  }
  EXPECT_NO_THROW(check(set));
}

}  // namespace
}  // namespace isoscale::program
