// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/gemm/gemm.hpp"

#include <algorithm>

#include "workloads/bench/elements.hpp"
#include "workloads/bench/product.hpp"

namespace isoscale::workloads::gemm {
namespace {

constexpr program::StreamId stream = 0;
constexpr std::uint64_t most_sets = 4096, least_sets = 2;
/// Work of one pass through the sets, at most, once these hold what the device asks for: what
/// computes that long on a CPU does not wait for memory.
constexpr double flop_of_pass = 4e9;
/// Work of one play, as far as there are as many calls: a few milliseconds of a CPU core or more.
constexpr double flop_of_play = 2e9;
constexpr double most_calls = 1024;

bool is_fp8(program::DType type) {
  return type == program::DType::e4m3 || type == program::DType::e5m2;
}

enum class Cache : std::uint8_t { cold, warm };

struct GemmCase {
  Shape shape;
  Cache cache = Cache::cold;
  std::uint64_t sets = 1, most_times = 1;
};

std::vector<GemmCase> cases_of(const Request& request) {
  const OptionReader options{option_table(), request.options};
  const std::uint64_t cold = request.bounds.cold.value();
  std::uint64_t rotate = options.bytes("rotate");
  if (!request.options.contains("rotate")) rotate = std::max(rotate, cold);
  std::vector<GemmCase> cases;
  for (const Cache cache : {Cache::cold, Cache::warm}) {
    if (options.is("cache", cache == Cache::cold ? "warm" : "cold")) continue;
    for (const Shape& shape : shapes_of(request)) {
      const auto by_work = static_cast<std::uint64_t>(flop_of_pass / shape.flop());
      const std::uint64_t by_cache = (cold + shape.bytes() - 1) / shape.bytes();
      const std::uint64_t affordable =
          std::clamp(std::max(by_work, by_cache), least_sets, most_sets);
      const std::uint64_t sets =
          cache == Cache::warm ? 1 : std::clamp(rotate / shape.bytes() + 1, least_sets, affordable);
      const double calls = std::clamp(flop_of_play / shape.flop(), 1.0, most_calls);
      cases.push_back(
          {.shape = shape,
           .cache = cache,
           .sets = sets,
           .most_times = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(calls) / sets)});
    }
  }
  return cases;
}

RowSpec row_of(const GemmCase& one, const Request& request) {
  const Shape& shape = one.shape;
  const auto letter = [](program::Transpose transpose) {
    return transpose == program::Transpose::yes ? "t" : "n";
  };
  RowSpec row;
  row.text = {{"op", "gemm"},
              {"dtype", std::string{name(request.precision)}},
              {"operands", std::string{program::name(shape.a)}},
              {"layout", std::string{letter(shape.transpose_a)} + letter(shape.transpose_b)},
              {"cache", one.cache == Cache::warm ? "warm" : "cold"},
              {"origin", shape.origin}};
  if (is_fp8(shape.a)) {
    row.text["fp8_accumulate"] =
        shape.accumulation == program::Accumulation::fast ? "fast" : "split";
  }
  row.number = {{"m", shape.m},
                {"n", shape.n},
                {"k", shape.k},
                {"batch", shape.batch},
                {"flop", shape.flop()},
                {"rotated_bytes", static_cast<double>(one.sets * shape.bytes())},
                {"bytes", static_cast<double>(shape.bytes())}};
  return row;
}

}  // namespace

void Operands::reserve(const Shape& shape, std::uint64_t sets) {
  const auto need = [sets](Pool& pool, std::uint64_t count) {
    pool.room = std::max(pool.room, sets * count);
  };
  need(first_[shape.a], shape.a_count());
  need(second_[shape.b], shape.b_count());
  need(results_[shape.d], shape.d_count());
}

void Operands::fill() {
  std::uint64_t key = 1;
  for (auto* pools : {&first_, &second_}) {
    for (auto& [type, pool] : *pools) {
      pool.buffer =
          builder_.allocate({.dtype = type, .role = program::Role::input, .count = pool.room});
      builder_.emit(stream, program::Fill{.dst = builder_.whole(pool.buffer),
                                          .shard = {.extents = {pool.room, 1, 1},
                                                    .local = {1, 0, 0},
                                                    .global = {1, 0, 0}},
                                          .source = program::FillSource::normal,
                                          .key = key++});
    }
  }
  for (auto& [type, pool] : results_) {
    pool.buffer =
        builder_.allocate({.dtype = type, .role = program::Role::workspace, .count = pool.room});
  }
}

program::Gemm Operands::multiplication(const Shape& shape, std::uint64_t set) const {
  const auto matrix = [&](const Pool& pool, std::uint64_t count, std::uint64_t columns) {
    return program::Matrix{.slice = {.buffer = pool.buffer, .offset = set * count, .count = count},
                           .row_stride = columns,
                           .batch_stride = count / shape.batch};
  };
  const bool ta = shape.transpose_a == program::Transpose::yes;
  const bool tb = shape.transpose_b == program::Transpose::yes;
  return {.m = shape.m,
          .n = shape.n,
          .k = shape.k,
          .batch = shape.batch,
          .transpose_a = shape.transpose_a,
          .transpose_b = shape.transpose_b,
          .mode = shape.mode,
          .accumulation = shape.accumulation,
          .beta = 0,
          .a = matrix(first_.at(shape.a), shape.a_count(), ta ? shape.m : shape.k),
          .b = matrix(second_.at(shape.b), shape.b_count(), tb ? shape.k : shape.n),
          .d = matrix(results_.at(shape.d), shape.d_count(), shape.n)};
}

program::Gemm Operands::fill_check(const Shape& shape, std::uint64_t set) {
  const program::Gemm gemm = multiplication(shape, set);
  for (const program::Fill& fill :
       product_fills(gemm, {.a = shape.a, .b = shape.b, .d = shape.d})) {
    builder_.emit(stream, fill);
  }
  return gemm;
}

Bench build(const Request& request, int /*batch*/) {
  const std::vector<GemmCase> cases = cases_of(request);
  Bench bench;
  program::Builder builder{request.mesh};
  Operands operands{builder};
  for (const GemmCase& one : cases) operands.reserve(one.shape, one.sets);
  operands.fill();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const GemmCase& one = cases[i];
    builder.begin(program::step_section(i));
    for (std::uint64_t set = 0; set < one.sets; ++set) {
      builder.emit(stream, operands.multiplication(one.shape, set));
    }
    bench.cases.push_back({.section = program::step_section(i),
                           .calls = one.sets,
                           .most_times = one.most_times,
                           .row_begin = i,
                           .row_end = i + 1});
    bench.rows.push_back(row_of(one, request));
  }
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const program::Section section = program::step_section(cases.size() + i);
    builder.begin(section);
    bench.cases[i].check = Check{
        .section = section, .products = {operands.fill_check(cases[i].shape, cases[i].sets - 1)}};
  }
  bench.set = alike(request.mesh, builder.finish());
  return bench;
}

BenchHooks hooks() {
  return {.batches = [](const Request&) { return 1; },
          .build = build,
          .uses_model =
              [](const Request& request) {
                const OptionReader options{option_table(), request.options};
                return options.text("shapes").find("model") != std::string::npos;
              }};
}

}  // namespace isoscale::workloads::gemm
