// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "program/program.hpp"

/// Errors to plant in the programs of a point. Each leaves messages and collectives in step on all
/// ranks, so that what goes wrong is the result and nothing hangs.
namespace isoscale::runner {

struct Plant {
  std::string_view name;
  mesh::AxisSet needs;  ///< axes that must be longer than 1 for the error to be one
  /// Changes the programs; returns how many ops it changed.
  int (*into)(program::ProgramSet& set);
  /// Is caught in types that round so much that one wrong element in a bucket is lost, too.
  bool is_coarse = false;
};

namespace plant {

using mesh::Axis;
using program::Collective;
using program::Exchange;
using program::Fill;
using program::Gemm;
using program::Op;
using program::OpKind;
using program::Phase;
using program::RankProgram;
using program::Role;
using program::Slice;
using program::Update;

/// A group of one: the collective does nothing, and streams and waits stay as they are.
inline constexpr mesh::AxisSet nobody_else = Axis::cp;

template <class Payload>
std::vector<Op*> ops_with(std::vector<Op>& ops) {
  std::vector<Op*> found;
  for (Op& op : ops) {
    if (std::holds_alternative<Payload>(op.payload)) found.push_back(&op);
  }
  return found;
}

/// Lets `change` see one op of the first program after the other, until it changes one.
template <class Payload, class Change>
int in_first(std::vector<Op>& ops, const Change& change) {
  for (Op* op : ops_with<Payload>(ops)) {
    if (change(*op, std::get<Payload>(op->payload))) return 1;
  }
  return 0;
}

/// The all-reduces of a step whose group varies along `axis`.
inline std::vector<Collective*> all_reduces(RankProgram& program, Axis axis) {
  std::vector<Collective*> found;
  for (Op* op : ops_with<Collective>(program.step().ops)) {
    auto& collective = std::get<Collective>(op->payload);
    if (program::kind_of(op->payload) == OpKind::all_reduce && collective.axes.contains(axis)) {
      found.push_back(&collective);
    }
  }
  return found;
}

inline std::vector<Update*> updates(RankProgram& program) {
  std::vector<Update*> found;
  for (Op* op : ops_with<Update>(program.step().ops))
    found.push_back(&std::get<Update>(op->payload));
  return found;
}

template <Axis axis>
int skip_all(program::ProgramSet& set) {
  int changed = 0;
  for (RankProgram& program : set.programs) {
    for (Collective* collective : all_reduces(program, axis)) {
      collective->axes = nobody_else;
      ++changed;
    }
  }
  return changed;
}

/// The last one of each stage: for dp the last bucket, for tp the last of backward.
template <Axis axis>
int skip_last(program::ProgramSet& set) {
  int changed = 0;
  for (RankProgram& program : set.programs) {
    const auto found = all_reduces(program, axis);
    if (found.empty()) continue;
    found.back()->axes = nobody_else;
    ++changed;
  }
  return changed;
}

inline int skip_first_tp(program::ProgramSet& set) {
  const auto found = all_reduces(set.programs.front(), Axis::tp);
  if (found.empty()) return 0;
  found.front()->axes = nobody_else;
  return 1;
}

/// The last element of the first bucket is left out of the reduction.
inline int bucket_one_short(program::ProgramSet& set) {
  for (RankProgram& program : set.programs) {
    Collective& bucket = *all_reduces(program, Axis::dp).front();
    bucket.send.count -= 1;
    bucket.receive.count -= 1;
  }
  return static_cast<int>(set.programs.size());
}

/// The last element of the first bucket is reduced with the second one too.
inline int bucket_one_early(program::ProgramSet& set) {
  for (RankProgram& program : set.programs) {
    Collective& bucket = *all_reduces(program, Axis::dp).at(1);
    for (Slice* slice : {&bucket.send, &bucket.receive}) {
      slice->offset -= 1;
      slice->count += 1;
    }
  }
  return static_cast<int>(set.programs.size());
}

/// The first bucket takes the first element of the second, before that one is complete.
inline int bucket_boundary_late(program::ProgramSet& set) {
  for (RankProgram& program : set.programs) {
    const auto buckets = all_reduces(program, Axis::dp);
    for (Slice* slice : {&buckets.at(0)->send, &buckets.at(0)->receive}) slice->count += 1;
    for (Slice* slice : {&buckets.at(1)->send, &buckets.at(1)->receive}) {
      slice->offset += 1;
      slice->count -= 1;
    }
  }
  return static_cast<int>(set.programs.size());
}

/// A weight-gradient GEMM multiplies another microbatch's activation.
inline int wrong_microbatch_in_gemm(program::ProgramSet& set) {
  RankProgram& program = set.programs.front();
  const auto is_weight_gradient = [](const Op& op) {
    return op.place.phase == Phase::backward &&
           std::get<Gemm>(op.payload).transpose_a == program::Transpose::yes;
  };
  for (Op* op : ops_with<Gemm>(program.step().ops)) {
    if (!is_weight_gradient(*op)) continue;
    Slice& mine = std::get<Gemm>(op->payload).a.slice;
    for (Op* other : ops_with<Gemm>(program.step().ops)) {
      if (!is_weight_gradient(*other) || other->place.layer != op->place.layer ||
          other->place.microbatch != op->place.microbatch + 1) {
        continue;
      }
      // Buffers that live one after the other may share storage: those hold the right data.
      const Slice& theirs = std::get<Gemm>(other->payload).a.slice;
      if (theirs.count != mine.count ||
          program.buffers[theirs.buffer].offset == program.buffers[mine.buffer].offset) {
        continue;
      }
      mine = theirs;
      return 1;
    }
  }
  return 0;
}

/// The sends of the first stage to the next.
inline std::vector<Slice*> sends_of_first_stage(program::ProgramSet& set) {
  std::vector<Slice*> sends;
  for (Op* op : ops_with<Exchange>(set.programs.front().step().ops)) {
    for (program::Transfer& transfer : std::get<Exchange>(op->payload).transfers) {
      if (transfer.direction == program::Direction::send) sends.push_back(&transfer.slice);
    }
  }
  return sends;
}

/// Calls plant(first, second) for two sends whose storage differs; returns whether there are any.
template <class Change>
int for_two_sends(program::ProgramSet& set, const Change& change) {
  const auto sends = sends_of_first_stage(set);
  for (std::size_t i = 1; i < sends.size(); ++i) {
    const auto& buffers = set.programs.front().buffers;
    if (buffers[sends[i - 1]->buffer].offset == buffers[sends[i]->buffer].offset) continue;
    change(*sends[i - 1], *sends[i]);
    return 1;
  }
  return 0;
}

inline int wrong_microbatch_in_exchange(program::ProgramSet& set) {
  return for_two_sends(set, [](Slice& first, const Slice& second) { first = second; });
}

inline int swapped_sends(program::ProgramSet& set) {
  return for_two_sends(set, [](Slice& first, Slice& second) { std::swap(first, second); });
}

/// Every tp rank fills a weight with the columns (rows) of the first.
inline int weight_of_the_neighbour(program::ProgramSet& set) {
  RankProgram& program = set.programs.front();
  return in_first<Fill>(program.setup.ops, [&](Op&, Fill& fill) {
    auto& step = fill.shard.steps[static_cast<std::size_t>(Axis::tp)];
    if (program.buffers[fill.dst.buffer].role != Role::weight || step == 0) return false;
    step = 0;
    return true;
  });
}

/// A forward GEMM reads its weight matrix from one row further on.
inline int shifted_weight_in_gemm(program::ProgramSet& set) {
  RankProgram& program = set.programs.front();
  return in_first<Gemm>(program.step().ops, [&](const Op& op, Gemm& gemm) {
    const program::Buffer& buffer = program.buffers[gemm.b.slice.buffer];
    if (op.place.phase != Phase::forward || buffer.role != Role::weight ||
        gemm.b.slice.offset + gemm.b.row_stride + gemm.b.slice.count > buffer.count) {
      return false;
    }
    gemm.b.slice.offset += gemm.b.row_stride;
    return true;
  });
}

/// Each rank continues the residual from the first tp rank's columns (gathered outputs only).
inline int residual_of_the_neighbour(program::ProgramSet& set) {
  return in_first<Gemm>(set.programs.front().step().ops,
                        [](Op&, Gemm& gemm) { return std::exchange(gemm.c.slice.step, 0) != 0; });
}

inline int shifted_update(program::ProgramSet& set) {
  const auto found = updates(set.programs.front());
  if (found.size() < 2) return 0;
  found.front()->weight.offset += 1;
  return 1;
}

inline int update_one_short(program::ProgramSet& set) {
  Update& update = *updates(set.programs.front()).front();
  for (Slice* slice :
       {&update.weight, &update.master, &update.gradient, &update.moment1, &update.moment2}) {
    if (slice->buffer != program::no_buffer) slice->count -= 1;
  }
  return 1;
}

inline int forgotten_update(program::ProgramSet& set) {
  updates(set.programs.front()).front()->rate = 0;
  return 1;
}

/// A microbatch's weight gradient replaces those before it.
inline int lost_accumulation(program::ProgramSet& set) {
  return in_first<Gemm>(set.programs.front().step().ops, [](const Op& op, Gemm& gemm) {
    if (op.place.phase != Phase::backward || op.place.microbatch == 0 || gemm.beta != 1 ||
        gemm.transpose_a == program::Transpose::no) {
      return false;
    }
    gemm.beta = 0;
    return true;
  });
}

}  // namespace plant

inline constexpr std::array plants{
    Plant{"every tp all-reduce skipped", mesh::Axis::tp, plant::skip_all<mesh::Axis::tp>, true},
    Plant{"the first tp all-reduce skipped", mesh::Axis::tp, plant::skip_first_tp},
    Plant{"the last tp all-reduce skipped", mesh::Axis::tp, plant::skip_last<mesh::Axis::tp>, true},
    Plant{"every dp all-reduce skipped", mesh::Axis::dp, plant::skip_all<mesh::Axis::dp>, true},
    Plant{"one dp bucket skipped", mesh::Axis::dp, plant::skip_last<mesh::Axis::dp>, true},
    Plant{"bucket one element short", mesh::Axis::dp, plant::bucket_one_short},
    Plant{"bucket begins one element early", mesh::Axis::dp, plant::bucket_one_early},
    Plant{"bucket boundary one element late", mesh::Axis::dp, plant::bucket_boundary_late},
    Plant{"wrong microbatch in a GEMM", {}, plant::wrong_microbatch_in_gemm},
    Plant{"wrong microbatch sent", mesh::Axis::pp, plant::wrong_microbatch_in_exchange, true},
    Plant{"two sends swapped", mesh::Axis::pp, plant::swapped_sends, true},
    Plant{"weight of the neighbour", mesh::Axis::tp, plant::weight_of_the_neighbour},
    Plant{"weight one row further on", {}, plant::shifted_weight_in_gemm},
    Plant{"update one element further on", {}, plant::shifted_update, true},
    Plant{"update one element short", {}, plant::update_one_short},
    Plant{"update forgotten", {}, plant::forgotten_update, true},
    Plant{"gradient not accumulated", {}, plant::lost_accumulation},
};
/// For outputs that are gathered.
inline constexpr Plant gathered_plant{"residual of the neighbour", mesh::Axis::tp,
                                      plant::residual_of_the_neighbour};

}  // namespace isoscale::runner
