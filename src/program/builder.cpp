// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "program/builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "base/error.hpp"
#include "program/buffer_placement.hpp"
#include "program/op_clocks_and_buffer_history.hpp"
#include "program/operands.hpp"

namespace isoscale::program {
namespace {

/// Returns the position of an op in its section, and its place in the model, for messages.
std::string where(std::size_t index, const Place& place) {
  return fmt::format("op {} ({}, layer {}, microbatch {})", index, name(place.phase), place.layer,
                     place.microbatch);
}

/// Derives the waits of a program's ops, op by op in program order.
class Waits {
 public:
  Waits(RankProgram& program, const mesh::Shape& mesh) : program_(program), mesh_(mesh) {
    for (const Buffer& buffer : program.buffers) histories_.emplace_back(buffer.count);
  }

  void derive() {
    derive(program_.setup);
    for (Program& step : program_.steps) {
      drain();
      derive(step);
    }
  }

 private:
  /// The vector clock (op_clocks_and_buffer_history.hpp) of each op of a stream, and the op's
  /// position in its section.
  struct StreamState {
    std::vector<Clock> clocks;
    std::vector<std::uint32_t> positions;
    [[nodiscard]] const Clock& after(std::uint32_t count) const { return clocks[count - 1]; }
  };

  void derive(Program& section) {
    for (std::uint32_t i = 0; i < section.ops.size(); ++i) derive(section, i);
  }

  void derive(Program& section, std::uint32_t index) {
    Op& op = section.ops[index];
    // `need` holds the ops that must finish before this op because they touch the same data.
    Clock need;
    for_each_slice(op.payload, [&](const Slice& slice, Mode mode) {
      if (mode == Mode::read) require_written(slice, op, index);
      histories_[slice.buffer].require(access(slice, mesh_, mode), need);
    });

    // `known` holds the ops that have finished before this one: the earlier ops of its stream, the
    // ops in `need`, and all ops that finished before these.
    StreamState& mine = streams_[op.stream];
    const Clock past = mine.clocks.empty() ? Clock{} : mine.clocks.back();
    Clock known = known_before(need, past);
    add_waits(section, op, need, past);

    const auto count = static_cast<std::uint32_t>(mine.clocks.size() + 1);
    known.join(op.stream, count);
    mine.clocks.push_back(known);
    mine.positions.push_back(index);
    for_each_slice(op.payload, [&](const Slice& slice, Mode mode) {
      histories_[slice.buffer].note(access(slice, mesh_, mode), op.stream, count);
    });
  }

  /// Throws base::Error if an op reads elements that nothing has written. `index` is the position
  /// of the op in its section.
  void require_written(const Slice& slice, const Op& op, std::size_t index) const {
    const Access touched = access(slice, mesh_, Mode::read);
    if (histories_[slice.buffer].written(touched)) return;
    throw base::Error(fmt::format("{}: reads elements {}..{} of buffer {} that nothing has written",
                                  where(index, op.place), touched.begin, touched.end,
                                  slice.buffer));
  }
  /// Returns the ops that have finished before an op starts. `need` holds the ops that must finish
  /// before it, and `past` those that have finished when the previous op of its stream has
  /// finished.
  [[nodiscard]] Clock known_before(const Clock& need, const Clock& past) const {
    Clock known = past;
    const auto count = static_cast<StreamId>(program_.streams.size());
    for (StreamId other = 0; other < count; ++other) {
      if (need.done[other] > past.done[other]) known.join(streams_[other].after(need.done[other]));
    }
    return known;
  }
  /// Makes `op` wait for the ops in `need`, except where the wait is implied by another wait or by
  /// `past`, the ops that have finished when the previous op of the stream has finished. `into` is
  /// the section of the op.
  void add_waits(Program& into, Op& op, const Clock& need, const Clock& past) {
    const auto total = static_cast<StreamId>(program_.streams.size());
    const auto open = [&](StreamId stream) {
      return stream != op.stream && need.done[stream] > past.done[stream];
    };
    op.wait_begin = static_cast<std::uint32_t>(into.waits.size());
    for (StreamId other = 0; other < total; ++other) {
      if (!open(other)) continue;
      bool implied = false;  // by another wait
      for (StreamId third = 0; third < total && !implied; ++third) {
        implied = third != other && open(third) &&
                  streams_[third].after(need.done[third]).done[other] >= need.done[other];
      }
      if (implied) continue;
      into.waits.push_back({.stream = other, .count = need.done[other]});
      ++op.wait_count;
      into.ops[streams_[other].positions[need.done[other] - 1]].awaited = true;
    }
  }
  /// Notes that all ops of the previous section have finished.
  void drain() {
    for (BufferHistory& history : histories_) history.drain();
    streams_ = {};
  }

