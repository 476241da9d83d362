// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/checksum_replay_and_solo_sections.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <set>
#include <utility>

#include "program/buffer_placement.hpp"
#include "program/op_clocks_and_buffer_history.hpp"

namespace isoscale::program {
namespace {

using ArenaBytes = std::array<std::uint64_t, space_count>;

/// Extends the arena of the buffer's space (the block of memory that holds all buffers of the
/// space) by the buffer; returns the offset in bytes at which the buffer begins.
std::uint64_t append_storage(ArenaBytes& arenas, const Buffer& buffer) {
  std::uint64_t& end = arenas[static_cast<std::size_t>(buffer.space)];
  const std::uint64_t begin = end == 0 ? 0 : padded_bytes(end);
  end = begin + buffer.count * element_size(buffer.dtype);
  return begin;
}

/// Adds a buffer with storage of its own, after all others.
BufferId append_buffer(RankProgram& program, Buffer buffer) {
  buffer.offset = append_storage(program.arena_bytes, buffer);
  program.buffers.push_back(buffer);
  return static_cast<BufferId>(program.buffers.size() - 1);
}

Section append_section(RankProgram& program, Program section) {
  program.steps.push_back(std::move(section));
  return step_section(program.steps.size() - 1);
}

/// Returns a buffer with room for this many checksums, but never an empty one.
Buffer words_of(std::size_t checksums) {
  return {.dtype = DType::i64, .count = 2 * std::max<std::size_t>(1, checksums)};
}

/// Makes the checksum ops of a section. Their results follow each other in a buffer that finish()
/// adds to the program, when the number of checksums is known.
class Summing {
 public:
  Summing(const RankProgram& program, bool flips) {
    sums_.buffer = static_cast<BufferId>(program.buffers.size());
    if (flips) sums_.flips = sums_.buffer + 1;
  }

  [[nodiscard]] Op checksum(const Output& output, std::uint32_t of, Op like) {
    const std::uint64_t place = 2 * sums_.of.size();
    sums_.of.push_back(of);
    like.payload = Checksum{.rows = static_cast<std::uint32_t>(output.extents.rows),
                            .columns = static_cast<std::uint32_t>(output.extents.columns),
                            .batch = static_cast<std::uint32_t>(output.extents.batch),
                            .src = output.matrix,
                            .sum = {.buffer = sums_.buffer, .offset = place, .count = 2},
                            .flip = {.buffer = sums_.flips, .offset = place, .count = 2}};
    return like;
  }
  [[nodiscard]] Sums finish(RankProgram& program) {
    const Buffer words = words_of(sums_.of.size());
    append_buffer(program, words);
    if (sums_.flips != no_buffer) append_buffer(program, words);
    return std::move(sums_);
  }

