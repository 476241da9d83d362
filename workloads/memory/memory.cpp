// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/memory/memory.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <ranges>

#include "base/text.hpp"
#include "program/builder.hpp"
#include "workloads/bench/exact_data.hpp"

namespace isoscale::workloads::memory {

namespace {

using program::Advice;
using program::BufferId;
using program::DType;
using program::Slice;
using program::Space;

/// The transfers that are timed. The first four copy from host to device (h2d) or back (d2h). d2d
/// and copy both copy within the device's memory; triad adds two arrays there. In the last five,
/// the data that a kernel on the device reads is on the host at first. explicit_copy first copies
/// the data to the device. The others keep it in managed memory, whose pages move when the kernel
/// touches them (managed), or for which a prefetch or another advice is given before the kernel
/// runs.
enum class Kind : std::uint8_t {
  h2d_pinned,
  d2h_pinned,
  h2d_pageable,
  d2h_pageable,
  d2d,
  copy,
  triad,
  explicit_copy,
  managed,
  managed_prefetch,
  managed_read_mostly,
  managed_preferred_device,
};

/// The memory from which a transfer reads, the memory to which it writes, and the advice about
/// managed memory before it is read.
struct KindRow {
  std::string_view option_name;
  Space from = Space::device, to = Space::device;
  std::optional<Advice> advice{};
};

/// The kinds, in the order of Kind's enumerators.
constexpr std::array<KindRow, 12> kind_table{{
    {"h2d-pinned", Space::pinned},
    {"d2h-pinned", Space::device, Space::pinned},
    {"h2d-pageable", Space::pageable},
    {"d2h-pageable", Space::device, Space::pageable},
    {"d2d"},
    {"copy"},
    {"triad"},
    {"explicit", Space::pinned},
    {"managed", Space::managed},
    {"managed-prefetch", Space::managed, Space::device, Advice::prefetch_device},
    {"managed-read-mostly", Space::managed, Space::device, Advice::read_mostly},
    {"managed-preferred-device", Space::managed, Space::device, Advice::prefer_device},
}};

const KindRow& row_of(Kind kind) { return kind_table[static_cast<std::size_t>(kind)]; }

std::vector<std::string_view> option_names() {
  std::vector<std::string_view> names;
  for (const KindRow& row : kind_table) names.push_back(row.option_name);
  return names;
}

bool is_managed(Kind kind) { return kind >= Kind::managed; }

constexpr std::uint64_t element = 4;  // bytes of an f32

enum class Together : std::uint8_t { one, all, both };

struct MemoryCase {
  Kind kind = Kind::copy;
  Together together = Together::all;
  std::uint64_t count = 0;  ///< elements of one array

  [[nodiscard]] std::uint64_t size() const { return count * element; }  ///< bytes of one array
  /// Returns the bytes from which the reported bandwidth is computed. Bytes moved between host and
  /// device count once. Within one memory, bytes read and bytes written both count.
  [[nodiscard]] std::uint64_t bytes() const {
    return size() * (kind == Kind::triad ? 3 : kind == Kind::d2d || kind == Kind::copy ? 2 : 1);
  }
};

/// The NUMA nodes from which host memory is allocated, each in a session of its own. For an absent
/// node, the system chooses one. An empty list stands for all nodes of the machine.
using NumaNodes = std::vector<std::optional<int>>;

/// Reads "none", "all", or numbers such as "0,1". Throws base::UsageError for any other text.
NumaNodes parse_numa(std::string_view key, std::string_view text) {
  if (text == "all") return {};
  if (text == "none") return {std::nullopt};
  NumaNodes nodes;
  for (const std::string& part : parse_list(key, text)) {
    constexpr int most = 1024;
    nodes.push_back(base::number_in<int>(part));
    if (nodes.back() && *nodes.back() >= 0 && *nodes.back() < most) continue;
    throw usage_error(
        "option {}: {} is not a NUMA node; it takes none, all, or numbers such as 0,1", key,
        base::quoted(part));
  }
  return nodes;
}

/// Holds the parsed options, which option_table() describes.
struct Values {
  std::vector<Kind> kinds;
  Sizes sizes;
  NumaNodes numa;
  Together together{};
};

Values values_of(const Request& request) {
  return typed_options<Values>(option_table(), request.options);
}

constexpr DType type = DType::f32;
constexpr program::StreamId stream = 0;

constexpr double factor = 3;  // the scalar of the triad

constexpr double poison = -128;  // fills a target before a transfer; no source has it

/// A timed play (one timed run of a case) writes at most about this many bytes, unless a single
/// pass writes more.
constexpr std::uint64_t bytes_of_play = std::uint64_t{1} << 30U;

constexpr std::uint64_t most_times = 256;  // the most passes of a timed play

/// The arrays of the cases: `second` is the other input of the triad, and `staged` is where
/// explicit_copy puts its copy on the device. Buffers are allocated in this order in each memory
/// space, and expected values refer to them by number.
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
      const KindRow& ends = row_of(one.kind);
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

class Writer {
 public:
  Writer(const mesh::Shape& mesh, const std::vector<MemoryCase>& cases, bool is_first)
      : mesh_(mesh), cases_(cases), is_first_(is_first), layout_(cases), builder_(mesh) {}

