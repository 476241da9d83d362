// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "program/op.hpp"
#include "program/operands.hpp"
#include "program/program.hpp"

/// Finds the memory addresses, on one rank, of the slices that a program's ops use.
namespace isoscale::executor {

using ArenaPointers = std::array<std::byte*, program::space_count>;

/// Looks up the addresses, types and spaces of slices. All look-ups throw base::Error if a slice
/// names a buffer that does not exist; those of addresses also if the slice lies outside its buffer
/// or the buffer outside its arena.
class Resolver {
 public:
  Resolver(const program::RankProgram& program, const mesh::Shape& mesh, int rank,
           const ArenaPointers& arenas);

  [[nodiscard]] std::byte* address(const program::Slice& slice) const;
  /// Returns the address of a slice whose elements have `bytes` bytes in total; throws base::Error
  /// if they have more or fewer.
  [[nodiscard]] std::byte* address(const program::Slice& slice, std::size_t bytes) const;
  /// Returns the address of a slice; null for a slice without a buffer.
  [[nodiscard]] std::byte* address_or_null(const program::Slice& slice) const;

  [[nodiscard]] program::DType dtype(const program::Slice& slice) const;
  [[nodiscard]] program::Space space(const program::Slice& slice) const;
  [[nodiscard]] std::size_t element_size(const program::Slice& slice) const;

  [[nodiscard]] const mesh::Shape& mesh() const { return mesh_; }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] const mesh::Coordinates& coordinates() const { return coordinates_; }

 private:
  [[nodiscard]] const program::Buffer& buffer(const program::Slice& slice) const;

  std::vector<program::Buffer> buffers_;
  std::array<std::uint64_t, program::space_count> arena_bytes_;
  mesh::Shape mesh_;
  int rank_;
  mesh::Coordinates coordinates_;
  ArenaPointers arenas_;
};

/// The place of an operand on one rank; data is null if the op does not use the operand.
struct OperandAt {
  std::byte* data = nullptr;
  program::DType type = program::DType::f32;
};
struct MatrixAt : OperandAt {
  std::uint64_t row_stride = 0, batch_stride = 0;  ///< in elements
};

/// Tells if an Adam update advances its powers (beta1^t and beta2^t in memory) from t - 1 to t. In
/// each play, only the first update that uses the same powers does.
enum class Powers : std::uint8_t { advance, keep };

/// The arguments that an op needs on one rank besides its operands.
template <class Op>
struct FurtherArguments {};
template <>
struct FurtherArguments<program::Update> {
  Powers powers = Powers::keep;
};
/// Used only on a GPU: `largest` is a word of device memory that only this op uses. Its kernels
/// store the largest magnitude of the source there, as the bits of an f32.
template <>
struct FurtherArguments<program::Cast> {
  unsigned* largest = nullptr;
};
/// Used only on a GPU: `from` is a copy of Rows::from in device memory.
template <>
struct FurtherArguments<program::Rows> {
  const std::uint32_t* from = nullptr;
};

/// An op with all addresses and types that it needs on one rank. `call[&Norm::x]` returns the place
/// of an operand, as a MatrixAt if the operand is a matrix.
template <class Op>
struct Arguments : FurtherArguments<Op> {
  Op op{};
  program::DType type = program::DType::f32;  ///< common type of the operands that have one
  std::array<OperandAt, program::operand_count<Op>> operands{};  ///< as in the operand table

  [[nodiscard]] MatrixAt operator[](program::Matrix Op::*member) const {
    const program::Matrix& matrix = op.*member;
    return {at(member), matrix.row_stride, matrix.batch_stride};
  }
  template <class Member>
  [[nodiscard]] OperandAt operator[](Member Op::*member) const {
    return at(member);
  }
  template <class Member>
  [[nodiscard]] OperandAt& at(Member Op::*member) {
    return operands[program::operand_number(member)];
  }
  template <class Member>
  [[nodiscard]] const OperandAt& at(Member Op::*member) const {
    return operands[program::operand_number(member)];
  }
};

/// A copy of `batch` x `rows` pieces of `row_bytes` each. All strides are in bytes.
struct StridedCopy {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  std::size_t row_bytes = 0, rows = 0, batch = 0;
  std::size_t src_row = 0, src_batch = 0, dst_row = 0, dst_batch = 0;
};
/// Returns the same copy with contiguous rows and matrices merged, as far as the strides allow.
[[nodiscard]] StridedCopy merged(StridedCopy copy);

/// A collective on one rank: the addresses and type of its data, with counts that fit its group.
struct CollectiveData {
  std::uint64_t members = 1;  ///< number of ranks in the group
  std::uint64_t me = 0;       ///< this rank's position in the group
  bool is_root = false;
  program::DType type = program::DType::u8;
  std::size_t element = 1;       ///< bytes per element
  std::byte* send = nullptr;     ///< null if this rank sends nothing
  std::byte* receive = nullptr;  ///< null if this rank receives nothing
  /// The number of elements: of the whole data for all_reduce, reduce and broadcast; of one
  /// member's part for other kinds; 0 for a barrier and an uneven all_to_all.
  std::uint64_t count = 0;
  /// The number of elements that an all_to_all sends to all members and receives from all members.
  std::uint64_t sent = 0, received = 0;

  [[nodiscard]] std::byte* part(std::byte* base, std::uint64_t member) const {
    return base + member * count * element;
  }
};

/// Returns the addresses, type and counts of a collective for this rank. Throws base::Error if it
/// has no data, if sent and received elements differ in type, if the root is not in the group, or
/// if a count does not fit the group (the error then gives the count that it should be).
[[nodiscard]] CollectiveData resolve(const Resolver& resolver, const program::Collective& op);

}  // namespace isoscale::executor
