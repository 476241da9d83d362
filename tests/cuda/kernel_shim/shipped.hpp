// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <gtest/gtest.h>

#include <array>

#include "executor/cuda/kernels/element_kernels.hpp"
#include "executor/cuda/kernels/layer_kernels.hpp"
#include "executor/cuda/kernels/list_kernels.hpp"
#include "executor/cuda/kernels/put.hpp"
#include "tests/cuda/kernel_shim/arrays.hpp"

/// The starts of the shipped kernels, by the name that they are compiled under here; start() is
/// that of the stand-ins.
namespace isoscale::executor::cuda {

cudaError_t start_shipped(const FillCall& call, cudaStream_t stream);
cudaError_t start_shipped(const AddCall& call, cudaStream_t stream);
cudaError_t start_shipped(const CastCall& call, cudaStream_t stream);
cudaError_t start_shipped(const UpdateCall& call, cudaStream_t stream);
cudaError_t start_shipped(const ChecksumCall& call, cudaStream_t stream);
cudaError_t start_shipped(const CopyCall& call, cudaStream_t stream);
cudaError_t start_shipped(const SelectCall& call, cudaStream_t stream);
cudaError_t start_shipped(const SpreadCall& call, cudaStream_t stream);
cudaError_t start_shipped(const RowsCall& call, cudaStream_t stream);
cudaError_t start_shipped(const NormCall& call, cudaStream_t stream);
cudaError_t start_shipped(const NormGradientCall& call, cudaStream_t stream);
cudaError_t start_shipped(const ActivationCall& call, cudaStream_t stream);
cudaError_t start_shipped(const ActivationGradientCall& call, cudaStream_t stream);
cudaError_t start_shipped(const SoftmaxCall& call, cudaStream_t stream);
cudaError_t start_shipped(const SoftmaxGradientCall& call, cudaStream_t stream);
cudaError_t start_shipped(const PutCall& call, cudaStream_t stream);

}  // namespace isoscale::executor::cuda

namespace isoscale::kernel_shim {

inline constexpr std::array floats{program::DType::f64, program::DType::f32, program::DType::f16,
                                   program::DType::bf16};

/// Starts a call twice: the shipped kernels, then the stand-ins' loops once `refer` has pointed the
/// call at their copies.
template <class Call, class Refer>
void start_both(const Case& one, Call call, const Refer& refer) {
  EXPECT_EQ(executor::cuda::start_shipped(call, one.stream()), cudaSuccess);
  refer(call);
  EXPECT_EQ(executor::cuda::start(call, one.stream()), cudaSuccess);
}

/// Calls try_case(case, type) for some seeds of each type.
template <class Types, class Try>
void for_cases(const Types& types, int rounds, const Try& try_case) {
  for (const program::DType type : types) {
    for (int seed = 0; seed < rounds; ++seed) {
      Case one{static_cast<std::uint64_t>(seed)};
      try_case(one, type);
      if (testing::Test::HasFailure()) return;
    }
  }
}

}  // namespace isoscale::kernel_shim
