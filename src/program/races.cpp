// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <array>
#include <iterator>
#include <map>
#include <optional>
#include <vector>

#include "base/error.hpp"
#include "program/access.hpp"
#include "program/check.hpp"
#include "program/order.hpp"

namespace isoscale::program {
namespace {

struct Toucher {
  std::uint32_t op = 0;
  StreamId stream = 0;
  std::uint32_t count = 0;
};

/// The state of one stretch of storage: its last writer, and its last reader per stream since.
struct Stretch {
  std::uint64_t end = 0;
  std::optional<Toucher> writer;
  std::array<std::optional<Toucher>, max_streams> readers;
};

/// The storage of one space as stretches of bytes that have been touched alike.
class StorageState {
 public:
  explicit StorageState(std::uint64_t bytes) {
    if (bytes > 0) stretches_[0] = Stretch{.end = bytes, .writer = {}, .readers = {}};
  }

  /// Calls visit(stretch) for the stretches that make up begin ... end-1, splitting at the edges.
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

}  // namespace

void check_races(const RankProgram& program, const mesh::Shape& mesh) {
  for (const Program* section : program.sections()) check_section(program, *section, mesh);
}

}  // namespace isoscale::program
