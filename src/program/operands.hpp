// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/dtypes_and_buffers.hpp"
#include "program/op.hpp"

/// Lists the operands of each op kind in a table, and derives from the table which elements an op
/// reads and writes, how many bytes they have, and if the operands fit together. The executors use
/// the same tables to find operands in memory.
namespace isoscale::program {

struct RankProgram;

enum class Mode : std::uint8_t { read, write };

/// An access to the elements begin ... end-1 of a buffer. If the slice begins at different offsets
/// on different ranks (Slice::step), the range covers the elements of all ranks.
struct Access {
  BufferId buffer = no_buffer;
  std::uint64_t begin = 0, end = 0;
  Mode mode = Mode::read;
};

[[nodiscard]] inline Access access(const Slice& slice, const mesh::Shape& mesh, Mode mode) {
  const auto last = static_cast<std::uint64_t>(mesh[slice.axis] - 1);
  return {.buffer = slice.buffer,
          .begin = slice.offset,
          .end = slice.offset + last * slice.step + slice.count,
          .mode = mode};
}

/// Returns the slice of the single element of `buffer`, which holds a scale; for no_buffer, returns
/// a slice without a buffer.
[[nodiscard]] inline Slice scalar(BufferId buffer) {
  return {.buffer = buffer, .offset = 0, .count = 1};
}

[[nodiscard]] constexpr bool exists(const Matrix& matrix) {
  return matrix.slice.buffer != no_buffer;
}

struct Extents {
  std::uint64_t rows = 0, columns = 0, batch = 1;
};

/// The rule for the element type of an operand. any: every type is allowed. common: all operands of
/// the op that have this rule must have the same type, the common type. wide: f64 if the common
/// type is f64, else f32. The other rules name the one type that is allowed.
enum class Elements : std::uint8_t { any, common, wide, f32, i32, i64 };

/// A row of an operand table: one operand of the ops of type `Op`.
template <class Op, class Member>
struct Operand {
  const char* name;
  Member Op::*member;  ///< a Matrix, a Slice, or the BufferId of a single element
  Mode mode;
  Elements elements;
  /// Returns the extents of a matrix, or of a slice, which then has exactly that many elements.
  /// Null if the table does not know them.
  Extents (*extents)(const Op&) = nullptr;
  /// If not null, the op uses the operand only if condition(op) is true.
  bool (*condition)(const Op&) = nullptr;
  bool is_optional = false;  ///< true if an op may leave the operand without a buffer

