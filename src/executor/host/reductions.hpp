// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <mpi.h>

#include <map>
#include <utility>

#include "base/handle.hpp"
#include "program/op.hpp"

namespace isoscale::executor::host {

struct OperationTraits {
  using type = MPI_Op;
  static type null() { return MPI_OP_NULL; }
  static void free(type operation) noexcept;
};

/// Reductions of f16 and bf16, which MPI has no types for: they travel as 16-bit integers and are
/// added in f32, each sum rounded to the type, as NCCL does.
class NarrowReductions {
 public:
  /// Makes the operation when it is asked for first; it lives as long as this object.
  [[nodiscard]] MPI_Op operation(program::Reduction reduction, program::DType type);

 private:
  std::map<std::pair<program::Reduction, program::DType>, base::Handle<OperationTraits>> made_;
};

}  // namespace isoscale::executor::host
