// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/op_clocks_and_buffer_history.hpp"

#include <fmt/format.h>

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

std::size_t BufferHistory::find(std::uint64_t element) const {
  if (segments_.size() == 1) return 0;  // most buffers are only ever touched as a whole
  const auto after = std::ranges::upper_bound(segments_, element, {}, &Segment::begin);
  return static_cast<std::size_t>(after - segments_.begin()) - 1;
}

std::span<const BufferHistory::Segment> BufferHistory::touched(const Access& access) const {
  const std::size_t first = find(access.begin);
  std::size_t past = first;
  while (past < segments_.size() && segments_[past].begin < access.end) ++past;
  return std::span{segments_}.subspan(first, past - first);
}

void BufferHistory::require(const Access& access, Clock& need) const {
  for (const Segment& segment : touched(access)) {
    need.join(segment.writer);
    if (access.mode == Mode::write) need.join(segment.readers);
  }
}

bool BufferHistory::written(const Access& access) const {
  return std::ranges::all_of(touched(access), &Segment::written);
}

void BufferHistory::split_at(std::uint64_t element) {
  const std::size_t s = find(element);
  if (segments_[s].begin == element) return;
  Segment right = segments_[s];
  right.begin = element;
  segments_[s].end = element;
  segments_.insert(segments_.begin() + static_cast<std::ptrdiff_t>(s) + 1, right);
}

void BufferHistory::note(const Access& access, StreamId stream, std::uint32_t count) {
  split_at(access.begin);
  if (access.end < segments_.back().end) split_at(access.end);
  const std::span<const Segment> affected = touched(access);
  const auto first = static_cast<std::size_t>(affected.data() - segments_.data());
  const std::size_t past = first + affected.size();
  if (access.mode == Mode::read) {
    for (std::size_t s = first; s < past; ++s) segments_[s].readers.join(stream, count);
    return;
  }
  Segment& whole = segments_[first];
  whole = {.begin = access.begin, .end = access.end, .written = true, .writer = {}, .readers = {}};
  whole.writer.join(stream, count);
  segments_.erase(segments_.begin() + static_cast<std::ptrdiff_t>(first) + 1,
                  segments_.begin() + static_cast<std::ptrdiff_t>(past));
}

void BufferHistory::drain() {
  for (Segment& segment : segments_) {
    segment.writer = {};
    segment.readers = {};
  }
}

}  // namespace isoscale::program