  program::RankProgram write() {
    for (const program::Buffer& buffer : layout_.buffers()) {
      const Slice whole = builder_.whole(builder_.allocate(buffer));
      builder_.emit(stream, buffer.role == program::Role::input
                                ? fill_pattern(whole, type, mesh_)
                                : program::constant_fill(whole, poison));
    }
    std::size_t section = 0;
    for (const MemoryCase& one : cases_) {
      const bool plays = one.together == Together::all || is_first_;
      builder_.begin(program::step_section(section++));
      if (plays) make_ready(one);
      builder_.begin(program::step_section(section++));
      if (plays) emit(one);
    }
    return builder_.finish();
  }

 private:
  [[nodiscard]] Slice source(const MemoryCase& one) const {
    return layout_.slice(row_of(one.kind).from, Part::source, one.count);
  }
  [[nodiscard]] Slice target(const MemoryCase& one) const {
    return layout_.slice(row_of(one.kind).to, Part::target, one.count);
  }

  /// Prepares a case. Managed memory is moved to the host, and advice from an earlier case is
  /// removed, since it would still be in effect. For other memory, the target is overwritten, so
  /// that a transfer that does nothing is noticed.
  void make_ready(const MemoryCase& one) {
    if (!is_managed(one.kind))
      return builder_.emit(stream, program::constant_fill(target(one), poison));
    for (const Advice advice :
         {Advice::unset_read_mostly, Advice::unset_preferred, Advice::prefetch_host}) {
      builder_.emit(stream, program::Advise{.slice = source(one), .advice = advice});
    }
  }

  void emit(const MemoryCase& one) {
    if (one.kind == Kind::triad) {
      const Slice second = layout_.slice(Space::device, Part::second, one.count);
      return add(source(one), second, target(one), factor);
    }
    if (one.kind == Kind::explicit_copy) {
      const Slice staged = layout_.slice(Space::device, Part::staged, one.count);
      builder_.emit(stream, program::row_copy(source(one), staged));
      return add(staged, staged, target(one));
    }
    if (!is_managed(one.kind)) {
      return builder_.emit(stream, program::row_copy(source(one), target(one)));
    }
    if (const std::optional<Advice> advice = row_of(one.kind).advice) {
      builder_.emit(stream, program::Advise{.slice = source(one), .advice = *advice});
    }
    add(source(one), source(one), target(one));
  }
  void add(const Slice& a, const Slice& b, const Slice& to, double scale = 1) {
    builder_.emit(stream, program::row_sum(a, b, to, scale));
  }