  [[nodiscard]] constexpr Slice slice(const Op& op) const {
    if constexpr (std::is_same_v<Member, Matrix>) {
      return (op.*member).slice;
    } else if constexpr (std::is_same_v<Member, BufferId>) {
      return scalar(op.*member);
    } else {
      return op.*member;
    }
  }
  [[nodiscard]] constexpr bool is_used(const Op& op) const {
    return slice(op).buffer != no_buffer && (condition == nullptr || condition(op));
  }
  /// True if the op needs the operand but has no buffer for it.
  [[nodiscard]] constexpr bool is_missing(const Op& op) const {
    return !is_optional && slice(op).buffer == no_buffer && (condition == nullptr || condition(op));
  }
  /// Returns a copy of this description of an operand, with other extents.
  [[nodiscard]] constexpr Operand sized(Extents (*other)(const Op&)) const {
    return {name, member, mode, elements, other, condition, is_optional};
  }
  /// Returns a copy of this row with another `condition`.
  [[nodiscard]] constexpr Operand when(bool (*other)(const Op&)) const {
    return {name, member, mode, elements, extents, other, is_optional};
  }
};
/// Returns a copy of `row` that says that its operand is optional.
template <class Op, class Member>
constexpr Operand<Op, Member> optional(Operand<Op, Member> row) {
  row.is_optional = true;
  return row;
}

template <class Op, class Member>
constexpr Operand<Op, Member> operand(const char* name, Member Op::*member, Mode mode,
                                      Elements elements) {
  constexpr bool has_extents = std::is_same_v<Member, Matrix> && requires(Op op) { op.rows; };
  if constexpr (has_extents) {
    return {name, member, mode, elements, [](const Op& op) -> Extents {
              if constexpr (requires { op.batch; }) return {op.rows, op.columns, op.batch};
              return {op.rows, op.columns};
            }};
  } else {
    return {name, member, mode, elements};
  }
}
template <class Op, class Member>
constexpr Operand<Op, Member> reads(const char* name, Member Op::*member,
                                    Elements elements = Elements::common) {
  return operand(name, member, Mode::read, elements);
}
template <class Op, class Member>
constexpr Operand<Op, Member> writes(const char* name, Member Op::*member,
                                     Elements elements = Elements::common) {
  return operand(name, member, Mode::write, elements);
}

// Each operand_table() returns the table of one op kind, with reads before writes; error messages
// use the names in it. An operand that an op both reads and writes usually has only one row, a
// write, since a write conflicts with every access that a read conflicts with. The sources of
// Select and Checksum have two rows, a read and a write, so that their bytes count twice if they
// are written.

constexpr auto operand_table(const Gemm* /*op*/) {
  constexpr auto product = [](const Gemm& op) -> Extents { return {op.m, op.n, op.batch}; };
  return std::tuple{reads("A", &Gemm::a, Elements::any).sized([](const Gemm& op) -> Extents {
                      const bool flips = op.transpose_a == Transpose::yes;
                      return {flips ? op.k : op.m, flips ? op.m : op.k, op.batch};
                    }),
                    reads("B", &Gemm::b, Elements::any).sized([](const Gemm& op) -> Extents {
                      const bool flips = op.transpose_b == Transpose::yes;
                      return {flips ? op.n : op.k, flips ? op.k : op.n, op.batch};
                    }),
                    reads("C", &Gemm::c, Elements::any).sized(product).when([](const Gemm& op) {
                      return op.beta != 0;
                    }),
                    optional(reads("the scale of A", &Gemm::descale_a, Elements::f32)),
                    optional(reads("the scale of B", &Gemm::descale_b, Elements::f32)),
                    writes("D", &Gemm::d, Elements::any).sized(product)};
}
/// Both operands are optional here, since the kind of a collective and the rank decide which of
/// them it needs; executor::resolve() checks this.
constexpr auto operand_table(const Collective* /*op*/) {
  return std::tuple{optional(reads("what is sent", &Collective::send)),
                    optional(writes("what is received", &Collective::receive))};
}
/// The table is empty, since the number of transfers differs from exchange to exchange;
/// for_each_slice() visits the slices of the transfers.
constexpr auto operand_table(const Exchange* /*op*/) { return std::tuple{}; }
constexpr auto operand_table(const Copy* /*op*/) {
  return std::tuple{reads("the source", &Copy::src), writes("the destination", &Copy::dst)};
}
constexpr auto operand_table(const Add* /*op*/) {
  return std::tuple{reads("the first addend", &Add::a), reads("the second addend", &Add::b),
                    writes("the sum", &Add::dst)};
}
/// Whoever writes a cast gives at least one of its two destinations; the table does not check it.
constexpr auto operand_table(const Cast* /*op*/) {
  return std::tuple{reads("the source", &Cast::src, Elements::any),
                    optional(writes("the destination", &Cast::dst, Elements::any)),
                    optional(writes("the transposed destination", &Cast::transposed, Elements::any)
                                 .sized([](const Cast& op) -> Extents {
                                   return {op.columns, op.rows};
                                 })),
                    writes("the scale", &Cast::descale, Elements::f32).when([](const Cast& op) {
                      return op.scaling == CastScale::amax;
                    })};
}
constexpr auto operand_table(const Fill* /*op*/) {
  return std::tuple{writes("the destination", &Fill::dst)};
}
constexpr auto operand_table(const Update* /*op*/) {
  constexpr auto any = Elements::any;
  constexpr auto alike = [](const Update& op) -> Extents { return {1, op.weight.count}; };
  constexpr auto two = [](const Update& /*op*/) -> Extents { return {1, 2}; };
  constexpr auto is_adam = [](const Update& op) { return op.optimizer == Optimizer::adam; };
  return std::tuple{reads("the gradient", &Update::gradient, any).sized(alike),
                    writes("the weight", &Update::weight, any),
                    optional(writes("the master weight", &Update::master, any).sized(alike)),
                    writes("moment 1", &Update::moment1, any).sized(alike).when(is_adam),
                    writes("moment 2", &Update::moment2, any).sized(alike).when(is_adam),
                    writes("the powers", &Update::powers, any).sized(two).when(is_adam)};
}
constexpr auto operand_table(const Advise* /*op*/) {
  return std::tuple{reads("the memory", &Advise::slice)};
}
constexpr auto operand_table(const Norm* /*op*/) {
  return std::tuple{
      reads("x", &Norm::x),
      reads("the addend", &Norm::addend).when([](const Norm& op) { return exists(op.sum); }),
      writes("the sum", &Norm::sum).when([](const Norm& op) { return exists(op.addend); }),
      writes("y", &Norm::y),
      writes("the inverse", &Norm::inverse, Elements::wide).sized([](const Norm& op) -> Extents {
        return {op.rows, 1};
      })};
}
constexpr auto operand_table(const NormGradient* /*op*/) {
  return std::tuple{reads("dy", &NormGradient::dy), reads("s", &NormGradient::s),
                    optional(reads("the addend", &NormGradient::addend)),
                    reads("the inverse", &NormGradient::inverse, Elements::wide)
                        .sized([](const NormGradient& op) -> Extents {
                          return {op.rows, 1};
                        }),
                    writes("dx", &NormGradient::dx)};
}
constexpr auto operand_table(const Activation* /*op*/) {
  constexpr auto is_gated = [](const Activation& op) { return op.kind == ActivationKind::swiglu; };
  return std::tuple{reads("x", &Activation::x), reads("up", &Activation::up).when(is_gated),
                    writes("y", &Activation::y)};
}
constexpr auto operand_table(const ActivationGradient* /*op*/) {
  constexpr auto is_gated = [](const ActivationGradient& op) {
    return op.kind == ActivationKind::swiglu;
  };
  return std::tuple{reads("dy", &ActivationGradient::dy), reads("x", &ActivationGradient::x),
                    reads("up", &ActivationGradient::up).when(is_gated),
                    writes("dx", &ActivationGradient::dx),
                    writes("dup", &ActivationGradient::dup).when(is_gated)};
}
constexpr auto operand_table(const Softmax* /*op*/) {
  return std::tuple{reads("x", &Softmax::x), writes("y", &Softmax::y)};
}
constexpr auto operand_table(const SoftmaxGradient* /*op*/) {
  return std::tuple{reads("y", &SoftmaxGradient::y), reads("dy", &SoftmaxGradient::dy),
                    writes("dx", &SoftmaxGradient::dx)};
}
constexpr auto operand_table(const Select* /*op*/) {
  constexpr auto list = [](const Select& op) -> Extents {
    return {block_count(op.src.count, op.block), op.keep};
  };
  return std::tuple{reads("the source", &Select::src),
                    writes("the values", &Select::values).sized(list),
                    writes("the places", &Select::places, Elements::i32).sized(list),
                    writes("the source", &Select::src)};
}
constexpr auto operand_table(const Spread* /*op*/) {
  constexpr auto lists = [](const Spread& op) -> Extents {
    return {block_count(op.dst.count, op.block), op.keep, op.parts};
  };
  return std::tuple{reads("the values", &Spread::values).sized(lists),
                    reads("the places", &Spread::places, Elements::i32).sized(lists),
                    writes("the destination", &Spread::dst)};
}
/// The op does not give the number of rows of its source, so the table has no extents for it.
constexpr auto operand_table(const Rows* /*op*/) {
  return std::tuple{reads("the source", &Rows::src).sized(nullptr),
                    writes("the destination", &Rows::dst)};
}
constexpr auto operand_table(const Checksum* /*op*/) {
  constexpr auto two = [](const Checksum& /*op*/) -> Extents { return {1, 2}; };
  return std::tuple{reads("the source", &Checksum::src),
                    optional(reads("the flip", &Checksum::flip, Elements::i64).sized(two)),
                    writes("the source", &Checksum::src).when([](const Checksum& op) {
                      return op.flip.buffer != no_buffer;
                    }),
                    writes("the sum", &Checksum::sum, Elements::i64).sized(two)};
}

template <class Op>
inline constexpr auto operands = operand_table(static_cast<const Op*>(nullptr));
template <class Op>
inline constexpr std::size_t operand_count =
    std::tuple_size_v<decltype(operand_table(static_cast<const Op*>(nullptr)))>;

/// Calls visit(operand, its number in the table) for each row of the table of an op kind.
template <class Op, class Visit>
constexpr void for_each_in_table(const Visit& visit) {
  std::apply(
      [&](const auto&... row) {
        [[maybe_unused]] std::size_t number = 0;
        (visit(row, number++), ...);
      },
      operands<Op>);
}

/// Calls visit(operand, its number in the table) for each operand that the op uses.
template <class Op, class Visit>
void for_each_operand(const Op& op, const Visit& visit) {
  for_each_in_table<Op>([&](const auto& operand, std::size_t number) {
    if (operand.is_used(op)) visit(operand, number);
  });
}

/// Returns the number of an operand's row in the table of its op kind, from 0. The operand is the
/// first one that is stored in the given member of the op.
template <class Op, class Member>
[[nodiscard]] constexpr std::size_t operand_number(Member Op::*member) {
  std::size_t found = operand_count<Op>;
  for_each_in_table<Op>([&](const auto& operand, std::size_t number) {
    if constexpr (std::is_same_v<decltype(operand.member), Member Op::*>) {
      if (operand.member == member && found == operand_count<Op>) found = number;
    }
  });
  return found;
}

/// Calls visit(slice, mode) for each slice of the op that has elements, reads before writes.
template <class Visit>
void for_each_slice(const Payload& payload, const Visit& visit) {
  const auto with = [&visit](const Slice& slice, Mode mode) {
    if (slice.buffer != no_buffer && slice.count > 0) visit(slice, mode);
  };
  if (const auto* const exchange = std::get_if<Exchange>(&payload)) {
    for (const Direction direction : {Direction::send, Direction::receive}) {
      for (const Transfer& transfer : exchange->transfers) {
        if (transfer.direction != direction) continue;
        with(transfer.slice, direction == Direction::send ? Mode::read : Mode::write);
      }
    }
    return;
  }
  std::visit(
      [&](const auto& op) {
        for_each_operand(op, [&](const auto& operand, std::size_t /*number*/) {
          with(operand.slice(op), operand.mode);
        });
      },
      payload);
}

/// Returns the bytes of a slice's elements; 0 without a buffer.
[[nodiscard]] std::uint64_t slice_bytes(const RankProgram& program, const Slice& slice);

/// Returns the bytes that an op which does not communicate reads and writes. Each operand that the
/// op uses counts once per row of the operand table. Gaps in a strided matrix do not count, and a
/// matrix that serves a whole batch counts once. In Rows, a source row counts as often as it is
/// named. Advice counts only if it is a prefetch.
[[nodiscard]] std::uint64_t local_bytes(const RankProgram& program, const Payload& payload);

/// A matrix that an op writes; elements between its rows are not written.
struct Output {
  Matrix matrix{};
  Extents extents{};
};

/// Returns the matrices that an op writes; none for a Fill that leaves gaps between its elements.
[[nodiscard]] std::vector<Output> outputs_of(const Payload& payload);

/// Returns the reason why an op is malformed, judged by its operand table and without its program:
/// an operand is missing, a matrix reaches beyond its slice, or a slice has another number of
/// elements than the table says. Absent if the op is well formed.
[[nodiscard]] std::optional<std::string> mistake(OpPointer pointer);
/// Returns the mistake of a Payload, or of an op outside a Payload.
template <class Op>
[[nodiscard]] std::optional<std::string> mistake(const Op& op) {
  return mistake(pointer_to(op));
}

}  // namespace isoscale::program
