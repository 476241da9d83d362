// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The shipped kernels of element_kernels.hpp and list_kernels.hpp against the stand-ins' loops, on
// random cases. All of these compute the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>

#include "program/low_precision.hpp"
#include "tests/cuda/elements.hpp"
#include "tests/cuda/kernel_shim/shipped.hpp"

namespace isoscale::kernel_shim {
namespace {

using program::DType;
using namespace executor::cuda;  // NOLINT: the calls

constexpr std::array all_types{DType::f64,  DType::f32, DType::f16, DType::bf16, DType::e4m3,
                               DType::e5m2, DType::i64, DType::i32, DType::i8,   DType::u8};
constexpr bool is_integer(DType type) {
  return type == DType::i64 || type == DType::i32 || type == DType::i8 || type == DType::u8;
}

TEST(ShippedKernels, FillsAsTheHostDoes) {
  for_cases(all_types, 20, [](Case& one, DType type) {
    const std::uint64_t planes = 1 + one.below(9), rows = 1 + one.below(20), columns = one.extent();
    const std::uint64_t row = one.stride(columns), plane = rows * row + one.below(3);
    FillCall call{.type = type,
                  .extents = {planes, rows, columns},
                  .local = {plane, row, 1},
                  .global = {one.below(1000), one.below(1000), 1 + one.below(3)},
                  .first = one.below(std::uint64_t{1} << 40U),
                  .grid = {.origin = program::fill_origin(one.below(100)),
                           .range = static_cast<int>(1 + one.below(127)),
                           .one_in = static_cast<unsigned>(1 + one.below(3))}};
    if (one.below(4) == 0) {
      call.extents = {1, 1, planes * rows * columns};
      call.local = call.global = {0, 0, 1};
    }
    call.scale = program::power_of_two(static_cast<int>(one.below(8)) - (is_integer(type) ? 0 : 9));
    if (one.below(4) == 0) {
      call.source = program::FillSource::constant;
      call.value = static_cast<double>(one.below(20)) - (type == DType::u8 ? 0 : 5);
    } else if (!is_integer(type) && one.coin()) {
      call.source = program::FillSource::normal;
    }
    const Array dst =
        one.take(type, std::max(planes * plane, planes * rows * columns), Values::bits);
    call.dst = dst.kernel;
    start_both(one, call, [&](FillCall& reference) { reference.dst = dst.reference; });
    one.compare("fill", exactly);
  });
}

TEST(ShippedKernels, Add) {
  const auto addable = [](Case& one, DType type, std::uint64_t rows, std::uint64_t columns) {
    AddCall call{.type = type, .rows = rows, .columns = columns};
    call.a_row = one.stride(columns);
    call.b_row = one.stride(columns);
    call.dst_row = one.stride(columns);
    const Values values = is_integer(type) ? Values::bits : Values::numbers;
    const Array a = one.take(type, rows * call.a_row, values);
    const Array b = one.take(type, rows * call.b_row, values);
    const Array dst = one.take(type, rows * call.dst_row, Values::bits);
    call.scale = one.coin() ? 1 : 3;
    const bool in_place = one.below(3) == 0;
    if (in_place) call.dst_row = call.a_row;
    call.a = a.kernel;
    call.b = b.kernel;
    call.dst = in_place ? a.kernel : dst.kernel;
    start_both(one, call, [&](AddCall& reference) {
      reference.a = a.reference;
      reference.b = b.reference;
      reference.dst = in_place ? a.reference : dst.reference;
    });
    one.compare("add", exactly);
  };
  for_cases(all_types, 20, [&](Case& one, DType type) {
    if (!standin::is_fp8(type)) addable(one, type, one.extent(), one.extent());
  });
  // More than all threads take at once.
  constexpr std::uint64_t many = (std::uint64_t{9} << 20U) + 5;
  Case one{1};
  addable(one, DType::i8, 2, many);
}

/// One cast, of all combinations of destinations and scalings.
void cast_once(Case& one, DType from, DType to) {
  const std::uint64_t rows = one.extent(), columns = one.extent(), outputs = one.below(3);
  CastCall call{.from = from, .to = to, .rows = rows, .columns = columns};
  call.src_row = one.stride(columns);
  call.dst_row = one.stride(columns);
  call.transposed_row = one.stride(rows);
  const Array src = one.take(from, rows * call.src_row, Values::numbers);
  const Array dst = one.take(to, rows * call.dst_row, Values::bits);
  const Array transposed = one.take(to, columns * call.transposed_row, Values::bits);
  const Array descale = one.take(DType::f32, 1, Values::numbers);
  const Array largest = one.take_reachable(DType::i32, 1);
  call.src = src.kernel;
  if (outputs != 1) call.dst = dst.kernel;
  if (outputs != 0) call.transposed = transposed.kernel;
  if (one.coin()) {
    call.scaling = program::CastScale::amax;
    call.target = to == DType::e5m2 ? 57344 : 448;
    call.descale = reinterpret_cast<float*>(descale.kernel);
    call.largest = reinterpret_cast<unsigned*>(largest.kernel);
  } else {
    call.scale = one.coin() ? 0.25 : 1.0 / 3;
  }
  start_both(one, call, [&](CastCall& reference) {
    reference.src = src.reference;
    if (call.dst != nullptr) reference.dst = dst.reference;
    if (call.transposed != nullptr) reference.transposed = transposed.reference;
    if (call.descale != nullptr) {
      reference.descale = reinterpret_cast<float*>(descale.reference);
      reference.largest = reinterpret_cast<unsigned*>(largest.reference);
    }
  });
  one.compare("cast from " + std::string{program::name(from)}, exactly);
}

TEST(ShippedKernels, Cast) {
  for (const DType to :
       {DType::f64, DType::f32, DType::f16, DType::bf16, DType::e4m3, DType::e5m2}) {
    for_cases(floats, 12, [&](Case& one, DType from) { cast_once(one, from, to); });
  }
}

TEST(ShippedKernels, Update) {
  for_cases(floats, 40, [](Case& one, DType weight) {
    const bool is_wide = weight == DType::f64;
    const DType gradient = is_wide ? DType::f64 : floats[1 + one.below(3)];
    const DType state = is_wide ? DType::f64 : DType::f32;
    const std::uint64_t count = 1 + one.extent() * one.extent() % 5000;
    UpdateCall call{.optimizer = one.coin() ? program::Optimizer::adam : program::Optimizer::sgd,
                    .state = state,
                    .gradient_type = gradient,
                    .weight_type = weight,
                    .powers_mode = one.coin() ? Powers::advance : Powers::keep,
                    .count = count,
                    .gradient_scale = 0.5,
                    .rate = 0.1,
                    .beta1 = 0.9,
                    .beta2 = 0.99,
                    .epsilon = 1e-6};
    const bool has_master = weight != state || one.coin();
    const Array w = one.take(weight, count, Values::numbers);
    const Array master = one.take(state, count, Values::numbers);
    const Array g = one.take(gradient, count, Values::numbers);
    const Array moment1 = one.take(state, count, Values::numbers);
    const Array moment2 = one.take(state, count, Values::positive);
    const Array powers = one.take(state, 2, Values::positive);
    const auto point = [&](UpdateCall& at, std::byte* Array::*copy) {
      at.weight = w.*copy;
      at.master = has_master ? master.*copy : nullptr;
      at.gradient = g.*copy;
      at.moment1 = moment1.*copy;
      at.moment2 = moment2.*copy;
      at.powers = powers.*copy;
    };
    point(call, &Array::kernel);
    start_both(one, call, [&](UpdateCall& at) { point(at, &Array::reference); });
    one.compare("update", exactly);
  });
}

TEST(ShippedKernels, Checksum) {
  for_cases(all_types, 20, [](Case& one, DType type) {
    ChecksumCall call{.type = type,
                      .rows = one.extent() % 40 + 1,
                      .columns = one.extent(),
                      .batch = 1 + one.below(3)};
    call.row_stride = one.stride(call.columns);
    call.batch_stride = call.rows * call.row_stride + (one.coin() ? one.below(3) : 0);
    const Array src = one.take(type, call.batch * call.batch_stride, Values::bits);
    const Array sum = one.take_reachable(DType::i64, 2), flip = one.take_reachable(DType::i64, 2);
    Case::set(flip, 0, one.below(call.batch * call.rows * call.columns));
    Case::set(flip, 1, std::uint64_t{3});
    const bool flips = one.coin();
    const auto point = [&](ChecksumCall& at, std::byte* Array::*copy) {
      at.src = src.*copy;
      at.sum = sum.*copy;
      at.flip = flips ? flip.*copy : nullptr;
    };
    point(call, &Array::kernel);
    start_both(one, call, [&](ChecksumCall& at) {
      // The loops read only what a GPU reaches.
      point(at, &Array::reference);
    });
    one.compare("checksum", exactly);
  });
}

TEST(ShippedKernels, Copy) {
  constexpr std::array units{DType::u8, DType::f16, DType::f32, DType::f64};
  for_cases(units, 40, [](Case& one, DType type) {
    const std::uint64_t size = program::element_size(type);
    const std::uint64_t rows = one.extent() % 60 + 1, columns = one.extent();
    const std::uint64_t batch = 1 + one.below(3), dst_row = one.stride(columns);
    // Rows of a source that repeats itself begin where they like, or all where the first one does.
    const std::uint64_t src_row = one.below(3) == 0 ? one.below(columns) : one.stride(columns);
    const std::uint64_t src_batch = one.coin() ? rows * src_row : one.below(rows * src_row + 1);
    const std::uint64_t dst_batch = rows * dst_row + (one.coin() ? one.below(3) : 0);
    const Array src = one.take(type, batch * src_batch + rows * src_row + columns, Values::bits);
    const Array dst = one.take(type, batch * dst_batch, Values::bits);
    const CopyCall call{{.src = src.kernel,
                         .dst = dst.kernel,
                         .row_bytes = columns * size,
                         .rows = rows,
                         .batch = batch,
                         .src_row = src_row * size,
                         .src_batch = src_batch * size,
                         .dst_row = dst_row * size,
                         .dst_batch = dst_batch * size}};
    start_both(one, call, [&](CopyCall& at) {
      at.pieces.src = src.reference;
      at.pieces.dst = dst.reference;
    });
    one.compare("copy", exactly);
  });
}

TEST(ShippedKernels, Select) {
  static constexpr std::array<std::uint32_t, 8> blocks{1, 7, 32, 100, 256, 300, 1024, 4096};
  for_cases(floats, 14, [](Case& one, DType type) {
    SelectCall call{.type = type, .block = blocks[one.below(blocks.size())]};
    call.count = 1 + one.below(2 * call.block);
    call.keep = static_cast<std::uint32_t>(1 + one.below(std::min(call.block, 300U)));
    const std::uint64_t entries = (call.count + call.block - 1) / call.block * call.keep;
    const Array src = one.take(type, call.count, Values::numbers);
    const Array values = one.take(type, entries, Values::bits);
    const Array places = one.take(DType::i32, entries, Values::bits);
    const auto point = [&](SelectCall& at, std::byte* Array::*copy) {
      at.src = src.*copy;
      at.values = values.*copy;
      at.places = reinterpret_cast<std::int32_t*>(places.*copy);
    };
    point(call, &Array::kernel);
    start_both(one, call, [&](SelectCall& at) { point(at, &Array::reference); });
    one.compare("select", exactly);
  });
}

TEST(ShippedKernels, Spread) {
  static constexpr std::array<std::uint32_t, 6> blocks{1, 7, 32, 300, 1024, 4096};
  for_cases(floats, 20, [](Case& one, DType type) {
    SpreadCall call{.type = type, .block = blocks[one.below(blocks.size())]};
    call.count = 1 + one.below(3 * call.block);
    call.keep = static_cast<std::uint32_t>(1 + one.below(call.block));
    call.parts = static_cast<std::uint32_t>(1 + one.below(3));
    const std::uint64_t lists = (call.count + call.block - 1) / call.block;
    const Array values = one.take(type, call.parts * lists * call.keep, Values::numbers);
    const Array places = one.take(DType::i32, call.parts * lists * call.keep, Values::bits);
    const Array dst = one.take(type, call.count, Values::bits);
    for (std::uint64_t list = 0; list < call.parts * lists; ++list) {
      const std::uint64_t begin = list % lists * call.block;
      std::vector<std::int32_t> order(std::min<std::uint64_t>(call.block, call.count - begin));
      std::iota(order.begin(), order.end(), static_cast<std::int32_t>(begin));
      std::ranges::shuffle(order, std::mt19937_64{list});
      for (std::uint32_t i = 0; i < call.keep; ++i) {
        const bool exists = i < order.size() && one.below(5) != 0;
        Case::set(places, list * call.keep + i, exists ? order[i] : -1);
      }
    }
    const auto point = [&](SpreadCall& at, std::byte* Array::*copy) {
      at.values = values.*copy;
      at.places = reinterpret_cast<std::int32_t*>(places.*copy);
      at.dst = dst.*copy;
    };
    point(call, &Array::kernel);
    start_both(one, call, [&](SpreadCall& at) { point(at, &Array::reference); });
    one.compare("spread", exactly);
  });
}

TEST(ShippedKernels, Rows) {
  for_cases(floats, 20, [](Case& one, DType type) {
    constexpr std::uint64_t sources = 20;
    RowsCall call{.type = type, .rows = one.extent() % 65 + 1, .columns = one.extent()};
    call.each = static_cast<std::uint32_t>(1 + one.below(3));
    call.scale = 0.5;
    call.src_row = one.stride(call.columns);
    call.dst_row = one.stride(call.columns);
    const Array src = one.take(type, sources * call.src_row, Values::numbers);
    const Array dst = one.take(type, call.rows * call.dst_row, Values::bits);
    const Array from = one.take(DType::i32, call.rows * call.each, Values::bits);
    for (std::uint64_t i = 0; i < call.rows * call.each; ++i) {
      const auto row = static_cast<std::uint32_t>(one.below(sources));
      Case::set(from, i, one.below(6) == 0 ? program::Rows::no_row : row);
    }
    const auto point = [&](RowsCall& at, std::byte* Array::*copy) {
      at.src = src.*copy;
      at.dst = dst.*copy;
      at.from = reinterpret_cast<std::uint32_t*>(from.*copy);
    };
    point(call, &Array::kernel);
    start_both(one, call, [&](RowsCall& at) { point(at, &Array::reference); });
    one.compare("rows", exactly);
  });
}

}  // namespace
}  // namespace isoscale::kernel_shim
