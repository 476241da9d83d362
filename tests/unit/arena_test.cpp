// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The builder lets buffers share storage only if they cannot be in use at once.

#include "made_programs.hpp"
#include "matchers.hpp"
#include "program/check.hpp"
#include "program/operands.hpp"
#include "tests/support/arena_bound.hpp"

namespace isoscale::program {
namespace {

/// A program whose ops stand on random streams and read and write random buffers, whole or half,
/// which are released at random.
class RandomProgram {
 public:
  explicit RandomProgram(std::uint64_t seed, std::size_t ops = 60) : random_(seed), ops_(ops) {}

  /// The ids of buffers that were never released are in `kept`.
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
    kept = {live_.begin(), live_.end()};
    return builder_.finish();
  }

 private:
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(random_() % count); }

  void emit(bool in_setup) {
    const StreamId stream = ids_[below(ids_.size())];
    if (readable_.empty() || below(2) == 0) {
      const BufferId made =
          builder_.allocate({.dtype = DType::u8, .count = 2 * (1 + below(8) * below(600))});
      write_to(stream, builder_.whole(made));
      live_.push_back(made);
      readable_.push_back(made);
    } else {
      write_to(stream, half(readable_[below(readable_.size())]));
    }
    // The steps keep what setup has made.
    if (!in_setup && below(5) < 3) release(readable_[below(readable_.size())]);
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

  void release(BufferId id) {
    builder_.release(id);
    std::erase(live_, id);
    std::erase(readable_, id);
    std::erase(of_setup_, id);
  }

  std::mt19937_64 random_;
  std::size_t ops_;  ///< of a step
  Builder builder_{{}};
  std::vector<StreamId> ids_{0};
  std::vector<BufferId> live_, readable_, of_setup_;
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

/// The ops that use a buffer, by section.
std::vector<std::vector<std::size_t>> users_of(const RankProgram& program, BufferId id) {
  std::vector<std::vector<std::size_t>> result;
  for (const Program* section : program.sections()) {
    auto& users = result.emplace_back();
    for (std::size_t i = 0; i < section->ops.size(); ++i) {
      bool uses = false;
      for_each_slice(section->ops[i].payload,
                     [&](const Slice& slice, Mode) { uses |= slice.buffer == id; });
      if (uses) users.push_back(i);
    }
  }
  return result;
}

bool are_apart(const Buffer& one, const Buffer& other) {
  return one.offset + one.count <= other.offset || other.offset + other.count <= one.offset;
}

/// Checks each pair of buffers that share bytes; returns how many there are. One of them is done
/// with, in the one section that uses it, before the other begins.
int expect_apart(const RankProgram& program, const std::set<BufferId>& kept) {
  std::vector<std::vector<std::vector<bool>>> order;
  for (const Program* section : program.sections()) order.push_back(finishes_before(*section));
  std::vector<std::vector<std::vector<std::size_t>>> users;
  for (BufferId id = 0; id < program.buffers.size(); ++id) users.push_back(users_of(program, id));
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

}  // namespace
}  // namespace isoscale::program
