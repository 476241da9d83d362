// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/overlap/overlap.hpp"

#include <algorithm>
#include <array>

#include "program/builder.hpp"
#include "workloads/bench/exact_data.hpp"
#include "workloads/collectives/collectives.hpp"
#include "workloads/gemm/gemm.hpp"

namespace isoscale::workloads::overlap {
namespace {

using collectives::Operation;
using program::BufferId;
using program::Slice;

constexpr program::StreamId compute = 0;
/// The number of passes in a timed play (one timed run of a case). It is so large that the
/// beginning and the end of the play take little of its time.
constexpr std::uint64_t passes = 16;

/// Holds the parsed options, which option_table() describes.
struct Values {
  std::string op;
  std::vector<gemm::ShapeGroup> shapes;
  Sizes sizes;
  std::uint64_t multiplications = 1;
};

Values values_of(const Request& request) {
  return typed_options<Values>(option_table(), request.options);
}

struct Pair {
  gemm::Shape shape;
  std::uint64_t part = 0;  ///< elements of one rank's part; for all_reduce, all elements
};

struct Plan {
  Operation operation = Operation::all_reduce;
  program::DType type = program::DType::f32;
  int ranks = 1;
  std::uint64_t multiplications = 1;
  std::vector<Pair> pairs{};

  /// Returns the number of elements of the collective as nccl-tests counts them: for all_reduce the
  /// elements of one rank, else the elements of all ranks' parts.
  [[nodiscard]] std::uint64_t whole(const Pair& pair) const {
    return has_parts() ? pair.part * static_cast<std::uint64_t>(ranks) : pair.part;
  }
  [[nodiscard]] bool has_parts() const { return operation != Operation::all_reduce; }
};

Plan plan_of(const Request& request) {
  const Values options = values_of(request);
  constexpr std::array operations{Operation::all_reduce, Operation::all_gather,
                                  Operation::reduce_scatter, Operation::all_to_all};
  const auto name_of = [](Operation operation) { return collectives::name(operation); };
  Plan plan{.operation = *std::ranges::find(operations, options.op, name_of),
            .type = stored_type(request.precision),
            .ranks = request.mesh.size(),
            .multiplications = options.multiplications};
  gemm::Values multiplications = gemm::values_of({});
  multiplications.shapes = options.shapes;
  for (const gemm::Shape& shape : gemm::shapes_of(request, multiplications)) {
    for (const std::uint64_t bytes : options.sizes.bytes) {
      std::uint64_t part = bytes / program::element_size(plan.type);
      if (plan.has_parts()) part /= static_cast<std::uint64_t>(plan.ranks);
      if (part == 0) {
        throw usage_error("sizes: {} bytes leave some of {} ranks nothing", bytes, plan.ranks);
      }
      plan.pairs.push_back({.shape = shape, .part = part});
    }
  }
  return plan;
}

/// These two buffers are allocated first, so their numbers are 0 and 1.
constexpr BufferId source = 0, target = 1;

/// Writes the program that all ranks share. Each pair (multiplications and a collective) has three
/// sections: the multiplications alone, the collective alone, and both at the same time. At the
/// end, each pair has a section that prepares the check of its results.
class Writer {
 public:
  Writer(const Request& request, const Plan& plan)
      : request_(request), plan_(plan), builder_(request.mesh), operands_(builder_) {}

  program::RankProgram write() {
    communication_ = builder_.stream("communication");
    std::uint64_t room = 0;
    for (const Pair& pair : plan_.pairs) {
      operands_.reserve(pair.shape, plan_.multiplications);
      room = std::max(room, plan_.whole(pair));
    }
    for (const program::Role role : {program::Role::input, program::Role::workspace}) {
      static_cast<void>(
          builder_.allocate({.dtype = plan_.type, .role = role, .count = pattern_room(room)}));
    }
    operands_.fill();
    builder_.emit(compute, fill_pattern(builder_.whole(source), plan_.type, request_.mesh));
    for (std::size_t i = 0; i < plan_.pairs.size(); ++i) {
      const Pair& pair = plan_.pairs[i];
      begin(3 * i);
      multiply(pair);
      begin(3 * i + 1);
      communicate(pair);
      begin(3 * i + 2);
      // The collective is launched first, since it mostly waits for other ranks.
      communicate(pair);
      multiply(pair);
    }
    for (std::size_t i = 0; i < plan_.pairs.size(); ++i) {
      begin(3 * plan_.pairs.size() + i);
      make_check(plan_.pairs[i]);
    }
    return builder_.finish();
  }

  /// Returns the multiplications whose results are checked, one list for each pair of
  /// multiplications and a collective.
  [[nodiscard]] const std::vector<std::vector<program::Gemm>>& products() const {
    return products_;
  }

 private:
  void begin(std::size_t section) { builder_.begin(program::step_section(section)); }

  void multiply(const Pair& pair) {
    for (std::uint64_t i = 0; i < plan_.multiplications; ++i) {
      builder_.emit(compute, operands_.multiplication(pair.shape, i));
    }
  }

