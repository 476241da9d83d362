// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

#include "workloads/gemm/gemm.hpp"

#include <algorithm>
#include <tuple>
#include <variant>

#include "base/text.hpp"
#include "program/builder.hpp"
#include "workloads/bench/exact_data.hpp"
#include "workloads/hybrid/hybrid.hpp"
#include "workloads/stack/partitioning.hpp"

namespace isoscale::workloads::gemm {

namespace {

constexpr std::uint32_t smallest_power = 128;

/// shapes=search combines each of `search_widths` (for m = n) with each of `search_depths` (for k).
/// It adds the shapes (m, n, k) in `published`, which had the highest published rates (A100 and
/// H100: Bekman, ml-engineering, accelerator benchmarks). Shapes with an extent above the option
/// `largest` are left out.
constexpr std::array<std::uint32_t, 11> search_widths{256,  512,  768,  1024, 1536, 2048,
                                                      3072, 4096, 6144, 8192, 16384};

constexpr std::array<std::uint32_t, 7> search_depths{256, 512, 1024, 2048, 4096, 8192, 16384};

constexpr std::array<std::array<std::uint32_t, 3>, 2> published{
    {{1024, 10240, 5120}, {2048, 2048, 13312}}};

[[noreturn]] void refuse(std::string_view key, std::string_view text) {
  throw usage_error(
      "option {}: {} is not a shape; write MxNxK or MxNxKxBATCH, such as 4096x4096x1024, or "
      "one of powers, model, search",
      key, base::quoted(text));
}

ShapeGroup parse_shape(std::string_view key, std::string_view text) {
  std::vector<std::uint32_t> extents;
  for (const std::string_view part : base::split(text, 'x')) {
    constexpr std::uint32_t most = 1U << 20U;
    extents.push_back(base::number_in<std::uint32_t>(part).value_or(0));
    if (extents.back() == 0 || extents.back() > most) refuse(key, text);
  }
  constexpr std::size_t plain = 3, batched = 4;
  if (extents.size() != plain && extents.size() != batched) refuse(key, text);
  return {.m = extents[0],
          .n = extents[1],
          .k = extents[2],
          .batch = extents.size() == batched ? extents[3] : 1};
}

class Lister {
 public:
  Lister(const Request& request, const Values& options)
      : request_(request),
        options_(options),
        types_(stack::types_of(request.precision, options.fp8_accumulate)) {}

  std::vector<Shape> list() {
    for (const ShapeGroup& group : options_.shapes) {
      const std::size_t before = shapes_.size();
      add(group);
      std::sort(shapes_.begin() + static_cast<std::ptrdiff_t>(before), shapes_.end(),
                [](const Shape& a, const Shape& b) { return a.flop() < b.flop(); });
    }
    return std::move(shapes_);
  }

 private:
  void add(const ShapeGroup& group) {
    switch (group.kind) {
      case ShapeGroup::Kind::powers:
        return powers();
      case ShapeGroup::Kind::model:
        return model();
      case ShapeGroup::Kind::search:
        return search();
      case ShapeGroup::Kind::listed:
        break;
    }
    Shape shape = usual(group.m, group.n, group.k, "list");
    shape.batch = group.batch;
    add(shape);
  }

  [[nodiscard]] Shape usual(std::uint32_t m, std::uint32_t n, std::uint32_t k,
                            std::string_view origin) const {
    return {.m = m,
            .n = n,
            .k = k,
            .a = types_.operand,
            .b = types_.operand,
            .d = types_.compute,
            .mode = types_.mode,
            .accumulation = types_.forward,
            .origin = std::string{origin}};
  }

