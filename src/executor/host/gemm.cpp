// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include <cblas.h>

#include "executor/host/compute_calls.hpp"

namespace isoscale::executor::host {
namespace {

CBLAS_TRANSPOSE blas(program::Transpose transpose) {
  return transpose == program::Transpose::yes ? CblasTrans : CblasNoTrans;
}

void multiply(const GemmCall& g, const float* a, const float* b, float* d) {
  cblas_sgemm(CblasRowMajor, blas(g.transpose_a), blas(g.transpose_b), g.m, g.n, g.k,
              static_cast<float>(g.alpha), a, g.row_stride_a, b, g.row_stride_b,
              static_cast<float>(g.beta), d, g.row_stride_d);
}

void multiply(const GemmCall& g, const double* a, const double* b, double* d) {
  cblas_dgemm(CblasRowMajor, blas(g.transpose_a), blas(g.transpose_b), g.m, g.n, g.k, g.alpha, a,
              g.row_stride_a, b, g.row_stride_b, g.beta, d, g.row_stride_d);
}

/// OpenBLAS 0.3.21 has no batched GEMM; a loop over the batch is what the others do on a CPU too.
template <class T>
void multiply_batch(const GemmCall& g) {
  const auto* a = reinterpret_cast<const T*>(g.a);
  const auto* b = reinterpret_cast<const T*>(g.b);
  auto* d = reinterpret_cast<T*>(g.d);
  for (std::uint32_t i = 0; i < g.batch; ++i) {
    multiply(g, a, b, d);
    a += g.batch_stride_a;
    b += g.batch_stride_b;
    d += g.batch_stride_d;
  }
}

}  // namespace

void run(const GemmCall& call) {
  if (call.c_to_d) run(*call.c_to_d);
  if (call.element == Element::f32) {
    multiply_batch<float>(call);
  } else {
    multiply_batch<double>(call);
  }
}

}  // namespace isoscale::executor::host