  void make_check(const Pair& pair) {
    std::vector<program::Gemm>& products = products_.emplace_back();
    for (std::uint64_t i = 0; i < plan_.multiplications; ++i) {
      products.push_back(operands_.fill_check(pair.shape, i));
    }
    builder_.emit(communication_, program::constant_fill(builder_.whole(target), never_an_integer));
  }

  void communicate(const Pair& pair) {
    const auto slice = [](BufferId buffer, std::uint64_t count) {
      return Slice{.buffer = buffer, .count = count};
    };
    const std::uint64_t whole = plan_.whole(pair);
    const bool gathers = plan_.operation == Operation::all_gather;
    const bool scatters = plan_.operation == Operation::reduce_scatter;
    builder_.emit(communication_,
                  program::Collective{.kind = *collectives::row_of(plan_.operation).kind,
                                      .axes = mesh::every_axis,
                                      .send = slice(source, gathers ? pair.part : whole),
                                      .receive = slice(target, scatters ? pair.part : whole)});
  }

  const Request& request_;
  const Plan& plan_;
  program::Builder builder_;
  gemm::Operands operands_;
  program::StreamId communication_ = 0;
  std::vector<std::vector<program::Gemm>> products_;
};

RowSpec row_of(const Request& request, const Plan& plan, std::size_t index, std::string_view part) {
  const Pair& pair = plan.pairs[index];
  RowSpec row;
  row.text = {{"op", "overlap"},
              {"part", std::string{part}},
              {"collective", std::string{name(plan.operation)}},
              {"dtype", std::string{name(request.precision)}},
              {"pair", std::to_string(index)}};
  row.number = {{"bytes", static_cast<double>(plan.whole(pair) * program::element_size(plan.type))},
                {"m", pair.shape.m},
                {"n", pair.shape.n},
                {"k", pair.shape.k},
                {"batch", pair.shape.batch},
                {"flop", pair.shape.flop() * static_cast<double>(plan.multiplications)}};
  if (!part.starts_with("gemm")) row.number["members"] = plan.ranks;
  return row;
}

Bench build(const Request& request, int /*batch*/) {
  const Plan plan = plan_of(request);
  Bench bench;
  Writer writer{request, plan};
  bench.set = program::alike(request.mesh, writer.write());
  const auto add_case = [&](std::size_t section, std::vector<RowSpec> rows) {
    const std::size_t pair = section / 3;
    Check check{.section = program::step_section(3 * plan.pairs.size() + pair)};
    if (section % 3 != 1) check.products = writer.products()[pair];
    const std::size_t begin = bench.rows.size();
    for (RowSpec& row : rows) bench.rows.push_back(std::move(row));
    bench.cases.push_back({.section = program::step_section(section),
                           .most_times = passes,
                           .row_begin = begin,
                           .row_end = bench.rows.size(),
                           .check = std::move(check)});
  };
  const std::vector<std::string>& streams = bench.set.programs.front().streams;
  const auto communication =
      static_cast<program::StreamId>(std::ranges::find(streams, "communication") - streams.begin());
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const auto row = [&](std::string_view part) { return row_of(request, plan, i, part); };
    const auto on = [&](program::StreamId stream, std::string_view part) {
      RowSpec spec = row(part);
      spec.stream = stream;
      return spec;
    };
    add_case(3 * i, {row("gemm"), on(compute, "gemm traced")});
    add_case(3 * i + 1, {row("collective"), on(communication, "collective traced")});
    add_case(3 * i + 2, {row("together"), on(compute, "gemm together"),
                         on(communication, "collective together")});
  }
  return bench;
}

/// Returns the values that the collective of case number `index` leaves on `rank`.
std::vector<Expectation> expect(const Request& request, int /*batch*/, std::size_t index,
                                int rank) {
  if (index % 3 == 0) return {};  // multiplications alone: nothing is received
  const Plan plan = plan_of(request);
  const Pair& pair = plan.pairs.at(index / 3);
  return collectives::received(
      {.operation = plan.operation, .count = pair.part, .stride = plan.whole(pair)},
      {.index = mesh::group_index(request.mesh, rank, mesh::every_axis),
       .ranks = mesh::group_members(request.mesh, rank, mesh::every_axis)},
      target, 0);
}

}  // namespace

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::choice<&Values::op>("op", "all_reduce",
                                  {"all_reduce", "all_gather", "reduce_scatter", "all_to_all"},
                                  "the collective"),
      option::parsed<&Values::shapes, gemm::parse_shapes>(
          "shapes", "256x256x256,512x512x512,1024x1024x1024",
          "shapes to multiply, as in workload gemm",
          "2048x2048x2048,4096x4096x4096,8192x8192x8192"),
      option::parsed<&Values::sizes, parse_sizes>(
          "sizes", "64KiB..16MiB*4", "message sizes, as in workload collectives", "1MiB..256MiB*4"),
      option::integer<&Values::multiplications>("multiplications", "1", {1, 64},
                                                "multiplications in a row beside one message", "4"),
  };
  return table;
}

BenchHooks hooks() {
  return {.build = build, .expect = expect, .uses_model = [](const Request& request) {
            return gemm::names_model(values_of(request).shapes);
          }};
}

}  // namespace isoscale::workloads::overlap
