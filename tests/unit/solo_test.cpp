// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Steps without their communication: of steps written by hand, and of every workload that has
// steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "op_samples.hpp"
#include "program/added_sections.hpp"
#include "program/check.hpp"
#include "program/hazards.hpp"
#include "program/outline.hpp"
#include "stack_samples.hpp"

namespace isoscale::program {
namespace {

using mesh::Axis;

constexpr std::uint64_t count = 64;

Collective all_reduce(const Slice& slice) {
  return {.kind = CollectiveKind::all_reduce, .axes = Axis::dp, .send = slice, .receive = slice};
}

using Lines = std::vector<std::string>;

/// "copy 0 <- 2:1" for a copy on stream 0 that waits for the first op of stream 2; "*" after the
/// kind where others wait for it.
Lines described(const Program& program) {
  Lines lines;
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

/// The step that is written for a mesh of two; setup has filled its buffers.
class SoloStep : public testing::Test {
 protected:
  SoloStep() {
    for (const Slice& buffer : {a, b, c}) emit(compute, fill(buffer));
    builder.begin(Section::step);
  }

  void emit(StreamId stream, const Payload& payload) { builder.emit(stream, payload); }
  /// Ends the step and returns how it is described.
  Lines finish() {
    program = builder.finish();
    return described(program.step());
  }
  /// Returns how the step without communication is described.
  [[nodiscard]] Lines solo() const { return described(without_communication(program.step())); }

  Builder builder{{.dp = 2}};
  const StreamId compute = 0, network = builder.stream("network"), side = builder.stream("side");
  const Slice a = builder.whole(floats(builder, count)), b = builder.whole(floats(builder, count)),
              c = builder.whole(floats(builder, count));
  RankProgram program;
};

TEST_F(SoloStep, KeepsTheOrderOfWhatDoesNotCommunicate) {
  builder.at({.phase = Phase::forward, .layer = 3});
  emit(0, fill(a));
  emit(network, all_reduce(a));
  emit(side, fill(c));
  emit(0, fill(b));
  emit(network, all_reduce(b));
  emit(side, copy(c, c));
  finish();
  const Program left = without_communication(program.step());
  EXPECT_EQ(solo(), (Lines{"fill 0", "fill 2", "fill 0", "copy 2"}));
  EXPECT_EQ(left.ops[0].place.phase, Phase::forward);
  EXPECT_EQ(left.ops[0].place.layer, 3);
  EXPECT_EQ(solo_ops(program.step()), (std::vector<std::uint32_t>{0, 2, 3, 5}));
}

TEST_F(SoloStep, DropsAWaitThatLeadsBackToTheSameStream) {
  // A on stream 0, all_reduce of its result on stream 1, B on stream 0: stream order is enough.
  emit(0, fill(a));
  emit(network, all_reduce(a));
  emit(0, copy(a, b));
  ASSERT_EQ(finish(), (Lines{"fill* 0", "all_reduce* 1 <- 0:1", "copy 0 <- 1:1"}));
  EXPECT_EQ(solo(), (Lines{"fill 0", "copy 0"}));
}

TEST_F(SoloStep, WaitsForWhatTheCommunicationWaitedFor) {
  // As above, but B is on stream 2: it waits for A itself.
  emit(0, fill(b));
  emit(0, fill(a));
  emit(network, all_reduce(a));
  emit(side, copy(a, b));
  ASSERT_EQ(finish(), (Lines{"fill 0", "fill* 0", "all_reduce* 1 <- 0:2", "copy 2 <- 1:1"}));
  EXPECT_EQ(solo(), (Lines{"fill 0", "fill* 0", "copy 2 <- 0:2"}));
}

TEST_F(SoloStep, FollowsOneCommunicationToTheNext) {
  // Two collectives one after the other on different streams between A and B.
  const StreamId last = builder.stream("last");
  emit(0, fill(a));
  emit(network, all_reduce(a));
  emit(side, all_reduce(a));
  emit(last, copy(a, b));
  finish();
  EXPECT_EQ(solo(), (Lines{"fill* 0", "copy 3 <- 0:1"}));
}

TEST_F(SoloStep, CountsOnlyTheOpsThatAreLeft) {
  // Stream 1 has collectives between what it computes: its third op becomes its first, and its
  // fifth its second.
  emit(network, all_reduce(a));
  emit(network, all_reduce(a));
  emit(network, fill(b));
  emit(network, all_reduce(a));
  emit(0, copy(b, c));
  emit(network, fill(a));
  emit(0, copy(a, c));
  const Lines all = finish();
  ASSERT_EQ(all[4], "copy 0 <- 1:3");
  ASSERT_EQ(all[6], "copy 0 <- 1:5");
  EXPECT_EQ(solo(), (Lines{"fill* 1", "copy 0 <- 1:1", "fill* 1", "copy 0 <- 1:2"}));
}

TEST_F(SoloStep, DropsWaitsForCommunicationThatWaitedForNothing) {
  emit(network, all_reduce(a));
  emit(0, copy(a, b));
  finish();
  EXPECT_EQ(solo(), Lines{"copy 0"});
}

TEST_F(SoloStep, DoesNotWaitTwiceForTheSame) {
  // Both ops of stream 2 read what stream 0 wrote, through collectives.
  emit(0, fill(a));
  emit(network, all_reduce(a));
  emit(side, copy(a, b));
  emit(network, all_reduce(a));
  emit(side, copy(a, c));
  finish();
  EXPECT_EQ(solo(), (Lines{"fill* 0", "copy 2 <- 0:1", "copy 2"}));
}

TEST_F(SoloStep, OfAStepOfCommunicationAloneIsEmpty) {
  emit(network, all_reduce(a));
  finish();
  EXPECT_TRUE(without_communication(program.step()).ops.empty());
  EXPECT_TRUE(solo_ops(program.step()).empty());
}

TEST_F(SoloStep, IsAppendedToEveryProgram) {
  emit(0, fill(a));
  emit(network, all_reduce(a));
  emit(side, copy(a, b));
  finish();
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

namespace isoscale::workloads {
namespace {

/// Those of the meshes that a workload may have.
std::vector<mesh::Shape> meshes_of(const Workload& workload) {
  std::vector<mesh::Shape> meshes{{},
                                  {.dp = 4},
                                  {.tp = 4},
                                  {.pp = 4},
                                  {.tp = 2, .dp = 2},
                                  {.dp = 2, .pp = 2},
                                  {.tp = 2, .pp = 4},
                                  {.tp = 2, .dp = 2, .pp = 2}};
  std::erase_if(meshes, [&](const mesh::Shape& shape) {
    return std::ranges::any_of(mesh::all_axes, [&](mesh::Axis axis) {
      return shape[axis] > 1 && !workload.axes.contains(axis);
    });
  });
  return meshes;
}

/// By stream, how many of its first ops do not communicate; entry i of the first i.
std::vector<std::vector<std::uint32_t>> kept_of(const program::Program& step) {
  std::vector<std::vector<std::uint32_t>> kept(program::max_streams, {0});
  for (const program::Op& op : step.ops) {
    auto& counts = kept[op.stream];
    counts.push_back(counts.back() + (communicates(kind_of(op.payload)) ? 0 : 1));
  }
  return kept;
}

/// Of the ops that are left, each comes after the same ones as before, and after no others.
void expect_same_order(const program::Program& step, const program::Program& solo) {
  const auto kept = kept_of(step);
  const auto before = program::clocks_before(step);
  const auto alone = program::clocks_before(solo);
  const auto ops = program::solo_ops(step);
  ASSERT_EQ(ops.size(), solo.ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ASSERT_FALSE(communicates(kind_of(solo.ops[i].payload)));
    ASSERT_EQ(solo.ops[i].stream, step.ops[ops[i]].stream);
    for (std::size_t stream = 0; stream < program::max_streams; ++stream) {
      ASSERT_EQ(alone[i].done[stream], kept[stream][before[ops[i]].done[stream]])
          << "op " << i << ", stream " << stream;
    }
  }
}

/// An op is awaited exactly where some wait names it.
void expect_awaited(const program::Program& solo) {
  std::vector<std::vector<std::size_t>> of_stream(program::max_streams);
  for (std::size_t i = 0; i < solo.ops.size(); ++i) of_stream[solo.ops[i].stream].push_back(i);
  std::vector<bool> awaited(solo.ops.size(), false);
  for (const program::Op& op : solo.ops) {
    for (const program::Wait& wait : solo.waits_of(op)) {
      ASSERT_NE(wait.stream, op.stream);
      awaited[of_stream[wait.stream].at(wait.count - 1)] = true;
    }
  }
  for (std::size_t i = 0; i < solo.ops.size(); ++i) EXPECT_EQ(solo.ops[i].awaited, awaited[i]) << i;
}

void expect_sound(const Request& request, const Workload& workload) {
  program::ProgramSet set = workload.build(request);
  const program::Section section = program::add_solo_step(set);
  EXPECT_NO_THROW(program::check(set));
  for (const program::RankProgram& program : set.programs) {
    const program::Program& solo = program.section(section);
    EXPECT_FALSE(solo.ops.empty());
    expect_same_order(program.step(), solo);
    expect_awaited(solo);
  }
}

TEST(SoloWorkloads, PassTheCheckAndKeepTheirOrder) {
  int points = 0;
  for (const Workload& workload : registry()) {
    if (workload.is_bench()) continue;
    for (const mesh::Shape& mesh : meshes_of(workload)) {
      SCOPED_TRACE(std::string{workload.name} + ", " + mesh::to_string(mesh));
      expect_sound(workload.scale(small(4, 4), mesh, Scaling::weak), workload);
      ++points;
    }
  }
  EXPECT_GE(points, 3 * 2 + 8);  // dp, tp, pp on their axis and hybrid on all
}

TEST(SoloWorkloads, PassTheCheckWithOtherOptions) {
  const Workload& workload = find_workload("hybrid");
  for (const auto& [key, value] : Options{{"tp_output", "gather"}, {"schedule", "gpipe"}}) {
    SCOPED_TRACE(key + "=" + value);
    Request request = small(4, 4);
    request.options[key] = value;
    const mesh::Shape mesh{.tp = 2, .dp = 2, .pp = 2};
    expect_sound(workload.scale(request, mesh, Scaling::weak), workload);
  }
}

}  // namespace
}  // namespace isoscale::workloads
