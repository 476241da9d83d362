// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "mesh/mesh.hpp"
#include "units/quantity.hpp"

namespace isoscale::program {

/// The type of a buffer's elements. (tf32 is a way to compute with f32, not a type of elements.)
enum class DType : std::uint8_t { f64, f32, f16, bf16, e4m3, e5m2, i64, i32, i8, u8 };
[[nodiscard]] std::string_view name(DType type);
[[nodiscard]] std::uint64_t element_size(DType type);  ///< bytes

/// The type that a run computes in; tf32 is stored as f32.
enum class Precision : std::uint8_t { f64, f32, tf32, f16, bf16, fp8 };
[[nodiscard]] std::string_view name(Precision precision);
/// Returns the precision of this name. Throws base::UsageError with all names if there is none.
[[nodiscard]] Precision parse_precision(std::string_view text);
/// Returns the type in which data of a precision is stored; e4m3 for fp8.
[[nodiscard]] DType stored_type(Precision precision);
/// Returns the precision that an executor must support to handle elements of this type; absent for
/// integers, which all executors handle.
[[nodiscard]] std::optional<Precision> precision_of(DType type);

/// The memory that a buffer lives in, named as in CUDA. symmetric: device memory that all ranks of
/// a group have mapped, so that their kernels can access it. The host executor has one kind of
/// memory and treats all spaces alike.
enum class Space : std::uint8_t { device, pinned, pageable, managed, symmetric };
inline constexpr std::size_t space_count = 5;
[[nodiscard]] std::string_view name(Space space);

/// The purpose of a buffer. Facts::peak_of_role holds the peak memory for each purpose.
enum class Role : std::uint8_t {
  weight,
  master,  ///< f32 copy of weights that are stored in 16 or 8 bits
  gradient,
  optimizer,  ///< optimizer state, such as moments
  input,
  activation,  ///< data kept from forward to backward, such as a received stage input
  workspace,   ///< all short-lived buffers, outgoing messages included
};
inline constexpr std::size_t role_count = 7;
[[nodiscard]] std::string_view name(Role role);

using BufferId = std::uint32_t;
inline constexpr BufferId no_buffer = ~BufferId{0};

/// A logical buffer and, once placed, its storage, which begins `offset` bytes into the arena (the
/// block of memory for all buffers) of its space. Buffers whose lifetimes do not overlap may share
/// storage.
struct Buffer {
  DType dtype = DType::f32;
  Space space = Space::device;
  Role role = Role::workspace;
  std::int32_t microbatch = -1;  ///< the microbatch of an activation; -1 for other buffers
  std::uint64_t count = 0;       ///< elements
  std::uint64_t offset = 0;      ///< bytes into the arena of its space
  /// Used only in programs that predict the memory of some training software: the bytes that this
  /// software needs for the buffer. 0 = as many as the elements take. check() refuses programs in
  /// which it is not 0, since no executor can run them.
  std::uint64_t modelled_bytes = 0;
};
[[nodiscard]] std::uint64_t buffer_bytes(const Buffer& buffer);

/// `count` consecutive elements of a buffer. On a rank with coordinate c along `axis` the slice
/// begins at offset + c * step, so that ranks whose programs differ only in the offsets of their
/// shards share one program.
struct Slice {
  BufferId buffer = no_buffer;
  mesh::Axis axis = mesh::Axis::tp;
  std::uint64_t offset = 0;  ///< elements
  std::uint64_t count = 0;   ///< elements
  std::uint64_t step = 0;    ///< elements per coordinate; 0 if all ranks have the same slice

  [[nodiscard]] std::uint64_t first(const mesh::Coordinates& at) const {
    return offset + static_cast<std::uint64_t>(at[axis]) * step;
  }
};
static_assert(sizeof(Slice) == 32, "programs hold some ten of these per op");

/// The position of a rank's local elements in the tensor that all ranks hold together. The rank has
/// the elements (i, j, k) with i, j, k below `extents`. Element (i, j, k) has
/// - the index i*local[0] + j*local[1] + k*local[2] in the rank's slice
/// - the index base + i*global[0] + j*global[1] + k*global[2], plus the sum over all axes of the
///   rank's coordinate * steps[axis], in the whole tensor; this is its global index
/// A Fill op draws values by global index, and verification compares elements by global index, so
/// every mesh of one model has the same data.
struct Shard {
  std::array<std::uint64_t, 3> extents{1, 1, 1};
  std::array<std::uint64_t, 3> local{0, 0, 0};
  std::array<std::uint64_t, 3> global{0, 0, 0};
  std::uint64_t base = 0;
  mesh::PerAxis<std::uint64_t> steps{};

  [[nodiscard]] std::uint64_t first(const mesh::Coordinates& at) const {
    std::uint64_t index = base;
    for (const mesh::Axis axis : mesh::all_axes) {
      index += static_cast<std::uint64_t>(at[axis]) * steps[axis];
    }
    return index;
  }
};

}  // namespace isoscale::program
