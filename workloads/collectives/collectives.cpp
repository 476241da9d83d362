// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/collectives/collectives.hpp"

#include <algorithm>
#include <array>

#include "workloads/bench/exact_data.hpp"

namespace isoscale::workloads::collectives {

namespace {

using program::BufferId;
using program::Slice;

constexpr program::StreamId stream = 0;

/// Before a case that is not in place is played for the first time, its receive buffer is filled
/// with this value, which no pattern contains.
constexpr double poison = -128;

/// The largest number of ranks with which textbook algorithms are run, since each rank then has a
/// program of its own.
constexpr int most_textbook_ranks = 256;

/// The buffers of one element type. Calls write to `work`. They send from `source`, or from `work`
/// if they are in place. Textbook algorithms also use `scratch`.
struct Buffers {
  BufferId source = program::no_buffer, work = program::no_buffer, scratch = program::no_buffer;
};

/// The role of a rank in its group. Ranks with the same role share a program.
struct Player {
  bool takes_part = true;  ///< false for ranks that are idle in cases with Groups::one
  int place = 0;           ///< index in the group; 0 if programs do not depend on it

  auto operator<=>(const Player&) const = default;  // NOLINT(readability-implicit-bool-conversion)
};

/// Writes the program that ranks with the role `player` share. Each case has two sections: one
/// prepares its memory, and the other is timed.
class Writer {
 public:
  Writer(const Request& request, const Setting& setting, const std::vector<CollectiveCase>& cases,
         Player player)
      : request_(request),
        setting_(setting),
        cases_(cases),
        player_(player),
        builder_(request.mesh) {}

  program::RankProgram write() {
    allocate();
    std::size_t section = 0;
    for (const CollectiveCase& one : cases_) {
      builder_.begin(program::step_section(section++));
      if (plays(one)) make_ready(one);
      builder_.begin(program::step_section(section++));
      if (!plays(one)) continue;
      for (std::uint64_t call = 0; call < one.calls; ++call) emit(one, call);
    }
    return builder_.finish();
  }

 private:
  [[nodiscard]] bool plays(const CollectiveCase& one) const {
    return player_.takes_part || one.groups == Groups::all;
  }

  void allocate() {
    std::map<program::DType, std::uint64_t> room, scratch;
    for (const CollectiveCase& one : cases_) {
      if (one.operation == Operation::barrier) continue;
      std::uint64_t& elements = room[one.type];
      elements = std::max(elements, one.calls * one.stride);
      if (one.implementation != Implementation::library) {
        scratch[one.type] = std::max(scratch[one.type], 2 * one.stride);
      }
    }
    for (const auto& [type, elements] : room) {
      const auto take = [&](std::uint64_t count, program::Role role) {
        return builder_.allocate({.dtype = type, .role = role, .count = count});
      };
      Buffers& buffers = buffers_[type];
      buffers.source = take(pattern_room(elements), program::Role::input);
      buffers.work = take(pattern_room(elements), program::Role::workspace);
      if (scratch[type] > 0) buffers.scratch = take(scratch[type], program::Role::workspace);
      builder_.emit(stream, fill_pattern(builder_.whole(buffers.source), type, request_.mesh));
    }
  }

  [[nodiscard]] Slice region(BufferId buffer, const CollectiveCase& one) const {
    return {.buffer = buffer, .offset = 0, .count = one.calls * one.stride};
  }

  void make_ready(const CollectiveCase& one) {
    if (one.operation == Operation::barrier) return;
    const Buffers& buffers = buffers_.at(one.type);
    const Slice work = region(buffers.work, one);
    if (one.place == Place::out_of_place) {
      return builder_.emit(stream, program::constant_fill(work, poison));
    }
    const auto matrix = [&](const Slice& slice) {
      return program::Matrix{.slice = slice, .row_stride = one.stride};
    };
    builder_.emit(stream, program::Copy{.rows = static_cast<std::uint32_t>(one.calls),
                                        .columns = static_cast<std::uint32_t>(one.stride),
                                        .src = matrix(region(buffers.source, one)),
                                        .dst = matrix(work)});
  }

  /// Returns the slice of `buffer` that holds the data of one call.
  [[nodiscard]] static Slice whole(BufferId buffer, const CollectiveCase& one, std::uint64_t call) {
    return {.buffer = buffer, .offset = call * one.stride, .count = one.stride};
  }
  /// Returns the slice of this rank's part of the data of one call. If the case is in place, the
  /// slice lies among the parts of all ranks, at this rank's index; otherwise it lies at the start.
  [[nodiscard]] Slice part(BufferId buffer, const CollectiveCase& one, std::uint64_t call) const {
    Slice slice{.buffer = buffer, .offset = call * one.stride, .count = one.count};
    if (one.place == Place::in_place) {
      slice.axis = setting_.axis;
      slice.step = one.count;
    }
    return slice;
  }

  struct Ends {
    Slice send, receive;
  };
  [[nodiscard]] Ends ends_of(const CollectiveCase& one, std::uint64_t call) const {
    if (one.operation == Operation::barrier) return {};
    const Buffers& buffers = buffers_.at(one.type);
    const BufferId from = one.place == Place::in_place ? buffers.work : buffers.source;
    const BufferId to = buffers.work;
    switch (one.operation) {
      case Operation::all_gather:
      case Operation::gather:
        return {part(from, one, call), whole(to, one, call)};
      case Operation::reduce_scatter:
      case Operation::scatter:
        return {whole(from, one, call), part(to, one, call)};
      default:
        return {whole(from, one, call), whole(to, one, call)};
    }
  }

