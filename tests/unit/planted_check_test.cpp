// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Errors planted in the programs of training: missing dependencies and wrong partners are found
// without playing anything.
#include <fmt/format.h>

#include "program/check.hpp"
#include "stack_samples.hpp"

namespace isoscale::program {
namespace {

/// Three stages and two replicas: streams for compute, dp, both neighbours and the input copies.
ProgramSet training(const std::string& schedule, const mesh::Shape& mesh = {.dp = 2, .pp = 3},
                    const std::string& overlap = "on",
                    workloads::Keep keep = workloads::Keep::nothing) {
  workloads::Request base = workloads::request_of(
      "ffn=32 heads=4 kv_heads=2 head_size=4 layers=6 gated=1", 10,
      workloads::options_of("microbatch=1 bucket=4KiB input=pinned overlap=" + overlap +
                            " schedule=" + schedule));
  base.keep = keep;
  return workloads::strong(base, mesh);
}

/// A program of its own for `rank`, which no other rank plays.
RankProgram& own_program(ProgramSet& set, int rank) {
  set.programs.push_back(set.of(rank));
  set.program_of_rank[static_cast<std::size_t>(rank)] =
      static_cast<std::uint32_t>(set.programs.size() - 1);
  return set.programs.back();
}

template <class Payload>
std::vector<Payload*> step_ops(RankProgram& program) {
  std::vector<Payload*> found;
  for (Op& op : program.step().ops) {
    if (auto* payload = std::get_if<Payload>(&op.payload)) found.push_back(payload);
  }
  return found;
}

std::string complaint(const ProgramSet& set) {
  return testing_support::refusal<base::Error>([&] { check(set); });
}

/// Takes one wait away from an op: the last one takes its place.
void remove_wait(Program& program, Op& op, std::uint32_t wait) {
  program.waits[op.wait_begin + wait] = program.waits[op.wait_begin + op.wait_count - 1];
  --op.wait_count;
}

bool has_race(const RankProgram& program, const mesh::Shape& mesh) {
  const std::string said =
      testing_support::refusal<base::Error>([&] { check_races(program, mesh); });
  EXPECT_THAT(said, AnyOf("", HasSubstr("race")));
  return !said.empty();
}

struct Waits {
  int removed = 0;
  std::vector<std::string> unnoticed;
};

/// Removes each wait of the step in turn.
Waits remove_each_wait(const RankProgram& good, const mesh::Shape& mesh) {
  Waits result;
  RankProgram program = good;
  for (std::size_t i = 0; i < good.step().ops.size(); ++i) {
    for (std::uint32_t w = 0; w < good.step().ops[i].wait_count; ++w) {
      remove_wait(program.step(), program.step().ops[i], w);
      ++result.removed;
      if (!has_race(program, mesh)) {
        const Wait& wait = good.step().waits_of(good.step().ops[i])[w];
        result.unnoticed.push_back(fmt::format("op {} on {}: first {} of {}", i,
                                               good.streams[good.step().ops[i].stream], wait.count,
                                               good.streams[wait.stream]));
      }
      program.step().waits = good.step().waits;
      program.step().ops[i].wait_count = good.step().ops[i].wait_count;
    }
  }
  return result;
}

TEST(MissingDependency, OfAnyOpIsARace) {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    for (const auto keep : {workloads::Keep::nothing, workloads::Keep::observables}) {
      SCOPED_TRACE(schedule);
      const ProgramSet set = training(schedule, {.dp = 2, .pp = 3}, "on", keep);
      EXPECT_EQ(complaint(set), "");
      for (const RankProgram& program : set.programs) {
        const Waits waits = remove_each_wait(program, set.mesh);
        // At the least: five microbatches come in, and their gradients go out (or the reverse).
        EXPECT_GE(waits.removed, 10);
        EXPECT_THAT(waits.unnoticed, IsEmpty());
      }
    }
  }
}

TEST(WrongPartner, OfAMessageIsNamed) {
  struct Case {
    const char* schedule;
    std::size_t program;
    void (*change)(const std::vector<Exchange*>&);
    const char* said;
  };
  for (const Case& planted : std::initializer_list<Case>{
           {"1f1b", 1, [](auto& all) { all.front()->transfers[0].slice.count -= 1; },
            "different sizes"},
           {"1f1b", 0, [](auto& all) { all.front()->transfers[0].offset *= -1; }, "deadlock"},
           {"gpipe", 0, [](auto& all) { all.back()->transfers.pop_back(); }, "deadlock"}}) {
    ProgramSet set = training(planted.schedule);
    planted.change(step_ops<Exchange>(set.programs[planted.program]));
    EXPECT_THAT(complaint(set), HasSubstr(planted.said));
  }
}

TEST(WrongPartner, BucketsInAnotherOrderOnOneRank) {
  // Without overlap all buckets are complete when the first is reduced: no race.
  ProgramSet set = training("1f1b", {.dp = 2, .pp = 3}, "off");
  const auto buckets = step_ops<Collective>(own_program(set, 1));
  ASSERT_GE(buckets.size(), 2U);
  ASSERT_NE(buckets[0]->send.count, buckets[1]->send.count);
  std::swap(*buckets[0], *buckets[1]);
  EXPECT_THAT(complaint(set), HasSubstr("different collectives"));
}

TEST(WrongPartner, BucketOneElementShortOnOneRank) {
  ProgramSet set = training("1f1b");
  Collective& bucket = *step_ops<Collective>(own_program(set, 1)).front();
  bucket.send.count -= 1;
  bucket.receive.count -= 1;
  EXPECT_THAT(complaint(set), AllOf(HasSubstr("ranks 0 and 1"), HasSubstr("different")));
}

TEST(WrongPartner, AllReduceSkippedOnOneRank) {
  ProgramSet set = training("1f1b", {.tp = 2, .dp = 1, .pp = 3});
  step_ops<Collective>(own_program(set, 3)).front()->axes = mesh::Axis::cp;
  EXPECT_THAT(complaint(set), AnyOf(HasSubstr("deadlock"), HasSubstr("different")));
}

TEST(WrongOrder, OfTwoSendsIsARace) {
  ProgramSet set = training("gpipe");
  std::vector<Slice*> sends;
  for (Exchange* exchange : step_ops<Exchange>(set.programs[0])) {
    for (Transfer& transfer : exchange->transfers) {
      if (transfer.direction == Direction::send) sends.push_back(&transfer.slice);
    }
  }
  ASSERT_GE(sends.size(), 2U);
  std::swap(*sends[0], *sends[1]);
  EXPECT_THAT(complaint(set), HasSubstr("race"));
}

TEST(WrongSlice, BucketBoundaryOneElementLateIsARace) {
  ProgramSet set = training("1f1b");
  const auto buckets = step_ops<Collective>(set.programs[0]);
  ASSERT_GE(buckets.size(), 2U);
  for (Slice* slice : {&buckets[0]->send, &buckets[0]->receive}) slice->count += 1;
  for (Slice* slice : {&buckets[1]->send, &buckets[1]->receive}) {
    slice->offset += 1;
    slice->count -= 1;
  }
  EXPECT_THAT(complaint(set), HasSubstr("race"));
}

}  // namespace
}  // namespace isoscale::program