  RankProgram& program_;
  const mesh::Shape& mesh_;
  std::vector<BufferHistory> histories_;  ///< of all buffers
  std::array<StreamState, max_streams> streams_;
};

}  // namespace

struct Builder::State {
  mesh::Shape mesh;
  RankProgram program;
  Section section = Section::setup;
  Place place;
  std::vector<bool> is_temporary;  ///< of each buffer

  [[nodiscard]] Program& current() {
    return section == Section::setup ? program.setup : program.steps.back();
  }
  [[nodiscard]] BufferId add(const Buffer& buffer, bool temporary) {
    program.buffers.push_back(buffer);
    is_temporary.push_back(temporary);
    return static_cast<BufferId>(program.buffers.size() - 1);
  }
  [[nodiscard]] base::Error error(const std::string& why) {
    return base::Error(fmt::format("{}: {}", where(current().ops.size(), place), why));
  }
  /// Throws base::Error if an op is malformed, if a slice ends past its buffer, or if a buffer that
  /// holds a scale of the op does not consist of one f32 element.
  void verify(const Payload& payload) {
    if (const auto why = mistake(payload)) throw error(*why);
    std::visit(
        [&]<class Kind>(const Kind& op) {
          for_each_operand(op, [&](const auto& operand, std::size_t /*number*/) {
            if constexpr (std::is_same_v<decltype(operand.member), BufferId Kind::*>) {
              const Buffer& buffer = program.buffers.at(op.*operand.member);
              if (buffer.dtype == DType::f32 && buffer.count == 1) return;
              throw error(fmt::format("a scale is one f32 element; buffer {} has {} of {}",
                                      op.*operand.member, buffer.count, name(buffer.dtype)));
            }
          });
        },
        payload);
    for_each_slice(payload, [&](const Slice& slice, Mode mode) {
      const std::uint64_t end = access(slice, mesh, mode).end;
      const std::uint64_t count = program.buffers.at(slice.buffer).count;
      if (end <= count) return;
      throw error(fmt::format("slice {}+{} ends past its buffer of {} elements", slice.offset,
                              end - slice.offset, count));
    });
  }
};

Builder::Builder(const mesh::Shape& mesh) : state_(std::make_unique<State>()) {
  state_->mesh = mesh;
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

BufferId Builder::allocate(const Buffer& buffer) { return state_->add(buffer, false); }

BufferId Builder::temporary(const Buffer& buffer) { return state_->add(buffer, true); }

void Builder::begin(Section section) {
  if (section == state_->section) return;
  if (section < state_->section) throw std::logic_error("sections are written in order");
  state_->section = section;
  state_->program.steps.resize(static_cast<std::size_t>(section));
}

void Builder::at(Place place) { state_->place = place; }

const Place& Builder::place() const { return state_->place; }

void Builder::emit(StreamId stream, Payload payload) {
  if (stream >= state_->program.streams.size()) throw std::out_of_range("emit: no such stream");
  state_->verify(payload);
  state_->current().ops.push_back(
      {.payload = std::move(payload), .place = state_->place, .stream = stream});
}

void Builder::observe(std::string name, Slice slice, Shard shard) {
  state_->program.observables.push_back({std::move(name), slice, shard});
}

RankProgram& Builder::draft() { return state_->program; }

RankProgram Builder::finish() {
  RankProgram program = std::move(state_->program);
  std::vector<bool> may_end = std::move(state_->is_temporary);
  for (const Observable& observable : program.observables) {
    may_end[observable.slice.buffer] = false;
  }
  Waits{program, state_->mesh}.derive();
  place_buffers(program, may_end);
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
