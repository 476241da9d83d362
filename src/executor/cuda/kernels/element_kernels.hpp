// SPDX-FileCopyrightText: The Isoscale authors
// SPDX-License-Identifier: MIT
#pragma once

#include <cuda_runtime_api.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "executor/resolver.hpp"
#include "program/buffer.hpp"
#include "program/fill_and_checksum.hpp"
#include "program/op.hpp"

/// Ops that process memory element by element, with one kernel (or two) each; some of them are in
/// cast.cu, checksum.cu and update.cu. All pointers must be reachable from the device; strides are
/// in elements. start() returns at once, with an error if the launch failed.
namespace isoscale::executor::cuda {

/// Fills the elements of a shard, of any type, with the same function of (key, global index) as the
/// host, bit by bit.
struct FillCall {
  program::DType type = program::DType::f32;
  void* dst = nullptr;
  std::array<std::uint64_t, 3> extents{}, local{}, global{};
  std::uint64_t first = 0;  ///< global index of local element (0, 0, 0)
  program::FillGrid grid{};
  program::FillSource source = program::FillSource::random;
  double scale = 1;  ///< a power of two
  double value = 0;  ///< of every element when the source is constant
};
[[nodiscard]] cudaError_t start(const FillCall& call, cudaStream_t stream);

/// A call for program::Add in f64, f32, f16, bf16 and integers; narrow types are computed in f32.
struct AddCall {
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0;
  const void *a = nullptr, *b = nullptr;
  void* dst = nullptr;
  std::uint64_t a_row = 0, b_row = 0, dst_row = 0;
  double scale = 1;  ///< of b
};
[[nodiscard]] cudaError_t start(const AddCall& call, cudaStream_t stream);

/// A call for program::Cast. The source is f64, f32, f16 or bf16; the result is one of these types,
/// or e4m3 or e5m2. Values too large for an fp8 type saturate.
struct CastCall {
  program::DType from = program::DType::f32, to = program::DType::f32;
  std::uint64_t rows = 0, columns = 0;
  const void* src = nullptr;
  void *dst = nullptr, *transposed = nullptr;  ///< either may be null
  std::uint64_t src_row = 0, dst_row = 0, transposed_row = 0;
  program::CastScale scaling = program::CastScale::fixed;
  double scale = 1, target = 0;
  float* descale = nullptr;         ///< scaling amax: receives 1 / scale
  unsigned int* largest = nullptr;  ///< scaling amax: scratch, the bits of max |src| as f32
};
[[nodiscard]] cudaError_t start(const CastCall& call, cudaStream_t stream);

/// Tells if an Adam update advances its powers: the first update of a play that uses them does.
enum class Powers : std::uint8_t { advance, keep };

/// A call for program::Update. Either all types are f64, or the state is f32 and gradient and
/// weight are f32, f16 or bf16.
struct UpdateCall {
  program::Optimizer optimizer = program::Optimizer::sgd;
  program::DType state = program::DType::f32;  ///< of master (else weight), moments and powers
  program::DType gradient_type = program::DType::f32, weight_type = program::DType::f32;
  Powers powers_mode = Powers::keep;
  std::uint64_t count = 0;
  void *weight = nullptr, *master = nullptr;  ///< master may be null
  const void* gradient = nullptr;
  void *moment1 = nullptr, *moment2 = nullptr, *powers = nullptr;  ///< Adam only
  double gradient_scale = 1, rate = 0, beta1 = 0, beta2 = 0, epsilon = 0;
};
[[nodiscard]] cudaError_t start(const UpdateCall& call, cudaStream_t stream);

/// A copy of many pieces by one kernel, between memories that the device reaches. Rows of the
/// source may overlap.
struct CopyCall {
  StridedCopy pieces{};
};
[[nodiscard]] cudaError_t start(const CopyCall& call, cudaStream_t stream);

/// A call for program::Checksum, for elements of any type.
struct ChecksumCall {
  program::DType type = program::DType::f32;
  std::uint64_t rows = 0, columns = 0, batch = 1;
  void* src = nullptr;
  std::uint64_t row_stride = 0, batch_stride = 0;
  void* sum = nullptr;         ///< two 64-bit words
  const void* flip = nullptr;  ///< null, or two 64-bit words
};
[[nodiscard]] cudaError_t start(const ChecksumCall& call, cudaStream_t stream);

/// True if there is a kernel for the types of a call.
[[nodiscard]] bool has_kernel(const FillCall& call);
[[nodiscard]] bool has_kernel(const AddCall& call);
[[nodiscard]] bool has_kernel(const CastCall& call);
[[nodiscard]] bool has_kernel(const UpdateCall& call);

}  // namespace isoscale::executor::cuda
