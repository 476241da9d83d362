// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/host/reductions.hpp"

#include <algorithm>
#include <cstdint>

#include "comm/communicator.hpp"
#include "program/narrow.hpp"

namespace isoscale::executor::host {
namespace {

using program::DType;
using program::Reduction;

template <Reduction reduction>
float combine(float a, float b) {
  if constexpr (reduction == Reduction::sum) {
    return a + b;
  } else if constexpr (reduction == Reduction::min) {
    return std::min(a, b);
  } else {
    return std::max(a, b);
  }
}

/// What MPI calls: `into` becomes into + from, element by element.
template <Reduction reduction, DType type>
void reduce(void* from, void* into, int* count, MPI_Datatype* /*type*/) {
  constexpr program::NarrowFormat format = *program::narrow_format(type);
  const auto* const a = static_cast<const std::uint16_t*>(from);
  auto* const b = static_cast<std::uint16_t*>(into);
  for (int i = 0; i < *count; ++i) {
    const float sum = combine<reduction>(decode(format, a[i]), decode(format, b[i]));
    b[i] = encode(format, static_cast<double>(sum));
  }
}

/// Bytes, signed or not, added modulo 256.
void add_bytes(void* from, void* into, int* count, MPI_Datatype* /*type*/) {
  const auto* const a = static_cast<const std::uint8_t*>(from);
  auto* const b = static_cast<std::uint8_t*>(into);
  for (int i = 0; i < *count; ++i) b[i] = static_cast<std::uint8_t>(a[i] + b[i]);
}

/// The lesser or greater of unsigned bytes.
template <Reduction reduction>
void choose_bytes(void* from, void* into, int* count, MPI_Datatype* /*type*/) {
  const auto* const a = static_cast<const std::uint8_t*>(from);
  auto* const b = static_cast<std::uint8_t*>(into);
  for (int i = 0; i < *count; ++i) {
    b[i] = reduction == Reduction::min ? std::min(a[i], b[i]) : std::max(a[i], b[i]);
  }
}

template <DType type>
MPI_User_function* function_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return &reduce<Reduction::sum, type>;
    case Reduction::min:
      return &reduce<Reduction::min, type>;
    case Reduction::max:
      return &reduce<Reduction::max, type>;
  }
  return nullptr;
}

MPI_User_function* function_of(Reduction reduction, DType type) {
  if (type == DType::f16) return function_of<DType::f16>(reduction);
  if (type == DType::bf16) return function_of<DType::bf16>(reduction);
  if (reduction == Reduction::min) return &choose_bytes<Reduction::min>;
  if (reduction == Reduction::max) return &choose_bytes<Reduction::max>;
  return &add_bytes;
}

}  // namespace

void OperationTraits::free(type operation) noexcept { static_cast<void>(MPI_Op_free(&operation)); }

MPI_Op OwnReductions::operation(Reduction reduction, DType type) {
  base::Handle<OperationTraits>& made = made_[{reduction, type}];
  if (!made) {
    constexpr int commutes = 1;
    MPI_Op operation = MPI_OP_NULL;
    comm::check(MPI_Op_create(function_of(reduction, type), commutes, &operation));
    made.reset(operation);
  }
  return made.get();
}

}  // namespace isoscale::executor::host
