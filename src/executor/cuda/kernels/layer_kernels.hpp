// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "program/op.hpp"

/// Norms, activations and softmax, with one kernel each: f64 is computed in f64; f32, f16 and bf16
/// are computed in f32 and rounded once when stored. Pointers and strides are as in
/// element_kernels.hpp.
namespace isoscale::executor::cuda {

/// A matrix of a call, or a batch of matrices; data is null if the call does not have it.
struct MatrixAt {
  void* data = nullptr;
  std::uint64_t row_stride = 0, batch_stride = 0;
};

struct NormCall {
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0;
  MatrixAt x{}, addend{}, sum{}, y{};
  void* inverse = nullptr;  ///< f64 if the rows are f64, else f32
  double epsilon = 0;
};
[[nodiscard]] cudaError_t start(const NormCall& call, cudaStream_t stream);

struct NormGradientCall {
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0;
  MatrixAt dy{}, s{}, addend{}, dx{};
  const void* inverse = nullptr;
};
[[nodiscard]] cudaError_t start(const NormGradientCall& call, cudaStream_t stream);

struct ActivationCall {
  program::ActivationKind kind = program::ActivationKind::gelu;
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0;
  MatrixAt x{}, up{}, y{};
};
[[nodiscard]] cudaError_t start(const ActivationCall& call, cudaStream_t stream);

struct ActivationGradientCall {
  program::ActivationKind kind = program::ActivationKind::gelu;
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0;
  MatrixAt dy{}, x{}, up{}, dx{}, dup{};
};
[[nodiscard]] cudaError_t start(const ActivationGradientCall& call, cudaStream_t stream);

struct SoftmaxCall {
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0, batch = 1;
  MatrixAt x{}, y{};
};
[[nodiscard]] cudaError_t start(const SoftmaxCall& call, cudaStream_t stream);

struct SoftmaxGradientCall {
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0, batch = 1;
  MatrixAt y{}, dy{}, dx{};
};
[[nodiscard]] cudaError_t start(const SoftmaxGradientCall& call, cudaStream_t stream);

/// True if there is a kernel for the type of a call.
[[nodiscard]] bool has_kernel(const NormCall& call);
[[nodiscard]] bool has_kernel(const NormGradientCall& call);
[[nodiscard]] bool has_kernel(const ActivationCall& call);
[[nodiscard]] bool has_kernel(const ActivationGradientCall& call);
[[nodiscard]] bool has_kernel(const SoftmaxCall& call);
[[nodiscard]] bool has_kernel(const SoftmaxGradientCall& call);

}  // namespace isoscale::executor::cuda
