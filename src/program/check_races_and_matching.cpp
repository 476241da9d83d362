// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/check_races_and_matching.hpp"

#include <fmt/format.h>

#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.hpp"
#include "program/op_clocks_and_buffer_history.hpp"
#include "program/operands.hpp"
#include "program/play_all_ranks.hpp"

namespace isoscale::program {
namespace {

struct Toucher {
  std::uint32_t op = 0;
  StreamId stream = 0;
  std::uint32_t count = 0;
};

/// The last accesses to a stretch of storage: its last writer, and the last reader since then on
/// each stream.
struct Stretch {
  std::uint64_t end = 0;
  std::optional<Toucher> writer;
  std::array<std::optional<Toucher>, max_streams> readers;
};

/// Divides the storage of one space into stretches; all bytes of a stretch have the same last
/// accesses.
class StorageState {
 public:
  explicit StorageState(std::uint64_t bytes) {
    if (bytes > 0) stretches_[0] = Stretch{.end = bytes, .writer = {}, .readers = {}};
  }

  /// Calls visit(stretch) for the stretches that cover bytes begin to end - 1, after splitting
  /// stretches that reach beyond this range.
  template <class Visit>
  void for_each(std::uint64_t begin, std::uint64_t end, const Visit& visit) {
    split(begin);
    split(end);
    for (auto at = stretches_.find(begin); at != stretches_.end() && at->first < end; ++at) {
      visit(at->second);
    }
  }

 private:
  void split(std::uint64_t at) {
    auto next = stretches_.lower_bound(at);
    if (next != stretches_.end() && next->first == at) return;
    if (next == stretches_.begin()) return;
    auto hit = std::prev(next);
    if (hit->second.end <= at) return;
    stretches_.emplace_hint(next, at, hit->second);
    hit->second.end = at;
  }

