// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <string>
#include <vector>

#include "program/builder.hpp"
#include "workloads/stack/geometry.hpp"
#include "workloads/stack/parameters.hpp"

namespace isoscale::workloads::infer {

/// The weights of one stage on one rank, those that training begins with, and nothing else of it:
/// no gradients, no optimizer.
class Weights {
 public:
  /// Allocates and, in the setup section, fills them from the seed.
  Weights(program::Builder& builder, const stack::Geometry& geometry, const Request& request);

  [[nodiscard]] program::Slice of(int layer_of_stage, stack::Tensor tensor) const;
  [[nodiscard]] program::Slice vocabulary() const;

 private:
  [[nodiscard]] program::Slice slice(const stack::Parameter& entry) const;
  [[nodiscard]] program::Slice named(const std::string& name) const;

  std::vector<stack::Parameter> parameters_;
  int first_layer_;  ///< of this stage, in the model
  program::BufferId buffer_ = program::no_buffer;
};

}  // namespace isoscale::workloads::infer
