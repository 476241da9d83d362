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

/// Lets the collectives of each stage that `choose` returns do nothing.
template <Axis axis, class Choose>
int skip(program::ProgramSet& set, const Choose& choose) {
  int changed = 0;
  for (RankProgram& program : set.programs) {
    for (Collective* collective : choose(all_reduces(program, axis))) {
      collective->axes = nobody_else;
      ++changed;
    }
  }
  return changed;
}

template <Axis axis>
int skip_all(program::ProgramSet& set) {
  return skip<axis>(set, [](const auto& found) { return found; });
}

/// The last one of each stage: for dp the last bucket, for tp the last of backward.
template <Axis axis>
int skip_last(program::ProgramSet& set) {
  return skip<axis>(set, [](auto found) {
    if (found.size() > 1) found.erase(found.begin(), found.end() - 1);
    return found;
  });
}

/// Moves the begin and the end of a bucket of every stage by some elements.
inline int move_bucket(program::ProgramSet& set, std::size_t bucket, std::int64_t begin,
                       std::int64_t end) {
  for (RankProgram& program : set.programs) {
    Collective& one = *all_reduces(program, Axis::dp).at(bucket);
    for (Slice* slice : {&one.send, &one.receive}) {
      slice->offset += static_cast<std::uint64_t>(begin);
      slice->count += static_cast<std::uint64_t>(end - begin);
    }
  }
  return static_cast<int>(set.programs.size());
}

inline bool is_weight_gradient(const Op& op, const Gemm& gemm) {
  return op.place.phase == Phase::backward && gemm.transpose_a == program::Transpose::yes;
}

/// A weight-gradient GEMM multiplies another microbatch's activation.
inline int wrong_microbatch_in_gemm(program::ProgramSet& set) {
  RankProgram& program = set.programs.front();
  return in_first<Gemm>(program.step().ops, [&](const Op& op, Gemm& gemm) {
    if (!is_weight_gradient(op, gemm)) return false;
    Slice& mine = gemm.a.slice;
    return in_first<Gemm>(program.step().ops, [&](const Op& other, const Gemm& of_other) {
             const Slice& theirs = of_other.a.slice;
             // Buffers that live one after the other may share storage: those hold the right data.
             if (!is_weight_gradient(other, of_other) || other.place.layer != op.place.layer ||
                 other.place.microbatch != op.place.microbatch + 1 || theirs.count != mine.count ||
                 program.buffers[theirs.buffer].offset == program.buffers[mine.buffer].offset) {
               return false;
             }
             mine = theirs;
             return true;
           }) == 1;
  });
}

/// Calls change(first, second) for two sends of the first stage whose storage differs.
template <class Change>
int for_two_sends(program::ProgramSet& set, const Change& change) {
  RankProgram& program = set.programs.front();
  Slice* before = nullptr;
  for (Op* op : ops_with<Exchange>(program.step().ops)) {
    for (program::Transfer& transfer : std::get<Exchange>(op->payload).transfers) {
      if (transfer.direction != program::Direction::send) continue;
      Slice* const first = std::exchange(before, &transfer.slice);
      if (first == nullptr ||
          program.buffers[first->buffer].offset == program.buffers[transfer.slice.buffer].offset) {
        continue;
      }
      change(*first, transfer.slice);
      return 1;
    }
  }
  return 0;
}

