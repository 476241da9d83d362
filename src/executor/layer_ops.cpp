// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/layer_ops.hpp"

#include <fmt/format.h>

#include <optional>

#include "base/error.hpp"
#include "executor/elementwise.hpp"
#include "program/operands.hpp"

namespace isoscale::executor {
namespace {

using program::DType;

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

}  // namespace

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

}  // namespace isoscale::executor
