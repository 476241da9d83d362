// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The builder lets buffers share storage only if they cannot be in use at once, and errors planted
// in the programs of training, missing dependencies and wrong partners, are found without playing.

#include "made_programs.hpp"
#include "program/check_races_and_matching.hpp"
#include "program/operands.hpp"
#include "stack_samples.hpp"
#include "tests/support/arena_bound.hpp"

namespace isoscale::program {
namespace {

/// A program whose ops stand on random streams and read and write random buffers, whole or half.
/// Some of these are temporary, and some of the temporary ones are observed.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed, std::size_t ops = 60) : random_(seed), ops_(ops) {}

  /// The ids of buffers that are not temporary, or observed, are in `kept`.
  RankProgram write(std::set<BufferId>& kept) {
    const std::size_t streams = 1 + below(4), steps = 1 + below(2);
    for (std::size_t s = 1; s < streams; ++s) ids_.push_back(builder_.stream(std::to_string(s)));
    for (std::size_t section = 0; section <= steps; ++section) {
      builder_.begin(static_cast<Section>(section));
      // A step may read what setup has written, and what it has written itself.
      if (section < 2) readable_ = live_;
      if (section > 1) readable_ = of_setup_;
      const std::size_t ops = section == 0 ? 5 : ops_;
      for (std::size_t i = 0; i < ops; ++i) emit(section == 0);
      if (section == 0) of_setup_ = live_;
    }
    kept = kept_;
    return builder_.finish();
  }

 private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  void emit(bool in_setup) {
    const StreamId stream = ids_[below(ids_.size())];
    if (readable_.empty() || below(2) == 0) {
      const BufferId made = buffer({.dtype = DType::u8, .count = 2 * (1 + below(8) * below(600))});
      write_to(stream, builder_.whole(made));
      live_.push_back(made);
      readable_.push_back(made);
    } else {
      write_to(stream, half(readable_[below(readable_.size())]));
    }
    // The steps keep what setup has made.
    if (!in_setup && below(5) < 3) forget(readable_[below(readable_.size())]);
  }

  BufferId buffer(const Buffer& kind) {
    const bool is_temporary = below(8) > 0, is_observed = below(16) == 0;
    const BufferId made = is_temporary ? builder_.temporary(kind) : builder_.allocate(kind);
    if (is_observed) builder_.observe("observed", builder_.whole(made), {});
    if (!is_temporary || is_observed) kept_.insert(made);
    return made;
  }

  Slice half(BufferId id) {
    const std::uint64_t count = builder_.buffer(id).count / 2;
    return {.buffer = id, .offset = below(2) * count, .count = count};
  }

  /// Copies what is as large, or else fills.
  void write_to(StreamId stream, const Slice& to) {
    for (const BufferId from : readable_) {
      if (builder_.buffer(from).count < to.count || from == to.buffer || below(3) > 0) continue;
      builder_.emit(stream, row_copy({.buffer = from, .offset = 0, .count = to.count}, to));
      return;
    }
    builder_.emit(stream, fill(to));
  }

  /// No later op uses the buffer.
  void forget(BufferId id) {
    std::erase(live_, id);
    std::erase(readable_, id);
    std::erase(of_setup_, id);
  }

