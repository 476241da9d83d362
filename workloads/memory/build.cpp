// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <algorithm>
#include <map>

#include "program/builder.hpp"
#include "workloads/bench/pattern.hpp"
#include "workloads/memory/memory.hpp"

namespace isoscale::workloads::memory {
namespace {

using program::Advice;
using program::BufferId;
using program::DType;
using program::Slice;
using program::Space;

constexpr DType type = DType::f32;
constexpr program::StreamId stream = 0;
constexpr double factor = 3;     // of the triad
constexpr double poison = -128;  // no pattern has it
constexpr std::uint64_t bytes_of_play = std::uint64_t{1} << 30U;
constexpr std::uint64_t most_times = 256;

/// Two ends of each memory: what is read there and what is written there.
struct Ends {
  Space from = Space::device, to = Space::device;
};

Ends ends_of(Kind kind) {
  switch (kind) {
    case Kind::h2d_pinned:
    case Kind::explicit_copy:
      return {Space::pinned, Space::device};
    case Kind::d2h_pinned:
      return {Space::device, Space::pinned};
    case Kind::h2d_pageable:
      return {Space::pageable, Space::device};
    case Kind::d2h_pageable:
      return {Space::device, Space::pageable};
    case Kind::managed:
    case Kind::managed_prefetch:
    case Kind::managed_read_mostly:
    case Kind::managed_preferred_device:
      return {Space::managed, Space::device};
    default:
      return {};
  }
}

/// A buffer's number is the order in which it was allocated: a bench says what each must hold.
enum class Part : std::uint8_t { source, second, target, staged };

class Layout {
 public:
  explicit Layout(const std::vector<MemoryCase>& cases) {
    std::map<std::pair<Space, Part>, std::uint64_t> room;
    const auto need = [&](Space space, Part part, std::uint64_t count) {
      std::uint64_t& most = room[{space, part}];
      most = std::max(most, count);
    };
    for (const MemoryCase& one : cases) {
      const Ends ends = ends_of(one.kind);
      need(ends.from, Part::source, one.count);
      need(ends.to, Part::target, one.count);
      if (one.kind == Kind::triad) need(Space::device, Part::second, one.count);
      if (one.kind == Kind::explicit_copy) need(Space::device, Part::staged, one.count);
    }
    for (const auto& [key, count] : room) {
      ids_[key] = static_cast<BufferId>(buffers_.size());
      const bool is_input = key.second == Part::source || key.second == Part::second;
      buffers_.push_back({.dtype = type,
                          .space = key.first,
                          .role = is_input ? program::Role::input : program::Role::workspace,
                          .count = is_input ? pattern_room(count) : count});
    }
  }

  [[nodiscard]] const std::vector<program::Buffer>& buffers() const { return buffers_; }
  [[nodiscard]] Slice slice(Space space, Part part, std::uint64_t count) const {
    return {.buffer = ids_.at({space, part}), .offset = 0, .count = count};
  }

 private:
  std::vector<program::Buffer> buffers_;
  std::map<std::pair<Space, Part>, BufferId> ids_;
};

enum class Player : std::uint8_t { first, other };

class Writer {
 public:
  Writer(const mesh::Shape& mesh, const std::vector<MemoryCase>& cases, Player player)
      : mesh_(mesh), cases_(cases), player_(player), layout_(cases), builder_(mesh) {}

  program::RankProgram write() {
    for (const program::Buffer& buffer : layout_.buffers()) {
      const Slice whole = builder_.whole(builder_.allocate(buffer));
      builder_.emit(stream, buffer.role == program::Role::input ? fill_pattern(whole, type, mesh_)
                                                                : poisoned(whole));
    }
    std::size_t section = 0;
    for (const MemoryCase& one : cases_) {
      const bool plays = one.together == Together::all || player_ == Player::first;
      builder_.begin(program::step_section(section++));
      if (plays) make_ready(one);
      builder_.begin(program::step_section(section++));
      if (plays) emit(one);
    }
    return builder_.finish();
  }

 private:
  static program::Fill poisoned(const Slice& slice) {
    return {.dst = slice,
            .shard = {.extents = {slice.count, 1, 1}, .local = {1, 0, 0}, .global = {1, 0, 0}},
            .source = program::FillSource::constant,
            .value = poison};
  }

  [[nodiscard]] Slice source(const MemoryCase& one) const {
    return layout_.slice(ends_of(one.kind).from, Part::source, one.count);
  }
  [[nodiscard]] Slice target(const MemoryCase& one) const {
    return layout_.slice(ends_of(one.kind).to, Part::target, one.count);
  }

  /// Pages lie with the host, and no advice holds: it would outlive the prefetch.
  void make_ready(const MemoryCase& one) {
    if (!is_managed(one.kind)) return builder_.emit(stream, poisoned(target(one)));
    for (const Advice advice :
         {Advice::unset_read_mostly, Advice::unset_preferred, Advice::prefetch_host}) {
      builder_.emit(stream, program::Advise{.slice = source(one), .advice = advice});
    }
  }

