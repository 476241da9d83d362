// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The shipped kernels as C++, in as few pieces as their names allow.
#include "executor/cuda/kernels/cast.cu"
#include "executor/cuda/kernels/element_kernels.cu"
#include "executor/cuda/kernels/layer_kernels.cu"
#include "executor/cuda/kernels/put.cu"
#include "executor/cuda/kernels/topk_scatter_gather.cu"
