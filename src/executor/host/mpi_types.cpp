// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "executor/host/prepare_ops.hpp"

namespace isoscale::executor::host {

using program::DType;

MPI_Op mpi_operation(program::Reduction reduction, DType type, OwnReductions& own) {
  const bool is_sum = reduction == program::Reduction::sum;
  const bool is_short_float = type == DType::f16 || type == DType::bf16;
  // f16 and bf16 also where nothing is computed in them: gradients may travel so.
  if (type == DType::u8 || (type == DType::i8 && is_sum) || is_short_float) {
    return own.operation(reduction, type);
  }
  if (type == DType::e4m3 || type == DType::e5m2) {
    throw base::Error(fmt::format(
        "a reduction of {}: the host reduces f64, f32, f16, bf16 and integers only; ask for one of "
        "these, or for another device",
        program::name(type)));
  }
  switch (reduction) {
    case program::Reduction::sum:
      return MPI_SUM;
    case program::Reduction::min:
      return MPI_MIN;
    case program::Reduction::max:
      return MPI_MAX;
  }
  return MPI_OP_NULL;
}

MPI_Datatype mpi_type(DType type) {
  switch (type) {
    case DType::f64:
      return MPI_DOUBLE;
    case DType::f32:
      return MPI_FLOAT;
    case DType::f16:
    case DType::bf16:
      return MPI_UINT16_T;
    case DType::i64:
      return MPI_INT64_T;
    case DType::i32:
      return MPI_INT32_T;
    case DType::i8:
      return MPI_INT8_T;
    case DType::e4m3:
    case DType::e5m2:
    case DType::u8:
      return MPI_UINT8_T;
  }
  return MPI_DATATYPE_NULL;
}

void append_messages(std::vector<Message>& messages, Message whole, std::uint64_t count,
                     std::size_t element_size, std::uint64_t elements_per_call) {
  std::uint64_t first = 0;
  do {
    Message part = whole;
    part.count = static_cast<int>(std::min(elements_per_call, count - first));
    part.data = whole.data + first * element_size;
    messages.push_back(part);
    first += elements_per_call;
  } while (first < count);
}

}  // namespace isoscale::executor::host
