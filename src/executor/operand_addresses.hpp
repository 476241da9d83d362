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

/// Finds the memory addresses, on one rank, of the slices (parts of buffers) that a program's ops
/// use.
namespace isoscale::executor {

using ArenaPointers = std::array<std::byte*, program::space_count>;

/// Looks up the addresses, types and memory spaces of slices. All buffers of one memory space lie
/// in one arena, a block of this rank's memory. Functions throw base::Error if a slice names a
/// buffer that does not exist. Functions that return an address also throw base::Error if the slice
/// does not lie inside its buffer, or the buffer does not lie inside its arena.
class Resolver {
 public:
  Resolver(const program::RankProgram& program, const mesh::Shape& mesh, int rank,
           const ArenaPointers& arenas);

  [[nodiscard]] std::byte* address(const program::Slice& slice) const;
  /// Returns the address of a slice. Throws base::Error if the size of the slice is not `bytes`.
  [[nodiscard]] std::byte* address(const program::Slice& slice, std::size_t bytes) const;

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

/// The address and type of an operand on one rank; `data` is null if the op does not use the
/// operand.
struct OperandAt {
  std::byte* data = nullptr;
  program::DType type = program::DType::f32;
};
struct MatrixAt : OperandAt {
  std::uint64_t row_stride = 0, batch_stride = 0;  ///< in elements
};

/// Tells if an Adam update advances the powers beta1^t and beta2^t, which are kept in memory, from
/// t - 1 to t. Several updates may use the same powers; each time the program is run, only the
/// first of them advances the powers.
enum class Powers : std::uint8_t { advance, keep };

/// Arguments that some ops need on one rank besides their operands; most ops need none.
template <class Op>
struct FurtherArguments {};
template <>
struct FurtherArguments<program::Update> {
  Powers powers = Powers::keep;
};
/// The CUDA executor's argument for a Cast: `largest` is a word of device memory that only this op
/// uses. The op's kernels store in it the largest magnitude of the source, as the bits of an f32.
template <>
struct FurtherArguments<program::Cast> {
  unsigned* largest = nullptr;
};
/// The CUDA executor's argument for Rows: a copy of Rows::from in device memory.
template <>
struct FurtherArguments<program::Rows> {
  const std::uint32_t* from = nullptr;
};

/// An op with all addresses and types that it needs on one rank. For example, `call[&Norm::x]`
/// returns the address of operand x: a MatrixAt if the operand is a matrix, else an OperandAt.
template <class Op>
struct Arguments : FurtherArguments<Op> {
  Op op{};
  program::DType type = program::DType::f32;  ///< the type that the op's operands have in common
  /// The operands, in the order of the op's operand table (program/operands.hpp).
  std::array<OperandAt, program::operand_count<Op>> operands{};

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
/// Returns an equal copy with fewer, longer rows: contiguous rows and matrices are merged as far as
/// the strides allow.
[[nodiscard]] StridedCopy merged(StridedCopy copy);

/// A collective op on one rank: the addresses, the type and the counts of its data. The counts have
/// been checked against the size of the group.
struct CollectiveData {
  std::uint64_t members = 1;  ///< number of ranks in the group
  std::uint64_t me = 0;       ///< this rank's position in the group
  bool is_root = false;
  program::DType type = program::DType::u8;
  std::size_t element = 1;       ///< bytes per element
  std::byte* send = nullptr;     ///< null if the op has no buffer to send
  std::byte* receive = nullptr;  ///< null if the op has no buffer to receive
  /// A number of elements: for all_reduce, reduce and broadcast all elements of the data, for other
  /// kinds the elements of one member's part. It is 0 for a barrier and for an all_to_all with
  /// unequal parts.
  std::uint64_t count = 0;
  /// For an all_to_all: the numbers of elements that this rank sends to all members together and
  /// receives from all members together.
  std::uint64_t sent = 0, received = 0;

  [[nodiscard]] std::byte* part(std::byte* base, std::uint64_t member) const {
    return base + member * count * element;
  }
};

/// Returns the addresses, type and counts of a collective on this rank. Throws base::Error if the
/// op has no data, if sent and received elements differ in type, if the root is not in the group,
/// or if the numbers of elements do not fit the size of the group. A barrier needs no data and is
/// not checked.
[[nodiscard]] CollectiveData resolve(const Resolver& resolver, const program::Collective& op);

}  // namespace isoscale::executor