  std::mt19937_64 random_;
  std::size_t ops_;  ///< of a step
  Builder builder_{{}};
  std::vector<StreamId> ids_{0};
  std::vector<BufferId> live_, readable_, of_setup_;
  std::set<BufferId> kept_;
};

/// Returns which ops of a section finish before which others begin, however long each takes: found
/// op by op from the order of streams and the waits, without clocks.
std::vector<std::vector<bool>> finishes_before(const Program& program) {
  const std::size_t n = program.ops.size();
  std::vector<std::vector<bool>> before(n, std::vector<bool>(n));
  std::vector<std::vector<std::size_t>> of_stream(max_streams);
  for (std::size_t i = 0; i < n; ++i) {
    const auto after = [&](std::size_t j) {
      before[j][i] = true;
      for (std::size_t k = 0; k < n; ++k) before[k][i] = before[k][i] || before[k][j];
    };
    auto& mine = of_stream[program.ops[i].stream];
    if (!mine.empty()) after(mine.back());
    for (const Wait& wait : program.waits_of(program.ops[i])) {
      after(of_stream[wait.stream][wait.count - 1]);
    }
    mine.push_back(i);
  }
  return before;
}

bool are_apart(const Buffer& one, const Buffer& other) {
  return one.offset + one.count <= other.offset || other.offset + other.count <= one.offset;
}

/// Checks each pair of buffers that share bytes; returns how many there are. One of them is done
/// with, in the one section that uses it, before the other begins.
int expect_apart(const RankProgram& program, const std::set<BufferId>& kept) {
  std::vector<std::vector<std::vector<bool>>> order;
  for (const Program* section : program.sections()) order.push_back(finishes_before(*section));
  // The ops that use a buffer, by section.
  std::vector users(program.buffers.size(), std::vector<std::vector<std::size_t>>(order.size()));
  for (std::size_t s = 0; s < order.size(); ++s) {
    for (std::size_t i = 0; i < order[s].size(); ++i) {
      for_each_slice(program.sections()[s]->ops[i].payload,
                     [&](const Slice& slice, Mode) { users[slice.buffer][s].push_back(i); });
    }
  }
  const auto is_before = [&](BufferId a, BufferId b) {
    bool has_ended = false;
    for (std::size_t s = 0; s < order.size(); ++s) {
      if (has_ended && !users[a][s].empty()) return false;
      if (!has_ended && users[a][s].empty() && !users[b][s].empty()) return false;
      for (const std::size_t i : users[a][s]) {
        for (const std::size_t j : users[b][s]) {
          if (!order[s][i][j]) return false;
        }
      }
      has_ended = has_ended || !users[a][s].empty();
    }
    return !kept.contains(a);
  };
  int sharing = 0;
  for (BufferId a = 0; a < program.buffers.size(); ++a) {
    for (BufferId b = a + 1; b < program.buffers.size(); ++b) {
      if (are_apart(program.buffers[a], program.buffers[b])) continue;
      ++sharing;
      EXPECT_TRUE(is_before(a, b) || is_before(b, a)) << a << " and " << b;
    }
  }
  return sharing;
}

TEST(Arena, BuffersThatShareBytesAreNeverInUseAtOnce) {
  int sharing = 0;
  for (std::uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE(seed);
    std::set<BufferId> kept;
    const RankProgram program = RandomProgram{seed}.write(kept);
    EXPECT_NO_THROW(check_races(program, {}));
    sharing += expect_apart(program, kept);
    EXPECT_GE(program.arena_bytes[0], least_arena(program, Space::device));
  }
  EXPECT_GT(sharing, 1000);
}

TEST(Arena, OfThousandsOfBuffersHasNoRaces) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed) {
    SCOPED_TRACE(seed);
    std::set<BufferId> kept;
    const RankProgram program = RandomProgram{seed, 10'000}.write(kept);
    EXPECT_GT(program.buffers.size(), 4500U);
    EXPECT_NO_THROW(check_races(program, {}));
    // A buffer that setup leaves to a step shares no byte with the step's own.
    std::vector<std::set<std::size_t>> sections(program.buffers.size());
    for (std::size_t s = 0; s < program.section_count(); ++s) {
      for (const Op& op : program.sections()[s]->ops) {
        for_each_slice(op.payload,
                       [&](const Slice& slice, Mode) { sections[slice.buffer].insert(s); });
      }
    }
    for (BufferId a = 0; a < program.buffers.size(); ++a) {
      if (sections[a].size() == 1) continue;
      for (BufferId b = 0; b < program.buffers.size(); ++b) {
        EXPECT_TRUE(a == b || are_apart(program.buffers[a], program.buffers[b]) ||
                    *sections[b].rbegin() == 0)
            << a << " and " << b;
      }
    }
  }
}

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

/// Removes each wait of the step in turn, which is noticed; returns how many there are.
int remove_each_wait(const RankProgram& good, const mesh::Shape& mesh) {
  int removed = 0;
  RankProgram program = good;
  Program& step = program.step();
  for (std::size_t i = 0; i < step.ops.size(); ++i) {
    Op& op = step.ops[i];
    for (std::uint32_t w = 0; w < good.step().ops[i].wait_count; ++w) {
      const Wait wait = step.waits_of(op)[w];
      // The last wait takes the place of the one that is removed.
      step.waits[op.wait_begin + w] = step.waits[op.wait_begin + op.wait_count - 1];
      --op.wait_count;
      ++removed;
      EXPECT_THAT(testing_support::refusal<base::Error>(check_races, program, mesh),
                  HasSubstr("race"))
          << fmt::format("op {} on {}: first {} of {}", i, good.streams[op.stream], wait.count,
                         good.streams[wait.stream]);
      step.waits = good.step().waits;
      op.wait_count = good.step().ops[i].wait_count;
    }
  }
  return removed;
}

TEST(MissingDependency, OfAnyOpIsARace) {
  for (const char* schedule : {"1f1b", "gpipe"}) {
    for (const auto keep : {workloads::Keep::nothing, workloads::Keep::observables}) {
      SCOPED_TRACE(schedule);
      const ProgramSet set = training(schedule, {.dp = 2, .pp = 3}, "on", keep);
      EXPECT_EQ(complaint(set), "");
      for (const RankProgram& program : set.programs) {
        // At the least: five microbatches come in, and their gradients go out (or the reverse).
        EXPECT_GE(remove_each_wait(program, set.mesh), 10);
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