/// Every tp rank fills a weight with the columns (rows) of the first.
inline int weight_of_the_neighbour(program::ProgramSet& set) {
  RankProgram& program = set.programs.front();
  return in_first<Fill>(program.setup.ops, [&](Op&, Fill& fill) {
    auto& step = fill.shard.steps[static_cast<std::size_t>(Axis::tp)];
    if (program.buffers[fill.dst.buffer].role != Role::weight) return false;
    return std::exchange(step, 0) != 0;
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

/// Changes the first update.
template <class Change>
int in_first_update(program::ProgramSet& set, const Change& change) {
  return in_first<Update>(set.programs.front().step().ops, [&](Op&, Update& update) {
    change(update);
    return true;
  });
}

/// The first of several updates writes one element of the next one's weights.
inline int shifted_update(program::ProgramSet& set) {
  if (ops_with<Update>(set.programs.front().step().ops).size() < 2) return 0;
  return in_first_update(set, [](Update& update) { update.weight.offset += 1; });
}

inline int update_one_short(program::ProgramSet& set) {
  return in_first_update(set, [](Update& update) {
    for (Slice* slice :
         {&update.weight, &update.master, &update.gradient, &update.moment1, &update.moment2}) {
      if (slice->buffer != program::no_buffer) slice->count -= 1;
    }
  });
}

/// A microbatch's weight gradient replaces those before it.
inline int lost_accumulation(program::ProgramSet& set) {
  return in_first<Gemm>(set.programs.front().step().ops, [](const Op& op, Gemm& gemm) {
    if (!is_weight_gradient(op, gemm) || op.place.microbatch == 0 || gemm.beta != 1) return false;
    gemm.beta = 0;
    return true;
  });
}

}  // namespace plant

using Set = program::ProgramSet;

inline constexpr std::array plants{
    Plant{"every tp all-reduce skipped", mesh::Axis::tp, plant::skip_all<mesh::Axis::tp>, true},
    Plant{"the first tp all-reduce skipped", mesh::Axis::tp,
          [](Set& set) {
            const auto found = plant::all_reduces(set.programs.front(), mesh::Axis::tp);
            if (found.empty()) return 0;
            found.front()->axes = plant::nobody_else;
            return 1;
          }},
    Plant{"the last tp all-reduce skipped", mesh::Axis::tp, plant::skip_last<mesh::Axis::tp>, true},
    Plant{"every dp all-reduce skipped", mesh::Axis::dp, plant::skip_all<mesh::Axis::dp>, true},
    Plant{"one dp bucket skipped", mesh::Axis::dp, plant::skip_last<mesh::Axis::dp>, true},
    Plant{"bucket one element short", mesh::Axis::dp,
          [](Set& set) { return plant::move_bucket(set, 0, 0, -1); }},
    // The last element of the first bucket is reduced with the second one too.
    Plant{"bucket begins one element early", mesh::Axis::dp,
          [](Set& set) { return plant::move_bucket(set, 1, -1, 0); }},
    // The first bucket takes the first element of the second, before that one is complete.
    Plant{"bucket boundary one element late", mesh::Axis::dp,
          [](Set& set) {
            return plant::move_bucket(set, 0, 0, 1) + plant::move_bucket(set, 1, 1, 0);
          }},
    Plant{"wrong microbatch in a GEMM", {}, plant::wrong_microbatch_in_gemm},
    Plant{"wrong microbatch sent", mesh::Axis::pp,
          [](Set& set) {
            return plant::for_two_sends(set, [](auto& first, auto& second) { first = second; });
          },
          true},
    Plant{"two sends swapped", mesh::Axis::pp,
          [](Set& set) {
            return plant::for_two_sends(set, [](auto& a, auto& b) { std::swap(a, b); });
          },
          true},
    Plant{"weight of the neighbour", mesh::Axis::tp, plant::weight_of_the_neighbour},
    Plant{"weight one row further on", {}, plant::shifted_weight_in_gemm},
    Plant{"update one element further on", {}, plant::shifted_update, true},
    Plant{"update one element short", {}, plant::update_one_short},
    Plant{
        "update forgotten",
        {},
        [](Set& set) { return plant::in_first_update(set, [](auto& update) { update.rate = 0; }); },
        true},
    Plant{"gradient not accumulated", {}, plant::lost_accumulation},
};
/// For outputs that are gathered.
inline constexpr Plant gathered_plant{"residual of the neighbour", mesh::Axis::tp,
                                      plant::residual_of_the_neighbour};

}  // namespace isoscale::runner
