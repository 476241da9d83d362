// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/p2p/p2p.hpp"

#include <algorithm>

#include "program/builder.hpp"
#include "workloads/bench/exact_data.hpp"

namespace isoscale::workloads::p2p {

namespace {

using program::Direction;
using program::Slice;
using program::Transfer;

constexpr program::DType type = program::DType::u8;  ///< 1-byte elements allow any message size

/// The buffers in order of allocation: messages are sent from `source` and received in `work`.
constexpr program::BufferId source = 0, work = 1;

constexpr program::StreamId stream = 0;

/// One timed section, in which the pairs of one round communicate, or all ranks do. A round has two
/// sections for Kind::bandwidth: in one the lower rank of each pair sends, in the other (`back`)
/// the higher rank does.
struct Timed {
  Kind kind = Kind::latency;
  bool back = false;
  Round pairs{};  ///< pairs that communicate at the same time; empty for all_to_all
};

/// The role of one rank in a timed section. rests: the rank does nothing. low, high: it is the
/// lower or the higher rank of a pair; the number of the other rank is `hop` more, modulo the
/// number of ranks. of_all: it exchanges data with all ranks.
struct Part {
  enum class Role : std::uint8_t { rests, low, high, of_all } role = Role::rests;
  int hop = 0;

  auto operator<=>(const Part&) const = default;
};

std::vector<Timed> timed_of(const Setting& setting, int batch) {
  std::vector<Timed> list;
  for (const Round& round : setting.rounds_of(batch)) {
    // The kinds are sorted: those that measure pairs precede those in which all ranks take part.
    for (const Kind kind : setting.kinds) {
      if (is_of_all(kind)) break;
      list.push_back({.kind = kind, .pairs = round});
      if (kind == Kind::bandwidth) list.push_back({.kind = kind, .back = true, .pairs = round});
    }
  }
  if (!list.empty()) return list;
  for (const Kind kind : setting.kinds) {
    if (!is_of_all(kind)) continue;
    list.push_back({.kind = kind});
    if (kind == Kind::bisection) list.back().pairs = bisection(setting.ranks);
  }
  return list;
}

bool is_silent(const Request& request, const Pair& pair) {
  return std::ranges::find(request.silent_pairs, std::pair{pair.low, pair.high}) !=
         request.silent_pairs.end();
}

Part part_of(const Request& request, const Setting& setting, const Timed& timed, int rank) {
  if (is_of_all(timed.kind) && !request.silent_pairs.empty()) return {};
  if (timed.kind == Kind::all_to_all) return {.role = Part::Role::of_all};
  for (const Pair& pair : timed.pairs) {
    if (pair.low != rank && pair.high != rank) continue;
    if (is_silent(request, pair)) return {};
    const int hop = pair.high - pair.low;
    return pair.low == rank ? Part{Part::Role::low, hop}
                            : Part{Part::Role::high, setting.ranks - hop};
  }
  return {};
}

/// A timed play (one timed run of a case) has at most `most_round_trips` passes; for latency a pass
/// is a round trip. In the other kinds a rank sends at most about `bytes_of_play` bytes in a play,
/// unless a single pass sends more.
constexpr std::uint64_t most_round_trips = 4096, bytes_of_play = std::uint64_t{1} << 30U;

class Writer {
 public:
  Writer(const Request& request, const Setting& setting)
      : setting_(setting), builder_(request.mesh) {
    const auto take = [&](program::Role role) {
      const bool puts = setting_.transport == program::Transport::symmetric;
      return builder_.allocate({.dtype = type,
                                .space = puts ? program::Space::symmetric : program::Space::device,
                                .role = role,
                                .count = pattern_room(room())});
    };
    const Slice pattern = builder_.whole(take(program::Role::input));
    static_cast<void>(take(program::Role::workspace));
    builder_.emit(stream, fill_pattern(pattern, type, request.mesh));
  }

  /// Writes two steps that prepare memory, one for the few bytes of latency messages and one for
  /// all bytes, and then one step for each timed section.
  program::RankProgram write(const std::vector<Timed>& list, const std::vector<Part>& parts) {
    std::size_t section = 0;
    for (const std::uint64_t bytes : {latency_bytes, room()}) {
      builder_.begin(program::step_section(section++));
      make_ready(bytes);
    }
    for (std::size_t i = 0; i < list.size(); ++i) {
      builder_.begin(program::step_section(section++));
      if (parts[i].role != Part::Role::rests) emit(list[i], parts[i]);
    }
    return builder_.finish();
  }