  void emit(const MemoryCase& one) {
    switch (one.kind) {
      case Kind::triad:
        return emit_add(source(one), layout_.slice(Space::device, Part::second, one.count),
                        target(one), factor);
      case Kind::explicit_copy: {
        const Slice staged = layout_.slice(Space::device, Part::staged, one.count);
        emit_copy(source(one), staged);
        return emit_add(staged, staged, target(one), 1);
      }
      case Kind::managed:
        return emit_read(one, std::nullopt);
      case Kind::managed_prefetch:
        return emit_read(one, Advice::prefetch_device);
      case Kind::managed_read_mostly:
        return emit_read(one, Advice::read_mostly);
      case Kind::managed_preferred_device:
        return emit_read(one, Advice::prefer_device);
      default:
        return emit_copy(source(one), target(one));
    }
  }

  void emit_read(const MemoryCase& one, std::optional<Advice> advice) {
    if (advice) builder_.emit(stream, program::Advise{.slice = source(one), .advice = *advice});
    emit_add(source(one), source(one), target(one), 1);
  }

  static program::Matrix row(const Slice& slice) { return {slice, slice.count}; }

  void emit_copy(const Slice& from, const Slice& to) {
    builder_.emit(stream, program::Copy{.rows = 1,
                                        .columns = static_cast<std::uint32_t>(from.count),
                                        .src = row(from),
                                        .dst = row(to)});
  }

  void emit_add(const Slice& a, const Slice& b, const Slice& to, double scale) {
    builder_.emit(stream, program::Add{.rows = 1,
                                       .columns = static_cast<std::uint32_t>(to.count),
                                       .a = row(a),
                                       .b = row(b),
                                       .dst = row(to),
                                       .scale = scale});
  }

  const mesh::Shape& mesh_;
  const std::vector<MemoryCase>& cases_;
  Player player_;
  Layout layout_;
  program::Builder builder_;
};

RowSpec row_of(const MemoryCase& one, std::optional<int> node) {
  RowSpec row;
  row.text = {{"op", "memory"},
              {"kind", std::string{row_name(one.kind)}},
              {"together", one.together == Together::one ? "one" : "all"},
              {"dtype", std::string{program::name(type)}}};
  row.number = {{"bytes", static_cast<double>(one.bytes())},
                {"array_bytes", static_cast<double>(one.size())},
                {"numa", static_cast<double>(node.value_or(-1))}};
  if (one.together == Together::one) row.ranks = {0};
  return row;
}

}  // namespace

Bench build(const Request& request, int batch) {
  const std::vector<MemoryCase> cases = cases_of(request);
  const std::optional<int> node = numa_nodes_of(request).at(static_cast<std::size_t>(batch));
  Bench bench{.set = {.mesh = request.mesh, .programs = {}, .program_of_rank = {}},
              .session = {.numa_node = node}};
  bench.set.programs.push_back(Writer{request.mesh, cases, Player::first}.write());
  bench.set.program_of_rank.assign(static_cast<std::size_t>(request.mesh.size()), 0);
  if (request.mesh.size() > 1) {
    bench.set.programs.push_back(Writer{request.mesh, cases, Player::other}.write());
    std::fill(bench.set.program_of_rank.begin() + 1, bench.set.program_of_rank.end(), 1);
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const MemoryCase& one = cases[i];
    const std::uint64_t passes = std::clamp<std::uint64_t>(
        bytes_of_play / std::max<std::uint64_t>(one.size(), 1), 1, most_times);
    bench.cases.push_back({.section = program::step_section(2 * i + 1),
                           .when = is_managed(one.kind) ? Restore::every_play : Restore::once,
                           .restore = program::step_section(2 * i),
                           .most_times = is_managed(one.kind) ? 1 : passes,
                           .row_begin = i,
                           .row_end = i + 1,
                           .repeat = is_managed(one.kind) ? Repeat::never : Repeat::allowed});
    bench.rows.push_back(row_of(one, node));
  }
  return bench;
}

std::vector<Expectation> expect(const Request& request, int /*batch*/, std::size_t index,
                                int rank) {
  const std::vector<MemoryCase> cases = cases_of(request);
  const MemoryCase& one = cases.at(index);
  if (one.together == Together::one && rank != 0) return {};
  const Layout layout{cases};
  const Ends ends = ends_of(one.kind);
  std::vector<Expectation> expected{
      {.slice = layout.slice(ends.from, Part::source, one.count), .sources = {rank}}};
  const bool adds = one.kind >= Kind::triad;
  if (!adds) {  // what they write is no pattern
    expected.push_back(
        {.slice = layout.slice(ends.to, Part::target, one.count), .sources = {rank}});
  }
  return expected;
}

BenchHooks hooks() {
  return {
      .batches =
          [](const Request& request) { return static_cast<int>(numa_nodes_of(request).size()); },
      .build = build,
      .expect = expect,
      .types = [](const Request&) { return std::vector<DType>{type}; },
      .on_machine = on_machine,
      .uses_model = [](const Request&) { return false; }};
}

}  // namespace isoscale::workloads::memory
