// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/elementwise.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "base/error.hpp"

namespace isoscale::executor {
namespace {

bool is_whole(double value) {
  constexpr double most = 4611686018427387904.0;  // 2^62
  return std::trunc(value) == value && std::abs(value) <= most;
}

void require_inside(const program::Fill& op) {
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < op.shard.extents.size(); ++d) {
    if (op.shard.extents[d] == 0) return;  // nothing to fill
    last += (op.shard.extents[d] - 1) * op.shard.local[d];
  }
  if (last < op.dst.count) return;
  throw base::Error(
      fmt::format("a fill reaches local element {} of a slice of {} elements", last, op.dst.count));
}

void require_exponent(const program::Fill& op, program::DType type) {
  constexpr std::int32_t least_normal = -1022, greatest = 1016;  // 127 * 2^1016 is finite
  constexpr std::int32_t greatest_of_integers = 56;              // 127 * 2^56 < 2^63
  const bool whole = is_integer(type);
  const std::int32_t least = whole ? 0 : least_normal;
  const std::int32_t most = whole ? greatest_of_integers : greatest;
  if (op.exponent >= least && op.exponent <= most) return;
  throw base::Error(fmt::format("a fill of {} with exponent {} is not representable: {} to {} are",
                                program::name(type), op.exponent, least, most));
}

}  // namespace

bool is_integer(program::DType type) {
  using program::DType;
  return type == DType::i64 || type == DType::i32 || type == DType::i8 || type == DType::u8;
}

void require_add(const Resolver& resolver, const program::Add& op) {
  const program::DType type = resolver.dtype(op.dst.slice);
  if (resolver.dtype(op.a.slice) != type || resolver.dtype(op.b.slice) != type) {
    throw base::Error("addend and sum differ in type");
  }
  if (is_integer(type) && !is_whole(op.scale)) {
    throw base::Error(
        fmt::format("an add of {} with scale {}: no whole number", program::name(type), op.scale));
  }
}

void require_fill(const Resolver& resolver, const program::Fill& op) {
  const program::DType type = resolver.dtype(op.dst);
  require_inside(op);
  if (op.source == program::FillSource::constant) {
    if (is_integer(type) && !is_whole(op.value)) {
      throw base::Error(
          fmt::format("a fill of {} with {}: no whole number", program::name(type), op.value));
    }
    return;
  }
  require_exponent(op, type);
  if (op.source == program::FillSource::normal) {
    if (!is_integer(type)) return;
    throw base::Error(fmt::format("a fill of {} with numbers of a normal", program::name(type)));
  }
  constexpr std::int32_t greatest_range = 127;
  if (op.range < 1 || op.range > greatest_range) {
    throw base::Error(fmt::format("a fill with integers up to {}: 1 to {} are possible", op.range,
                                  greatest_range));
  }
  if (op.one_in < 1) throw base::Error("a fill that draws one of 0 elements");
}

}  // namespace isoscale::executor
