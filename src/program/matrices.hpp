// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cstdint>
#include <initializer_list>
#include <variant>

#include "program/op.hpp"

/// The matrices of an op with their extents: what shape checks and byte counts go through.
namespace isoscale::program {

struct Extents {
  std::uint64_t rows = 0, columns = 0, batch = 1;
};

[[nodiscard]] inline bool exists(const Matrix& matrix) { return matrix.slice.buffer != no_buffer; }

/// Calls visit(matrix, extents) for each matrix of the op that exists; one that is read and written
/// is named once for each. Nothing for ops that have slices instead.
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

}  // namespace isoscale::program
