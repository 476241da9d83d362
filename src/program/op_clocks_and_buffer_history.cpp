// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/op_clocks_and_buffer_history.hpp"

#include <fmt/format.h>

#include <iterator>

#include "base/error.hpp"

namespace isoscale::program {

std::vector<Clock> clocks_before(const Program& program) {
  std::vector<Clock> before;
  before.reserve(program.ops.size());
  std::array<std::vector<std::uint32_t>, max_streams> ops_of_stream;
  for (std::uint32_t i = 0; i < program.ops.size(); ++i) {
    const Op& op = program.ops[i];
    auto& mine = ops_of_stream[op.stream];
    Clock known;
    const auto join_after = [&](StreamId stream, std::uint32_t count) {
      if (count == 0) return;
      if (count > ops_of_stream[stream].size()) {
        throw base::Error(fmt::format("op {} waits for op {} of stream {}, which is issued later",
                                      i, count, stream));
      }
      known.join(before[ops_of_stream[stream][count - 1]]);
      known.join(stream, count);
    };
    join_after(op.stream, static_cast<std::uint32_t>(mine.size()));
    for (const Wait& wait : program.waits_of(op)) join_after(wait.stream, wait.count);
    before.push_back(known);
    mine.push_back(i);
  }
  return before;
}

BufferHistory::BufferHistory(std::uint64_t count, const Clock& birth)
    : segments_{{0, {.end = count, .written = false, .writers = birth, .readers = {}}}} {}

template <class Visit>
void BufferHistory::for_each_touched(const Access& access, const Visit& visit) const {
  auto at = std::prev(segments_.upper_bound(access.begin));
  for (; at != segments_.end() && at->first < access.end; ++at) visit(at->second);
}

void BufferHistory::require(const Access& access, Clock& need) const {
  for_each_touched(access, [&](const Segment& segment) {
    need.join(segment.writers);
    if (access.mode == Mode::write) need.join(segment.readers);
  });
}

bool BufferHistory::written(const Access& access) const {
  bool all = true;
  for_each_touched(access, [&](const Segment& segment) { all = all && segment.written; });
  return all;
}

BufferHistory::Segments::iterator BufferHistory::split(Segments::iterator segment,
                                                       std::uint64_t element) {
  const auto right = segments_.emplace_hint(std::next(segment), element, segment->second);
  segment->second.end = element;
  return right;
}

void BufferHistory::note(const Access& access, StreamId stream, std::uint32_t count) {
  auto first = std::prev(segments_.upper_bound(access.begin));
  if (first->first < access.begin) first = split(first, access.begin);
  auto last = first;
  while (last->second.end < access.end) ++last;
  if (last->second.end > access.end) split(last, access.end);
  const auto past = std::next(last);
  if (access.mode == Mode::read) {
    for (auto at = first; at != past; ++at) at->second.readers.join(stream, count);
    return;
  }
  first->second = {.end = access.end, .written = true, .writers = {}, .readers = {}};
  first->second.writers.join(stream, count);
  segments_.erase(std::next(first), past);
}

Clock BufferHistory::users() const {
  Clock all;
  for (const auto& [begin, segment] : segments_) {
    all.join(segment.writers);
    all.join(segment.readers);
  }
  return all;
}

void BufferHistory::drain() {
  for (auto& [begin, segment] : segments_) {
    segment.writers = {};
    segment.readers = {};
  }
}

}  // namespace isoscale::program