 private:
  [[nodiscard]] std::uint64_t room() const {
    return std::max(setting_.messages * setting_.bytes, latency_bytes);
  }

  /// Fills the receive buffer with this rank's own data, which differs from that of every other
  /// rank, so that a message that does not arrive is noticed.
  void make_ready(std::uint64_t bytes) {
    constexpr std::uint64_t widest = std::uint64_t{1} << 30U;
    for (const Slice& own : program::pieces_of({.buffer = source, .count = bytes}, widest)) {
      Slice there = own;
      there.buffer = work;
      builder_.emit(stream, program::row_copy(own, there));
    }
  }

  // Sender and receiver identify a message by the same distance, at least 1: the receiver's rank
  // minus the sender's, modulo the number of ranks. Transfer::offset is this distance on the sender
  // and its negative on the receiver.
  [[nodiscard]] Transfer transfer(Direction direction, const Part& part, std::uint64_t offset,
                                  std::uint64_t bytes) const {
    const bool sends = direction == Direction::send;
    return {.direction = direction,
            .axis = setting_.axis,
            .offset = sends ? part.hop : part.hop - setting_.ranks,
            .slice = {.buffer = sends ? source : work, .offset = offset, .count = bytes}};
  }

  void emit(const Timed& timed, const Part& part) {
    if (timed.kind == Kind::latency) return emit_round_trip(part);
    if (timed.kind == Kind::all_to_all) return emit_all_to_all();
    const bool is_low = part.role == Part::Role::low;
    const bool both = timed.kind != Kind::bandwidth;
    std::vector<Transfer> transfers;
    for (std::uint64_t i = 0; i < setting_.messages; ++i) {
      const std::uint64_t offset = i * setting_.bytes;
      for (const Direction way : {Direction::send, Direction::receive}) {
        const bool plays = both || (way == Direction::send) == (is_low != timed.back);
        if (plays) transfers.push_back(transfer(way, part, offset, setting_.bytes));
      }
    }
    builder_.emit(stream, program::Exchange{std::move(transfers), setting_.transport});
  }

  void emit_round_trip(const Part& part) {
    const bool is_low = part.role == Part::Role::low;
    for (const bool pings : {true, false}) {
      const Direction way = pings == is_low ? Direction::send : Direction::receive;
      builder_.emit(stream,
                    program::Exchange{{transfer(way, part, 0, latency_bytes)}, setting_.transport});
    }
  }

  void emit_all_to_all() {
    const std::uint64_t whole = setting_.part * static_cast<std::uint64_t>(setting_.ranks);
    builder_.emit(stream, program::Collective{.kind = program::CollectiveKind::all_to_all,
                                              .axes = setting_.axis,
                                              .send = {.buffer = source, .count = whole},
                                              .receive = {.buffer = work, .count = whole}});
  }