  std::map<std::uint64_t, Stretch> stretches_;
};

void require_ordered(const Program& program, const Clock& known, std::uint32_t later,
                     const std::optional<Toucher>& earlier) {
  if (!earlier || known.done[earlier->stream] >= earlier->count) return;
  const Op& a = program.ops[earlier->op];
  const Op& b = program.ops[later];
  throw base::Error(fmt::format(
      "race: op {} ({}, {}, layer {}, microbatch {}) and op {} ({}, {}, layer {}, microbatch {}) "
      "touch the same storage and nothing orders them",
      earlier->op, name(kind_of(a.payload)), name(a.place.phase), a.place.layer, a.place.microbatch,
      later, name(kind_of(b.payload)), name(b.place.phase), b.place.layer, b.place.microbatch));
}

void check_section(const RankProgram& whole, const Program& program, const mesh::Shape& mesh) {
  const std::vector<Clock> before = clocks_before(program);
  std::vector<StorageState> spaces;
  for (const std::uint64_t bytes : whole.arena_bytes) spaces.emplace_back(bytes);
  std::array<std::uint32_t, max_streams> counts{};
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    const Toucher me{.op = i, .stream = op.stream, .count = ++counts[op.stream]};
    for_each_slice(op.payload, [&](const Slice& slice, Mode mode) {
      const Buffer& buffer = whole.buffers[slice.buffer];
      const std::uint64_t size = element_size(buffer.dtype);
      const Access touched = access(slice, mesh, mode);
      const auto space = static_cast<std::size_t>(buffer.space);
      const std::uint64_t end = buffer.offset + touched.end * size;
      if (end > whole.arena_bytes[space]) {
        throw base::Error(fmt::format("op {} touches byte {} of the {} arena of {} bytes", i, end,
                                      name(buffer.space), whole.arena_bytes[space]));
      }
      spaces[space].for_each(buffer.offset + touched.begin * size, end, [&](Stretch& stretch) {
        const auto against = [&](const std::optional<Toucher>& earlier) {
          if (earlier && earlier->op != i) require_ordered(program, before[i], i, earlier);
        };
        against(stretch.writer);
        if (mode == Mode::read) {
          stretch.readers[op.stream] = me;
          return;
        }
        for (auto& reader : stretch.readers) {
          against(reader);
          reader.reset();
        }
        stretch.writer = me;
      });
    });
  }
}

struct NoTimes {
  static std::int64_t cost(int /*rank*/, std::uint32_t /*op*/) { return 0; }
  static void span(int /*rank*/, std::uint32_t /*op*/, std::int64_t /*start*/,
                   std::int64_t /*end*/) {}
  static void step(int /*rank*/, int /*play*/, std::int64_t /*begin*/, std::int64_t /*end*/) {}
};

void check_matching(const OutlineSet& set) {
  for (const Folding folding : {Folding::as_streamed, Folding::folded}) {
    NoTimes policy;
    Matcher<NoTimes>{set, folding, 1, policy}.run();
  }
}

/// The uneven all_to_alls of a program, in program order, for each communicator. The key is the
/// axes and the stream of the collectives, which identify their communicator.
using UnevenOps = std::map<std::pair<mesh::AxisSet, StreamId>, std::vector<const Collective*>>;

UnevenOps uneven_ops(const Program& program) {
  UnevenOps result;
  for (const Op& op : program.ops) {
    const auto* collective = std::get_if<Collective>(&op.payload);
    if (collective == nullptr || collective->send_counts.empty()) continue;
    result[{collective->axes, op.stream}].push_back(collective);
  }
  return result;
}

/// Throws base::Error unless each member of an uneven all_to_all receives from each other member as
/// much as that member sends to it. Must be called after check_matching(), which proves that all
/// members of a group call the same all_to_alls in the same order.
void check_counts(const ProgramSet& set, Section section) {
  std::vector<UnevenOps> of_program;
  for (const RankProgram& program : set.programs) {
    of_program.push_back(uneven_ops(program.section(section)));
  }
  for (int rank = 0; rank < set.mesh.size(); ++rank) {
    for (const auto& [key, ops] : of_program[set.program_of_rank[static_cast<std::size_t>(rank)]]) {
      const std::vector<int> members = mesh::group_members(set.mesh, rank, key.first);
      const auto mine = static_cast<std::size_t>(mesh::group_index(set.mesh, rank, key.first));
      for (std::size_t i = 0; i < ops.size(); ++i) {
        for (std::size_t j = 0; j < members.size(); ++j) {
          const auto member = static_cast<std::size_t>(members[j]);
          const Collective& theirs = *of_program[set.program_of_rank[member]].at(key)[i];
          const std::uint64_t sent = ops[i]->send_counts.at(j);
          const std::uint64_t received = theirs.receive_counts.at(mine);
          if (sent == received) continue;
          throw base::Error(
              fmt::format("all_to_all {} on {}: rank {} sends {} elements to rank {}, which "
                          "receives {} from it",
                          i, mesh::to_string(key.first), rank, sent, members[j], received));
        }
      }
    }
  }
}

}  // namespace

void check_races(const RankProgram& program, const mesh::Shape& mesh) {
  for (const Buffer& buffer : program.buffers) {
    if (buffer.modelled_bytes == 0) continue;
    throw base::Error(
        "a program that stands for training software can be predicted, but not run: the memory of "
        "its buffers is that of the software");
  }
  for (const Program* section : program.sections()) check_section(program, *section, mesh);
}

void check(const ProgramSet& set) {
  for (const RankProgram& program : set.programs) check_races(program, set.mesh);
  const std::size_t sections = set.programs.front().section_count();
  for (const RankProgram& program : set.programs) {
    if (program.section_count() == sections) continue;
    throw base::Error(
        fmt::format("some ranks have {} sections, others {}", sections, program.section_count()));
  }
  for (std::size_t i = 0; i < sections; ++i) {
    const auto section = static_cast<Section>(i);
    check_matching(outline(set, section));
    check_counts(set, section);
  }
}

}  // namespace isoscale::program