  void add(const Shape& shape) {
    if (types_.casts_operands() && shape.origin == "list") {
      for (const std::uint32_t extent : {shape.m, shape.n, shape.k}) {
        if (extent % stack::fp8_multiple == 0) continue;
        throw usage_error("fp8 multiplies multiples of {}; {}x{}x{} has {}", stack::fp8_multiple,
                          shape.m, shape.n, shape.k, extent);
      }
    }
    const auto key = [](const Shape& s) {
      return std::tuple{s.m,           s.n, s.k, s.batch, s.transpose_a,
                        s.transpose_b, s.a, s.b, s.d,     s.accumulation};
    };
    const bool is_known =
        std::ranges::any_of(shapes_, [&](const Shape& known) { return key(known) == key(shape); });
    if (!is_known) shapes_.push_back(shape);
  }

  void powers() {
    for (std::uint32_t edge = smallest_power; edge <= options_.largest; edge *= 2) {
      add(usual(edge, edge, edge, "powers"));
    }
  }

  void search() {
    for (const std::uint32_t width : search_widths) {
      for (const std::uint32_t depth : search_depths) {
        if (width <= options_.largest && depth <= options_.largest)
          add(usual(width, width, depth, "search"));
      }
    }
    for (const auto& [m, n, k] : published) {
      if (std::max({m, n, k}) <= options_.largest) add(usual(m, n, k, "search"));
    }
  }

  /// Adds the GEMMs of one training step of the model on the mesh, one microbatch per dp replica.
  void model() {
    if (request_.mesh.ep > 1) {
      throw usage_error("shapes=model has no experts to share out; leave ep out of --mesh");
    }
    Request training = request_;
    const auto accumulate = static_cast<std::size_t>(options_.fp8_accumulate);
    training.options = {{"microbatch", std::to_string(options_.microbatch)},
                        {"microbatches", std::to_string(request_.mesh.dp)},
                        {"fp8_accumulate", std::string{stack::fp8_accumulate_names[accumulate]}}};
    const auto limits = hybrid::limits(training, Scaling::strong);
    if (const auto why = mesh::violation(request_.mesh, limits)) {
      throw usage_error("shapes=model: {}", *why);
    }
    training = hybrid::scale(training, request_.mesh, Scaling::strong);
    const program::ProgramSet set = hybrid::build(training);
    for (const program::RankProgram& program : set.programs) {
      for (const program::Op& op : program.step().ops) {
        const auto* gemm = std::get_if<program::Gemm>(&op.payload);
        if (gemm != nullptr) add(shape_of(*gemm, program));
      }
    }
  }