  const mesh::Shape& mesh_;
  const std::vector<MemoryCase>& cases_;
  bool is_first_;  ///< true for rank 0, which also takes part in the cases that measure one rank
  Layout layout_;
  program::Builder builder_;
};

RowSpec result_row(const MemoryCase& one, std::optional<int> node) {
  std::string kind{row_of(one.kind).option_name};
  if (const std::size_t dash = kind.find('-'); dash != std::string::npos) kind[dash] = ' ';
  RowSpec row;
  row.text = {{"op", "memory"},
              {"kind", std::move(kind)},
              {"together", one.together == Together::one ? "one" : "all"},
              {"dtype", std::string{program::name(type)}}};
  row.number = {{"bytes", static_cast<double>(one.bytes())},
                {"array_bytes", static_cast<double>(one.size())},
                {"numa", static_cast<double>(node.value_or(-1))}};
  if (one.together == Together::one) row.ranks = {0};
  return row;
}

/// Returns the cases. Throws base::UsageError if there are none, or if an array is too large.
std::vector<MemoryCase> cases_of(const Request& request) {
  const Values options = values_of(request);
  std::vector<MemoryCase> cases;
  std::vector<Together> turns{options.together};
  if (options.together == Together::both) turns = {Together::one, Together::all};
  if (request.mesh.size() == 1) turns = {Together::one};
  for (const Together together : turns) {
    for (const Kind kind : options.kinds) {
      for (const std::uint64_t size : options.sizes.bytes) {
        if (size < element) continue;
        if (size / element > UINT32_MAX) {
          throw usage_error("sizes={}: an array has at most 16 GiB", options.sizes.text);
        }
        cases.push_back({.kind = kind, .together = together, .count = size / element});
      }
    }
  }
  if (cases.empty()) {
    throw usage_error("nothing to measure: sizes={} has none of at least 4 bytes",
                      options.sizes.text);
  }
  return cases;
}

/// Returns the request with the numbers of all NUMA nodes filled in for numa=all. Throws
/// base::UsageError for a kind that --device host does not have, and for a NUMA node that does not
/// exist.
Request on_machine(const Request& request, const Machine& machine) {
  Request result = request;
  const Values options = values_of(request);
  if (machine.device == "host") {
    for (const Kind kind : options.kinds) {
      if (kind == Kind::copy || kind == Kind::triad) continue;
      throw usage_error(
          "kinds: {} is about a device with memory of its own; on host there are copy and triad",
          row_of(kind).option_name);
    }
  }
  const int last = std::max(machine.numa_nodes, 1) - 1;
  if (options.numa.empty()) {
    result.options["numa"] = fmt::format("{}", fmt::join(std::views::iota(0, last + 1), ","));
  }
  for (const std::optional<int>& node : options.numa) {
    if (node.value_or(0) <= last) continue;
    throw usage_error("numa={}: there is no NUMA node {} here; {}", *node, *node,
                      last == 0 ? std::string{"the only one is 0"}
                                : fmt::format("they are numbered from 0 to {}", last));
  }
  return result;
}

Bench build(const Request& request, int batch) {
  const std::vector<MemoryCase> cases = cases_of(request);
  const std::optional<int> node = values_of(request).numa.at(static_cast<std::size_t>(batch));
  Bench bench{.set = shared_programs(
                  request.mesh, [](int rank) { return rank == 0; },
                  [&](bool is_first) {
                    return Writer{request.mesh, cases, is_first}.write();
                  }),
              .session = {.numa_node = node}};
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
    bench.rows.push_back(result_row(one, node));
  }
  return bench;
}

std::vector<Expectation> expect(const Request& request, int /*batch*/, std::size_t index,
                                int rank) {
  const std::vector<MemoryCase> cases = cases_of(request);
  const MemoryCase& one = cases.at(index);
  if (one.together == Together::one && rank != 0) return {};
  const Layout layout{cases};
  const KindRow& ends = row_of(one.kind);
  std::vector<Expectation> expected{
      {.slice = layout.slice(ends.from, Part::source, one.count), .sources = {rank}}};
  const bool adds = one.kind >= Kind::triad;
  if (!adds) {  // the target of a sum holds no pattern
    expected.push_back(
        {.slice = layout.slice(ends.to, Part::target, one.count), .sources = {rank}});
  }
  return expected;
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::list<&Values::kinds>(
          "kinds", "copy,triad", option_names(),
          "what to measure. explicit and managed*: one kernel reads data that lies on the host",
          "h2d-pinned,d2h-pinned,h2d-pageable,d2h-pageable,d2d,triad,explicit,managed,managed-"
          "prefetch,managed-read-mostly,managed-preferred-device"),
      option::parsed<&Values::sizes, parse_sizes>(
          "sizes", "64MiB,256MiB",
          "sizes of one array: a list of sizes and of ranges, such as 1MiB..1GiB*4"),
      option::choice<&Values::together>(
          "together", "both", {"one", "all", "both"},
          "measure one rank alone, all ranks at once, or both, one after the other"),
      option::parsed<&Values::numa, parse_numa>(
          "numa", "none",
          "NUMA nodes to measure host memory on, one after the other: none "
          "(where the system puts it), all, or numbers such as 0,1"),
  };
  return table;
}

BenchHooks hooks() {
  return {
      .batches =
          [](const Request& request) { return static_cast<int>(values_of(request).numa.size()); },
      .build = build,
      .expect = expect,
      .types = [](const Request&) { return std::vector{type}; },
      .on_machine = on_machine};
}

}  // namespace isoscale::workloads::memory
