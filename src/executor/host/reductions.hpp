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

/// Reductions that MPI does not have, or not as they must be. f16 and bf16 travel as 16-bit
/// integers and are added in f32, each sum rounded to the type, as NCCL does. Sums of 8-bit
/// integers wrap, as MPI's and NCCL's should: Open MPI 4.1 saturates them where it has vector
/// instructions, and wraps what is left over at the end. Of unsigned bytes MPICH 4.0 takes the
/// least and the greatest as if they had a sign.
class OwnReductions {
 public:
  /// Makes the operation when it is asked for first; it lives as long as this object.
  [[nodiscard]] MPI_Op operation(program::Reduction reduction, program::DType type);

 private:
  std::map<std::pair<program::Reduction, program::DType>, base::Handle<OperationTraits>> made_;
};

}  // namespace isoscale::executor::host
