// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "mesh/mesh.hpp"
#include "program/buffer.hpp"
#include "program/op.hpp"
#include "program/program.hpp"

/// The operands of ops: the elements that an op reads and writes, as slices and as matrices, the
/// number of their bytes, and checks that they fit together.
namespace isoscale::program {

enum class Mode : std::uint8_t { read, write };

/// An access to the elements begin ... end-1 of a buffer; for a slice that moves with a coordinate,
/// to all elements that it may touch on any rank.
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

/// Returns the slice of the single element of `buffer`, which holds a scale; a slice without a
/// buffer for no_buffer.
[[nodiscard]] inline Slice scalar(BufferId buffer) {
  return {.buffer = buffer, .offset = 0, .count = 1};
}

/// Calls visit(slice, mode) for each slice of the op that has a buffer, reads before writes.
template <class Visit>
void for_each_slice(const Payload& payload, const Visit& visit) {
  const auto read = [&](const Slice& slice) {
    if (slice.buffer != no_buffer && slice.count > 0) visit(slice, Mode::read);
  };
  const auto write = [&](const Slice& slice) {
    if (slice.buffer != no_buffer && slice.count > 0) visit(slice, Mode::write);
  };
  struct Visitor {
    const decltype(read)& r;
    const decltype(write)& w;
    void operator()(const Gemm& op) const {
      r(op.a.slice);
      r(op.b.slice);
      if (op.beta != 0) r(op.c.slice);
      r(scalar(op.descale_a));
      r(scalar(op.descale_b));
      w(op.d.slice);
    }
    void operator()(const Collective& op) const {
      r(op.send);
      w(op.receive);
    }
    void operator()(const Exchange& op) const {
      for (const Transfer& transfer : op.transfers) {
        if (transfer.direction == Direction::send) r(transfer.slice);
      }
      for (const Transfer& transfer : op.transfers) {
        if (transfer.direction == Direction::receive) w(transfer.slice);
      }
    }
    void operator()(const Copy& op) const {
      r(op.src.slice);
      w(op.dst.slice);
    }
    void operator()(const Add& op) const {
      r(op.a.slice);
      r(op.b.slice);
      w(op.dst.slice);
    }
    void operator()(const Cast& op) const {
      r(op.src.slice);
      w(op.dst.slice);
      w(op.transposed.slice);
      w(scalar(op.descale));
    }
    void operator()(const Fill& op) const { w(op.dst); }
    void operator()(const Norm& op) const {
      r(op.x.slice);
      r(op.addend.slice);
      w(op.sum.slice);
      w(op.y.slice);
      w(op.inverse);
    }
    void operator()(const NormGradient& op) const {
      r(op.dy.slice);
      r(op.s.slice);
      r(op.addend.slice);
      r(op.inverse);
      w(op.dx.slice);
    }
    void operator()(const Activation& op) const {
      r(op.x.slice);
      r(op.up.slice);
      w(op.y.slice);
    }
    void operator()(const ActivationGradient& op) const {
      r(op.dy.slice);
      r(op.x.slice);
      r(op.up.slice);
      w(op.dx.slice);
      w(op.dup.slice);
    }
    void operator()(const Softmax& op) const {
      r(op.x.slice);
      w(op.y.slice);
    }
    void operator()(const SoftmaxGradient& op) const {
      r(op.y.slice);
      r(op.dy.slice);
      w(op.dx.slice);
    }
    void operator()(const Select& op) const {
      r(op.src);
      w(op.values);
      w(op.places);
      w(op.src);
    }
    void operator()(const Spread& op) const {
      r(op.values);
      r(op.places);
      w(op.dst);
    }
    void operator()(const Rows& op) const {
      r(op.src.slice);
      w(op.dst.slice);
    }
    void operator()(const Checksum& op) const {
      r(op.src.slice);
      r(op.flip);
      if (op.flip.buffer != no_buffer) w(op.src.slice);
      w(op.sum);
    }
    void operator()(const Advise& op) const { r(op.slice); }
    void operator()(const Update& op) const {
      r(op.gradient);
      for (const Slice* slice : {&op.weight, &op.master, &op.moment1, &op.moment2, &op.powers}) {
        w(*slice);  // read and written; a write conflicts with all that a read conflicts with
      }
    }
  };
  std::visit(Visitor{read, write}, payload);
}

struct Extents {
  std::uint64_t rows = 0, columns = 0, batch = 1;
};

[[nodiscard]] inline bool exists(const Matrix& matrix) { return matrix.slice.buffer != no_buffer; }

/// Calls visit(matrix, extents) for each matrix of the op that has a buffer; twice for a matrix
/// that is read and written. Ops that have only slices get no call.
template <class Visit>
void for_each_matrix(const Payload& payload, const Visit& visit) {
  struct Visitor {
    const Visit& visit;
    void all(const Extents& extents, std::initializer_list<const Matrix*> matrices) const {
      for (const Matrix* matrix : matrices) {
        if (exists(*matrix)) visit(*matrix, extents);
      }
    }
    void operator()(const Gemm& op) const {
      const bool ta = op.transpose_a == Transpose::yes, tb = op.transpose_b == Transpose::yes;
      all({ta ? op.k : op.m, ta ? op.m : op.k, op.batch}, {&op.a});
      all({tb ? op.n : op.k, tb ? op.k : op.n, op.batch}, {&op.b});
      if (op.beta != 0) all({op.m, op.n, op.batch}, {&op.c});
      all({op.m, op.n, op.batch}, {&op.d});
    }
    void operator()(const Copy& op) const {
      all({op.rows, op.columns, op.batch}, {&op.src, &op.dst});
    }
    void operator()(const Add& op) const { all({op.rows, op.columns}, {&op.a, &op.b, &op.dst}); }
    void operator()(const Cast& op) const {
      all({op.rows, op.columns}, {&op.src, &op.dst});
      all({op.columns, op.rows}, {&op.transposed});
    }
    void operator()(const Norm& op) const {
      all({op.rows, op.columns}, {&op.x, &op.addend, &op.sum, &op.y});
    }
    void operator()(const NormGradient& op) const {
      all({op.rows, op.columns}, {&op.dy, &op.s, &op.addend, &op.dx});
    }
    void operator()(const Activation& op) const {
      all({op.rows, op.columns}, {&op.x, &op.up, &op.y});
    }
    void operator()(const ActivationGradient& op) const {
      all({op.rows, op.columns}, {&op.dy, &op.x, &op.up, &op.dx, &op.dup});
    }
    void operator()(const Softmax& op) const {
      all({op.rows, op.columns, op.batch}, {&op.x, &op.y});
    }
    void operator()(const SoftmaxGradient& op) const {
      all({op.rows, op.columns, op.batch}, {&op.y, &op.dy, &op.dx});
    }
    void operator()(const Checksum& op) const { all({op.rows, op.columns, op.batch}, {&op.src}); }
    void operator()(const Collective& /*op*/) const {}
    void operator()(const Exchange& /*op*/) const {}
    void operator()(const Fill& /*op*/) const {}
    void operator()(const Update& /*op*/) const {}
    void operator()(const Advise& /*op*/) const {}
    void operator()(const Select& /*op*/) const {}
    void operator()(const Spread& /*op*/) const {}
    void operator()(const Rows& /*op*/) const {}
  };
  std::visit(Visitor{visit}, payload);
}

/// Returns the bytes of a slice's elements; 0 without a buffer.
[[nodiscard]] std::uint64_t slice_bytes(const RankProgram& program, const Slice& slice);

/// Returns the bytes that an op which does not communicate reads and writes, counting each operand
/// once. Gaps in a strided matrix do not count, and a matrix that serves a whole batch counts once.
[[nodiscard]] std::uint64_t local_bytes(const RankProgram& program, const Payload& payload);

/// A matrix that an op writes; elements between its rows are not written.
struct Output {
  Matrix matrix{};
  Extents extents{};
};

/// Returns what an op writes; nothing for a Fill that leaves gaps between its elements.
[[nodiscard]] std::vector<Output> outputs_of(const Payload& payload);

/// Returns the reason if an op by itself is malformed: a matrix reaches beyond its slice, or
/// operands do not fit together. Absent if it is well formed.
[[nodiscard]] std::optional<std::string> shape_mistake(const Payload& payload);

/// Returns the reason if the extents or indices of a Select, Spread or Rows are wrong; absent for
/// other ops.
[[nodiscard]] std::optional<std::string> list_mistake(const Payload& payload);

}  // namespace isoscale::program
