// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT

// The shipped kernels as C++, in as few pieces as their names allow.
#include "executor/cuda/kernels/activation.cu"
#include "executor/cuda/kernels/add.cu"
#include "executor/cuda/kernels/cast.cu"
#include "executor/cuda/kernels/checksum.cu"
#include "executor/cuda/kernels/copy.cu"
#include "executor/cuda/kernels/fill.cu"
#include "executor/cuda/kernels/norm.cu"
#include "executor/cuda/kernels/put.cu"
#include "executor/cuda/kernels/rows.cu"
#include "executor/cuda/kernels/select.cu"
#include "executor/cuda/kernels/softmax.cu"
#include "executor/cuda/kernels/spread.cu"
#include "executor/cuda/kernels/update.cu"
