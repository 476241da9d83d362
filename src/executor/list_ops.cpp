// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/list_ops.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "executor/elementwise.hpp"
#include "program/operands.hpp"

namespace isoscale::executor {
namespace {

void require_fit(const program::Payload& payload) {
  if (const auto mistake = program::list_mistake(payload)) throw base::Error(*mistake);
}

program::DType common_type(const Resolver& resolver, const program::Slice& from,
                           const program::Slice& to) {
  const program::DType type = resolver.dtype(from);
  if (is_integer(type) || resolver.dtype(to) != type) {
    throw base::Error(
        fmt::format("elements are picked from {} into {}: one floating type is needed",
                    program::name(type), program::name(resolver.dtype(to))));
  }
  return type;
}

void require_places(const Resolver& resolver, const program::Slice& places) {
  if (resolver.dtype(places) == program::DType::i32) return;
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

program::DType list_type(const Resolver& resolver, const program::Select& op) {
  require_fit(op);
  require_places(resolver, op.places);
  require_apart(resolver, op.src, op.values);
  require_apart(resolver, op.src, op.places);
  return common_type(resolver, op.src, op.values);
}

program::DType list_type(const Resolver& resolver, const program::Spread& op) {
  require_fit(op);
  require_places(resolver, op.places);
  require_apart(resolver, op.values, op.dst);
  require_apart(resolver, op.places, op.dst);
  return common_type(resolver, op.values, op.dst);
}

program::DType list_type(const Resolver& resolver, const program::Rows& op) {
  require_fit(op);
  require_apart(resolver, op.src.slice, op.dst.slice);
  return common_type(resolver, op.src.slice, op.dst.slice);
}

}  // namespace isoscale::executor