  const Request& request_;
  const Values& options_;
  stack::Types types_;
  std::vector<Shape> shapes_;
};

constexpr program::StreamId stream = 0;
constexpr std::uint64_t most_sets = 4096, least_sets = 2;  // sets of operands of a cold case

/// The most FLOP in one pass over a case's sets of operands, each of which is multiplied once. Two
/// kinds of cases may exceed it: a warm case, which always has one set, and a cold case with the
/// minimum of two sets or, on a GPU, with as many as it takes to exceed the cache. On a CPU this
/// much work takes so long that reading the operands from memory does not limit the rate.
constexpr double flop_of_pass = 4e9;

/// The work of a timed play (one timed run of a case), in FLOP. A play has as many calls as this
/// work takes, but at most `most_calls`, and at least one whole pass. A CPU core needs a few
/// milliseconds or more for it.
constexpr double flop_of_play = 2e9;

constexpr double most_calls = 1024;  // the most calls of a timed play

struct GemmCase {
  Shape shape;
  Cache cache = Cache::cold;  ///< warm or cold, not both
  std::uint64_t sets = 1, most_times = 1;
};

std::vector<GemmCase> cases_of(const Request& request, const Values& options) {
  const std::uint64_t cold = request.bounds.cold.value();
  std::vector<GemmCase> cases;
  for (const Cache cache : {Cache::cold, Cache::warm}) {
    if (options.cache != Cache::both && options.cache != cache) continue;
    for (const Shape& shape : shapes_of(request, options)) {
      const auto by_work = static_cast<std::uint64_t>(flop_of_pass / shape.flop());
      const std::uint64_t by_cache = (cold + shape.bytes() - 1) / shape.bytes();
      const std::uint64_t affordable =
          std::clamp(std::max(by_work, by_cache), least_sets, most_sets);
      const std::uint64_t sets =
          cache == Cache::warm
              ? 1
              : std::clamp(options.rotate / shape.bytes() + 1, least_sets, affordable);
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
  if (program::precision_of(shape.a) == Precision::fp8) {
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

Shape shape_of(const program::Gemm& gemm, const program::RankProgram& program) {
  const auto type = [&](const program::Matrix& matrix) {
    return program.buffers[matrix.slice.buffer].dtype;
  };
  return {.m = gemm.m,
          .n = gemm.n,
          .k = gemm.k,
          .batch = gemm.batch,
          .transpose_a = gemm.transpose_a,
          .transpose_b = gemm.transpose_b,
          .a = type(gemm.a),
          .b = type(gemm.b),
          .d = type(gemm.d),
          .mode = gemm.mode,
          .accumulation = gemm.accumulation,
          .origin = "model"};
}

std::vector<ShapeGroup> parse_shapes(std::string_view key, std::string_view text) {
  using Kind = ShapeGroup::Kind;
  std::vector<ShapeGroup> shapes;
  for (const std::string& part : parse_list(key, text)) {
    shapes.push_back(part == "powers"   ? ShapeGroup{.kind = Kind::powers}
                     : part == "model"  ? ShapeGroup{.kind = Kind::model}
                     : part == "search" ? ShapeGroup{.kind = Kind::search}
                                        : parse_shape(key, part));
  }
  return shapes;
}

bool names_model(const std::vector<ShapeGroup>& shapes) {
  return std::ranges::find(shapes, ShapeGroup::Kind::model, &ShapeGroup::kind) != shapes.end();
}

Values values_of(const Request& request) {
  auto options = typed_options<Values>(option_table(), request.options);
  if (!request.options.contains("rotate")) {
    options.rotate = std::max(options.rotate, request.bounds.cold.value());
  }
  return options;
}

std::vector<Shape> shapes_of(const Request& request, const Values& options) {
  return Lister{request, options}.list();
}

std::span<const OptionSpec> option_table() {
  static const std::array table{
      option::parsed<&Values::shapes, parse_shapes>(
          "shapes", "powers,search",
          "what is multiplied: a list of MxNxK and MxNxKxBATCH, and of powers (cubes of powers of "
          "two), model (those of a training step of --model on the mesh), search (a grid whose "
          "best is the ceiling)"),
      option::integer<&Values::largest>("largest", "4096", {smallest_power, 65536},
                                        "largest extent of powers and search", "16384"),
      option::choice<&Values::cache>(
          "cache", "both", {"both", "warm", "cold"},
          "the same matrices again and again, or others each time, from memory"),
      option::integer<&Values::microbatch>("microbatch", "1", {1, 1'000'000},
                                           "samples of a microbatch, for shapes=model"),
      option::bytes<&Values::rotate>(
          "rotate", "256MiB", {},
          "memory that cold multiplications go through, as far as 4096 sets of matrices and 4 "
          "GFLOP reach, on a GPU at least twice its L2 cache; the rows say how much"),
      stack::fp8_accumulate_option<&Values::fp8_accumulate>(),
  };
  return table;
}

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

Bench build(const Request& request, const Values& options) {
  const std::vector<GemmCase> cases = cases_of(request, options);
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
  bench.set = program::alike(request.mesh, builder.finish());
  return bench;
}

BenchHooks hooks() {
  return {
      .build = [](const Request& request,
                  int /*batch*/) { return build(request, values_of(request)); },
      .uses_model = [](const Request& request) { return names_model(values_of(request).shapes); }};
}

}  // namespace isoscale::workloads::gemm