 private:
  Sums sums_;
};

/// Gives a rank a program of its own, if it shares one with other ranks.
void separate(ProgramSet& set, int rank) {
  std::uint32_t& program = set.program_of_rank[static_cast<std::size_t>(rank)];
  if (std::ranges::count(set.program_of_rank, program) == 1) return;
  set.programs.push_back(set.programs[program]);
  program = static_cast<std::uint32_t>(set.programs.size() - 1);
}

/// Returns a slice as rows without gaps. Each row has at most 2^30 elements.
std::vector<Output> rows_of(const Slice& slice) {
  constexpr std::uint64_t most = std::uint64_t{1} << 30U;
  std::vector<Output> rows;
  for (const Slice& piece : pieces_of(slice, most)) {
    rows.push_back({.matrix = {.slice = piece, .row_stride = piece.count},
                    .extents = {.rows = 1, .columns = piece.count}});
  }
  return rows;
}

std::vector<Output> checkable(const RankProgram& program, const Op& op) {
  std::vector<Output> result;
  for (const Output& output : outputs_of(op.payload)) {
    if (!has_checksum(program.buffers[output.matrix.slice.buffer])) continue;
    if (output.extents.rows != 1) {
      result.push_back(output);
      continue;
    }
    std::ranges::copy(rows_of(output.matrix.slice), std::back_inserter(result));
  }
  return result;
}

/// Returns an op to insert after `op`. It has the same stream and place in the model, no waits, and
/// a payload that the caller must replace.
Op behind(const Op& op) { return {.payload = {}, .place = op.place, .stream = op.stream}; }

/// Returns the step with checksums. An op that waited for another op now also waits for the
/// checksums of that op, since they read what it wrote.
Program checked(const RankProgram& program, Summing& summing) {
  const Program& step = program.step();
  Program result;
  // [stream][i]: the number of the stream's ops in `result` after its op i of `step` and the
  // checksums of that op have been added.
  std::array<std::vector<std::uint32_t>, max_streams> now;
  std::array<std::uint32_t, max_streams> emitted{};
  for (std::uint32_t index = 0; index < step.ops.size(); ++index) {
    Op op = step.ops[index];
    const bool awaited = std::exchange(op.awaited, false);
    op.wait_begin = static_cast<std::uint32_t>(result.waits.size());
    for (const Wait& wait : step.waits_of(step.ops[index])) {
      result.waits.push_back({wait.stream, now[wait.stream][wait.count - 1]});
    }
    const Op next = behind(op);
    const std::vector<Output> outputs = checkable(program, op);
    result.ops.push_back(std::move(op));
    for (const Output& output : outputs) {
      result.ops.push_back(summing.checksum(output, index, next));
    }
    result.ops.back().awaited = awaited;
    emitted[next.stream] += 1 + static_cast<std::uint32_t>(outputs.size());
    now[next.stream].push_back(emitted[next.stream]);
  }
  return result;
}

/// Returns the buffers that the step writes, except for those activations and workspace buffers
/// that it overwrites as a whole before it reads them.
std::set<BufferId> state_of(const RankProgram& program, const mesh::Shape& mesh) {
  std::set<BufferId> touched, read_first, written;
  for (const Op& op : program.step().ops) {
    const bool updates = std::holds_alternative<Update>(op.payload);
    for_each_slice(op.payload, [&](const Slice& slice, Mode mode) {
      const Access at = access(slice, mesh, mode);
      const bool is_whole = at.begin == 0 && at.end == program.buffers[at.buffer].count;
      const bool is_first = touched.insert(at.buffer).second;
      if (is_first && (mode == Mode::read || updates || !is_whole)) read_first.insert(at.buffer);
      if (mode == Mode::write) written.insert(at.buffer);
    });
  }
  std::set<BufferId> state;
  for (const BufferId id : written) {
    const Role role = program.buffers[id].role;
    const bool is_kept = role != Role::activation && role != Role::workspace;
    if (is_kept || read_first.contains(id)) state.insert(id);
  }
  return state;
}

/// Returns the buffer that add_replay adds as the copy of `buffer`.
Buffer kept(Buffer buffer) {
  buffer.role = Role::workspace;
  if (buffer.space == Space::symmetric) buffer.space = Space::device;
  return buffer;
}

/// Returns the elements of a buffer as the rows whose checksums add_weight_check takes. There are
/// none if the buffer holds no weights, or if checksums of it cannot be taken.
std::vector<Output> weight_rows(const RankProgram& program, BufferId id) {
  const Buffer& buffer = program.buffers[id];
  if (buffer.role != Role::weight || !has_checksum(buffer)) return {};
  return rows_of({.buffer = id, .count = buffer.count});
}

bool is_kept(const Op& op) { return !communicates(kind_of(op.payload)); }

}  // namespace

bool has_checksum(const Buffer& buffer) { return buffer.space != Space::pageable; }

CheckedSection add_checked_step(ProgramSet& set, std::span<const int> flipping) {
  for (const int rank : flipping) separate(set, rank);
  CheckedSection result;
  for (RankProgram& program : set.programs) {
    const bool flips =
        std::ranges::any_of(flipping, [&](int rank) { return &program == &set.of(rank); });
    Summing summing{program, flips};
    Program section = checked(program, summing);
    result.sums.push_back(summing.finish(program));
    result.section = append_section(program, std::move(section));
  }
  return result;
}

CheckedSection add_weight_check(ProgramSet& set) {
  CheckedSection result;
  for (RankProgram& program : set.programs) {
    Summing summing{program, false};
    Program section;
    for (BufferId id = 0; id < program.buffers.size(); ++id) {
      for (const Output& row : weight_rows(program, id)) {
        section.ops.push_back(
            summing.checksum(row, id, Op{.payload = {}, .place = {.phase = Phase::optimizer}}));
      }
    }
    result.sums.push_back(summing.finish(program));
    result.section = append_section(program, std::move(section));
  }
  return result;
}

Replay add_replay(ProgramSet& set) {
  Replay replay;
  for (RankProgram& program : set.programs) {
    Program save, restore;
    for (const BufferId id : state_of(program, set.mesh)) {
      const BufferId copy = append_buffer(program, kept(program.buffers[id]));
      for (const Output& row : rows_of({.buffer = id, .count = program.buffers[id].count})) {
        Slice there = row.matrix.slice;
        there.buffer = copy;
        save.ops.push_back({.payload = row_copy(row.matrix.slice, there)});
        restore.ops.push_back({.payload = row_copy(there, row.matrix.slice)});
      }
    }
    replay.save = append_section(program, std::move(save));
    replay.restore = append_section(program, std::move(restore));
  }
  return replay;
}

std::array<std::uint64_t, space_count> arenas_with(AddedSections added, const RankProgram& program,
                                                   const mesh::Shape& mesh) {
  ArenaBytes arenas = program.arena_bytes;
  std::size_t outputs = 0, weights = 0;
  for (const Op& op : program.step().ops) outputs += checkable(program, op).size();
  for (BufferId id = 0; id < program.buffers.size(); ++id) {
    weights += weight_rows(program, id).size();
  }
  append_storage(arenas, words_of(outputs));
  append_storage(arenas, words_of(weights));
  if (added == AddedSections::checks) return arenas;
  for (const BufferId id : state_of(program, mesh)) {
    append_storage(arenas, kept(program.buffers[id]));
  }
  return arenas;
}

std::vector<std::uint32_t> solo_ops(const Program& step) {
  std::vector<std::uint32_t> ops;
  for (std::uint32_t op = 0; op < step.ops.size(); ++op) {
    if (is_kept(step.ops[op])) ops.push_back(op);
  }
  return ops;
}

Program without_communication(const Program& step) {
  const std::vector<Clock> before = clocks_before(step);
  Program solo;
  std::array<Clock, max_streams> known;  // by stream: for each other stream, the number of its ops
                                         // in `solo` for which this stream has waited so far
  // By stream: the indices of its ops in `solo`.
  std::array<std::vector<std::uint32_t>, max_streams> ops_of_stream;
  // By stream: entry i is the number of the stream's first i + 1 ops in `step` that `solo` keeps.
  std::array<std::vector<std::uint32_t>, max_streams> kept;
  for (std::uint32_t index = 0; index < step.ops.size(); ++index) {
    Op op = step.ops[index];
    const auto earlier = static_cast<std::uint32_t>(ops_of_stream[op.stream].size());
    kept[op.stream].push_back(is_kept(op) ? earlier + 1 : earlier);
    if (!is_kept(op)) continue;
    op.awaited = false;
    op.wait_begin = static_cast<std::uint32_t>(solo.waits.size());
    Clock& mine = known[op.stream];
    for (std::size_t stream = 0; stream < max_streams; ++stream) {
      const std::uint32_t done = before[index].done[stream];
      const std::uint32_t count = done == 0 ? 0 : kept[stream][done - 1];
      if (stream == op.stream || count <= mine.done[stream]) continue;
      solo.waits.push_back({.stream = static_cast<StreamId>(stream), .count = count});
      solo.ops[ops_of_stream[stream][count - 1]].awaited = true;
      mine.done[stream] = count;
    }
    op.wait_count = static_cast<std::uint8_t>(solo.waits.size() - op.wait_begin);
    ops_of_stream[op.stream].push_back(static_cast<std::uint32_t>(solo.ops.size()));
    solo.ops.push_back(std::move(op));
  }
  return solo;
}

Section add_solo_step(ProgramSet& set) {
  for (RankProgram& program : set.programs) {
    program.steps.push_back(without_communication(program.step()));
  }
  return step_section(set.programs.front().steps.size() - 1);
}

}  // namespace isoscale::program
