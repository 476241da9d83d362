// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/builder.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "program/buffer_placement.hpp"
#include "program/op_clocks_and_buffer_history.hpp"
#include "program/operands.hpp"

namespace isoscale::program {
namespace {

enum class Stage : std::uint8_t { unplaced, placed, released };

struct BufferState {
  Stage stage = Stage::unplaced;
  Section placed_in = Section::setup;
  BufferHistory history;
};

/// The vector clock (op_clocks_and_buffer_history.hpp) of each op of a stream, and the op's
/// position in the program.
struct StreamState {
  std::vector<Clock> clocks;
  std::vector<std::uint32_t> positions;
  [[nodiscard]] const Clock& after(std::uint32_t count) const { return clocks[count - 1]; }
};

}  // namespace

struct Builder::State {
  mesh::Shape mesh;
  RankProgram program;
  Section section = Section::setup;
  Place place;
  std::vector<BufferState> buffers;
  std::array<Arena, space_count> arenas;
  std::array<StreamState, max_streams> streams;
  std::vector<BufferId> symmetric;  ///< sorted

  [[nodiscard]] Program& current() {
    return section == Section::setup ? program.setup : program.steps.back();
  }
  [[nodiscard]] std::string where() {
    return fmt::format("op {} ({}, layer {}, microbatch {})", current().ops.size(),
                       name(place.phase), place.layer, place.microbatch);
  }
  /// Throws base::Error if an op is malformed, or if a buffer that holds a scale of the op does not
  /// consist of one f32 element.
  void verify(const Payload& payload) {
    if (const auto why = mistake(payload)) throw base::Error(fmt::format("{}: {}", where(), *why));
    std::visit(
        [&]<class Kind>(const Kind& op) {
          for_each_operand(op, [&](const auto& operand, std::size_t /*number*/) {
            if constexpr (std::is_same_v<decltype(operand.member), BufferId Kind::*>) {
              const Buffer& buffer = program.buffers.at(op.*operand.member);
              if (buffer.dtype == DType::f32 && buffer.count == 1) return;
              throw base::Error(
                  fmt::format("{}: a scale is one f32 element; buffer {} has {} of {}", where(),
                              op.*operand.member, buffer.count, name(buffer.dtype)));
            }
          });
        },
        payload);
  }
  void require_slice(const Slice& slice, Mode mode, Clock& need, bool& unplaced) {
    const Buffer& buffer = program.buffers.at(slice.buffer);
    BufferState& state = buffers[slice.buffer];
    const Access touched = access(slice, mesh, mode);
    if (touched.end > buffer.count) {
      throw base::Error(fmt::format("{}: slice {}+{} ends past its buffer of {} elements", where(),
                                    slice.offset, touched.end - slice.offset, buffer.count));
    }
    if (state.stage == Stage::released) {
      throw base::Error(fmt::format("{}: uses buffer {} after its release", where(), slice.buffer));
    }
    if (state.stage == Stage::unplaced) {
      if (mode == Mode::read) {
        throw base::Error(
            fmt::format("{}: reads buffer {}, which nothing has written", where(), slice.buffer));
      }
      unplaced = true;
      return;
    }
    if (mode == Mode::read && !state.history.written(touched)) {
      throw base::Error(
          fmt::format("{}: reads elements {}..{} of buffer {} that nothing has written", where(),
                      touched.begin, touched.end, slice.buffer));
    }
    state.history.require(touched, need);
  }
  void place_buffer(BufferId id, const Clock& known) {
    Buffer& buffer = program.buffers[id];
    const Arena::Block block =
        arenas[static_cast<std::size_t>(buffer.space)].take(buffer_bytes(buffer), known);
    buffer.offset = block.offset;
    buffers[id].stage = Stage::placed;
    buffers[id].placed_in = section;
    buffers[id].history = BufferHistory{buffer.count, block.birth};
  }
  /// Returns the ops that have finished before an op starts. `need` holds the ops that must finish
  /// before it, and `past` those that have finished when the previous op of its stream has
  /// finished.
  [[nodiscard]] Clock known_before(const Clock& need, const Clock& past) const {
    Clock known = past;
    const auto count = static_cast<StreamId>(program.streams.size());
    for (StreamId other = 0; other < count; ++other) {
      if (need.done[other] > past.done[other]) known.join(streams[other].after(need.done[other]));
    }
    return known;
  }
  /// Makes `op` wait for the ops in `need`, except where the wait is implied by another wait or by
  /// `past`, the ops that have finished when the previous op of the stream has finished.
  void add_waits(Op& op, const Clock& need, const Clock& past) {
    const auto total = static_cast<StreamId>(program.streams.size());
    const auto open = [&](StreamId stream) {
      return stream != op.stream && need.done[stream] > past.done[stream];
    };
    Program& into = current();
    op.wait_begin = static_cast<std::uint32_t>(into.waits.size());
    for (StreamId other = 0; other < total; ++other) {
      if (!open(other)) continue;
      bool implied = false;  // by another wait
      for (StreamId third = 0; third < total && !implied; ++third) {
        implied = third != other && open(third) &&
                  streams[third].after(need.done[third]).done[other] >= need.done[other];
      }
      if (implied) continue;
      into.waits.push_back({.stream = other, .count = need.done[other]});
      ++op.wait_count;
      into.ops[streams[other].positions[need.done[other] - 1]].awaited = true;
    }
  }
  void drain() {
    for (BufferState& buffer : buffers) buffer.history.drain();
    for (Arena& arena : arenas) arena.drain();
    streams = {};
  }
};

Builder::Builder(const mesh::Shape& mesh, std::vector<BufferId> symmetric)
    : state_(std::make_unique<State>()) {
  state_->mesh = mesh;
  state_->symmetric = std::move(symmetric);
  state_->program.streams.emplace_back("compute");
}
Builder::~Builder() = default;

StreamId Builder::stream(std::string_view name) {
  auto& names = state_->program.streams;
  const auto known = std::ranges::find(names, name);
  if (known != names.end()) return static_cast<StreamId>(known - names.begin());
  if (names.size() == max_streams) {
    throw std::length_error(fmt::format("a program has at most {} streams", max_streams));
  }
  names.emplace_back(name);
  return static_cast<StreamId>(names.size() - 1);
}

BufferId Builder::allocate(Buffer buffer) {
  const auto id = static_cast<BufferId>(state_->buffers.size());
  const bool travels = std::ranges::binary_search(state_->symmetric, id);
  if (travels && buffer.space == Space::device) buffer.space = Space::symmetric;
  state_->program.buffers.push_back(buffer);
  state_->buffers.emplace_back();
  return id;
}

void Builder::release(BufferId id) {
  BufferState& state = state_->buffers.at(id);
  const Buffer& buffer = state_->program.buffers[id];
  // Storage that an earlier section wrote is not reused, since a step that is run again reads
  // that storage again.
  if (state.stage == Stage::placed && state.placed_in == state_->section) {
    state_->arenas[static_cast<std::size_t>(buffer.space)].give_back(
        buffer.offset, buffer_bytes(buffer), state.history.users());
  }
  state.stage = Stage::released;
  state.history = {};
}

void Builder::begin(Section section) {
  if (section == state_->section) return;
  if (section < state_->section) throw std::logic_error("sections are written in order");
  state_->drain();
  state_->section = section;
  state_->program.steps.resize(static_cast<std::size_t>(section));
}

void Builder::at(Place place) { state_->place = place; }

const Place& Builder::place() const { return state_->place; }

void Builder::emit(StreamId stream, Payload payload) {
  State& s = *state_;
  if (stream >= s.program.streams.size()) throw std::out_of_range("emit: no such stream");
  s.verify(payload);

  // `need` holds the ops that must finish before this op because they touch the same storage.
  Clock need;
  bool unplaced = false;
  for_each_slice(payload, [&](const Slice& slice, Mode mode) {
    s.require_slice(slice, mode, need, unplaced);
  });

  // `known` holds the ops that have finished before this one: the earlier ops of its stream, the
  // ops in `need`, and all ops that finished before these.
  StreamState& mine = s.streams[stream];
  const Clock past = mine.clocks.empty() ? Clock{} : mine.clocks.back();
  Clock known = s.known_before(need, past);
  if (unplaced) {
    for_each_slice(payload, [&](const Slice& slice, Mode) {
      if (s.buffers[slice.buffer].stage == Stage::unplaced) s.place_buffer(slice.buffer, known);
    });
  }
  Op op{.payload = std::move(payload), .place = s.place, .stream = stream};
  s.add_waits(op, need, past);

  const auto count = static_cast<std::uint32_t>(mine.clocks.size() + 1);
  known.join(stream, count);
  mine.clocks.push_back(known);
  Program& program = s.current();
  mine.positions.push_back(static_cast<std::uint32_t>(program.ops.size()));
  for_each_slice(op.payload, [&](const Slice& slice, Mode mode) {
    s.buffers[slice.buffer].history.note(access(slice, s.mesh, mode), stream, count);
  });
  program.ops.push_back(std::move(op));
}

void Builder::observe(std::string name, Slice slice, Shard shard) {
  state_->program.observables.push_back({std::move(name), slice, shard});
}

RankProgram Builder::finish() {
  RankProgram program = std::move(state_->program);
  for (std::size_t space = 0; space < space_count; ++space) {
    program.arena_bytes[space] = state_->arenas[space].bytes();
  }
  std::vector<bool> released;
  for (const BufferState& buffer : state_->buffers) {
    released.push_back(buffer.stage == Stage::released);
  }
  repack(program, released);
  *state_ = {};
  return program;
}

Slice Builder::whole(BufferId buffer) const {
  return {.buffer = buffer, .offset = 0, .count = this->buffer(buffer).count};
}

const Buffer& Builder::buffer(BufferId buffer) const { return state_->program.buffers.at(buffer); }

ProgramSet alike(const mesh::Shape& mesh, RankProgram program) {
  const auto ranks = static_cast<std::size_t>(mesh.size());
  ProgramSet set{mesh, {}, std::vector<std::uint32_t>(ranks)};
  set.programs.push_back(std::move(program));
  return set;
}

}  // namespace isoscale::program