  void emit(const CollectiveCase& one, std::uint64_t call) {
    const Ends ends = ends_of(one, call);
    if (one.operation == Operation::sendrecv) {
      builder_.emit(stream,
                    program::Exchange{{program::send_to(setting_.axis, 1, ends.send),
                                       program::receive_from(setting_.axis, -1, ends.receive)}});
    } else if (one.implementation == Implementation::library) {
      builder_.emit(stream, program::Collective{
                                .kind = *row_of(one.operation).kind,
                                .reduction = one.reduction.value_or(program::Reduction::sum),
                                .axes = setting_.axis,
                                .root = row_of(one.operation).has_root ? setting_.options.root : 0,
                                .send = ends.send,
                                .receive = ends.receive});
    } else {
      emit_textbook(builder_, {.operation = one.operation,
                               .implementation = one.implementation,
                               .axis = setting_.axis,
                               .members = setting_.members,
                               .me = player_.place,
                               .send = ends.send,
                               .receive = ends.receive,
                               .scratch = buffers_.at(one.type).scratch});
    }
  }

  const Request& request_;
  const Setting& setting_;
  const std::vector<CollectiveCase>& cases_;
  Player player_;
  program::Builder builder_;
  std::map<program::DType, Buffers> buffers_;
};

/// Writes the programs of all ranks. Ranks with the same role in their group share a program.
program::ProgramSet write_all(const Request& request, const Setting& setting,
                              const std::vector<CollectiveCase>& cases) {
  const bool any_textbook = std::ranges::any_of(cases, [](const CollectiveCase& one) {
    return one.implementation != Implementation::library;
  });
  const bool any_alone = std::ranges::any_of(
      cases, [](const CollectiveCase& one) { return one.groups == Groups::one; });
  if (any_textbook && request.mesh.size() > most_textbook_ranks) {
    throw usage_error(
        "textbook algorithms are played on {} ranks at most, not {}; use implementation=library",
        most_textbook_ranks, request.mesh.size());
  }
  const auto player_of = [&](int rank) {
    const int place = mesh::group_index(request.mesh, rank, setting.axis);
    const bool is_first = mesh::group_colour(request.mesh, rank, setting.axis) == 0;
    return Player{.takes_part = !any_alone || is_first, .place = any_textbook ? place : 0};
  };
  return shared_programs(request.mesh, player_of, [&](const Player& player) {
    return Writer{request, setting, cases, player}.write();
  });
}

std::string_view reduction_name(const CollectiveCase& one) {
  constexpr std::array<std::string_view, 3> names{"sum", "min", "max"};
  return one.reduction ? names[static_cast<std::size_t>(*one.reduction)] : "none";
}

RowSpec row_of(const Request& request, const Setting& setting, const CollectiveCase& one) {
  RowSpec row;
  row.text = {{"op", std::string{name(one.operation)}},
              {"dtype",
               one.operation == Operation::barrier ? "none" : std::string{program::name(one.type)}},
              {"reduction", std::string{reduction_name(one)}},
              {"in_place", one.place == Place::in_place ? "yes" : "no"},
              {"implementation", std::string{name(one.implementation)}},
              {"axis", setting.options.axis},
              {"groups", one.groups == Groups::one ? "one" : "all"}};
  row.number = {{"rotated_bytes", static_cast<double>(one.calls * one.bytes)},
                {"bytes", static_cast<double>(one.bytes)},
                {"count", static_cast<double>(one.count)},
                {"root", row_of(one.operation).has_root ? setting.options.root : -1},
                {"members", setting.members}};
  if (one.groups == Groups::one) {
    row.ranks = mesh::group_members(request.mesh, 0, setting.axis);
  }
  return row;
}

}  // namespace

Bench build(const Request& request, const Values& options) {
  const Setting setting = setting_of(request, options);
  const std::vector<CollectiveCase> cases = cases_of(request, setting);
  Bench bench{.set = write_all(request, setting, cases)};
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const CollectiveCase& one = cases[i];
    bench.cases.push_back({.section = program::step_section(2 * i + 1),
                           .when = one.spoils_input() ? Restore::every_play : Restore::once,
                           .restore = program::step_section(2 * i),
                           .calls = one.calls,
                           .most_times = one.most_times,
                           .row_begin = i,
                           .row_end = i + 1,
                           .repeat = one.spoils_input() ? Repeat::never : Repeat::allowed});
    bench.rows.push_back(row_of(request, setting, one));
  }
  return bench;
}

BenchHooks hooks() {
  return {.batches =
              [](const Request& request) {
                static_cast<void>(setting_of(request));  // throws for meshes that it cannot use
                return 1;
              },
          .build = [](const Request& request,
                      int /*batch*/) { return build(request, values_of(request)); },
          .expect = [](const Request& request, int /*batch*/, std::size_t index,
                       int rank) { return expect(request, values_of(request), index, rank); },
          .types = [](const Request& request) { return types_of(request, values_of(request)); }};
}

}  // namespace isoscale::workloads::collectives
