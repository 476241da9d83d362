// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include "executor/cuda/kernels/layer_kernels.hpp"

namespace isoscale::executor::cuda {

/// All start their work on `stream` and throw CudaError when they cannot.
void launch(const NormCall& call, cudaStream_t stream);
void launch(const NormGradientCall& call, cudaStream_t stream);
void launch(const ActivationCall& call, cudaStream_t stream);
void launch(const ActivationGradientCall& call, cudaStream_t stream);
void launch(const SoftmaxCall& call, cudaStream_t stream);
void launch(const SoftmaxGradientCall& call, cudaStream_t stream);

}  // namespace isoscale::executor::cuda