  const Setting& setting_;
  program::Builder builder_;
};

/// Writes the programs of all ranks. Ranks with the same roles in all sections share a program.
program::ProgramSet write_all(const Request& request, const Setting& setting,
                              const std::vector<Timed>& list) {
  const auto parts_of = [&](int rank) {
    std::vector<Part> parts;
    for (const Timed& timed : list) parts.push_back(part_of(request, setting, timed, rank));
    return parts;
  };
  return shared_programs(request.mesh, parts_of, [&](const std::vector<Part>& parts) {
    return Writer{request, setting}.write(list, parts);
  });
}

/// Returns a result row, which names the transport if it is not the default.
RowSpec row_of(const Setting& setting, Kind kind, std::uint64_t bytes) {
  RowSpec row{.text = {{"op", "p2p"}, {"kind", std::string{name(kind)}}},
              .number = {{"bytes", static_cast<double>(bytes)}}};
  if (setting.transport != program::Transport::nccl) {
    row.text["transport"] = program::name(setting.transport);
  }
  return row;
}

void add_pair_rows(const Request& request, const Setting& setting, const Timed& timed,
                   std::vector<RowSpec>& rows) {
  for (const Pair& pair : timed.pairs) {
    const std::uint64_t bytes = timed.kind == Kind::latency         ? latency_bytes
                                : timed.kind == Kind::bidirectional ? 2 * setting.bytes
                                                                    : setting.bytes;
    RowSpec& row = rows.emplace_back(row_of(setting, timed.kind, bytes));
    row.ranks = {timed.back ? pair.high : pair.low, timed.back ? pair.low : pair.high};
    row.number["src"] = row.ranks.front();
    row.number["dst"] = row.ranks.back();
    if (is_silent(request, pair)) row.silent = std::pair{pair.low, pair.high};
  }
}

void add_rows(const Request& request, const Setting& setting, const Timed& timed,
              std::vector<RowSpec>& rows) {
  if (!is_of_all(timed.kind)) return add_pair_rows(request, setting, timed, rows);
  const auto others = static_cast<std::uint64_t>(setting.ranks) - 1;
  const auto pairs = static_cast<std::uint64_t>(timed.pairs.size());
  const bool is_matching = timed.kind == Kind::bisection;
  RowSpec& row = rows.emplace_back(
      row_of(setting, timed.kind, is_matching ? 2 * pairs * setting.bytes : others * setting.part));
  for (const Pair& pair : timed.pairs) {
    row.ranks.push_back(pair.low);
    row.ranks.push_back(pair.high);
  }
  row.number["members"] = is_matching ? static_cast<double>(2 * pairs) : setting.ranks;
  if (!request.silent_pairs.empty()) row.silent = request.silent_pairs.front();
}

Case case_of(const Setting& setting, const Timed& timed, std::size_t index) {
  const bool is_ping_pong = timed.kind == Kind::latency;
  const std::uint64_t calls = is_ping_pong                     ? 2
                              : timed.kind == Kind::all_to_all ? 1
                                                               : setting.messages;
  const std::uint64_t passes =
      is_ping_pong
          ? most_round_trips
          : std::clamp<std::uint64_t>(bytes_of_play / (calls * setting.bytes), 1, most_round_trips);
  return {.section = program::step_section(2 + index),
          .when = Restore::once,
          .restore = program::step_section(is_ping_pong ? 0 : 1),
          .calls = calls,
          .most_times = passes,
          // A ping-pong's spans include the wait for the reply, and one span of a bandwidth case
          // covers all its messages. So the time of a span is not the time of one call.
          .calls_are_spans = CallsAreSpans::no};
}

int batches(const Request& request) {
  const Setting setting = setting_of(request);
  return static_cast<int>(setting.pair_batches()) + (setting.has_kinds_of_all() ? 1 : 0);
}

Bench build(const Request& request, int batch) {
  const Setting setting = setting_of(request);
  const std::vector<Timed> list = timed_of(setting, batch);
  Bench bench{.set = write_all(request, setting, list), .session = {.connects_in_play = true}};
  for (std::size_t i = 0; i < list.size(); ++i) {
    Case one = case_of(setting, list[i], i);
    one.row_begin = bench.rows.size();
    add_rows(request, setting, list[i], bench.rows);
    one.row_end = bench.rows.size();
    bench.cases.push_back(one);
  }
  return bench;
}

std::vector<Expectation> expect(const Request& request, int batch, std::size_t index, int rank) {
  const Setting setting = setting_of(request);
  const Timed timed = timed_of(setting, batch).at(index);
  const Part part = part_of(request, setting, timed, rank);
  std::vector<Expectation> mine;
  const auto receives = [&](int from, std::uint64_t offset, std::uint64_t count,
                            std::uint64_t first) {
    mine.push_back({.slice = {.buffer = work, .offset = offset, .count = count},
                    .sources = {from},
                    .first = first});
  };
  if (part.role == Part::Role::of_all) {
    for (int other = 0; other < setting.ranks; ++other) {
      receives(other, static_cast<std::uint64_t>(other) * setting.part, setting.part,
               static_cast<std::uint64_t>(rank) * setting.part);
    }
  } else if (part.role != Part::Role::rests) {
    const bool is_low = part.role == Part::Role::low;
    if (timed.kind == Kind::bandwidth && is_low != timed.back) return mine;  // this rank sends
    receives((rank + part.hop) % setting.ranks, 0,
             timed.kind == Kind::latency ? latency_bytes : setting.messages * setting.bytes, 0);
  }
  return mine;
}

}  // namespace

BenchHooks hooks() {
  return {.batches = batches,
          .build = build,
          .expect = expect,
          .types = [](const Request&) { return std::vector{type}; },
          .timeout = [](const Request& request) { return setting_of(request).timeout; },
          .expected_bandwidth = [](const Request& request) -> std::optional<units::BytesPerSecond> {
            const std::optional<std::uint64_t> expected = setting_of(request).expected;
            if (!expected) return std::nullopt;
            return units::BytesPerSecond{static_cast<double>(*expected)};
          }};
}

}  // namespace isoscale::workloads::p2p
