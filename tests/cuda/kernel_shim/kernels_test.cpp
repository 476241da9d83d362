// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// Compares the shipped kernels with the loops of the host. Norms and softmax add in another order
// and activations call other functions; all other ops give the same bits.

#include "executor/op_arguments.hpp"
#include "tests/cuda/kernel_shim/shipped.hpp"

namespace isoscale::kernel_shim {
namespace {

using namespace program;  // NOLINT: the ops

using executor::all_types;
using executor::is_integer;

std::uint32_t narrow(std::uint64_t extent) { return static_cast<std::uint32_t>(extent); }

TEST(ShippedKernels, FillsAsTheHostDoes) {
  for_cases(all_types, 20, [](Case& one, DType type) {
    const std::uint64_t planes = 1 + one.below(9), rows = 1 + one.below(20), columns = one.extent();
    const std::uint64_t row = one.stride(columns), plane = rows * row + one.below(3);
    Fill op{.shard = {.extents = {planes, rows, columns},
                      .local = {plane, row, 1},
                      .global = {one.below(1000), one.below(1000), 1 + one.below(3)},
                      .base = one.below(std::uint64_t{1} << 40U)},
            .key = one.below(100),
            .exponent = static_cast<int>(one.below(8)) - (is_integer(type) ? 0 : 9),
            .range = static_cast<int>(1 + one.below(127)),
            .one_in = narrow(1 + one.below(3))};
    if (one.below(4) == 0) {
      op.shard.extents = {1, 1, planes * rows * columns};
      op.shard.local = op.shard.global = {0, 0, 1};
    }
    if (one.below(4) == 0) {
      op.source = FillSource::constant;
      op.value = static_cast<double>(one.below(20)) - (type == DType::u8 ? 0 : 5);
    } else if (!is_integer(type) && one.coin()) {
      op.source = FillSource::normal;
    }
    OpCase<Fill> fill{one, type, op};
    fill.slice(&Fill::dst, type, std::max(planes * plane, planes * rows * columns), Values::bits);
    fill.run("fill", exactly);
  });
}

TEST(ShippedKernels, Add) {
  const auto add_once = [](Case& one, DType type, std::uint64_t rows, std::uint64_t columns) {
    OpCase<program::Add> add{one, type, {.rows = narrow(rows), .columns = narrow(columns)}};
    const Values values = is_integer(type) ? Values::bits : Values::numbers;
    add.matrix(&program::Add::a, values);
    add.matrix(&program::Add::b, values);
    add.matrix(&program::Add::dst, Values::bits);
    add.call.op.scale = one.coin() ? 1 : 3;
    if (one.below(3) == 0) add.alias(&program::Add::dst, &program::Add::a);
    add.run("add", exactly);
  };
  for_cases(all_types, 20, [&](Case& one, DType type) {
    if (!executor::is_fp8(type)) add_once(one, type, one.extent(), one.extent());
  });
  // More than all threads take at once.
  constexpr std::uint64_t many = (std::uint64_t{9} << 20U) + 5;
  Case one{1};
  add_once(one, DType::i8, 2, many);
}

/// One cast, of all combinations of destinations and scalings.
void cast_once(Case& one, DType from, DType to) {
  using program::Cast;
  const std::uint64_t rows = one.extent(), columns = one.extent(), outputs = one.below(3);
  OpCase<Cast> cast{one, from, {.rows = narrow(rows), .columns = narrow(columns)}};
  cast.matrix(&Cast::src, from, {rows, columns}, Values::numbers);
  if (outputs != 1) cast.matrix(&Cast::dst, to, {rows, columns}, Values::bits);
  if (outputs != 0) cast.matrix(&Cast::transposed, to, {columns, rows}, Values::bits);
  const Array descale = one.take(DType::f32, 1, Values::numbers);
  const Array largest = one.take_reachable(DType::i32, 1);
  if (one.coin()) {
    cast.call.op.scaling = CastScale::amax;
    cast.call.op.target = to == DType::e5m2 ? 57344 : 448;
    cast.call.op.descale = 0;
    cast.call.at(&Cast::descale) = {descale.kernel, DType::f32};
    cast.call.largest = reinterpret_cast<unsigned*>(largest.kernel);
  } else {
    cast.call.op.scale = one.coin() ? 0.25 : 1.0 / 3;
  }
  cast.run("cast from " + std::string{name(from)}, exactly);
}

TEST(ShippedKernels, Cast) {
  for (const DType to :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    for_cases(floats, 12, [&](Case& one, DType from) { cast_once(one, from, to); });
  }
}

TEST(ShippedKernels, Update) {
  using program::Update;
  for_cases(floats, 40, [](Case& one, DType weight) {
    const bool is_wide = weight == DType::f64;
    const DType gradient = is_wide ? DType::f64 : floats[1 + one.below(3)];
    const DType state = is_wide ? DType::f64 : DType::f32;
    const std::uint64_t count = 1 + one.extent() * one.extent() % 5000;
    OpCase<Update> update{one,
                          state,
                          {.optimizer = one.coin() ? Optimizer::adam : Optimizer::sgd,
                           .gradient_scale = 0.5,
                           .rate = 0.1,
                           .beta1 = 0.9,
                           .beta2 = 0.99,
                           .epsilon = 1e-6}};
    update.call.powers = one.coin() ? executor::Powers::advance : executor::Powers::keep;
    update.slice(&Update::weight, weight, count, Values::numbers);
    if (weight != state || one.coin()) {
      update.slice(&Update::master, state, count, Values::numbers);
    }
    update.slice(&Update::gradient, gradient, count, Values::numbers);
    update.slice(&Update::moment1, state, count, Values::numbers);
    update.slice(&Update::moment2, state, count, Values::positive);
    update.slice(&Update::powers, state, 2, Values::positive);
    update.run("update", exactly);
  });
}

TEST(ShippedKernels, Checksum) {
  using program::Checksum;
  for_cases(all_types, 20, [](Case& one, DType type) {
    OpCase<Checksum> sum{one,
                         type,
                         {.rows = narrow(one.extent() % 40 + 1),
                          .columns = narrow(one.extent()),
                          .batch = narrow(1 + one.below(3))}};
    const Checksum& op = sum.call.op;
    sum.matrix(&Checksum::src, Values::bits);
    sum.reachable(&Checksum::sum, DType::i64, 2);
    if (one.coin()) {
      const Array flip = sum.reachable(&Checksum::flip, DType::i64, 2);
      Case::set(flip, 0, one.below(std::uint64_t{op.batch} * op.rows * op.columns));
      Case::set(flip, 1, std::uint64_t{3});
    }
    sum.run("checksum", exactly);
  });
}

TEST(ShippedKernels, Copy) {
  constexpr std::array units{DType::u8, DType::f16, DType::f32, DType::f64};
  for_cases(units, 40, [](Case& one, DType type) {
    const std::uint64_t size = element_size(type);
    const std::uint64_t rows = one.extent() % 60 + 1, columns = one.extent();
    const std::uint64_t batch = 1 + one.below(3), dst_row = one.stride(columns);
    // Rows of a source that repeats itself begin where they like, or all where the first one does.
    const std::uint64_t src_row = one.below(3) == 0 ? one.below(columns) : one.stride(columns);
    const std::uint64_t src_batch = one.coin() ? rows * src_row : one.below(rows * src_row + 1);
    const std::uint64_t dst_batch = rows * dst_row + (one.coin() ? one.below(3) : 0);
    const Array src = one.take(type, batch * src_batch + rows * src_row + columns, Values::bits);
    const Array dst = one.take(type, batch * dst_batch, Values::bits);
    executor::StridedCopy pieces{.src = src.kernel,
                                 .dst = dst.kernel,
                                 .row_bytes = columns * size,
                                 .rows = rows,
                                 .batch = batch,
                                 .src_row = src_row * size,
                                 .src_batch = src_batch * size,
                                 .dst_row = dst_row * size,
                                 .dst_batch = dst_batch * size};
    EXPECT_EQ(executor::cuda::start(pieces, one.stream()), cudaSuccess);
    pieces.src = src.reference;
    pieces.dst = dst.reference;
    executor::host::run(pieces);
    one.compare("copy", exactly);
  });
}

TEST(ShippedKernels, Select) {
  using program::Select;
  static constexpr std::array<std::uint32_t, 8> blocks{1, 7, 32, 100, 256, 300, 1024, 4096};
  for_cases(floats, 14, [](Case& one, DType type) {
    const std::uint32_t block = blocks[one.below(blocks.size())];
    const std::uint64_t count = 1 + one.below(2 * block);
    const std::uint32_t keep = narrow(1 + one.below(std::min(block, 300U)));
    OpCase<Select> select{one, type, {.block = block, .keep = keep}};
    select.slice(&Select::src, type, count, Values::numbers);
    select.slice(&Select::values, type, block_count(count, block) * keep, Values::bits);
    select.slice(&Select::places, DType::i32, block_count(count, block) * keep, Values::bits);
    select.run("select", exactly);
  });
}

TEST(ShippedKernels, Spread) {
  using program::Spread;
  static constexpr std::array<std::uint32_t, 6> blocks{1, 7, 32, 300, 1024, 4096};
  for_cases(floats, 20, [](Case& one, DType type) {
    const std::uint32_t block = blocks[one.below(blocks.size())];
    const std::uint64_t count = 1 + one.below(3 * block), lists = block_count(count, block);
    const std::uint32_t keep = narrow(1 + one.below(block)), parts = narrow(1 + one.below(3));
    OpCase<Spread> spread{one, type, {.block = block, .keep = keep, .parts = parts}};
    spread.slice(&Spread::values, type, parts * lists * keep, Values::numbers);
    const Array places =
        spread.slice(&Spread::places, DType::i32, parts * lists * keep, Values::bits);
    spread.slice(&Spread::dst, type, count, Values::bits);
    for (std::uint64_t list = 0; list < parts * lists; ++list) {
      const std::uint64_t begin = list % lists * block;
      std::vector<std::int32_t> order(std::min<std::uint64_t>(block, count - begin));
      std::iota(order.begin(), order.end(), static_cast<std::int32_t>(begin));
      std::ranges::shuffle(order, std::mt19937_64{list});
      for (std::uint32_t i = 0; i < keep; ++i) {
        const bool exists = i < order.size() && one.below(5) != 0;
        Case::set(places, list * keep + i, exists ? order[i] : -1);
      }
    }
    spread.run("spread", exactly);
  });
}

TEST(ShippedKernels, Rows) {
  using program::Rows;
  for_cases(floats, 20, [](Case& one, DType type) {
    constexpr std::uint64_t sources = 20;
    OpCase<Rows> rows{one,
                      type,
                      {.rows = narrow(one.extent() % 65 + 1),
                       .columns = narrow(one.extent()),
                       .each = narrow(1 + one.below(3)),
                       .scale = 0.5}};
    Rows& op = rows.call.op;
    rows.matrix(&Rows::src, type, {sources, op.columns}, Values::numbers);
    rows.matrix(&Rows::dst, Values::bits);
    const Array from = one.take_reachable(DType::i32, std::uint64_t{op.rows} * op.each);
    for (std::uint64_t i = 0; i < std::uint64_t{op.rows} * op.each; ++i) {
      const auto row = narrow(one.below(sources));
      op.from.push_back(one.below(6) == 0 ? Rows::no_row : row);
      Case::set(from, i, op.from.back());
    }
    rows.call.from = reinterpret_cast<const std::uint32_t*>(from.kernel);
    rows.run("rows", exactly);
  });
}

DType inverse_type(DType type) { return type == DType::f64 ? DType::f64 : DType::f32; }

/// Sums of products are larger than what they sum: so is what their order changes.
Tolerance times(double factor, Tolerance tolerance) { return {factor * tolerance.relative}; }

constexpr int rounds = 25;

TEST(ShippedKernels, Norm) {
  using program::Norm;
  for_cases(floats, rounds, [](Case& one, DType type) {
    const std::uint32_t rows = narrow(one.extent() % 60 + 1);
    OpCase<Norm> norm{one, type, {.rows = rows, .columns = narrow(one.extent())}};
    norm.matrices(one.coin());
    if (one.below(3) == 0) norm.alias(&Norm::y, &Norm::x);
    norm.slice(&Norm::inverse, inverse_type(type), rows, Values::bits);
    norm.run("norm", rounding_of(type));
  });
}

TEST(ShippedKernels, NormGradient) {
  using Op = program::NormGradient;
  for_cases(floats, rounds, [](Case& one, DType type) {
    const std::uint32_t rows = narrow(one.extent() % 60 + 1);
    OpCase<Op> norm{one, type, {.rows = rows, .columns = narrow(one.extent())}};
    norm.matrices(one.coin());
    if (one.below(3) == 0) norm.alias(&Op::dx, &Op::dy);
    norm.slice(&Op::inverse, inverse_type(type), rows, Values::positive);
    norm.run("norm gradient", times(10, rounding_of(type)));
  });
}

TEST(ShippedKernels, Activation) {
  using program::Activation;
  for_cases(floats, 2 * rounds, [](Case& one, DType type) {
    OpCase<Activation> activation{
        one, type, {.rows = narrow(one.extent()), .columns = narrow(one.extent())}};
    const bool is_gated = one.coin();
    if (is_gated) activation.call.op.kind = ActivationKind::swiglu;
    activation.matrices(is_gated);
    if (one.below(3) == 0) activation.alias(&Activation::y, &Activation::x);
    activation.run("activation", rounding_of(type));
  });
}

TEST(ShippedKernels, ActivationGradient) {
  using Op = program::ActivationGradient;
  for_cases(floats, 2 * rounds, [](Case& one, DType type) {
    OpCase<Op> gradient{one, type, {.rows = narrow(one.extent()), .columns = narrow(one.extent())}};
    const bool is_gated = one.coin();
    if (is_gated) gradient.call.op.kind = ActivationKind::swiglu;
    gradient.matrices(is_gated);
    if (is_gated && one.below(3) == 0) gradient.alias(&Op::dup, &Op::up);
    if (one.below(3) == 0) gradient.alias(&Op::dx, &Op::dy);
    gradient.run("activation gradient", times(10, rounding_of(type)));
  });
}

TEST(ShippedKernels, SoftmaxAndItsGradient) {
  for_cases(floats, rounds, [](Case& one, DType type) {
    const auto some = [&](auto op) {
      op.rows = narrow(one.extent() % 30 + 1);
      op.columns = narrow(one.extent());
      op.batch = narrow(1 + one.below(3));
      return op;
    };
    OpCase<Softmax> softmax{one, type, some(Softmax{})};
    softmax.matrices();
    if (one.coin()) softmax.alias(&Softmax::y, &Softmax::x);
    softmax.run("softmax", rounding_of(type));
    using Op = program::SoftmaxGradient;
    OpCase<Op> gradient{one, type, some(Op{})};
    gradient.matrix(&Op::y, Values::positive);
    gradient.matrix(&Op::dy, Values::numbers);
    gradient.matrix(&Op::dx, Values::bits);
    if (one.coin()) gradient.alias(&Op::dx, &Op::dy);
    gradient.run("softmax gradient", times(20, rounding_of(type)));
  });
}

}  // namespace
}  // namespace isoscale::kernel_shim
