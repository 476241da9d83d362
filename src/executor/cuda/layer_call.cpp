// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#include "executor/cuda/layer_call.hpp"

#include "executor/cuda/check.hpp"

namespace isoscale::executor::cuda {

void launch(const NormCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const NormGradientCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const ActivationCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const ActivationGradientCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const SoftmaxCall& call, cudaStream_t stream) { check(start(call, stream)); }
void launch(const SoftmaxGradientCall& call, cudaStream_t stream) { check(start(call, stream)); }

}  // namespace isoscale::executor::cuda
