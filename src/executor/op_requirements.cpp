// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/op_requirements.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <optional>

#include "base/error.hpp"
#include "program/operands.hpp"

namespace isoscale::executor {

namespace {

using program::DType;

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

void require_exponent(const program::Fill& op, DType type) {
  constexpr std::int32_t least_normal = -1022, greatest = 1016;  // 127 * 2^1016 is finite
  constexpr std::int32_t greatest_of_integers = 56;              // 127 * 2^56 < 2^63
  const bool whole = is_integer(type);
  const std::int32_t least = whole ? 0 : least_normal;
  const std::int32_t most = whole ? greatest_of_integers : greatest;
  if (op.exponent >= least && op.exponent <= most) return;
  throw base::Error(fmt::format("a fill of {} with exponent {} is not representable: {} to {} are",
                                program::name(type), op.exponent, least, most));
}

DType common_type(const Resolver& resolver, const program::Payload& payload) {
  if (const auto mistake = program::shape_mistake(payload)) throw base::Error(*mistake);
  std::optional<DType> common;
  program::for_each_matrix(payload, [&](const program::Matrix& matrix, const program::Extents&) {
    const DType type = resolver.dtype(matrix.slice);
    if (common && *common != type) {
      throw base::Error(fmt::format("operands of a {} differ in type: {} and {}",
                                    program::name(program::kind_of(payload)),
                                    program::name(*common), program::name(type)));
    }
    common = type;
  });
  if (!common || is_integer(*common)) {
    throw base::Error(fmt::format("a {} of {}", program::name(program::kind_of(payload)),
                                  common ? program::name(*common) : "nothing"));
  }
  return *common;
}

DType with_inverse(const Resolver& resolver, DType type, const program::Slice& inverse) {
  const DType expected = type == DType::f64 ? DType::f64 : DType::f32;
  if (resolver.dtype(inverse) != expected) {
    throw base::Error(fmt::format("the inverses of a norm of {} are {}; they should be {}",
                                  program::name(type), program::name(resolver.dtype(inverse)),
                                  program::name(expected)));
  }
  return type;
}

void require_fit(const program::Payload& payload) {
  if (const auto mistake = program::list_mistake(payload)) throw base::Error(*mistake);
}

DType common_type(const Resolver& resolver, const program::Slice& from, const program::Slice& to) {
  const DType type = resolver.dtype(from);
  if (is_integer(type) || resolver.dtype(to) != type) {
    throw base::Error(
        fmt::format("elements are picked from {} into {}: one floating type is needed",
                    program::name(type), program::name(resolver.dtype(to))));
  }
  return type;
}

void require_places(const Resolver& resolver, const program::Slice& places) {
  if (resolver.dtype(places) == DType::i32) return;
  throw base::Error(fmt::format("places are i32, not {}", program::name(resolver.dtype(places))));
}

void require_apart(const Resolver& resolver, const program::Slice& a, const program::Slice& b) {
  const std::byte* const at_a = resolver.address(a);
  const std::byte* const at_b = resolver.address(b);
  const std::size_t bytes_a = a.count * resolver.element_size(a);
  const std::size_t bytes_b = b.count * resolver.element_size(b);
  if (at_a + bytes_a <= at_b || at_b + bytes_b <= at_a) return;
  throw base::Error("what elements are picked from and where they go overlap");
}

}  // namespace

std::string describe(const program::Op& op, std::uint32_t index) {
  std::string text =
      fmt::format("op {}, {} ({}", index, program::name(program::kind_of(op.payload)),
                  program::name(op.place.phase));
  if (op.place.layer >= 0) text += fmt::format(", layer {}", op.place.layer);
  if (op.place.microbatch >= 0) text += fmt::format(", microbatch {}", op.place.microbatch);
  return text + ")";
}

bool is_integer(DType type) {
  return type == DType::i64 || type == DType::i32 || type == DType::i8 || type == DType::u8;
}

void require_add(const Resolver& resolver, const program::Add& op) {
  const DType type = resolver.dtype(op.dst.slice);
  if (resolver.dtype(op.a.slice) != type || resolver.dtype(op.b.slice) != type) {
    throw base::Error("addend and sum differ in type");
  }
  if (is_integer(type) && !is_whole(op.scale)) {
    throw base::Error(
        fmt::format("an add of {} with scale {}: no whole number", program::name(type), op.scale));
  }
}

void require_fill(const Resolver& resolver, const program::Fill& op) {
  const DType type = resolver.dtype(op.dst);
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

DType type_of(const Resolver& resolver, const program::Norm& op) {
  return with_inverse(resolver, common_type(resolver, op), op.inverse);
}

DType type_of(const Resolver& resolver, const program::NormGradient& op) {
  return with_inverse(resolver, common_type(resolver, op), op.inverse);
}

DType type_of(const Resolver& resolver, const program::Activation& op) {
  return common_type(resolver, op);
}

DType type_of(const Resolver& resolver, const program::ActivationGradient& op) {
  return common_type(resolver, op);
}

DType type_of(const Resolver& resolver, const program::Softmax& op) {
  return common_type(resolver, op);
}

DType type_of(const Resolver& resolver, const program::SoftmaxGradient& op) {
  return common_type(resolver, op);
}

DType list_type(const Resolver& resolver, const program::Select& op) {
  require_fit(op);
  require_places(resolver, op.places);
  require_apart(resolver, op.src, op.values);
  require_apart(resolver, op.src, op.places);
  return common_type(resolver, op.src, op.values);
}

DType list_type(const Resolver& resolver, const program::Spread& op) {
  require_fit(op);
  require_places(resolver, op.places);
  require_apart(resolver, op.values, op.dst);
  require_apart(resolver, op.places, op.dst);
  return common_type(resolver, op.values, op.dst);
}

DType list_type(const Resolver& resolver, const program::Rows& op) {
  require_fit(op);
  require_apart(resolver, op.src.slice, op.dst.slice);
  return common_type(resolver, op.src.slice, op.dst.slice);
}

}  // namespace isoscale::executor
