// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/gemm/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <variant>

#include "base/error.hpp"
#include "base/text.hpp"
#include "workloads/bench/sizes.hpp"
#include "workloads/hybrid/hybrid.hpp"
#include "workloads/hybrid/scale.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/linear.hpp"

namespace isoscale::workloads::gemm {
namespace {

constexpr std::uint32_t smallest_power = 128;

/// Extents that the search combines, m = n; and the shapes that reached the highest published rates
/// (A100 and H100, Bekman, ml-engineering, accelerator benchmarks).
constexpr std::array<std::uint32_t, 11> search_widths{256,  512,  768,  1024, 1536, 2048,
                                                      3072, 4096, 6144, 8192, 16384};
constexpr std::array<std::uint32_t, 7> search_depths{256, 512, 1024, 2048, 4096, 8192, 16384};
constexpr std::array<std::array<std::uint32_t, 3>, 2> published{
    {{1024, 10240, 5120}, {2048, 2048, 13312}}};

[[noreturn]] void refuse(std::string_view text) {
  throw base::UsageError(
      fmt::format("option shapes: {} is not a shape; write MxNxK or MxNxKxBATCH, such as "
                  "4096x4096x1024, or one of "
                  "powers, model, search",
                  base::quoted(text)));
}

class Lister {
 public:
  explicit Lister(const Request& request)
      : request_(request),
        options_(option_table(), request.options),
        types_(stack::types_of(request.precision, options_)),
        largest_(static_cast<std::uint32_t>(options_.integer("largest"))) {}

  std::vector<Shape> list() {
    for (const std::string& text : parse_list("shapes", options_.text("shapes"))) {
      const std::size_t before = shapes_.size();
      if (text == "powers") {
        powers();
      } else if (text == "model") {
        model();
      } else if (text == "search") {
        search();
      } else {
        add(parse(text));
      }
      std::sort(shapes_.begin() + static_cast<std::ptrdiff_t>(before), shapes_.end(),
                [](const Shape& a, const Shape& b) { return a.flop() < b.flop(); });
    }
    return std::move(shapes_);
  }

 private:
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

  [[nodiscard]] Shape parse(const std::string& text) const {
    std::vector<std::uint32_t> extents;
    const char* at = text.data();
    const char* const end = at + text.size();
    while (at != end) {
      std::uint32_t extent = 0;
      const auto [stop, error] = std::from_chars(at, end, extent);
      constexpr std::uint32_t most = 1U << 20U;
      if (error != std::errc{} || extent == 0 || extent > most) refuse(text);
      extents.push_back(extent);
      if (stop != end && *stop != 'x') refuse(text);
      at = stop == end ? end : stop + 1;
      if (stop != end && at == end) refuse(text);
    }
    constexpr std::size_t plain = 3, batched = 4;
    if (extents.size() != plain && extents.size() != batched) refuse(text);
    Shape shape = usual(extents[0], extents[1], extents[2], "list");
    if (extents.size() == batched) shape.batch = extents[3];
    return shape;
  }

  void add(const Shape& shape) {
    if (types_.casts_operands() && shape.origin == "list") {
      for (const std::uint32_t extent : {shape.m, shape.n, shape.k}) {
        if (extent % stack::fp8_multiple == 0) continue;
        throw base::UsageError(fmt::format("fp8 multiplies multiples of {}; {}x{}x{} has {}",
                                           stack::fp8_multiple, shape.m, shape.n, shape.k, extent));
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
    for (std::uint32_t edge = smallest_power; edge <= largest_; edge *= 2) {
      add(usual(edge, edge, edge, "powers"));
    }
  }

  void search() {
    for (const std::uint32_t width : search_widths) {
      for (const std::uint32_t depth : search_depths) {
        if (width <= largest_ && depth <= largest_) add(usual(width, width, depth, "search"));
      }
    }
    for (const auto& [m, n, k] : published) {
      if (std::max({m, n, k}) <= largest_) add(usual(m, n, k, "search"));
    }
  }

  /// The multiplications of one training step of the model on the mesh, one microbatch a rank.
  void model() {
    Request training = request_;
    training.options = {{"microbatch", options_.text("microbatch")},
                        {"microbatches", std::to_string(request_.mesh.dp)},
                        {"fp8_accumulate", options_.text("fp8_accumulate")}};
    const auto limits = hybrid::limits(training, Scaling::strong);
    if (const auto why = mesh::violation(request_.mesh, limits)) {
      throw base::UsageError(fmt::format("shapes=model: {}", *why));
    }
    training = hybrid::scale(training, request_.mesh, Scaling::strong);
    const program::ProgramSet set = hybrid::build(training);
    for (const program::RankProgram& program : set.programs) {
      for (const program::Op& op : program.step().ops) {
        const auto* gemm = std::get_if<program::Gemm>(&op.payload);
        if (gemm == nullptr) continue;
        const auto type = [&](const program::Matrix& matrix) {
          return program.buffers[matrix.slice.buffer].dtype;
        };
        add({.m = gemm->m,
             .n = gemm->n,
             .k = gemm->k,
             .batch = gemm->batch,
             .transpose_a = gemm->transpose_a,
             .transpose_b = gemm->transpose_b,
             .a = type(gemm->a),
             .b = type(gemm->b),
             .d = type(gemm->d),
             .mode = gemm->mode,
             .accumulation = gemm->accumulation,
             .origin = "model"});
      }
    }
  }

  const Request& request_;
  OptionReader options_;
  stack::Types types_;
  std::uint32_t largest_;
  std::vector<Shape> shapes_;
};

}  // namespace

std::uint64_t Shape::bytes() const {
  return a_count() * program::element_size(a) + b_count() * program::element_size(b) +
         d_count() * program::element_size(d);
}

std::vector<Shape> shapes_of(const Request& request) { return Lister{request}.list(); }

std::span<const OptionSpec> option_table() {
  static const std::array table{
      OptionSpec{.key = "shapes",
                 .type = OptionType::text,
                 .default_value = "powers,search",
                 .help =
                     "what is multiplied: a list of MxNxK and MxNxKxBATCH, and of powers (cubes "
                     "of powers of two), model (those of a training step of --model on the "
                     "mesh), search (a grid whose best is the ceiling)"},
      OptionSpec{.key = "largest",
                 .type = OptionType::integer,
                 .default_value = "4096",
                 .gpu_default = "16384",
                 .minimum = smallest_power,
                 .maximum = 65536,
                 .help = "largest extent of powers and search"},
      OptionSpec{.key = "cache",
                 .default_value = "both",
                 .choices = {"both", "warm", "cold"},
                 .help = "the same matrices again and again, or others each time, from memory"},
      OptionSpec{.key = "microbatch",
                 .type = OptionType::integer,
                 .default_value = "1",
                 .minimum = 1,
                 .maximum = 1'000'000,
                 .help = "samples of a microbatch, for shapes=model"},
      OptionSpec{
          .key = "rotate",
          .type = OptionType::bytes,
          .default_value = "256MiB",
          .help =
              "memory that cold multiplications go through, as far as 4096 sets of matrices and 4 "
              "GFLOP reach, on a GPU at least twice its L2 cache; the rows say how much"},
      stack::fp8_accumulate_option(),
  };
  return table;
}

}  // namespace isoscale::workloads::gemm
