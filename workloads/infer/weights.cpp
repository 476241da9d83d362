// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "workloads/infer/weights.hpp"

#include <algorithm>
#include <string>

#include "base/error.hpp"

namespace isoscale::workloads::infer {
namespace {

std::string_view suffix(stack::Tensor tensor) {
  switch (tensor) {
    case stack::Tensor::qkv:
      return ".qkv";
    case stack::Tensor::projection:
      return ".projection";
    case stack::Tensor::up:
      return ".up";
    case stack::Tensor::down:
      break;
  }
  return ".down";
}

}  // namespace

Weights::Weights(program::Builder& builder, const stack::Geometry& geometry, const Request& request)
    : parameters_(stack::parameters_of(geometry)), first_layer_(geometry.global_layer(0)) {
  const std::uint64_t count = parameters_.back().offset + parameters_.back().count();
  buffer_ = builder.allocate({.dtype = stack::types_of(request.precision).compute,
                              .role = program::Role::weight,
                              .count = count});
  builder.at({.phase = program::Phase::setup});
  for (const stack::Parameter& entry : parameters_) {
    builder.emit(0, stack::weight_fill(slice(entry), entry, request.seed));
  }
}

program::Slice Weights::slice(const stack::Parameter& entry) const {
  return {.buffer = buffer_, .offset = entry.offset, .count = entry.count()};
}

program::Slice Weights::named(const std::string& name) const {
  const auto found = std::ranges::find(parameters_, name, &stack::Parameter::name);
  if (found == parameters_.end()) throw base::Error("the stack has no parameter " + name);
  return slice(*found);
}

program::Slice Weights::of(int layer_of_stage, stack::Tensor tensor) const {
  return named("layer" + std::to_string(first_layer_ + layer_of_stage) +
               std::string{suffix(tensor)});
}

program::Slice Weights::vocabulary() const { return named("vocabulary"); }

}  // namespace isoscale::workloads::infer
